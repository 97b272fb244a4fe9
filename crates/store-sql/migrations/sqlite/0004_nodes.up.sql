-- The processes that work on this store: coordination, not facts.
CREATE TABLE nodes (
    id             TEXT PRIMARY KEY,
    name           TEXT NOT NULL,
    url            TEXT NOT NULL,
    version        TEXT NOT NULL,
    schema_version INTEGER NOT NULL,
    executors      TEXT NOT NULL,
    started_at     INTEGER NOT NULL,
    heartbeat_at   INTEGER NOT NULL,
    attempts       INTEGER NOT NULL,
    polls          INTEGER NOT NULL,
    drains         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
