package jobs

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

var release = redis.NewScript(`
if redis.call("get", KEYS[1]) == ARGV[1] then
	return redis.call("del", KEYS[1])
end
return 0`)

func Sweep(ctx context.Context, rdb *redis.Client, sweep func()) error {
	token := uuid.NewString()
	ok, err := rdb.SetNX(ctx, "lock:sweep", token, 30*time.Second).Result()
	if err != nil || !ok {
		return err
	}
	defer release.Run(ctx, rdb, []string{"lock:sweep"}, token)
	sweep()
	return nil
}
