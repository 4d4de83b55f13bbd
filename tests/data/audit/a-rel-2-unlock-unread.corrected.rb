class Migration
  def run(connection)
    connection.execute("SELECT pg_advisory_lock(42)")
    begin
      connection.execute("ALTER TABLE t ADD COLUMN c int")
    ensure
      unlocked = connection.select_value("SELECT pg_advisory_unlock(42)")
      raise "the lock was lost" unless unlocked
    end
  end
end
