-- KEYS[1] lock, ARGV[1] token, ARGV[2] milliseconds
return redis.call("set", KEYS[1], ARGV[1], "NX", "PX", ARGV[2])
