-- KEYS[1] lock, ARGV[1] token, ARGV[2] milliseconds
if redis.call("setnx", KEYS[1], ARGV[1]) == 1 then  -- expect: A-LEASE-1 lease
  return 1
end
return 0
