CREATE SEQUENCE lockhavoc_echo;
CREATE FUNCTION lockhavoc_echo() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN IF pg_is_in_recovery() THEN RETURN 0; END IF; RETURN nextval('lockhavoc_echo'); END $$;
