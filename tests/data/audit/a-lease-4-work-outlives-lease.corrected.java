import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

class Drainer {
    void drain(RedissonClient redisson) throws InterruptedException {
        RLock lock = redisson.getLock("drain");
        lock.lock();
        try {
            Thread.sleep(20_000);
        } finally {
            lock.unlock();
        }
    }
}
