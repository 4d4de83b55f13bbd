-- take
INSERT INTO job_locks (name, owner, expires_at)
VALUES (:name, :owner, now() + interval '30 seconds')
ON CONFLICT DO NOTHING;

-- give back
-- expect on line 8: A-ID-1 release_retry
DELETE FROM job_locks WHERE name = :name;
