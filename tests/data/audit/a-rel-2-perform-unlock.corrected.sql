CREATE FUNCTION close_books(day int) RETURNS void AS $$
BEGIN
  PERFORM pg_advisory_lock(day);
  INSERT INTO closed (day) VALUES (day);
  IF NOT pg_advisory_unlock(day) THEN
    RAISE EXCEPTION 'the lock was lost';
  END IF;
END
$$ LANGUAGE plpgsql;
