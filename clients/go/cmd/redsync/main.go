// A worker for redsync, the Redlock of Go, over go-redis: one server or several.
//
// Traps.  What an acquire returns does not say whether a server that did not answer may hold the
// key, so every command is noted in passing (ballot.go).  By default a context ends the wait between
// two tries only, not a try on the network (go-redis: ContextTimeoutEnabled).  go-redis sends a
// command again by itself up to three times; the option client_retries is 0 here.  Extend always
// renews to the length of the acquire.
package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	pools "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"lockhavoc/clients/go/worker"
)

type handle struct {
	mutex *redsync.Mutex
	ttl   time.Duration
}

type client struct {
	nodes   []worker.Node
	servers []*redis.Client
	sync    *redsync.Redsync
	ballot  *ballot
	sleep   time.Duration
}

func (c *client) Open(nodes []worker.Node, options worker.Options) error {
	given := options.Read()
	retries := given.Int("client_retries", 0, 0)
	socket, connect := given.Millis("socket_timeout_ms"), given.Millis("connect_timeout_ms")
	c.sleep = time.Duration(given.Int("sleep_ms", 50, 1)) * time.Millisecond
	contexts := given.Word("context_timeouts", "off", "on") == "on"
	if err := given.Done(); err != nil {
		return err
	}
	if len(nodes) == 0 {
		return worker.Refused("open named no nodes; redsync needs at least one")
	}
	if retries == 0 {
		retries = -1 // what go-redis calls none; its own 0 means three
	}
	c.nodes, c.servers, c.ballot = nodes, nil, &ballot{nodes: nodes}
	noted := []pools.Pool{}
	for at, node := range nodes {
		server := redis.NewClient(&redis.Options{
			Addr: node.Addr(), MaxRetries: retries, ReadTimeout: socket, WriteTimeout: socket,
			DialTimeout: connect, DialerRetries: 1, ContextTimeoutEnabled: contexts,
			ClientName: fmt.Sprintf("lockhavoc-%d", node.Port), DisableIdentity: true,
		})
		c.servers = append(c.servers, server)
		noted = append(noted, &pool{goredis.NewPool(server), c.ballot, at})
	}
	c.sync = redsync.New(noted...)
	return nil
}

func (c *client) Acquire(key string, ttl, timeout time.Duration) (worker.Grant, error) {
	if ttl <= 0 {
		return worker.Grant{}, worker.Refused("ttl_ms is missing; a redsync mutex always has one")
	}
	mutex := c.sync.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithTries(math.MaxInt32),
		redsync.WithRetryDelay(c.sleep))
	c.ballot.begin()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	lock := mutex.LockContext
	if timeout == 0 {
		ctx, lock = context.Background(), mutex.TryLockContext
	}
	if err := lock(ctx); err != nil {
		return worker.Grant{}, c.ballot.acquire(err)
	}
	return worker.Grant{
		Owner: mutex.Value(), Nodes: c.ballot.granters(), Handle: &handle{mutex, ttl},
	}, nil
}

func (c *client) Release(grant worker.Grant) error {
	c.ballot.begin()
	done, err := grant.Handle.(*handle).mutex.Unlock()
	return c.ballot.change(done, err)
}

func (c *client) Renew(grant worker.Grant, ttl time.Duration) error {
	held := grant.Handle.(*handle)
	if ttl != 0 && ttl != held.ttl {
		return worker.Refused(fmt.Sprintf(
			"ttl_ms is %d; redsync renews to the length of the acquire, %d",
			ttl.Milliseconds(), held.ttl.Milliseconds()))
	}
	c.ballot.begin()
	done, err := held.mutex.Extend()
	if errors.Is(err, redsync.ErrExtendFailed) {
		return err // a quorum renewed, too late to count
	}
	return c.ballot.change(done, err)
}

// Believes is what the manual says to ask: whether Until, told by the local clock, is ahead.
func (c *client) Believes(grant worker.Grant) (bool, error) {
	return time.Now().Before(grant.Handle.(*handle).mutex.Until()), nil
}

func (c *client) Close() error {
	var all error
	for _, server := range c.servers {
		all = errors.Join(all, server.Close())
	}
	return all
}

func main() {
	worker.Run(worker.Hello{
		Library: "redsync", Lease: "ttl",
		Modules: []string{"github.com/go-redsync/redsync/v4", "github.com/redis/go-redis/v9"},
	}, &client{})
}
