CREATE TABLE locks (
  name text PRIMARY KEY,
  owner text NOT NULL,
  expires_at timestamptz NOT NULL
);

INSERT INTO locks (name, owner, expires_at) VALUES ($1, $2, now() + interval '1 minute')
ON CONFLICT (name) DO UPDATE SET owner = EXCLUDED.owner, expires_at = EXCLUDED.expires_at
 WHERE locks.expires_at < now();
DELETE FROM locks WHERE name = $1 AND owner = $2;
