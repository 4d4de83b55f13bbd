import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.Locker;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryNTimes;

/**
 * A worker for Curator's InterProcessMutex; with the argument form=block for its block form,
 * try (Locker ...), which is Curator's class for it.
 *
 * <p>A holder is told of a loss by a ConnectionStateListener, as Curator's manual asks for: LOST (the
 * session is over, by a server's word or by Curator's own count of its length) or, with the option
 * tell_at = "SUSPENDED", as soon as the connection is gone.
 *
 * <p>Traps. release() of a lock whose session is over answers like one that removed it; so after a
 * LOST the server is asked first whether the node is there, and only its no is "not-held"; a session
 * that ends while the release is under way makes it unknown. An acquire that gave up deletes its
 * place in the queue, in the background if it has to: "busy" is an observation only if the
 * connection stood all the time. Curator follows the ensemble's own list of servers, which would
 * lead past the proxies: the ensemble tracker is off. Which server a client begins with is drawn by
 * ZooKeeper's client.
 */
public final class CuratorWorker extends Worker {
    private static final String ROOT = "/lockhavoc/locks/";
    private static final String TIMED_OUT = "Could not acquire lock"; // what Locker says itself

    private final boolean block;
    private CuratorFramework client;
    private ConnectionState tellAt;
    private byte[] name;
    private final Map<String, Held> held = new HashMap<>(); // guarded by itself
    private volatile int breaks; // how often the connection was lost

    /** A lock that is asked for or was granted, and what became of its session. */
    private final class Held extends InterProcessMutex {
        final String key;
        Locker locker;
        boolean granted;
        boolean told;
        boolean lost;
        long session;

        Held(String key) {
            super(client, ROOT + key);
            this.key = key;
        }

        @Override
        protected byte[] getLockNodeBytes() {
            return name; // by which a fault finds the session
        }

        String node() {
            return getLockPath(); // of the calling thread
        }
    }

    private CuratorWorker(boolean block) {
        this.block = block;
    }

    public static void main(String[] arguments) throws IOException {
        takeStdout();
        boolean block = List.of(arguments).contains("form=block");
        new CuratorWorker(block).serve();
    }

    @Override
    void hello(ObjectNode value) {
        value.put("library", block ? "curator-locker" : "curator");
        ((ObjectNode) value.get("versions"))
            .put("curator", CuratorFramework.class.getPackage().getImplementationVersion())
            .put("zookeeper-client", org.apache.zookeeper.Version.getVersion());
        value.putObject("lease").put("kind", "session").putNull("ttl_ms");
        value.putArray("powers").add("believes").add("signals-loss");
    }

    @Override
    boolean isOpen() {
        return client != null;
    }

    @Override
    Call open(JsonNode nodes, JsonNode given) throws Refused {
        Options options = new Options(given);
        int session = options.number("session_ms", 2000, 1);
        int connect = options.number("connect_timeout_ms", 10_000, 1);
        int retries = options.number("client_retries", 3, 0);
        int pause = options.number("retry_ms", 1000, 1);
        tellAt = ConnectionState.valueOf(options.word("tell_at", "LOST", "SUSPENDED"));
        options.done();
        List<String> hosts = new ArrayList<>();
        for (JsonNode node : nodes) {
            hosts.add(node.get("host").asText() + ":" + node.get("port").asInt());
        }
        name = ("lockhavoc-" + nodes.get(0).get("port").asInt()).getBytes(StandardCharsets.UTF_8);
        CuratorFramework fresh = CuratorFrameworkFactory.builder()
            .connectString(String.join(",", hosts))
            .sessionTimeoutMs(session)
            .connectionTimeoutMs(connect)
            .retryPolicy(new RetryNTimes(retries, pause))
            .ensembleTracker(false)
            .defaultData(new byte[0])
            .build();
        return () -> {
            fresh.getConnectionStateListenable().addListener((from, state) -> changed(state));
            fresh.start();
            if (!fresh.blockUntilConnected(connect, TimeUnit.MILLISECONDS)) {
                fresh.close();
                throw new Refused("cannot connect: no answer in " + connect + " ms");
            }
            client = fresh;
            return null;
        };
    }

    /** From Curator's own thread, so nothing here may block. */
    private void changed(ConnectionState state) {
        long when = System.nanoTime();
        if (state != ConnectionState.SUSPENDED && state != ConnectionState.LOST) {
            return;
        }
        breaks++;
        Map<String, String> tell = new HashMap<>();
        synchronized (held) {
            held.forEach((hold, one) -> {
                one.lost |= state == ConnectionState.LOST;
                if (one.granted && !one.told && (one.lost || state == tellAt)) {
                    one.told = true;
                    tell.put(hold, one.key);
                }
            });
        }
        tell.forEach((hold, key) -> lost(key, hold, state.name(), when));
    }

    @Override
    void shut() {
        synchronized (held) {
            held.clear();
        }
        if (client != null) {
            client.close(); // ends the session, and with it what it holds
            client = null;
        }
    }

    @Override
    Call acquire(String key, String hold, long ttlMs, long timeoutMs) throws Refused {
        Held lock = new Held(key);
        synchronized (held) {
            held.put(hold, lock);
        }
        return () -> {
            int before = breaks;
            try {
                if (!enter(lock, timeoutMs)) {
                    if (breaks != before) {
                        throw new IOException(
                            "gave up, but its node may be queued still: the connection was lost");
                    }
                    throw new Refused("busy");
                }
                String owner = lock.node();
                synchronized (held) {
                    if (lock.lost) {
                        throw new IOException("the session ended while the lock was granted");
                    }
                    lock.granted = true;
                }
                lock.session = session();
                return granted(owner, null);
            } catch (Exception error) {
                forget(hold);
                throw error;
            }
        };
    }

    private boolean enter(Held lock, long timeoutMs) throws Exception {
        if (!block) {
            return lock.acquire(timeoutMs, TimeUnit.MILLISECONDS);
        }
        try {
            lock.locker = new Locker(lock, timeoutMs, TimeUnit.MILLISECONDS);
            return true;
        } catch (TimeoutException error) {
            if (String.valueOf(error.getMessage()).startsWith(TIMED_OUT)) {
                return false;
            }
            throw error;
        }
    }

    private void forget(String hold) {
        synchronized (held) {
            held.remove(hold);
        }
    }

    private Held of(String hold) throws Refused {
        Held found;
        synchronized (held) {
            found = held.get(hold);
        }
        if (found == null) {
            throw new Refused("hold is '" + hold + "', which has no grant in this worker");
        }
        return found;
    }

    @Override
    Call release(String hold) throws Refused {
        Held lock = of(hold);
        return () -> {
            String node = lock.node();
            boolean gone = lock.lost && node != null && client.checkExists().forPath(node) == null;
            if (block) {
                lock.locker.close();
            } else {
                lock.release();
            }
            forget(hold);
            if (gone) {
                throw new Refused("not-held");
            }
            if (lock.lost || lock.session != session()) {
                throw new IOException("the session ended meanwhile; whether there was a lock to remove, "
                    + "release() does not say");
            }
            return null;
        };
    }

    private long session() throws Exception {
        return client.getZookeeperClient().getZooKeeper().getSessionId();
    }

    @Override
    Call believes(String hold) throws Refused {
        Held lock = of(hold);
        return () -> JSON.getNodeFactory().booleanNode(lock.isOwnedByCurrentThread());
    }
}
