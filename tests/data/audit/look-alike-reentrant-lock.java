import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.redisson.api.RedissonClient;
import org.springframework.data.redis.core.StringRedisTemplate;

class Counter {
    private final ReentrantLock lock = new ReentrantLock();
    private RedissonClient redisson;
    private StringRedisTemplate redis;

    void count() throws InterruptedException {
        lock.tryLock(1, TimeUnit.SECONDS);
        redis.opsForValue().increment("count");
        lock.unlock();
    }

    Boolean firstTime(String event) {
        return redis.opsForValue().setIfAbsent("seen:" + event, "1", 1, TimeUnit.HOURS);
    }
}
