// Package worker drives a lock library for lockhavoc over stdin and stdout.
//
//	worker.Run(worker.Hello{Library: "mylock", Lease: "ttl"}, &client{})
//
// The protocol is docs/reference/worker-protocol.md; this package keeps its rules, a Client calls
// its library and sorts its errors: Refused for what surely had no effect, anything else is
// recorded as unknown.
//
// Traps.  The library shares the process: stdout is taken away from it before it can print there.
// Go has no main thread that others could outlive, so the block form is not offered, and SIGUSR1
// and SIGUSR2 are ignored, since the runtime would catch them otherwise.
package worker

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

const (
	protocol      = 1
	lineBytesMax  = 1 << 20
	errorCharsMax = 500
	grace         = 1500 * time.Millisecond // for closing the client; the harness waits 3 s
)

// Refused is the error of an operation that surely had no effect: "busy" and "not-held" if a
// server said so in this very call, else a reason.
type Refused string

func (r Refused) Error() string { return string(r) }

// Node is a server as told in open.
type Node struct {
	Name    string `json:"name"`
	Host    string `json:"host"`
	Port    int    `json:"port"`
	Own     bool   `json:"own"`
	Address string `json:"address"`
}

// Addr is host:port.
func (n Node) Addr() string { return fmt.Sprintf("%s:%d", n.Host, n.Port) }

// Grant is a lock that was got.  Token 0: the library has none.  Nodes: who granted, if known.
type Grant struct {
	Owner  string
	Token  int64
	Nodes  []string
	Handle any
}

// Client is what drives a library.  All calls come one at a time.
type Client interface {
	Open(nodes []Node, options Options) error
	Acquire(key string, ttl, timeout time.Duration) (Grant, error)
	Release(grant Grant) error
	Close() error
}

// Renewer is the power renew, Believer believes, Watched signals-loss.
type (
	Renewer interface {
		Renew(grant Grant, ttl time.Duration) error
	}
	Believer interface {
		Believes(grant Grant) (bool, error)
	}
	Watched interface {
		// Watch is called once; lost(owner, why) may be called from any goroutine.
		Watch(lost func(owner, why string))
	}
)

// Hello is what the worker says of itself.  Modules: import paths whose versions the run records.
type Hello struct {
	Library string
	Lease   string
	Fenced  bool
	Modules []string
}

type request struct {
	ID        int64           `json:"id"`
	Do        string          `json:"do"`
	Key       *string         `json:"key"`
	Hold      *string         `json:"hold"`
	TTLms     *int64          `json:"ttl_ms"`
	TimeoutMs *int64          `json:"timeout_ms"`
	Token     *int64          `json:"token"`
	Value     json.RawMessage `json:"value"`
	Options   json.RawMessage `json:"options"`
}

type reply struct {
	ID       int64   `json:"id,omitempty"`
	Type     string  `json:"type,omitempty"`
	Invoke   int64   `json:"invoke,omitempty"`
	Complete int64   `json:"complete,omitempty"`
	Value    any     `json:"value,omitempty"`
	Error    string  `json:"error,omitempty"`
	Event    string  `json:"event,omitempty"`
	Key      *string `json:"key,omitempty"`
	Hold     *string `json:"hold,omitempty"`
}

// now is CLOCK_MONOTONIC in ns, the clock that all processes of the machine share.
func now() int64 {
	var at syscall.Timespec
	const monotonic = 1
	if _, _, no := syscall.Syscall(
		syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&at)), 0,
	); no != 0 {
		panic(no)
	}
	return at.Nano()
}

// channel writes whole lines to the stdout that only it knows.
type channel struct {
	mu  sync.Mutex
	out *os.File
}

func (c *channel) send(message reply) {
	line, err := json.Marshal(message)
	if err != nil {
		panic(err) // all fields are ours
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.out.Write(append(line, '\n')); err != nil {
		os.Exit(0) // the harness is gone
	}
}

func (c *channel) log(text string) { c.send(reply{Event: "log", Error: short(text)}) }

func takeStdout() *channel {
	fd, err := syscall.Dup(1)
	if err == nil {
		err = syscall.Dup3(2, 1, 0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot take stdout:", err)
		os.Exit(1)
	}
	syscall.CloseOnExec(fd)
	return &channel{out: os.NewFile(uintptr(fd), "replies")}
}

// Run serves until stdin ends or SIGTERM comes; it never returns.
func Run(hello Hello, client Client) {
	out := takeStdout()
	signal.Ignore(syscall.SIGINT, syscall.SIGUSR1, syscall.SIGUSR2)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	lines := make(chan []byte)
	ended := make(chan struct{})
	go read(lines, ended)
	go func() { // whatever the library does, the process ends
		select {
		case <-stop:
		case <-ended:
		}
		time.Sleep(grace)
		os.Exit(0)
	}()
	s := newSession(client, out)
	out.send(reply{Event: "hello", Value: value(hello, client)})
	for {
		select {
		case line := <-lines:
			s.serve(line)
		case <-ended:
			s.leave()
		case <-stop:
			s.leave()
		}
	}
}

func read(lines chan<- []byte, ended chan<- struct{}) {
	in := bufio.NewReaderSize(os.Stdin, 1<<14)
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if err == bufio.ErrBufferFull && len(line) <= lineBytesMax {
			continue
		}
		if err != nil { // a torn last line is dropped
			if err != io.EOF {
				fmt.Fprintln(os.Stderr, "stdin:", err)
			}
			close(ended)
			return
		}
		lines <- line
		line = nil
	}
}

func value(hello Hello, client Client) map[string]any {
	versions := map[string]string{"go": runtime.Version()}
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			for _, wanted := range hello.Modules {
				if module.Path == wanted {
					versions[wanted] = strings.TrimPrefix(module.Version, "v")
				}
			}
		}
	}
	powers := []string{}
	if _, ok := client.(Renewer); ok {
		powers = append(powers, "renew")
	}
	if _, ok := client.(Believer); ok {
		powers = append(powers, "believes")
	}
	if hello.Fenced {
		powers = append(powers, "fenced")
	}
	if _, ok := client.(Watched); ok {
		powers = append(powers, "signals-loss")
	}
	return map[string]any{
		"protocol": protocol, "library": hello.Library, "versions": versions, "powers": powers,
		"lease": map[string]any{"kind": hello.Lease, "ttl_ms": nil},
	}
}

func decode(line []byte) (*request, error) {
	var found request
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&found); err != nil {
		return nil, fmt.Errorf("no request (%w): %.200q", err, line)
	}
	if found.ID < 1 {
		return nil, fmt.Errorf("no positive integer id: %.200q", line)
	}
	return &found, nil
}

// outcome sorts an error: nil is ok, Refused is fail, everything else is info.
func outcome(err error) (string, string) {
	var refused Refused
	switch {
	case err == nil:
		return "ok", ""
	case errors.As(err, &refused):
		return "fail", short(string(refused))
	default:
		return "info", short(fmt.Sprintf("%T: %v", err, err))
	}
}

func short(text string) string {
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) > errorCharsMax {
		line = append(line[:errorCharsMax-3], []rune("...")...)
	}
	if len(line) == 0 {
		return "no reason given"
	}
	return string(line)
}
