import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

class Reporter {
    private final RLock lock;

    Reporter(RedissonClient redisson) {
        this.lock = redisson.getLock("report");
    }

    void report() throws InterruptedException {
        lock.tryLock(5, 30, TimeUnit.SECONDS);  // expect: A-ID-6 identity
        try {
            System.out.println("report");
        } finally {
            lock.unlock();
        }
    }
}
