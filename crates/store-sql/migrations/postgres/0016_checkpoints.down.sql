-- A stream with a checkpoint cannot be read by the older longhaul: this is refused, and nothing is changed. It can once its record has retired.
DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM facts WHERE kind ~ '^[a-z_]+[.]checkpointed/1$') THEN
        RAISE EXCEPTION 'the ledger has checkpoints, which the older schema cannot read';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION let_retired_facts_go() RETURNS trigger LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF (SELECT kind FROM facts WHERE stream = OLD.stream ORDER BY version DESC LIMIT 1)
       ~ '^[a-z_]+[.]retired/[1-9][0-9]*$' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'facts are append-only';
END $$;
