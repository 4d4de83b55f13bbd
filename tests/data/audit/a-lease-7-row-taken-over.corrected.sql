UPDATE leader_election SET holder = $1, lease_until = now() + interval '10 seconds'
 WHERE role = $2 AND (holder = $1 OR lease_until < now());
