-- take
INSERT INTO job_locks (name, owner, expires_at)
VALUES (:name, :owner, now() + interval '30 seconds')
ON CONFLICT DO NOTHING;

-- give back
DELETE FROM job_locks WHERE name = :name AND owner = :owner;
