package jobs

import (
	"context"
	"time"

	"github.com/bsm/redislock"
)

func Move(ctx context.Context, locker *redislock.Client, carry func() error) error {
	lock, err := locker.Obtain(ctx, "move", 10*time.Second, nil)  // expect: A-REL-1 release_retry
	if err != nil {
		return err
	}
	if err := carry(); err != nil {
		return err
	}
	return lock.Release(ctx)
}
