import java.time.Duration;
import java.util.UUID;
import org.springframework.data.redis.core.StringRedisTemplate;

class Leader {
    private static final Duration LEASE = Duration.ofSeconds(30);
    private final StringRedisTemplate redis;

    Leader(StringRedisTemplate redis) {
        this.redis = redis;
    }

    String lead() {
        String token = UUID.randomUUID().toString();
        // expect on line 16: A-LEASE-1 lease
        Boolean taken = redis.opsForValue().setIfAbsent("leader", token);
        return taken != null && taken ? token : null;
    }

    Duration lease() {
        return LEASE;
    }
}
