require "redis"
require "securerandom"

class Export
  RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end"

  def call(redis)
    token = SecureRandom.uuid
    if redis.setnx("lock:export", token)  # expect: A-LEASE-2 lease
      redis.expire("lock:export", 60)
      begin
        dump
      ensure
        redis.eval(RELEASE, keys: ["lock:export"], argv: [token])
      end
    end
  end
end
