package worker

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// session is one open client with the grants it has got.
type session struct {
	client   Client
	out      *channel
	open     bool
	grants   map[string]held
	versions map[[2]string]int64 // (key, hold) -> version last seen
	resource *resource
	losses   losses
}

type held struct {
	key   string
	grant Grant
}

// call is the part of a request that is timed; its result goes into the reply.
type call func() (any, error)

type openOptions struct {
	Nodes    []Node                     `json:"nodes"`
	Options  map[string]json.RawMessage `json:"options"`
	Resource *place                     `json:"resource"`
}

func newSession(client Client, out *channel) *session {
	s := &session{client: client, out: out}
	s.losses = losses{out: out, known: map[string]*known{}}
	s.forget()
	if watched, ok := client.(Watched); ok {
		watched.Watch(s.losses.lost)
	}
	return s
}

func (s *session) forget() {
	s.grants, s.versions = map[string]held{}, map[[2]string]int64{}
	s.losses.clear()
}

func (s *session) leave() {
	if s.open {
		if err := s.client.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "close:", err)
		}
	}
	os.Exit(0)
}

func (s *session) serve(line []byte) {
	asked, err := decode(line)
	if err != nil {
		if len(line) > 1 {
			s.out.log("ignored a line: " + err.Error())
		}
		return
	}
	do, err := s.prepare(asked)
	told := reply{ID: asked.ID, Invoke: now()}
	if err == nil {
		told.Value, err = do()
	}
	told.Complete = now()
	told.Type, told.Error = outcome(err)
	if err == nil && asked.Do == "close" {
		s.forget()
	}
	if (err == nil || told.Error == "not-held") && asked.Do == "release" && s.open {
		s.drop(*asked.Hold)
	}
	s.out.send(told)
	s.losses.flush()
}

func (s *session) drop(hold string) {
	if held, ok := s.grants[hold]; ok {
		s.losses.released(held.grant.Owner)
		delete(s.grants, hold)
		delete(s.versions, [2]string{held.key, hold})
	}
}

// prepare checks a request; a Refused is its whole answer.
func (s *session) prepare(asked *request) (call, error) {
	does := map[string]func(*request) (call, error){
		"open": s.prepareOpen, "acquire": s.prepareAcquire, "release": s.prepareRelease,
		"renew": s.prepareRenew, "believes": s.prepareBelieves, "write": s.prepareWrite,
		"read": s.prepareRead, "close": s.prepareClose,
	}
	prepare, ok := does[asked.Do]
	if !ok {
		return nil, Refused(fmt.Sprintf("do is %q, which is unknown", asked.Do))
	}
	if !s.open && asked.Do != "open" && asked.Do != "close" {
		return nil, Refused(fmt.Sprintf("do is %q, but the client is not open", asked.Do))
	}
	return prepare(asked)
}

func (s *session) prepareOpen(asked *request) (call, error) {
	if s.open {
		return nil, Refused("do is \"open\", but the client is open already; send close first")
	}
	var given openOptions
	if err := json.Unmarshal(asked.Options, &given); err != nil {
		return nil, Refused("options of open: " + err.Error())
	}
	return func() (any, error) {
		options := Options{given: given.Options}
		if err := s.client.Open(given.Nodes, options); err != nil {
			return nil, err
		}
		s.open = true
		if given.Resource != nil {
			s.resource = &resource{place: *given.Resource}
		}
		return nil, nil
	}, nil
}

func (s *session) prepareClose(*request) (call, error) {
	if !s.open {
		return func() (any, error) { return nil, nil }, nil
	}
	s.open = false
	if s.resource != nil {
		s.resource.close()
		s.resource = nil
	}
	return func() (any, error) { return nil, s.client.Close() }, nil
}

func (s *session) prepareAcquire(asked *request) (call, error) {
	key, err := text(asked, "key", asked.Key)
	if err != nil {
		return nil, err
	}
	hold, err := text(asked, "hold", asked.Hold)
	if err != nil {
		return nil, err
	}
	if _, ok := s.grants[hold]; ok {
		return nil, Refused(fmt.Sprintf("hold is %q, which was granted before", hold))
	}
	ttl, timeout := millis(asked.TTLms), millis(asked.TimeoutMs)
	return func() (any, error) {
		grant, err := s.client.Acquire(key, ttl, timeout)
		if err != nil {
			return nil, err
		}
		s.grants[hold] = held{key, grant}
		s.losses.granted(grant.Owner, key, hold)
		value := map[string]any{"owner": grant.Owner, "token": nil}
		if grant.Token != 0 {
			value["token"] = grant.Token
		}
		if grant.Nodes != nil {
			value["nodes"] = grant.Nodes
		}
		return value, nil
	}, nil
}

func (s *session) granted(asked *request) (Grant, error) {
	hold, err := text(asked, "hold", asked.Hold)
	if err != nil {
		return Grant{}, err
	}
	found, ok := s.grants[hold]
	if !ok {
		return Grant{}, Refused(fmt.Sprintf("hold is %q, which has no grant in this worker", hold))
	}
	return found.grant, nil
}

func (s *session) prepareRelease(asked *request) (call, error) {
	grant, err := s.granted(asked)
	return func() (any, error) { return nil, s.client.Release(grant) }, err
}

func (s *session) prepareRenew(asked *request) (call, error) {
	renewer, ok := s.client.(Renewer)
	if !ok {
		return nil, Refused("do is \"renew\", which this library cannot do")
	}
	grant, err := s.granted(asked)
	ttl := millis(asked.TTLms)
	return func() (any, error) { return nil, renewer.Renew(grant, ttl) }, err
}

func (s *session) prepareBelieves(asked *request) (call, error) {
	believer, ok := s.client.(Believer)
	if !ok {
		return nil, Refused("do is \"believes\", which this library cannot say")
	}
	grant, err := s.granted(asked)
	return func() (any, error) { return believer.Believes(grant) }, err
}

func text(asked *request, name string, value *string) (string, error) {
	if value == nil {
		return "", Refused(fmt.Sprintf("%s is missing; do %q needs it", name, asked.Do))
	}
	return *value, nil
}

func millis(value *int64) time.Duration {
	if value == nil {
		return 0
	}
	return time.Duration(*value) * time.Millisecond
}

// losses turns the library's signals into events, each after the reply that told of the grant.
type losses struct {
	mu    sync.Mutex
	out   *channel
	known map[string]*known // owner ->
}

type known struct {
	key, hold string
	answered  bool
	early     *reply
}

func (l *losses) lost(owner, why string) {
	event := reply{Event: "lost", Complete: now(), Error: short(why)}
	l.mu.Lock()
	defer l.mu.Unlock()
	entry, ok := l.known[owner]
	if !ok {
		entry = &known{}
		l.known[owner] = entry
	}
	if !entry.answered {
		entry.early = &event
		return
	}
	event.Key, event.Hold = &entry.key, &entry.hold
	l.out.send(event)
}

func (l *losses) granted(owner, key, hold string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	entry, ok := l.known[owner]
	if !ok {
		entry = &known{}
		l.known[owner] = entry
	}
	entry.key, entry.hold = key, hold
}

func (l *losses) released(owner string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, owner)
}

func (l *losses) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.known)
}

// flush marks all known grants as answered and sends what came too early.
func (l *losses) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, entry := range l.known {
		if entry.hold == "" {
			continue
		}
		entry.answered = true
		if entry.early != nil {
			entry.early.Key, entry.early.Hold = &entry.key, &entry.hold
			l.out.send(*entry.early)
			entry.early = nil
		}
	}
}
