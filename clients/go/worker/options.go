package worker

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"time"
)

// Options are [client.options] of the scenario; what nobody asked for is refused by Done.
type Options struct {
	given map[string]json.RawMessage
	asked *[]string
	wrong *[]string
}

// Read begins: options.Read() returns a reader whose Done must be called last.
func (o Options) Read() Options {
	o.asked, o.wrong = &[]string{}, &[]string{}
	return o
}

// Int is a whole number, at least least.
func (o Options) Int(name string, otherwise, least int) int {
	value := otherwise
	if o.raw(name, &value, "a whole number") && value < least {
		*o.wrong = append(*o.wrong, fmt.Sprintf("option %s is %d; it must be at least %d", name, value, least))
	}
	return value
}

// Millis is a length of time given in ms; 0 where it is not given.
func (o Options) Millis(name string) time.Duration {
	return time.Duration(o.Int(name, 0, 1)) * time.Millisecond
}

// Word is one of the words, the first by default.
func (o Options) Word(name string, words ...string) string {
	value := words[0]
	if o.raw(name, &value, "a string") {
		for _, word := range words {
			if value == word {
				return value
			}
		}
		*o.wrong = append(*o.wrong, fmt.Sprintf("option %s is %q; it must be one of %s",
			name, value, strings.Join(words, ", ")))
	}
	return value
}

// Node is the server named by the option node, else the worker's own, else the first.
func (o Options) Node(nodes []Node) Node {
	if len(nodes) == 0 {
		*o.wrong = append(*o.wrong, "open named no nodes; this library needs one")
		return Node{}
	}
	chosen, names := nodes[0], make([]string, len(nodes))
	for at, node := range nodes {
		names[at] = node.Name
		if node.Own {
			chosen = node
		}
	}
	name := o.Word("node", append([]string{chosen.Name}, names...)...)
	for _, node := range nodes {
		if node.Name == name {
			chosen = node
		}
	}
	return chosen
}

func (o Options) raw(name string, into any, kind string) bool {
	*o.asked = append(*o.asked, name)
	raw, ok := o.given[name]
	if !ok {
		return false
	}
	if err := json.Unmarshal(raw, into); err != nil {
		*o.wrong = append(*o.wrong, fmt.Sprintf("option %s is %s; it must be %s", name, raw, kind))
		return false
	}
	return true
}

// Done is nil, or a Refused that names every wrong or unknown option.
func (o Options) Done() error {
	known := map[string]bool{}
	for _, name := range *o.asked {
		known[name] = true
	}
	wrong := *o.wrong
	for name := range o.given {
		if !known[name] {
			wrong = append(wrong, fmt.Sprintf("option %q is unknown (known: %s)",
				name, strings.Join(*o.asked, ", ")))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	sort.Strings(wrong)
	return Refused(strings.Join(wrong, "; "))
}
