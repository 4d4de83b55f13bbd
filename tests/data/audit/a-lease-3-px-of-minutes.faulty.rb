require "active_support/all"
require "redis"
require "securerandom"

RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end"

def sweep(redis)
  token = SecureRandom.hex
  ok = redis.set("lock:sweep", token, nx: true, px: 30.seconds)  # expect: A-LEASE-3 lease
  return unless ok

  begin
    puts "sweeping"
  ensure
    redis.eval(RELEASE, keys: ["lock:sweep"], argv: [token])
  end
end
