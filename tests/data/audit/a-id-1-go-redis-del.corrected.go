package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

const release = `
if redis.call("get", KEYS[1]) == ARGV[1] then
	return redis.call("del", KEYS[1])
end
return 0`

func Rebuild(ctx context.Context, rdb *redis.Client, name string, build func(string)) (bool, error) {
	key := fmt.Sprintf("lock:%s", name)
	token := uuid.NewString()
	ok, err := rdb.SetNX(ctx, key, token, 30*time.Second).Result()
	if err != nil {
		return false, err
	}
	if !ok {
		return false, nil
	}
	defer rdb.Eval(ctx, release, []string{key}, token)
	build(name)
	return true, nil
}
