-- Access tokens: coordination, not facts. Of the secret only its digest.
CREATE TABLE tokens (
    id         TEXT COLLATE "C" PRIMARY KEY,
    sha256     BYTEA NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    role       TEXT COLLATE "C" NOT NULL,
    scopes     TEXT COLLATE "C" NOT NULL,
    circle     TEXT COLLATE "C",
    peer_id    TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    revoked_at BIGINT
);
CREATE UNIQUE INDEX tokens_by_digest ON tokens (sha256);
