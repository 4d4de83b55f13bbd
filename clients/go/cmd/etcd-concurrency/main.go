// A worker for the lock of etcd's own Go client: clientv3/concurrency, one session per acquisition.
//
// The session keeps its lease alive by itself and closes Done when that is over, which is what this
// worker calls a loss; it is as long as the option session_ms says, else as the ttl_ms of the acquire.
// It begins before the wait and is renewed unseen, so a grant may find a third of it gone: a hold lasts
// as long as its session, and no time from the grant on is promised.  Token: the revision that created
// the lock's key (Mutex.IsOwner compares it).
//
// Traps.  Mutex.Unlock deletes a key and does not say whether it was there: a lock that was lost is
// unlocked without an error.  Only the revocation of the session's lease, which follows, is told by
// the server that there is none ("not-held").  With the option release = "unlock" Unlock's own word
// counts.  A Lock that is given up deletes its place in the queue under a context without an end.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"lockhavoc/clients/go/worker"
)

const queueOver = "not first in the queue when the time was over"

type handle struct {
	mutex   *concurrency.Mutex
	session *concurrency.Session
	over    chan struct{} // closed at the release: what ends then is no loss
}

type client struct {
	node     worker.Node
	etcd     *clientv3.Client
	timeout  time.Duration // of each call; 0: none
	length   time.Duration // of a session; 0: as each acquire says
	byUnlock bool
	lost     func(owner, why string)
}

func (c *client) Watch(lost func(owner, why string)) { c.lost = lost }

func (c *client) Open(nodes []worker.Node, options worker.Options) error {
	given := options.Read()
	c.node = given.Node(nodes)
	c.timeout = given.Millis("timeout_ms")
	c.length = given.Millis("session_ms")
	c.byUnlock = given.Word("release", "session", "unlock") == "unlock"
	dial := given.Millis("connect_timeout_ms")
	if err := given.Done(); err != nil {
		return err
	}
	etcd, err := clientv3.New(clientv3.Config{
		Endpoints: []string{c.node.Addr()}, DialTimeout: dial, Logger: zap.NewNop(),
	})
	if err != nil {
		return worker.Refused("cannot make the client: " + err.Error())
	}
	c.etcd = etcd
	return nil
}

// limited is a context that ends after the call's limit and, if within is not 0, after that.
func (c *client) limited(within time.Duration) (context.Context, context.CancelFunc) {
	limit := c.timeout
	if limit == 0 || (within != 0 && within < limit) {
		limit = within
	}
	if limit == 0 {
		return context.WithCancel(context.Background())
	}
	return context.WithTimeout(context.Background(), limit)
}

func (c *client) Acquire(key string, ttl, timeout time.Duration) (worker.Grant, error) {
	length, named := ttl, "ttl_ms"
	if c.length != 0 {
		length, named = c.length, "session_ms"
	}
	if length <= 0 || length%time.Second != 0 {
		return worker.Grant{}, worker.Refused(
			fmt.Sprintf("%s is %d; etcd's leases last whole seconds", named, length.Milliseconds()))
	}
	seconds := int(length / time.Second)
	session, err := c.session(seconds)
	if err != nil {
		return worker.Grant{}, worker.Refused("before the lock could be taken: " + err.Error())
	}
	mutex := concurrency.NewMutex(session, key)
	if err := c.take(mutex, timeout); err != nil {
		return worker.Grant{}, c.giveUp(session, err)
	}
	grant := worker.Grant{
		Owner: fmt.Sprintf("%x", session.Lease()), Token: revision(mutex), Nodes: []string{c.node.Name},
		Handle: &handle{mutex, session, make(chan struct{})},
	}
	go c.watch(grant)
	return grant, nil
}

// session makes a session whose lease is as long as asked: a server may only make it longer.
func (c *client) session(seconds int) (*concurrency.Session, error) {
	ctx, cancel := c.limited(0)
	defer cancel()
	lease, err := c.etcd.Grant(ctx, int64(seconds))
	if err != nil {
		return nil, err
	}
	if lease.TTL != int64(seconds) {
		return nil, fmt.Errorf("a session of %d ms is shorter than %d ms, which these servers grant at least",
			seconds*1000, lease.TTL*1000)
	}
	return concurrency.NewSession(c.etcd,
		concurrency.WithTTL(seconds), concurrency.WithLease(lease.ID))
}

func (c *client) take(mutex *concurrency.Mutex, timeout time.Duration) error {
	if timeout == 0 {
		ctx, cancel := c.limited(0)
		defer cancel()
		return mutex.TryLock(ctx)
	}
	// The wait is the server's part; the limit of a call comes on top of it.
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return mutex.Lock(ctx)
}

// giveUp ends a session that did not get the lock.  Once its lease is revoked, nothing is left.
func (c *client) giveUp(session *concurrency.Session, why error) error {
	session.Orphan()
	ctx, cancel := c.limited(5 * time.Second)
	defer cancel()
	_, err := c.etcd.Revoke(ctx, session.Lease())
	gone := err == nil || errors.Is(err, rpctypes.ErrLeaseNotFound)
	switch {
	case errors.Is(why, concurrency.ErrLocked):
		return worker.Refused("busy")
	case gone && errors.Is(why, context.DeadlineExceeded):
		return worker.Refused(queueOver)
	case gone:
		return worker.Refused("given up, and its lease is revoked: " + why.Error())
	default:
		return why
	}
}

func revision(mutex *concurrency.Mutex) int64 {
	compare := mutex.IsOwner()
	return (*pb.Compare)(&compare).GetCreateRevision()
}

func (c *client) watch(grant worker.Grant) {
	held := grant.Handle.(*handle)
	select {
	case <-held.over:
	case <-c.etcd.Ctx().Done():
	case <-held.session.Done():
		select {
		case <-held.over: // both at once: it was released
		case <-c.etcd.Ctx().Done():
		default:
			c.lost(grant.Owner, "the session is done: its lease expired or cannot be kept alive")
		}
	}
}

func (c *client) Release(grant worker.Grant) error {
	held := grant.Handle.(*handle)
	ctx, cancel := c.limited(0)
	defer cancel()
	err := held.mutex.Unlock(ctx)
	if err != nil {
		if errors.Is(err, concurrency.ErrLockReleased) {
			return worker.Refused(err.Error())
		}
		return err
	}
	select {
	case <-held.over:
	default:
		close(held.over)
	}
	held.session.Orphan()
	_, err = c.etcd.Revoke(ctx, held.session.Lease())
	if c.byUnlock || err == nil {
		return nil
	}
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return worker.Refused("not-held")
	}
	return nil // the key is deleted, and that was answered; the lease ends by itself
}

func (c *client) Believes(grant worker.Grant) (bool, error) {
	select {
	case <-grant.Handle.(*handle).session.Done():
		return false, nil
	default:
		return true, nil
	}
}

// Close ends the connections; leases of held locks live on until their time is over.
func (c *client) Close() error { return c.etcd.Close() }

func main() {
	worker.Run(worker.Hello{
		Library: "clientv3/concurrency", Lease: "session", Fenced: true,
		Modules: []string{"go.etcd.io/etcd/client/v3"},
	}, &client{})
}
