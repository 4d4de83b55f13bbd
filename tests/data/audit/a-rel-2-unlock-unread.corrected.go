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
	failed := migrate()
	var unlocked bool
	row := conn.QueryRowContext(ctx, "SELECT pg_advisory_unlock(42)")
	if err := row.Scan(&unlocked); err != nil || !unlocked {
		return errors.New("the lock was lost")
	}
	return failed
}
