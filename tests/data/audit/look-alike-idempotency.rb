class DuplicateFilter
  def initialize(redis)
    @redis = redis
  end

  def begin(id)
    @redis.set("mail:#{id}", "1", nx: true, ex: 3600)
  end

  def forget(id)
    @redis.del("mail:#{id}") # no lock: on purpose, it is to be sent again
  end
end
