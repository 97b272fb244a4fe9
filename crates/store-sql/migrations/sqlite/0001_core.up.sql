-- The core: the ledger of facts, what is folded from it, and who does what when.

-- Coordination of the store itself: the format of the views, the highest position ever given.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row per fact, append-only. Positions rise in commit order; versions within a stream have no gaps.
CREATE TABLE facts (
    position       INTEGER PRIMARY KEY,
    stream         TEXT NOT NULL,
    version        INTEGER NOT NULL,
    fact_id        BLOB NOT NULL,
    kind           TEXT NOT NULL,
    at             INTEGER NOT NULL,
    actor          TEXT NOT NULL,
    causation_id   TEXT,
    correlation_id TEXT,
    payload        TEXT NOT NULL,
    checksum       BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX facts_by_stream ON facts (stream, version);

CREATE TRIGGER facts_are_never_changed BEFORE UPDATE ON facts
BEGIN
    SELECT RAISE(ABORT, 'facts are append-only');
END;

-- A stream goes only as a whole, after the fact that says so.
CREATE TRIGGER facts_go_only_when_retired BEFORE DELETE ON facts
WHEN (SELECT kind FROM facts WHERE stream = OLD.stream ORDER BY version DESC LIMIT 1)
     NOT IN ('job.retired/1', 'operation.retired/1')
BEGIN
    SELECT RAISE(ABORT, 'facts are append-only');
END;

-- Requests, prompts, results, handles: by digest, so that every attempt keeps its own.
CREATE TABLE bodies (
    record_id TEXT NOT NULL,
    name      TEXT NOT NULL,
    sha256    BLOB NOT NULL,
    bytes     BLOB NOT NULL,
    PRIMARY KEY (record_id, name, sha256)
) STRICT, WITHOUT ROWID;

-- One row per record: the head of its stream, its claim, and when it next needs someone.
CREATE TABLE agenda (
    record_id        TEXT PRIMARY KEY,
    kind             TEXT NOT NULL,
    version          INTEGER NOT NULL,
    checksum         BLOB NOT NULL,
    owner            TEXT,
    lease_expires_at INTEGER,
    heartbeat_at     INTEGER,
    claim_version    INTEGER,
    held             INTEGER NOT NULL,
    lane             TEXT,
    priority         INTEGER,
    sequence         INTEGER,
    ready_at         INTEGER,
    ready            INTEGER NOT NULL,
    due_at           INTEGER,
    limit_at         INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX agenda_due ON agenda (kind, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX agenda_ready ON agenda (lane, priority DESC, sequence) WHERE ready = 1;

-- The current state of each job.
CREATE TABLE jobs (
    id                 TEXT PRIMARY KEY,
    state              TEXT NOT NULL CHECK (state IN (
        'queued', 'dispatching', 'delivered', 'running', 'awaiting_input', 'awaiting_external', 'blocked',
        'completed', 'failed', 'cancelled', 'expired', 'unavailable')),
    updated_at         INTEGER NOT NULL,
    owner_peer_id      TEXT,
    created_by_peer_id TEXT,
    session_id         TEXT,
    circle             TEXT,
    view               TEXT NOT NULL
) STRICT;
CREATE INDEX jobs_by_state ON jobs (state, updated_at);
CREATE INDEX jobs_by_owner ON jobs (owner_peer_id, updated_at) WHERE owner_peer_id IS NOT NULL;
CREATE INDEX jobs_by_creator ON jobs (created_by_peer_id, updated_at) WHERE created_by_peer_id IS NOT NULL;
CREATE INDEX jobs_by_session ON jobs (session_id, updated_at) WHERE session_id IS NOT NULL;
CREATE INDEX jobs_by_circle ON jobs (circle, updated_at) WHERE circle IS NOT NULL;

-- The current state of each operation.
CREATE TABLE operations (
    id          TEXT PRIMARY KEY,
    job_id      TEXT NOT NULL,
    status      TEXT NOT NULL CHECK (status IN (
        'pending', 'running', 'completed', 'failed', 'timed-out', 'cancelled', 'expired', 'unknown')),
    updated_at  INTEGER NOT NULL,
    orphaned_at INTEGER,
    view        TEXT NOT NULL
) STRICT;
CREATE INDEX operations_by_job ON operations (job_id);
CREATE INDEX operations_by_status ON operations (status, updated_at);
CREATE INDEX operations_orphaned ON operations (orphaned_at) WHERE orphaned_at IS NOT NULL;

-- One answer per request, by its sender's key.
CREATE TABLE idempotency_keys (
    principal      TEXT NOT NULL,
    route          TEXT NOT NULL,
    key            TEXT NOT NULL,
    request_sha256 BLOB NOT NULL,
    record_id      TEXT NOT NULL,
    answer         BLOB NOT NULL,
    keep_until     INTEGER NOT NULL,
    PRIMARY KEY (principal, route, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_record ON idempotency_keys (record_id);
