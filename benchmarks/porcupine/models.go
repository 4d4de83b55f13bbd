package main

import (
	"fmt"
	"hash/fnv"
	"sort"

	"github.com/anishathalye/porcupine"
)

// call is the input of an operation; all formats are read into it.
type call struct {
	f    string
	key  string
	hold string
	a, b string // value, or from and to
}

// result is the output of an operation.
type result struct {
	unknown bool
	failed  bool // a compare-and-set that saw another value
	value   string
}

func modelOf(name string, permits int) porcupine.Model {
	switch name {
	case "mutex":
		return lockModel(1)
	case "semaphore":
		return lockModel(permits)
	case "cas", "etcd":
		return registerModel()
	case "kv":
		return kvModel()
	}
	panic(fmt.Sprintf("model %q: it must be mutex, semaphore, cas, etcd or kv", name))
}

// hashText spreads the states over Porcupine's cache; without it the cache is slower by far.
func hashText(state interface{}) uint64 {
	h := fnv.New64a()
	h.Write([]byte(state.(string)))
	return h.Sum64()
}

// lockModel: up to k holds at a time; the state is the sorted list of holds.
func lockModel(k int) porcupine.Model {
	if k == 1 {
		return porcupine.Model{
			Init: func() interface{} { return "" },
			Hash: hashText,
			Step: func(state, input, output interface{}) (bool, interface{}) {
				c, held := input.(call), state.(string)
				legal := held == ""
				after := c.hold
				if c.f == "release" {
					legal, after = held == c.hold, ""
				}
				if !legal {
					return output.(result).unknown, state
				}
				return true, after
			},
		}
	}
	return porcupine.Model{
		Init: func() interface{} { return []string(nil) },
		Hash: func(state interface{}) uint64 {
			h := fnv.New64a()
			for _, hold := range state.([]string) {
				h.Write([]byte(hold))
				h.Write([]byte{0})
			}
			return h.Sum64()
		},
		Step: func(state, input, output interface{}) (bool, interface{}) {
			c, held := input.(call), state.([]string)
			at := sort.SearchStrings(held, c.hold)
			has := at < len(held) && held[at] == c.hold
			if c.f == "acquire" && len(held) < k && !has {
				after := make([]string, 0, len(held)+1)
				after = append(append(append(after, held[:at]...), c.hold), held[at:]...)
				return true, after
			}
			if c.f == "release" && has {
				after := make([]string, 0, len(held))
				return true, append(append(after, held[:at]...), held[at+1:]...)
			}
			return output.(result).unknown, state
		},
		Equal: func(a, b interface{}) bool {
			x, y := a.([]string), b.([]string)
			if len(x) != len(y) {
				return false
			}
			for i := range x {
				if x[i] != y[i] {
					return false
				}
			}
			return true
		},
	}
}

func registerModel() porcupine.Model {
	return porcupine.Model{
		Init: func() interface{} { return "nil" },
		Hash: hashText,
		Step: func(state, input, output interface{}) (bool, interface{}) {
			c, out, value := input.(call), output.(result), state.(string)
			switch c.f {
			case "write":
				return true, c.a
			case "read":
				return out.unknown || out.value == value, state
			}
			if out.failed {
				return value != c.a, state
			}
			if value == c.a {
				return true, c.b
			}
			return out.unknown, state
		},
	}
}

func kvModel() porcupine.Model {
	return porcupine.Model{
		PartitionEvent: func(events []porcupine.Event) [][]porcupine.Event {
			byKey := map[string][]porcupine.Event{}
			keyOf := map[int]string{}
			for _, e := range events {
				if e.Kind == porcupine.CallEvent {
					keyOf[e.Id] = e.Value.(call).key
				}
				byKey[keyOf[e.Id]] = append(byKey[keyOf[e.Id]], e)
			}
			keys := make([]string, 0, len(byKey))
			for key := range byKey {
				keys = append(keys, key)
			}
			sort.Strings(keys)
			parts := make([][]porcupine.Event, 0, len(keys))
			for _, key := range keys {
				parts = append(parts, byKey[key])
			}
			return parts
		},
		Init: func() interface{} { return "" },
		Hash: hashText,
		Step: func(state, input, output interface{}) (bool, interface{}) {
			c, out, value := input.(call), output.(result), state.(string)
			switch c.f {
			case "get":
				return out.unknown || out.value == value, state
			case "put":
				return true, c.a
			}
			return true, value + c.a
		},
	}
}
