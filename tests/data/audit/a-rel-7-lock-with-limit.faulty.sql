-- expect on line 2: A-REL-7 release_retry
SELECT pg_advisory_lock(id) FROM jobs WHERE state = 'ready' ORDER BY id LIMIT 1;
SELECT pg_advisory_unlock(1);
