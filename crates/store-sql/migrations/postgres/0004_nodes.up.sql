-- The processes that work on this store: coordination, not facts.
CREATE TABLE nodes (
    id             TEXT COLLATE "C" PRIMARY KEY,
    name           TEXT COLLATE "C" NOT NULL,
    url            TEXT COLLATE "C" NOT NULL,
    version        TEXT COLLATE "C" NOT NULL,
    schema_version BIGINT NOT NULL,
    executors      TEXT COLLATE "C" NOT NULL,
    started_at     BIGINT NOT NULL,
    heartbeat_at   BIGINT NOT NULL,
    attempts       BIGINT NOT NULL,
    polls          BIGINT NOT NULL,
    drains         BIGINT NOT NULL
);
-- What all of them must have in common: the key that callback addresses are signed with.
CREATE TABLE shared_keys (
    name  TEXT COLLATE "C" PRIMARY KEY,
    bytes BYTEA NOT NULL
);
