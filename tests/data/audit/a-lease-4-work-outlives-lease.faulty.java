import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

class Drainer {
    private static final long LEASE_S = 5;

    void drain(RedissonClient redisson) throws InterruptedException {
        RLock lock = redisson.getLock("drain");
        lock.lock(LEASE_S, TimeUnit.SECONDS);
        try {
            Thread.sleep(20_000);  // expect: A-LEASE-4 lease
        } finally {
            lock.unlock();
        }
    }
}
