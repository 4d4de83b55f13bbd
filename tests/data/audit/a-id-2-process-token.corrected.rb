require "redis"
require "securerandom"
require "socket"

class Claim
  RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end"

  def run(redis)
    me = "#{Socket.gethostname}:#{SecureRandom.uuid}"
    return unless redis.set("lock:claim", me, nx: true, ex: 60)

    begin
      yield
    ensure
      redis.eval(RELEASE, keys: ["lock:claim"], argv: [me])
    end
  end
end
