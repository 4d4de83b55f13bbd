package jobs

import (
	"context"
	"time"

	"github.com/go-redsync/redsync/v4"
)

func Hold(ctx context.Context, mutex *redsync.Mutex) error {
	for ctx.Err() == nil {
		time.Sleep(2 * time.Second)
		if ok, err := mutex.Extend(); !ok || err != nil {
			return err
		}
	}
	return ctx.Err()
}
