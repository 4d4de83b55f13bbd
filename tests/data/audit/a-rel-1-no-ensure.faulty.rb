require "redlock"

DLM = Redlock::Client.new(["redis://127.0.0.1:6379"])

def move(item)
  info = DLM.lock("move:#{item}", 10_000)  # expect: A-REL-1 release_retry
  return unless info

  carry(item)
  DLM.unlock(info)
end
