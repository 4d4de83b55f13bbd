-- KEYS[1] counter, ARGV[1] limit, ARGV[2] seconds
local n = redis.call("incr", KEYS[1])
if n == 1 then
  redis.call("expire", KEYS[1], ARGV[2])
end
if n > tonumber(ARGV[1]) then
  return 0
end
redis.call("del", KEYS[2])
return 1
