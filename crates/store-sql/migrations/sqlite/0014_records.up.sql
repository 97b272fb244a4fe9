-- The current state of each record of a kind that has no table of its own, listed by name, newest first. Which kinds there are is not said here:
-- a new one needs no migration.
CREATE TABLE records (
    id         TEXT PRIMARY KEY,
    kind       TEXT NOT NULL,
    status     TEXT NOT NULL,
    name       TEXT NOT NULL,
    circle     TEXT,
    key        TEXT,
    began_at   INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    view       TEXT NOT NULL
) STRICT;
INSERT INTO records (id, kind, status, name, circle, key, began_at, updated_at, view)
SELECT id, kind, status, name, circle, dedupe_key, begun_at, updated_at, view FROM routing ORDER BY rowid;
DROP TABLE routing;
CREATE INDEX records_by_time ON records (kind, began_at, id);
CREATE INDEX records_by_name ON records (kind, name, began_at, id);
CREATE INDEX records_by_key ON records (kind, name, key, began_at, id) WHERE key IS NOT NULL;

-- The last fact of a stream that may go is called so in every kind.
DROP TRIGGER facts_go_only_when_retired;
CREATE TRIGGER facts_go_only_when_retired BEFORE DELETE ON facts
WHEN (SELECT kind FROM facts WHERE stream = OLD.stream ORDER BY version DESC LIMIT 1)
     NOT GLOB '[a-z]*.retired/[1-9]*'
BEGIN
    SELECT RAISE(ABORT, 'facts are append-only');
END;
