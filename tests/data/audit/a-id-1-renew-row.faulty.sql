CREATE TABLE lease (name text PRIMARY KEY, holder text NOT NULL, expires_at timestamptz NOT NULL);

-- expect on line 4: A-ID-1 lease
UPDATE lease SET expires_at = now() + interval '15 seconds'
 WHERE name = $1;
