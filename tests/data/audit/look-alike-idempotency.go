package orders

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

type Guard struct{ rdb *redis.Client }

func (g *Guard) Begin(ctx context.Context, id string) (bool, error) {
	return g.rdb.SetNX(ctx, "idempotency:"+id, "pending", time.Hour).Result()
}

func (g *Guard) BeginOrUndo(ctx context.Context, id string, do func() error) error {
	first, err := g.rdb.SetNX(ctx, "idempotency:"+id, "pending", time.Hour).Result()
	if err != nil || !first {
		return err
	}
	if err := do(); err != nil {
		g.rdb.Del(ctx, "idempotency:"+id) // no lock: on purpose, it is to run again
		return err
	}
	return nil
}
