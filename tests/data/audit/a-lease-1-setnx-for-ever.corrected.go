package jobs

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/xid"
)

const lease = 30 * time.Second

func Lead(ctx context.Context, rdb *redis.Client) (string, bool) {
	token := xid.New().String()
	ok, err := rdb.SetNX(ctx, "leader", token, lease).Result()
	if err != nil || !ok {
		return "", false
	}
	return token, true
}
