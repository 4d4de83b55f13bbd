import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

class Biller {
    void bill(RedissonClient redisson, String order) throws InterruptedException {
        RLock lock = redisson.getLock("bill:" + order);
        boolean held = lock.tryLock(1, 30, TimeUnit.SECONDS);
        if (!held) {
            throw new IllegalStateException("busy");
        }
        try {
            System.out.println(order);
        } finally {
            lock.forceUnlock();  // expect: A-ID-1 release_retry
        }
    }
}
