CREATE FUNCTION close_books(day int) RETURNS void AS $$
BEGIN
  PERFORM pg_advisory_lock(day);
  INSERT INTO closed (day) VALUES (day);
  PERFORM pg_advisory_unlock(day);  -- expect: A-REL-2 release_retry
END
$$ LANGUAGE plpgsql;
