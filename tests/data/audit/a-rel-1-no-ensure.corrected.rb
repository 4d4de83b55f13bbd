require "redlock"

DLM = Redlock::Client.new(["redis://127.0.0.1:6379"])

def move(item)
  info = DLM.lock("move:#{item}", 10_000)
  return unless info

  begin
    carry(item)
  ensure
    DLM.unlock(info)
  end
end
