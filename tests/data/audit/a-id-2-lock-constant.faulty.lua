-- KEYS[1] lock, ARGV[1] token, ARGV[2] milliseconds
return redis.call("set", KEYS[1], "locked", "NX", "PX", ARGV[2])  -- expect: A-ID-2 identity
