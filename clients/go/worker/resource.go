package worker

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

const resourceTimeout = 5 * time.Second // on loopback a reply takes less than a millisecond

type place struct {
	Host string `json:"host"`
	Port int    `json:"port"`
}

// resource is the connection to the protected resource.  Surely without effect is only what never
// left: no connection, or one that was found closed before a byte was sent.
type resource struct {
	place
	conn  net.Conn
	lines *bufio.Reader
	id    int64
}

type answer struct {
	ID      int64           `json:"id"`
	OK      bool            `json:"ok"`
	Why     string          `json:"why"`
	Seq     int64           `json:"seq"`
	Version int64           `json:"version"`
	Value   json.RawMessage `json:"value"`
}

func (r *resource) close() {
	if r.conn != nil {
		r.conn.Close()
		r.conn = nil
	}
}

// alive is false if an idle connection has something to read: its end, or what nobody asked for.
func (r *resource) alive() bool {
	raw, err := r.conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return false
	}
	quiet := false
	err = raw.Control(func(fd uintptr) {
		var one [1]byte
		_, _, got := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = got == syscall.EAGAIN
	})
	return err == nil && quiet
}

func (r *resource) ask(message map[string]any) (*answer, error) {
	if r.conn != nil && !r.alive() {
		r.close()
	}
	if r.conn == nil {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("%s:%d", r.Host, r.Port), resourceTimeout)
		if err != nil {
			return nil, Refused("resource: cannot connect: " + err.Error())
		}
		r.conn, r.lines = conn, bufio.NewReader(conn)
	}
	r.id++
	message["id"] = r.id
	line, err := json.Marshal(message)
	if err != nil {
		return nil, Refused("resource: " + err.Error())
	}
	told, err := r.round(append(line, '\n'))
	if err != nil {
		r.close() // a late reply must not answer the next request
		return nil, fmt.Errorf("resource: %w", err)
	}
	if !told.OK {
		return nil, Refused(told.Why)
	}
	return told, nil
}

func (r *resource) round(line []byte) (*answer, error) {
	if err := r.conn.SetDeadline(time.Now().Add(resourceTimeout)); err != nil {
		return nil, err
	}
	if _, err := r.conn.Write(line); err != nil {
		return nil, err
	}
	back, err := r.lines.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	var told answer
	if err := json.Unmarshal(back, &told); err != nil {
		return nil, err
	}
	if told.ID != r.id {
		return nil, errors.New("the reply is for another request")
	}
	return &told, nil
}

func (s *session) prepareWrite(asked *request) (call, error) {
	key, err := s.protected(asked)
	if err != nil {
		return nil, err
	}
	var options struct {
		Expect *int64 `json:"expect"`
	}
	if len(asked.Options) > 0 {
		if err := json.Unmarshal(asked.Options, &options); err != nil {
			return nil, Refused("options of write: " + err.Error())
		}
	}
	seen := [2]string{key, hold(asked)}
	if last, ok := s.versions[seen]; ok && options.Expect == nil {
		options.Expect = &last
	}
	message := map[string]any{
		"do": "write", "key": key, "hold": asked.Hold, "token": asked.Token,
		"value": asked.Value, "expect": options.Expect,
	}
	return func() (any, error) {
		told, err := s.resource.ask(message)
		if err != nil {
			return nil, err
		}
		s.versions[seen] = told.Version
		return map[string]any{"version": told.Version, "seq": told.Seq}, nil
	}, nil
}

func (s *session) prepareRead(asked *request) (call, error) {
	key, err := s.protected(asked)
	if err != nil {
		return nil, err
	}
	return func() (any, error) {
		told, err := s.resource.ask(map[string]any{"do": "read", "key": key})
		if err != nil {
			return nil, err
		}
		s.versions[[2]string{key, hold(asked)}] = told.Version
		return map[string]any{"value": told.Value, "version": told.Version}, nil
	}, nil
}

func (s *session) protected(asked *request) (string, error) {
	if s.resource == nil {
		return "", Refused(fmt.Sprintf("do is %q, but open named no resource", asked.Do))
	}
	return text(asked, "key", asked.Key)
}

func hold(asked *request) string {
	if asked.Hold == nil {
		return ""
	}
	return *asked.Hold
}
