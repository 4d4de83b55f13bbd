package counter

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

type Counter struct {
	mu  sync.Mutex
	rdb *redis.Client
}

func (c *Counter) FirstTime(ctx context.Context, event string) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rdb.SetNX(ctx, "seen:"+event, "1", time.Hour).Result()
}

func (c *Counter) Forget(ctx context.Context, event string) {
	c.mu.Lock()
	c.rdb.Expire(ctx, "count:"+event, 0)
	c.mu.Unlock()
}
