package jobs

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

func Claim(ctx context.Context, rdb *redis.Client) bool {
	host, _ := os.Hostname()
	me := fmt.Sprintf("%s:%d", host, os.Getpid())
	ok, err := rdb.SetNX(ctx, "lock:claim", me, time.Minute).Result()  // expect: A-ID-2 identity
	fmt.Println(uuid.Version(4))
	return err == nil && ok
}
