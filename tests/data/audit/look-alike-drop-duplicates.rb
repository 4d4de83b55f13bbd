require "monitor"
require "redis"

class Seen
  def initialize(redis)
    @redis = redis
    @lock = Monitor.new
  end

  def first_time?(event)
    @lock.synchronize { @redis.set("seen:#{event}", 1, nx: true, ex: 3600) }
  end

  def row(account)
    account.with_lock { account.update!(seen: true) }
  end
end
