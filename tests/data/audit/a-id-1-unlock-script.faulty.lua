-- KEYS[1] lock, ARGV[1] token
redis.call("publish", KEYS[1] .. ":free", ARGV[1])
return redis.call("del", KEYS[1])  -- expect: A-ID-1 release_retry
