class Migration
  def run(connection)
    connection.execute("SELECT pg_advisory_lock(42)")
    begin
      connection.execute("ALTER TABLE t ADD COLUMN c int")
    ensure
      connection.select_value("SELECT pg_advisory_unlock(42)")  # expect: A-REL-2 release_retry
    end
  end
end
