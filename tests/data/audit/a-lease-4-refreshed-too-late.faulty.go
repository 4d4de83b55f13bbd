package jobs

import (
	"context"
	"time"

	"github.com/bsm/redislock"
)

const ttl = 10 * time.Second

func Lead(ctx context.Context, locker *redislock.Client) error {
	lock, err := locker.Obtain(ctx, "leader", ttl, nil)
	if err != nil {
		return err
	}
	defer lock.Release(ctx)
	ticker := time.NewTicker(8 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := lock.Refresh(ctx, ttl, nil); err != nil {  // expect: A-LEASE-4 lease
				return err
			}
		}
	}
}
