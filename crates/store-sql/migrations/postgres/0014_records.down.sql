-- A record of a kind that the older schema does not know is refused by its CHECK, and nothing is changed.
ALTER TABLE records RENAME TO routing;
ALTER TABLE routing ADD CONSTRAINT routing_kind_check CHECK (kind IN ('event', 'run'));
ALTER TABLE routing RENAME CONSTRAINT records_pkey TO routing_pkey;
ALTER TABLE routing RENAME COLUMN key TO dedupe_key;
ALTER TABLE routing RENAME COLUMN began_at TO begun_at;
ALTER INDEX records_by_time RENAME TO routing_by_time;
ALTER INDEX records_by_name RENAME TO routing_by_name;
ALTER INDEX records_by_key RENAME TO routing_by_key;

CREATE OR REPLACE FUNCTION let_retired_facts_go() RETURNS trigger LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF (SELECT kind FROM facts WHERE stream = OLD.stream ORDER BY version DESC LIMIT 1)
       IN ('job.retired/1', 'operation.retired/1', 'event.retired/1', 'run.retired/1') THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'facts are append-only';
END $$;
