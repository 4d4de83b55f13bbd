from django.core.cache import cache

LOCK_EXPIRE = 60 * 5


def feed(url):
    with cache.lock(f"feed-lock-{url}", timeout=LOCK_EXPIRE):
        print("importing", url)
