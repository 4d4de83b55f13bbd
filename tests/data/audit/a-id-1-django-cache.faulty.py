from django.core.cache import cache

LOCK_EXPIRE = 60 * 5


def feed(url):
    lock_id = f"feed-lock-{url}"
    if cache.add(lock_id, "true", LOCK_EXPIRE):  # expect: A-ID-2 identity
        try:
            print("importing", url)
        finally:
            cache.delete(lock_id)  # expect: A-ID-1 release_retry
