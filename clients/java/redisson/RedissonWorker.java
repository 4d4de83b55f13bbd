import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisConnectionException;
import org.redisson.config.Config;

/**
 * A worker for Redisson's RLock on one Redis.
 *
 * <p>With the option lease = "watchdog" (the default) Redisson renews by itself every third of
 * ttl_ms, as it does where no lease is given; "fixed" gives each acquire the lease ttl_ms.
 *
 * <p>Traps. An RLock belongs to a client and a thread and is reentrant, so all calls are made on
 * one thread, and a key that this worker holds already is refused here. unlock() of a lock that is
 * somebody else's raises IllegalMonitorStateException, which the server's script decides.
 * Redisson sends a command again by itself (retryAttempts); the option client_retries is 0 here.
 */
public final class RedissonWorker extends Worker {
    private static final String NOT_OWNER = "attempt to unlock lock, not locked by current thread";

    private RedissonClient client;
    private boolean watchdog;
    private String node;
    private final Map<String, Held> held = new HashMap<>();

    private record Held(String key, RLock lock) {}

    public static void main(String[] arguments) throws IOException {
        takeStdout();
        new RedissonWorker().serve();
    }

    @Override
    void hello(ObjectNode value) {
        value.put("library", "redisson");
        ((ObjectNode) value.get("versions")).put("redisson",
            Redisson.class.getPackage().getImplementationVersion());
        value.putObject("lease").put("kind", "ttl").putNull("ttl_ms");
        value.putArray("powers").add("believes");
    }

    @Override
    boolean isOpen() {
        return client != null;
    }

    @Override
    Call open(JsonNode nodes, JsonNode given) throws Refused {
        Options options = new Options(given);
        int retries = options.number("client_retries", 0, 0);
        int timeout = options.number("socket_timeout_ms", 3000, 1);
        watchdog = options.word("lease", "watchdog", "fixed").equals("watchdog");
        options.done();
        JsonNode first = nodes.get(0);
        node = first.get("name").asText();
        Config config = new Config();
        config.setNettyThreads(4).setThreads(4);
        config.useSingleServer()
            .setAddress("redis://" + first.get("host").asText() + ":" + first.get("port").asInt())
            .setClientName("lockhavoc-" + first.get("port").asInt())
            .setRetryAttempts(retries).setTimeout(timeout).setConnectTimeout(timeout)
            .setConnectionPoolSize(4).setConnectionMinimumIdleSize(1)
            .setSubscriptionConnectionPoolSize(4).setSubscriptionConnectionMinimumIdleSize(1);
        return () -> {
            try {
                client = Redisson.create(config);
            } catch (RedisConnectionException error) {
                throw new Refused("cannot connect: " + error);
            }
            return null;
        };
    }

    @Override
    void shut() {
        if (client != null) {
            held.clear();
            RedissonClient old = client;
            client = null;
            old.shutdown(0, 500, TimeUnit.MILLISECONDS);
        }
    }

    @Override
    Call acquire(String key, String hold, long ttlMs, long timeoutMs) throws Refused {
        if (ttlMs < 1) {
            throw new Refused("ttl_ms is missing; a lock of Redisson has a lease or a watchdog");
        }
        if (held.values().stream().anyMatch(one -> one.key().equals(key) && one.lock().isHeldByCurrentThread())) {
            throw new Refused("this client holds the key already, and a lock of Redisson is reentrant");
        }
        // The watchdog's length is a setting of the client, which a new RLock takes from its copy.
        ((Redisson) client).getServiceManager().getCfg().setLockWatchdogTimeout(ttlMs);
        RLock lock = client.getLock(key);
        return () -> {
            boolean got = watchdog
                ? lock.tryLock(timeoutMs, TimeUnit.MILLISECONDS)
                : lock.tryLock(timeoutMs, ttlMs, TimeUnit.MILLISECONDS);
            if (!got) {
                throw new Refused("busy");
            }
            held.put(hold, new Held(key, lock));
            return granted(client.getId() + ":" + Thread.currentThread().getId(), node);
        };
    }

    private Held of(String hold) throws Refused {
        Held found = held.get(hold);
        if (found == null) {
            throw new Refused("hold is '" + hold + "', which has no grant in this worker");
        }
        return found;
    }

    @Override
    Call release(String hold) throws Refused {
        Held grant = of(hold);
        return () -> {
            try {
                grant.lock().unlock();
            } catch (IllegalMonitorStateException error) {
                held.remove(hold);
                if (String.valueOf(error.getMessage()).startsWith(NOT_OWNER)) {
                    throw new Refused("not-held");
                }
                throw error;
            }
            held.remove(hold);
            return null;
        };
    }

    @Override
    Call believes(String hold) throws Refused {
        Held grant = of(hold);
        return () -> JSON.getNodeFactory().booleanNode(grant.lock().isHeldByCurrentThread());
    }
}
