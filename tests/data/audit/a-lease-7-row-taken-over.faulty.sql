-- expect on line 2: A-LEASE-7 lease
UPDATE leader_election SET holder = $1, lease_until = now() + interval '10 seconds'
 WHERE role = $2;
