package jobs

import (
	"context"
	"time"

	"github.com/go-redsync/redsync/v4"
)

func Hold(ctx context.Context, mutex *redsync.Mutex) error {
	for ctx.Err() == nil {
		time.Sleep(2 * time.Second)
		mutex.Extend()  // expect: A-LEASE-6 lease
	}
	return ctx.Err()
}
