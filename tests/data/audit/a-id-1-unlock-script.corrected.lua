-- KEYS[1] lock, ARGV[1] token
if redis.call("get", KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call("publish", KEYS[1] .. ":free", ARGV[1])
return redis.call("del", KEYS[1])
