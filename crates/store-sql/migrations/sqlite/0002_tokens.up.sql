-- Access tokens: coordination, not facts. Of the secret only its digest.
CREATE TABLE tokens (
    id         TEXT PRIMARY KEY,
    sha256     BLOB NOT NULL,
    name       TEXT NOT NULL,
    role       TEXT NOT NULL,
    scopes     TEXT NOT NULL,
    circle     TEXT,
    peer_id    TEXT,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX tokens_by_digest ON tokens (sha256);
