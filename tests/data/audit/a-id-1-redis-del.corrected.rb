require "redis"
require "securerandom"

class Rebuilder
  RELEASE = <<~LUA
    if redis.call("get", KEYS[1]) == ARGV[1] then
      return redis.call("del", KEYS[1])
    end
  LUA

  def rebuild(redis, name)
    key = "lock:#{name}"
    token = SecureRandom.uuid
    return false unless redis.set(key, token, nx: true, px: 30_000)

    begin
      build(name)
    ensure
      redis.eval(RELEASE, keys: [key], argv: [token])
    end
    true
  end
end
