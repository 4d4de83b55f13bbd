require "redlock"

class Biller
  def initialize
    @lock_manager = Redlock::Client.new(["redis://127.0.0.1:6379"])
  end

  def bill(order)
    @lock_manager.lock("bill:#{order}", 10_000) do |locked|  # expect: A-ID-6 identity
      charge(order)
    end
  end
end
