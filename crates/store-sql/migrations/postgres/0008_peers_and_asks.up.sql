-- Those who pull work, and what they say to each other: coordination, not facts. No circle is an empty text.
CREATE TABLE peers (
    id            TEXT COLLATE "C" PRIMARY KEY,
    display_name  TEXT COLLATE "C" NOT NULL,
    circle        TEXT COLLATE "C" NOT NULL,
    labels        TEXT COLLATE "C" NOT NULL,
    capabilities  TEXT COLLATE "C" NOT NULL,
    path          TEXT COLLATE "C",
    backend       TEXT COLLATE "C",
    metadata      TEXT COLLATE "C" NOT NULL,
    registered_by TEXT COLLATE "C" NOT NULL,
    registered_at BIGINT NOT NULL,
    version       BIGINT NOT NULL,
    present_on    TEXT COLLATE "C",
    seen_at       BIGINT NOT NULL
);
CREATE INDEX peers_by_circle ON peers (circle, id);
CREATE INDEX peers_by_name ON peers (display_name, circle, id);

CREATE TABLE asks (
    id             TEXT COLLATE "C" PRIMARY KEY,
    circle         TEXT COLLATE "C" NOT NULL,
    from_peer      TEXT COLLATE "C",
    to_peer        TEXT COLLATE "C" NOT NULL,
    text           TEXT COLLATE "C" NOT NULL,
    job_id         TEXT COLLATE "C",
    reply_to       TEXT COLLATE "C",
    asked_by       TEXT COLLATE "C" NOT NULL,
    request_sha256 BYTEA NOT NULL,
    created_at     BIGINT NOT NULL,
    expires_at     BIGINT NOT NULL,
    closed_at      BIGINT,
    close_reason   TEXT COLLATE "C",
    close_message  TEXT COLLATE "C",
    closed_by      TEXT COLLATE "C",
    forget_at      BIGINT NOT NULL
);
CREATE INDEX asks_inbound ON asks (to_peer, circle, created_at, id) WHERE closed_at IS NULL;
CREATE INDEX asks_outbound ON asks (from_peer, circle, created_at, id) WHERE closed_at IS NULL AND from_peer IS NOT NULL;
CREATE INDEX asks_of_job ON asks (job_id, created_at, id) WHERE job_id IS NOT NULL;
CREATE INDEX asks_to_forget ON asks (forget_at, id);
