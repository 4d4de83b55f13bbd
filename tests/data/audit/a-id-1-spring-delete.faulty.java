import java.time.Duration;
import java.util.List;
import java.util.UUID;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.script.DefaultRedisScript;

class Rebuilder {
    private static final DefaultRedisScript<Long> RELEASE = new DefaultRedisScript<>(
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end "
            + "return 0", Long.class);
    private final StringRedisTemplate redis;

    Rebuilder(StringRedisTemplate redis) {
        this.redis = redis;
    }

    void rebuild(String name) {
        String lockKey = "lock:" + name;
        String token = UUID.randomUUID().toString();
        Boolean taken = redis.opsForValue().setIfAbsent(lockKey, token, Duration.ofSeconds(30));
        if (!Boolean.TRUE.equals(taken)) {
            return;
        }
        try {
            System.out.println(name);
        } finally {
            redis.delete(lockKey);  // expect: A-ID-1 release_retry
        }
    }
}
