-- The current state of each record of a kind that has no table of its own, listed by name, newest first. Which kinds there are is not said here:
-- a new one needs no migration.
ALTER TABLE routing RENAME TO records;
ALTER TABLE records DROP CONSTRAINT routing_kind_check;
ALTER TABLE records RENAME CONSTRAINT routing_pkey TO records_pkey;
ALTER TABLE records RENAME COLUMN dedupe_key TO key;
ALTER TABLE records RENAME COLUMN begun_at TO began_at;
ALTER INDEX routing_by_time RENAME TO records_by_time;
ALTER INDEX routing_by_name RENAME TO records_by_name;
ALTER INDEX routing_by_key RENAME TO records_by_key;

-- The last fact of a stream that may go is called so in every kind.
CREATE OR REPLACE FUNCTION let_retired_facts_go() RETURNS trigger LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF (SELECT kind FROM facts WHERE stream = OLD.stream ORDER BY version DESC LIMIT 1)
       ~ '^[a-z_]+[.]retired/[1-9][0-9]*$' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'facts are append-only';
END $$;
