CREATE SEQUENCE lockhavoc_echo;
CREATE FUNCTION lockhavoc_echo() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN IF pg_is_in_recovery() THEN RETURN 0; END IF; RETURN nextval('lockhavoc_echo'); END $$;
CREATE FUNCTION lockhavoc_echoes() RETURNS bigint LANGUAGE sql AS $$ SELECT CASE WHEN pg_is_in_recovery() THEN coalesce(pg_stat_get_function_calls('lockhavoc_echo'::regproc), 0) ELSE (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM lockhavoc_echo) END $$;
