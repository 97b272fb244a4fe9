-- The core: the ledger of facts, what is folded from it, and who does what when.
-- Texts are compared byte by byte, as everywhere else, whatever the database's own collation is.

-- Coordination of the store itself: that it is ours, the number of this schema, the format of the views.
CREATE TABLE meta (
    name  TEXT COLLATE "C" PRIMARY KEY,
    value BIGINT NOT NULL
);

-- One row per fact, append-only. Positions are given under a lock that is held to the commit, so they rise in commit order;
-- versions within a stream have no gaps.
CREATE SEQUENCE fact_positions;
CREATE TABLE facts (
    position       BIGINT PRIMARY KEY,
    stream         TEXT COLLATE "C" NOT NULL,
    version        BIGINT NOT NULL,
    fact_id        BYTEA NOT NULL,
    kind           TEXT COLLATE "C" NOT NULL,
    at             BIGINT NOT NULL,
    actor          TEXT COLLATE "C" NOT NULL,
    causation_id   TEXT COLLATE "C",
    correlation_id TEXT COLLATE "C",
    payload        TEXT COLLATE "C" NOT NULL,
    checksum       BYTEA NOT NULL
);
CREATE UNIQUE INDEX facts_by_stream ON facts (stream, version);

CREATE FUNCTION refuse_to_change_facts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'facts are append-only';
END $$;
CREATE TRIGGER facts_are_never_changed BEFORE UPDATE ON facts
    FOR EACH ROW EXECUTE FUNCTION refuse_to_change_facts();
CREATE TRIGGER facts_are_never_emptied BEFORE TRUNCATE ON facts
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_facts();

-- A stream goes only as a whole, after the fact that says so. Stable: it looks at the stream as it was before the statement.
CREATE FUNCTION let_retired_facts_go() RETURNS trigger LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF (SELECT kind FROM facts WHERE stream = OLD.stream ORDER BY version DESC LIMIT 1)
       IN ('job.retired/1', 'operation.retired/1') THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'facts are append-only';
END $$;
CREATE TRIGGER facts_go_only_when_retired BEFORE DELETE ON facts
    FOR EACH ROW EXECUTE FUNCTION let_retired_facts_go();

-- Requests, prompts, results, handles: by digest, so that every attempt keeps its own.
CREATE TABLE bodies (
    record_id TEXT COLLATE "C" NOT NULL,
    name      TEXT COLLATE "C" NOT NULL,
    sha256    BYTEA NOT NULL,
    bytes     BYTEA NOT NULL,
    PRIMARY KEY (record_id, name, sha256)
);

-- One row per record: the head of its stream, its claim, and when it next needs someone.
-- It is written again and again: pages keep room for the next version of a row.
CREATE TABLE agenda (
    record_id        TEXT COLLATE "C" PRIMARY KEY,
    kind             TEXT COLLATE "C" NOT NULL,
    version          BIGINT NOT NULL,
    checksum         BYTEA NOT NULL,
    owner            TEXT COLLATE "C",
    lease_expires_at BIGINT,
    heartbeat_at     BIGINT,
    claim_version    BIGINT,
    held             BIGINT NOT NULL,
    lane             TEXT COLLATE "C",
    priority         BIGINT,
    sequence         BIGINT,
    ready_at         BIGINT,
    ready            BIGINT NOT NULL,
    due_at           BIGINT,
    limit_at         BIGINT
) WITH (fillfactor = 70);
CREATE INDEX agenda_due ON agenda (kind, due_at, record_id) WHERE due_at IS NOT NULL;
CREATE INDEX agenda_ready ON agenda (lane, priority DESC, sequence, record_id) WHERE ready = 1;

-- The current state of each job.
CREATE TABLE jobs (
    id                 TEXT COLLATE "C" PRIMARY KEY,
    state              TEXT COLLATE "C" NOT NULL CHECK (state IN (
        'queued', 'dispatching', 'delivered', 'running', 'awaiting_input', 'awaiting_external', 'blocked',
        'completed', 'failed', 'cancelled', 'expired', 'unavailable')),
    updated_at         BIGINT NOT NULL,
    owner_peer_id      TEXT COLLATE "C",
    created_by_peer_id TEXT COLLATE "C",
    session_id         TEXT COLLATE "C",
    circle             TEXT COLLATE "C",
    view               TEXT COLLATE "C" NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX jobs_by_state ON jobs (state, updated_at, id);
CREATE INDEX jobs_by_owner ON jobs (owner_peer_id, updated_at, id) WHERE owner_peer_id IS NOT NULL;
CREATE INDEX jobs_by_creator ON jobs (created_by_peer_id, updated_at, id) WHERE created_by_peer_id IS NOT NULL;
CREATE INDEX jobs_by_session ON jobs (session_id, updated_at, id) WHERE session_id IS NOT NULL;
CREATE INDEX jobs_by_circle ON jobs (circle, updated_at, id) WHERE circle IS NOT NULL;

-- The current state of each operation.
CREATE TABLE operations (
    id          TEXT COLLATE "C" PRIMARY KEY,
    job_id      TEXT COLLATE "C" NOT NULL,
    status      TEXT COLLATE "C" NOT NULL CHECK (status IN (
        'pending', 'running', 'completed', 'failed', 'timed-out', 'cancelled', 'expired', 'unknown')),
    updated_at  BIGINT NOT NULL,
    orphaned_at BIGINT,
    view        TEXT COLLATE "C" NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX operations_by_job ON operations (job_id);
CREATE INDEX operations_by_status ON operations (status, updated_at);
CREATE INDEX operations_orphaned ON operations (orphaned_at, id) WHERE orphaned_at IS NOT NULL;

-- One answer per request, by its sender's key.
CREATE TABLE idempotency_keys (
    principal      TEXT COLLATE "C" NOT NULL,
    route          TEXT COLLATE "C" NOT NULL,
    key            TEXT COLLATE "C" NOT NULL,
    request_sha256 BYTEA NOT NULL,
    record_id      TEXT COLLATE "C" NOT NULL,
    answer         BYTEA NOT NULL,
    keep_until     BIGINT NOT NULL,
    PRIMARY KEY (principal, route, key)
);
CREATE INDEX idempotency_keys_by_record ON idempotency_keys (record_id);
