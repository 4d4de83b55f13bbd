import java.util.Collections;
import java.util.UUID;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.params.SetParams;

class Exporter {
    private static final String RELEASE =
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end";

    void export(Jedis jedis) {
        String token = UUID.randomUUID().toString();
        if ("OK".equals(jedis.set("lock:export", token, SetParams.setParams().nx().ex(60)))) {
            try {
                System.out.println(SetParams.setParams());
            } finally {
                jedis.eval(RELEASE, Collections.singletonList("lock:export"),
                    Collections.singletonList(token));
            }
        }
    }
}
