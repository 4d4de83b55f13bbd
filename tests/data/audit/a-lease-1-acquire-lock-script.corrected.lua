-- KEYS[1] lock, ARGV[1] token, ARGV[2] milliseconds
if redis.call("setnx", KEYS[1], ARGV[1]) == 1 then
  redis.call("pexpire", KEYS[1], ARGV[2])
  return 1
end
return 0
