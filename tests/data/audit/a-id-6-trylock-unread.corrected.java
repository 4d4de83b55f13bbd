import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

class Reporter {
    private final RLock lock;

    Reporter(RedissonClient redisson) {
        this.lock = redisson.getLock("report");
    }

    void report() throws InterruptedException {
        if (!lock.tryLock(5, 30, TimeUnit.SECONDS)) {
            return;
        }
        try {
            System.out.println("report");
        } finally {
            lock.unlock();
        }
    }
}
