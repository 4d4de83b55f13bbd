"""Names of the recipes: one line each.  ``clients/registry.py`` merges them into LIBRARIES."""

RECIPES = {
    "recipe-redis": "clients.recipe_libraries:REDIS",
    "recipe-redis-fenced": "clients.recipe_libraries:REDIS_FENCED",
    "recipe-redis-rw": "clients.recipe_libraries:REDIS_RW",
    "recipe-redis-semaphore": "clients.recipe_libraries:REDIS_SEMAPHORE",
}
