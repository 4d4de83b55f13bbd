CREATE OR REPLACE FUNCTION rotate() RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  PERFORM pg_try_advisory_xact_lock(7);  -- expect: A-ID-6 identity
  UPDATE keys SET current = next;
END
$body$;
