package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4"
	pools "github.com/go-redsync/redsync/v4/redis"
	"github.com/redis/go-redis/v9"

	"lockhavoc/clients/go/worker"
)

// ballot notes what each server answered during one call of the library, since the library's
// errors do not say whether a key may have been set where no answer came.
type ballot struct {
	mu    sync.Mutex
	nodes []worker.Node
	votes []vote
}

type vote struct {
	refused bool // the server's last word: somebody else has it, or nobody
	granted bool
	maybe   bool // a command went out and got no answer since
}

func (b *ballot) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.votes = make([]vote, len(b.nodes))
}

func (b *ballot) quorum() int { return len(b.nodes)/2 + 1 }

// note takes the answer of a command.  set: it would take the lock, else it deletes or renews.
func (b *ballot) note(node int, set, yes bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if node >= len(b.votes) {
		return
	}
	last := &b.votes[node]
	switch {
	case err == nil && set:
		*last = vote{refused: !yes, granted: yes, maybe: last.maybe}
	case err == nil: // deleted or not there: whatever was unknown before is settled
		*last = vote{refused: last.refused || !yes}
	case notSent(err):
	default:
		last.maybe = true
	}
}

func notSent(err error) bool {
	var dial *net.OpError
	return errors.Is(err, redis.ErrPoolTimeout) || (errors.As(err, &dial) && dial.Op == "dial")
}

func (b *ballot) count(which func(vote) bool) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := 0
	for _, one := range b.votes {
		if which(one) {
			found++
		}
	}
	return found
}

func (b *ballot) granters() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	names := []string{}
	for at, one := range b.votes {
		if one.granted {
			names = append(names, b.nodes[at].Name)
		}
	}
	return names
}

// acquire sorts the error of an acquire that failed.
func (b *ballot) acquire(why error) error {
	if b.count(func(v vote) bool { return v.maybe || v.granted }) >= b.quorum() {
		return why
	}
	if b.count(func(v vote) bool { return v.refused }) >= b.quorum() {
		return worker.Refused("busy")
	}
	return worker.Refused("no quorum: " + why.Error())
}

// change sorts the answer of an Unlock or Extend.
func (b *ballot) change(done bool, err error) error {
	if done {
		return nil
	}
	// So many servers do not have it that the others are no quorum.
	if b.count(func(v vote) bool { return v.refused }) > len(b.nodes)-b.quorum() {
		return worker.Refused("not-held")
	}
	if b.count(func(v vote) bool { return v.maybe }) == 0 && err != nil {
		return worker.Refused("no server could be asked by enough: " + err.Error())
	}
	if err == nil {
		err = redsync.ErrFailed
	}
	return err
}

// pool and conn hand everything on and note the answers.
type pool struct {
	pools.Pool
	ballot *ballot
	node   int
}

func (p *pool) Get(ctx context.Context) (pools.Conn, error) {
	found, err := p.Pool.Get(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{found, p.ballot, p.node}, nil
}

type conn struct {
	pools.Conn
	ballot *ballot
	node   int
}

func (c *conn) SetNX(name, value string, expiry time.Duration) (bool, error) {
	yes, err := c.Conn.SetNX(name, value, expiry)
	c.ballot.note(c.node, true, yes, err)
	return yes, err
}

func (c *conn) Eval(script *pools.Script, keysAndArgs ...any) (any, error) {
	answer, err := c.Conn.Eval(script, keysAndArgs...)
	number, _ := answer.(int64)
	c.ballot.note(c.node, false, number > 0, err)
	return answer, err
}
