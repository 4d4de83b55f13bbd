import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

class Mover {
    void move(RedissonClient redisson, String item) {
        RLock lock = redisson.getLock("move:" + item);
        lock.lock();
        try {
            carry(item);
        } finally {
            lock.unlock();
        }
    }

    private void carry(String item) {
        System.out.println(item);
    }
}
