-- What attempts leave, where every node reaches it: in chunks, gone with the bodies of their job.
CREATE TABLE artifact_chunks (
    record_id  TEXT COLLATE "C" NOT NULL,
    attempt_id TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    number     BIGINT NOT NULL,
    bytes      BYTEA NOT NULL,
    PRIMARY KEY (record_id, attempt_id, name, number)
);
