CREATE TABLE lease (name text PRIMARY KEY, holder text NOT NULL, expires_at timestamptz NOT NULL);

UPDATE lease SET expires_at = now() + interval '15 seconds'
 WHERE name = $1 AND holder = $2;
