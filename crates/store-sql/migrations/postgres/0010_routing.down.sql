CREATE OR REPLACE FUNCTION let_retired_facts_go() RETURNS trigger LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF (SELECT kind FROM facts WHERE stream = OLD.stream ORDER BY version DESC LIMIT 1)
       IN ('job.retired/1', 'operation.retired/1') THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'facts are append-only';
END $$;
DROP TABLE routing;
