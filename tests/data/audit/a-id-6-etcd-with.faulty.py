import etcd3

client = etcd3.client()


def rotate():
    with client.lock("rotate", ttl=30):  # expect: A-ID-6 identity
        print("rotating")
