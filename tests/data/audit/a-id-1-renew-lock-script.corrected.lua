-- KEYS[1] lock, ARGV[1] token, ARGV[2] milliseconds
local owner = redis.call("get", KEYS[1])
if owner == ARGV[1] then
  return redis.call("pexpire", KEYS[1], ARGV[2])
end
return 0
