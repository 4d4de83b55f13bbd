package jobs

import (
	"context"
	"database/sql"
	"errors"
)

func Migrate(ctx context.Context, conn *sql.Conn, migrate func() error) error {
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock(42)"); err != nil {
		return err
	}
	if err := migrate(); err != nil {
		return errors.New("the session ends with its lock")
	}
	conn.ExecContext(ctx, "SELECT pg_advisory_unlock(42)")  // expect: A-REL-2 release_retry
	// expect on line 10: A-REL-1 release_retry
	return nil
}
