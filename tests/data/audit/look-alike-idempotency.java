import java.time.Duration;
import org.springframework.data.redis.core.StringRedisTemplate;

class IdempotencyGuard {
    private final StringRedisTemplate redis;

    IdempotencyGuard(StringRedisTemplate redis) {
        this.redis = redis;
    }

    boolean begin(String id) {
        return Boolean.TRUE.equals(
            redis.opsForValue().setIfAbsent("payment:" + id, "pending", Duration.ofHours(1)));
    }

    void forget(String id) {
        redis.delete("payment:" + id); // no lock: on purpose, it is to run again
    }
}
