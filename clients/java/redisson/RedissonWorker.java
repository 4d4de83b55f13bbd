import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
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
public final class RedissonWorker {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String NOT_OWNER = "attempt to unlock lock, not locked by current thread";
    private static PrintStream out;

    private RedissonClient client;
    private Config config;
    private boolean watchdog;
    private String node;
    private Resource resource;
    private final Map<String, Held> held = new HashMap<>();
    private final Map<String, Long> versions = new HashMap<>();

    private record Held(String key, RLock lock) {}

    /** The operation surely had no effect; the text is a word or a reason. */
    static final class Refused extends Exception {
        Refused(String why) {
            super(why);
        }
    }

    private interface Call {
        JsonNode run() throws Exception;
    }

    public static void main(String[] arguments) throws IOException {
        out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        System.setOut(System.err); // whatever the library prints
        ignore("INT");
        new RedissonWorker().serve();
    }

    private static void ignore(String name) {
        sun.misc.Signal.handle(new sun.misc.Signal(name), sun.misc.SignalHandler.SIG_IGN);
    }

    private static void end() {
        Runtime.getRuntime().halt(0); // no hook of the library may keep the process alive
    }

    private void serve() throws IOException {
        sun.misc.Signal.handle(new sun.misc.Signal("TERM"), signal -> end());
        ObjectNode hello = JSON.createObjectNode();
        hello.put("protocol", 1).put("library", "redisson");
        hello.putObject("versions").put("redisson", Redisson.class.getPackage()
            .getImplementationVersion()).put("java", System.getProperty("java.version"));
        hello.putObject("lease").put("kind", "ttl").putNull("ttl_ms");
        hello.putArray("powers").add("believes");
        say(JSON.createObjectNode().put("event", "hello").set("value", hello));
        var lines = new java.util.concurrent.LinkedBlockingQueue<String>();
        Thread reader = new Thread(() -> read(lines), "lockhavoc-requests");
        reader.setDaemon(true);
        reader.start();
        while (true) {
            try {
                answer(lines.take());
            } catch (InterruptedException error) {
                end();
            }
        }
    }

    private static void read(java.util.concurrent.BlockingQueue<String> lines) {
        try (var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                lines.add(line);
            }
        } catch (IOException error) {
            System.err.println("stdin: " + error);
        }
        end(); // connections end with the process, and locks with their lease
    }

    private static synchronized void say(JsonNode message) throws IOException {
        out.write((JSON.writeValueAsString(message) + "\n").getBytes(StandardCharsets.UTF_8));
        out.flush();
        if (out.checkError()) {
            end();
        }
    }

    private void answer(String line) throws IOException {
        JsonNode asked;
        try {
            asked = JSON.readTree(line);
        } catch (IOException error) {
            asked = null;
        }
        if (asked == null || !asked.isObject() || !asked.path("id").isIntegralNumber()
            || asked.path("id").asLong() < 1) {
            say(JSON.createObjectNode().put("event", "log").put("error", "ignored a line: no request"));
            return;
        }
        ObjectNode reply = JSON.createObjectNode().put("id", asked.get("id").asLong());
        long invoke = System.nanoTime(); // CLOCK_MONOTONIC on Linux
        try {
            Call call = prepare(asked);
            invoke = System.nanoTime();
            JsonNode value = call.run();
            reply.put("type", "ok").put("invoke", invoke).put("complete", System.nanoTime());
            if (value != null) {
                reply.set("value", value);
            }
        } catch (Refused refused) {
            reply.put("type", "fail").put("invoke", invoke).put("complete", System.nanoTime());
            reply.put("error", brief(refused.getMessage()));
        } catch (Exception error) {
            reply.put("type", "info").put("invoke", invoke).put("complete", System.nanoTime());
            reply.put("error", brief(error.toString()));
        }
        say(reply);
    }

    private static String brief(String text) {
        String line = text.replaceAll("\\s+", " ");
        return line.length() > 500 ? line.substring(0, 497) + "..." : line;
    }

    private Call prepare(JsonNode asked) throws Refused {
        String what = asked.path("do").asText();
        if (client == null && !what.equals("open") && !what.equals("close")) {
            throw new Refused("do is '" + what + "', but the client is not open");
        }
        switch (what) {
            case "open": return open(asked.path("options"));
            case "acquire": return acquire(text(asked, "key"), text(asked, "hold"),
                asked.path("ttl_ms").asLong(), asked.path("timeout_ms").asLong());
            case "release": return release(text(asked, "hold"));
            case "believes": return believes(text(asked, "hold"));
            case "write": return write(asked, text(asked, "key"));
            case "read": return read(asked, text(asked, "key"));
            case "close": return this::close;
            default: throw new Refused("do is '" + what + "', which is unknown here");
        }
    }

    private static String text(JsonNode asked, String name) throws Refused {
        if (!asked.path(name).isTextual()) {
            throw new Refused(name + " is missing; do '" + asked.path("do").asText() + "' needs it");
        }
        return asked.get(name).asText();
    }

    private Call open(JsonNode given) throws Refused {
        if (client != null) {
            throw new Refused("do is 'open', but the client is open already; send close first");
        }
        JsonNode nodes = given.path("nodes");
        int retries = 0;
        int timeout = 3000;
        String lease = "watchdog";
        List<String> wrong = new ArrayList<>();
        for (Iterator<Map.Entry<String, JsonNode>> it = given.path("options").fields(); it.hasNext();) {
            var option = it.next();
            JsonNode value = option.getValue();
            switch (option.getKey()) {
                case "client_retries": retries = value.asInt(-1); break;
                case "socket_timeout_ms": timeout = value.asInt(-1); break;
                case "lease": lease = value.asText(); break;
                default: wrong.add("option '" + option.getKey()
                    + "' is unknown (known: client_retries, socket_timeout_ms, lease)");
            }
        }
        if (retries < 0 || timeout < 1) {
            wrong.add("client_retries and socket_timeout_ms must be whole numbers");
        }
        if (!lease.equals("watchdog") && !lease.equals("fixed")) {
            wrong.add("option lease is '" + lease + "'; it must be watchdog or fixed");
        }
        if (nodes.isEmpty()) {
            wrong.add("open named no nodes; Redisson needs one");
        }
        if (!wrong.isEmpty()) {
            throw new Refused(String.join("; ", wrong));
        }
        JsonNode place = given.path("resource");
        resource = place.isObject()
            ? new Resource(place.get("host").asText(), place.get("port").asInt()) : null;
        node = nodes.get(0).get("name").asText();
        watchdog = lease.equals("watchdog");
        config = new Config();
        config.setNettyThreads(4).setThreads(4);
        config.useSingleServer()
            .setAddress("redis://" + nodes.get(0).get("host").asText() + ":" + nodes.get(0).get("port").asInt())
            .setClientName("lockhavoc-" + nodes.get(0).get("port").asInt())
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

    private JsonNode close() {
        if (client != null) {
            held.clear();
            versions.clear();
            if (resource != null) {
                resource.close();
            }
            RedissonClient old = client;
            client = null;
            old.shutdown(0, 500, TimeUnit.MILLISECONDS);
        }
        return null;
    }

    private Call acquire(String key, String hold, long ttlMs, long timeoutMs) throws Refused {
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
            ObjectNode value = JSON.createObjectNode();
            value.put("owner", client.getId() + ":" + Thread.currentThread().getId()).putNull("token");
            value.putArray("nodes").add(node);
            return value;
        };
    }

    private Held granted(String hold) throws Refused {
        Held found = held.get(hold);
        if (found == null) {
            throw new Refused("hold is '" + hold + "', which has no grant in this worker");
        }
        return found;
    }

    private Call release(String hold) throws Refused {
        Held grant = granted(hold);
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

    private Call believes(String hold) throws Refused {
        Held grant = granted(hold);
        return () -> JSON.getNodeFactory().booleanNode(grant.lock().isHeldByCurrentThread());
    }

    private Resource protectedThing() throws Refused {
        if (resource == null) {
            throw new Refused("open named no resource");
        }
        return resource;
    }

    private Call write(JsonNode asked, String key) throws Refused {
        Resource there = protectedThing();
        String seen = key + "\0" + asked.path("hold").asText();
        ObjectNode message = JSON.createObjectNode().put("do", "write").put("key", key);
        message.set("hold", asked.get("hold"));
        message.set("token", asked.get("token"));
        message.set("value", asked.get("value"));
        JsonNode expect = asked.path("options").get("expect");
        if (expect == null && versions.containsKey(seen)) {
            message.put("expect", versions.get(seen));
        } else {
            message.set("expect", expect);
        }
        return () -> {
            JsonNode told = there.ask(message);
            versions.put(seen, told.path("version").asLong());
            ObjectNode value = JSON.createObjectNode();
            value.set("version", told.get("version"));
            value.set("seq", told.get("seq"));
            return value;
        };
    }

    private Call read(JsonNode asked, String key) throws Refused {
        Resource there = protectedThing();
        String seen = key + "\0" + asked.path("hold").asText();
        return () -> {
            JsonNode told = there.ask(JSON.createObjectNode().put("do", "read").put("key", key));
            versions.put(seen, told.path("version").asLong());
            ObjectNode value = JSON.createObjectNode();
            value.set("value", told.get("value"));
            value.set("version", told.get("version"));
            return value;
        };
    }
}
