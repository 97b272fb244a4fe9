-- The current state of each event and of each run of a pipeline: both are listed by name, newest first.
CREATE TABLE routing (
    id         TEXT COLLATE "C" PRIMARY KEY,
    kind       TEXT COLLATE "C" NOT NULL CHECK (kind IN ('event', 'run')),
    status     TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    circle     TEXT COLLATE "C",
    dedupe_key TEXT COLLATE "C",
    begun_at   BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    view       TEXT COLLATE "C" NOT NULL
);
CREATE INDEX routing_by_time ON routing (kind, begun_at, id);
CREATE INDEX routing_by_name ON routing (kind, name, begun_at, id);
CREATE INDEX routing_by_key ON routing (kind, name, dedupe_key, begun_at, id) WHERE dedupe_key IS NOT NULL;

CREATE OR REPLACE FUNCTION let_retired_facts_go() RETURNS trigger LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF (SELECT kind FROM facts WHERE stream = OLD.stream ORDER BY version DESC LIMIT 1)
       IN ('job.retired/1', 'operation.retired/1', 'event.retired/1', 'run.retired/1') THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'facts are append-only';
END $$;
