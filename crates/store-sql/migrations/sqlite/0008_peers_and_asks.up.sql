-- Those who pull work, and what they say to each other: coordination, not facts. No circle is an empty text.
CREATE TABLE peers (
    id            TEXT PRIMARY KEY,
    display_name  TEXT NOT NULL,
    circle        TEXT NOT NULL,
    labels        TEXT NOT NULL,
    capabilities  TEXT NOT NULL,
    path          TEXT,
    backend       TEXT,
    metadata      TEXT NOT NULL,
    registered_by TEXT NOT NULL,
    registered_at INTEGER NOT NULL,
    version       INTEGER NOT NULL,
    present_on    TEXT,
    seen_at       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX peers_by_circle ON peers (circle, id);
CREATE INDEX peers_by_name ON peers (display_name, circle, id);

CREATE TABLE asks (
    id             TEXT PRIMARY KEY,
    circle         TEXT NOT NULL,
    from_peer      TEXT,
    to_peer        TEXT NOT NULL,
    text           TEXT NOT NULL,
    job_id         TEXT,
    reply_to       TEXT,
    asked_by       TEXT NOT NULL,
    request_sha256 BLOB NOT NULL,
    created_at     INTEGER NOT NULL,
    expires_at     INTEGER NOT NULL,
    closed_at      INTEGER,
    close_reason   TEXT,
    close_message  TEXT,
    closed_by      TEXT,
    forget_at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX asks_inbound ON asks (to_peer, circle, created_at, id) WHERE closed_at IS NULL;
CREATE INDEX asks_outbound ON asks (from_peer, circle, created_at, id) WHERE closed_at IS NULL AND from_peer IS NOT NULL;
CREATE INDEX asks_of_job ON asks (job_id, created_at, id) WHERE job_id IS NOT NULL;
CREATE INDEX asks_to_forget ON asks (forget_at, id);
