package jobs

import (
	"time"

	"github.com/go-redsync/redsync/v4"
)

func Report(rs *redsync.Redsync, write func()) {
	mutex := rs.NewMutex("report", redsync.WithExpiry(30*time.Second))
	mutex.Lock()  // expect: A-ID-6 identity
	defer mutex.Unlock()
	write()
}
