require "redis"
require "securerandom"

class Export
  RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end"

  def call(redis)
    token = SecureRandom.uuid
    if redis.set("lock:export", token, nx: true, ex: 60)
      begin
        dump
      ensure
        redis.eval(RELEASE, keys: ["lock:export"], argv: [token])
      end
    end
  end
end
