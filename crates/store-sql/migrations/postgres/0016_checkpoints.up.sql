-- The facts of a stream go as a whole after the fact that says so, or those before one of its checkpoints. The newest of them is looked for from
-- the end, where it stands when they go.
CREATE OR REPLACE FUNCTION let_retired_facts_go() RETURNS trigger LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF (SELECT kind FROM facts WHERE stream = OLD.stream ORDER BY version DESC LIMIT 1)
       ~ '^[a-z_]+[.]retired/[1-9][0-9]*$' THEN
        RETURN OLD;
    END IF;
    IF OLD.version < (SELECT version FROM facts WHERE stream = OLD.stream
       AND kind ~ '^[a-z_]+[.]checkpointed/1$' ORDER BY version DESC LIMIT 1) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'facts are append-only';
END $$;
