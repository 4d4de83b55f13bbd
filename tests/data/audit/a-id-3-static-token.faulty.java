import java.util.List;
import java.util.UUID;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.params.SetParams;

class Sweeper {
    private static final String TOKEN = UUID.randomUUID().toString();
    private static final String RELEASE =
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end";

    boolean sweep(Jedis jedis) {
        // expect on line 13: A-ID-3 identity
        String taken = jedis.set("lock:sweep", TOKEN, new SetParams().nx().px(60_000));
        if (taken == null) {
            return false;
        }
        try {
            System.out.println("sweeping");
        } finally {
            jedis.eval(RELEASE, List.of("lock:sweep"), List.of(TOKEN));
        }
        return true;
    }
}
