SELECT pg_advisory_lock(q.id)
  FROM (SELECT id FROM jobs WHERE state = 'ready' ORDER BY id LIMIT 1) AS q;
SELECT pg_advisory_unlock(1);
