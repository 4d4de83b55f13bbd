class Guard:
    def __init__(self, client, key, ttl=30):
        self.client = client
        self.key = key
        self.ttl = ttl

    def __enter__(self):
        # expect on line 9: A-ID-2 identity, A-ID-6 identity
        self.client.set(self.key, "1", nx=True, ex=self.ttl)
        return self

    def __exit__(self, *error):
        self.client.delete(self.key)  # expect: A-ID-1 release_retry
