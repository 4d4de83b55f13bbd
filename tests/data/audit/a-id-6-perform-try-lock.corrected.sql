CREATE OR REPLACE FUNCTION rotate() RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  IF NOT pg_try_advisory_xact_lock(7) THEN
    RETURN;
  END IF;
  UPDATE keys SET current = next;
END
$body$;
