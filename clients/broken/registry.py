"""Names of the canaries: one line each.  ``clients/registry.py`` merges them into LIBRARIES."""

CANARIES = {
    "broken-no-ttl": "clients.broken.libraries:NO_TTL",
    "broken-set-then-expire": "clients.broken.libraries:SET_THEN_EXPIRE",
    "broken-release-without-check": "clients.broken.libraries:RELEASE_WITHOUT_CHECK",
    "broken-read-then-delete": "clients.broken.libraries:READ_THEN_DELETE",
    "broken-renewal-recreates": "clients.broken.libraries:RENEWAL_RECREATES",
    "broken-constant-token": "clients.broken.libraries:CONSTANT_TOKEN",
    "broken-token-reused": "clients.broken.libraries:TOKEN_REUSED",
    "broken-rw-writer-among-readers": "clients.broken.libraries:RW_WRITER_AMONG_READERS",
    "broken-rw-readers-counted": "clients.broken.libraries:RW_READERS_COUNTED",
    "broken-semaphore-one-too-many": "clients.broken.libraries:SEMAPHORE_ONE_TOO_MANY",
    "broken-semaphore-counted": "clients.broken.libraries:SEMAPHORE_COUNTED",
}
