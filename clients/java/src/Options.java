import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/** Options of a scenario: every one is known and right, or all that is wrong is told at once. */
final class Options {
    private final Map<String, JsonNode> given = new HashMap<>();
    private final TreeSet<String> known = new TreeSet<>();
    private final List<String> wrong = new ArrayList<>();

    Options(JsonNode options) {
        options.fields().forEachRemaining(one -> given.put(one.getKey(), one.getValue()));
    }

    int number(String name, int otherwise, int least) {
        known.add(name);
        JsonNode value = given.remove(name);
        if (value == null) {
            return otherwise;
        }
        if (!value.isInt() || value.asInt() < least) {
            wrong.add("option " + name + " is " + value + "; it must be a whole number from " + least);
        }
        return value.asInt(otherwise);
    }

    String word(String name, String... choices) {
        known.add(name);
        JsonNode value = given.remove(name);
        if (value == null) {
            return choices[0];
        }
        if (!List.of(choices).contains(value.asText())) {
            wrong.add("option " + name + " is " + value + "; it must be " + String.join(" or ", choices));
        }
        return value.asText();
    }

    /** Call it last: what nobody asked for is unknown. */
    void done() throws Refused {
        for (String name : new TreeSet<>(given.keySet())) {
            wrong.add("option '" + name + "' is unknown (known: " + String.join(", ", known) + ")");
        }
        if (!wrong.isEmpty()) {
            throw new Refused(String.join("; ", wrong));
        }
    }
}
