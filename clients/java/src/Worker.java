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
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * A worker but for its library: the protocol of docs/reference/worker-protocol.md.
 *
 * <p>A subclass says what it is and gives the calls. Each is prepared first (where what is wrong
 * with a request is refused) and then run, and only the run lies between the two stamps.
 *
 * <p>Trap: all calls are made on the one thread that runs serve(), since locks belong to threads.
 */
abstract class Worker {
    static final ObjectMapper JSON = new ObjectMapper();
    private static final int TEXT_MAX = 500;
    private static PrintStream out;

    private Resource resource;
    private final Map<String, Long> versions = new HashMap<>();

    /** The part between the stamps. An exception that is not Refused is an unknown outcome. */
    interface Call {
        JsonNode run() throws Exception;
    }

    /** Fills in library, versions, lease and powers. */
    abstract void hello(ObjectNode value);

    abstract boolean isOpen();

    /** nodes is a list of at least one; options are those of the scenario. */
    abstract Call open(JsonNode nodes, JsonNode options) throws Refused;

    /** Gives up the client; nothing is released behind the harness' back. */
    abstract void shut();

    abstract Call acquire(String key, String hold, long ttlMs, long timeoutMs) throws Refused;

    abstract Call release(String hold) throws Refused;

    abstract Call believes(String hold) throws Refused;

    /** stdout is kept for messages; whatever else is printed goes to stderr. */
    static void takeStdout() throws IOException {
        out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        System.setOut(System.err);
    }

    private static void end() {
        Runtime.getRuntime().halt(0); // no hook of the library may keep the process alive
    }

    void serve() throws IOException {
        for (String name : new String[] {"INT", "USR1", "USR2"}) {
            sun.misc.Signal.handle(new sun.misc.Signal(name), sun.misc.SignalHandler.SIG_IGN);
        }
        sun.misc.Signal.handle(new sun.misc.Signal("TERM"), signal -> end());
        ObjectNode hello = JSON.createObjectNode().put("protocol", 1);
        hello.putObject("versions").put("java", System.getProperty("java.version"));
        hello(hello);
        say(JSON.createObjectNode().put("event", "hello").set("value", hello));
        var lines = new LinkedBlockingQueue<String>();
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

    private static void read(BlockingQueue<String> lines) {
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

    /** Passes on the library's own word that a lock is gone; may come from any thread. */
    static void lost(String key, String hold, String why, long when) {
        try {
            say(JSON.createObjectNode().put("event", "lost").put("complete", when)
                .put("key", key).put("hold", hold).put("error", why));
        } catch (IOException error) {
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
        return line.length() > TEXT_MAX ? line.substring(0, TEXT_MAX - 3) + "..." : line;
    }

    private Call prepare(JsonNode asked) throws Refused {
        String what = asked.path("do").asText();
        if (!isOpen() && !what.equals("open") && !what.equals("close")) {
            throw new Refused("do is '" + what + "', but the client is not open");
        }
        for (String share : new String[] {"mode", "k"}) {
            if (what.equals("acquire") && asked.hasNonNull(share)) {
                throw new Refused(share + " is " + asked.get(share) + ", which this lock cannot do");
            }
        }
        switch (what) {
            case "open": return opened(asked.path("options"));
            case "acquire": return acquire(text(asked, "key"), text(asked, "hold"),
                asked.path("ttl_ms").asLong(), asked.path("timeout_ms").asLong());
            case "release": return release(text(asked, "hold"));
            case "believes": return believes(text(asked, "hold"));
            case "write": return write(asked, text(asked, "key"));
            case "read": return read(asked, text(asked, "key"));
            case "close": return this::closed;
            default: throw new Refused("do is '" + what + "', which is unknown here");
        }
    }

    private static String text(JsonNode asked, String name) throws Refused {
        if (!asked.path(name).isTextual()) {
            throw new Refused(name + " is missing; do '" + asked.path("do").asText() + "' needs it");
        }
        return asked.get(name).asText();
    }

    private Call opened(JsonNode given) throws Refused {
        if (isOpen()) {
            throw new Refused("do is 'open', but the client is open already; send close first");
        }
        if (given.path("nodes").isEmpty()) {
            throw new Refused("open named no nodes; this library needs one");
        }
        JsonNode place = given.path("resource");
        resource = place.isObject()
            ? new Resource(place.get("host").asText(), place.get("port").asInt()) : null;
        return open(given.path("nodes"), given.path("options"));
    }

    private JsonNode closed() {
        versions.clear();
        if (resource != null) {
            resource.close();
        }
        shut();
        return null;
    }

    static JsonNode granted(String owner, String node) {
        ObjectNode value = JSON.createObjectNode();
        value.put("owner", owner).putNull("token");
        if (node != null) {
            value.putArray("nodes").add(node);
        }
        return value;
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
