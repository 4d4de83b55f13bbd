package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/anishathalye/porcupine"
)

// event is one line of any of the formats.
type event struct {
	process string
	kind    string // invoke | ok | fail | info
	call    call
	value   string
}

var (
	etcdLine = regexp.MustCompile(
		`^INFO\s+jepsen\.util - (\d+)\s+:(\w+)\s+:(\w+)\s+(?:\[(\S+) (\S+)\]|(\S+))\s*$`)
	kvLine = regexp.MustCompile(
		`^\{:process (\d+), :type :(\w+), :f :(\w+), :key "(.*?)", :value (?:nil|"(.*?)")\}\s*$`)
)

func read(path, model string) ([]porcupine.Event, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	parse := parseJSON
	switch model {
	case "etcd":
		parse = parseEtcd
	case "kv":
		parse = parseKV
	}
	scanner := bufio.NewScanner(file)
	scanner.Buffer(make([]byte, 1<<20), 1<<20)
	var lines []event
	for number := 1; scanner.Scan(); number++ {
		e, used, err := parse(scanner.Text())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if used {
			lines = append(lines, e)
		}
	}
	return pair(lines, model == "etcd"), scanner.Err()
}

// pair gives each operation an id and an output; what failed is left out, what is unknown returns
// at the end.
func pair(lines []event, failedCasObserves bool) []porcupine.Event {
	open := map[string]int{} // process -> line of its pending invoke
	completion := map[int]event{}
	invokeOf := map[int]int{}
	for i, e := range lines {
		if e.kind == "invoke" {
			open[e.process] = i
		} else if at, pending := open[e.process]; pending {
			completion[at] = e
			invokeOf[i] = at
			delete(open, e.process)
		}
	}
	dropped := func(at int) bool {
		done, found := completion[at]
		if !found || done.kind != "fail" {
			return false
		}
		return !(failedCasObserves && lines[at].call.f == "cas")
	}
	var events []porcupine.Event
	var unknown []int
	for i, e := range lines {
		if e.kind == "invoke" {
			if dropped(i) {
				continue
			}
			events = append(events, porcupine.Event{Kind: porcupine.CallEvent, Value: e.call, Id: i})
			if done, found := completion[i]; !found || done.kind == "info" {
				unknown = append(unknown, i)
			}
			continue
		}
		at, found := invokeOf[i]
		if !found || e.kind == "info" || dropped(at) {
			continue
		}
		output := result{failed: e.kind == "fail", value: e.value}
		events = append(events, porcupine.Event{Kind: porcupine.ReturnEvent, Value: output, Id: at})
	}
	for _, at := range unknown {
		output := result{unknown: true}
		events = append(events, porcupine.Event{Kind: porcupine.ReturnEvent, Value: output, Id: at})
	}
	return events
}

func parseEtcd(line string) (event, bool, error) {
	m := etcdLine.FindStringSubmatch(line)
	if m == nil {
		return event{}, false, nil // the logs have lines of other kinds
	}
	e := event{process: m[1], kind: m[2], call: call{f: m[3]}, value: m[6]}
	e.call.a, e.call.b = m[6], ""
	if m[4] != "" {
		e.call.a, e.call.b = m[4], m[5]
	}
	return e, true, nil
}

func parseKV(line string) (event, bool, error) {
	m := kvLine.FindStringSubmatch(line)
	if m == nil {
		return event{}, false, nil
	}
	return event{process: m[1], kind: m[2], call: call{f: m[3], key: m[4], a: m[5]}, value: m[5]}, true, nil
}

func parseJSON(line string) (event, bool, error) {
	var raw struct {
		Schema  string          `json:"schema"`
		Process json.RawMessage `json:"process"`
		Type    string          `json:"type"`
		F       string          `json:"f"`
		Value   json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal([]byte(line), &raw); err != nil {
		return event{}, false, err
	}
	if raw.Schema != "" || string(raw.Process) == `"nemesis"` {
		return event{}, false, nil
	}
	e := event{process: string(raw.Process), kind: raw.Type, call: call{f: raw.F}}
	if raw.F == "acquire" || raw.F == "release" {
		var value struct {
			Hold string `json:"hold"`
		}
		if len(raw.Value) > 0 {
			if err := json.Unmarshal(raw.Value, &value); err != nil {
				return event{}, false, err
			}
		}
		e.call.hold = value.Hold
		return e, true, nil
	}
	e.value = plain(raw.Value)
	e.call.a = e.value
	if raw.F == "cas" {
		var pair []json.RawMessage
		if err := json.Unmarshal(raw.Value, &pair); err != nil || len(pair) != 2 {
			return event{}, false, fmt.Errorf("cas: value %s must be a pair [from, to]", raw.Value)
		}
		e.call.a, e.call.b = plain(pair[0]), plain(pair[1])
	}
	return e, true, nil
}

func plain(raw json.RawMessage) string {
	text := strings.TrimSpace(string(raw))
	if text == "" || text == "null" {
		return "nil"
	}
	return text
}
