import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;

/** Connection to the protected resource; only what never left is surely without effect. */
final class Resource {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int TIMEOUT_MS = 5000; // on loopback a reply takes less than a millisecond

    private final String host;
    private final int port;
    private Socket socket;
    private long id;

    Resource(String host, int port) {
        this.host = host;
        this.port = port;
    }

    void close() {
        try {
            if (socket != null) {
                socket.close();
            }
        } catch (IOException error) {
            System.err.println("resource: " + error);
        }
        socket = null;
    }

    JsonNode ask(ObjectNode message) throws IOException, Refused {
        if (socket != null && hungUp()) {
            close();
        }
        if (socket == null) {
            try {
                Socket fresh = new Socket();
                fresh.connect(new InetSocketAddress(host, port), TIMEOUT_MS);
                fresh.setTcpNoDelay(true);
                socket = fresh;
            } catch (IOException error) {
                throw new Refused("resource: cannot connect: " + error);
            }
        }
        message.put("id", ++id);
        JsonNode told;
        try {
            socket.setSoTimeout(TIMEOUT_MS);
            socket.getOutputStream().write((JSON.writeValueAsString(message) + "\n").getBytes(StandardCharsets.UTF_8));
            told = JSON.readTree(line(socket.getInputStream()));
            if (told.path("id").asLong() != id) {
                throw new IOException("the reply is for another request");
            }
        } catch (IOException error) {
            close(); // a late reply must not answer the next request
            throw new IOException("resource: " + error, error);
        }
        if (!told.path("ok").asBoolean()) {
            throw new Refused(told.path("why").asText("refused without a reason"));
        }
        return told;
    }

    /** True if an idle connection has something to read: its end, or what nobody asked for. */
    private boolean hungUp() {
        try {
            socket.setSoTimeout(1);
            socket.getInputStream().read();
            return true;
        } catch (SocketTimeoutException quiet) {
            return false;
        } catch (IOException error) {
            return true;
        }
    }

    private static byte[] line(InputStream in) throws IOException {
        var bytes = new java.io.ByteArrayOutputStream();
        for (int next = in.read(); next != '\n'; next = in.read()) {
            if (next < 0) {
                throw new IOException("closed without a reply");
            }
            bytes.write(next);
        }
        return bytes.toByteArray();
    }
}
