-- renews a lock: KEYS[1] lock, ARGV[1] token, ARGV[2] milliseconds
if redis.call("get", KEYS[1]) == ARGV[1] then
  return redis.call("pexpire", KEYS[1], ARGV[2])
end
return 0
