package jobs

import (
	"context"
	"time"

	"github.com/bsm/redislock"
)

func Move(ctx context.Context, locker *redislock.Client, carry func() error) error {
	lock, err := locker.Obtain(ctx, "move", 10*time.Second, nil)
	if err != nil {
		return err
	}
	defer lock.Release(ctx)
	return carry()
}
