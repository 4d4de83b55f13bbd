"""Names of the recipes: one line each.  ``clients/registry.py`` merges them into LIBRARIES."""

RECIPES = {
    "recipe-redis": "clients.recipes.libraries:REDIS",
    "recipe-redis-fenced": "clients.recipes.libraries:REDIS_FENCED",
}
