CREATE TABLE locks (
  name text PRIMARY KEY,
  owner text NOT NULL
);

-- expect on line 7: A-LEASE-1 lease
INSERT INTO locks (name, owner) VALUES ($1, $2) ON CONFLICT DO NOTHING;
DELETE FROM locks WHERE name = $1 AND owner = $2;
