//! The statements that write many rows at once. One row at a time they would be those of `views.rs`, `agenda.rs` and `keys.rs`.

use crate::asks::ask_columns;
use crate::rows::{agenda_columns, fact_columns, job_columns, operation_columns, record_columns};

// In the order of their ids, so that two batches never wait for each other in a circle.
pub(super) const LOCK_ROWS: &str = concat!(
    "SELECT record_id, ",
    agenda_columns!(),
    " FROM agenda WHERE record_id = ANY ($1::text[]) ORDER BY record_id FOR UPDATE"
);

pub(super) const KEPT_KEYS: &str = "SELECT principal, route, key, request_sha256, record_id, answer, keep_until FROM idempotency_keys \
     JOIN UNNEST($1::text[], $2::text[], $3::text[]) AS asked (principal, route, key) USING (principal, route, key)";

pub(super) const FACT_IDS: &str = "SELECT stream, version, fact_id, position FROM facts \
     JOIN UNNEST($1::text[], $2::bigint[]) AS asked (stream, version) USING (stream, version)";

// With what the database has become: see `versions.rs`.
pub(super) const STORE_TIME: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint \
     + coalesce((SELECT value FROM meta WHERE name = 'clock_correction'), 0), \
     (SELECT value FROM meta WHERE name = 'schema'), (SELECT value FROM meta WHERE name = 'view_format'), \
     coalesce((SELECT value FROM meta WHERE name = 'clock_correction'), 0), \
     coalesce((SELECT value FROM meta WHERE name = 'clock_revision'), 0)";

pub(super) const INSERT_JOBS: &str = concat!(
    "INSERT INTO jobs (",
    job_columns!(),
    ") SELECT * FROM UNNEST($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], \
     $8::text[])"
);
pub(super) const UPDATE_JOBS: &str = concat!(
    "UPDATE jobs SET state = given.state, updated_at = given.updated_at, owner_peer_id = given.owner_peer_id, \
     created_by_peer_id = given.created_by_peer_id, session_id = given.session_id, circle = given.circle, \
     view = given.view FROM UNNEST($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], \
     $7::text[], $8::text[]) AS given (",
    job_columns!(),
    ") JOIN jobs AS before USING (id) WHERE jobs.id = given.id RETURNING jobs.id, before.state"
);

pub(super) const INSERT_OPERATIONS: &str = concat!(
    "INSERT INTO operations (",
    operation_columns!(),
    ") SELECT * FROM UNNEST($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[])"
);
pub(super) const UPDATE_OPERATIONS: &str = concat!(
    "UPDATE operations SET job_id = given.job_id, status = given.status, updated_at = given.updated_at, \
     orphaned_at = given.orphaned_at, view = given.view FROM UNNEST($1::text[], $2::text[], $3::text[], \
     $4::bigint[], $5::bigint[], $6::text[]) AS given (",
    operation_columns!(),
    ") WHERE operations.id = given.id"
);

pub(super) const INSERT_RECORDS: &str = concat!(
    "INSERT INTO records (",
    record_columns!(),
    ") SELECT * FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], \
     $8::bigint[], $9::text[])"
);
pub(super) const UPDATE_RECORDS: &str = concat!(
    "UPDATE records SET kind = given.kind, status = given.status, name = given.name, circle = given.circle, \
     key = given.key, began_at = given.began_at, updated_at = given.updated_at, view = given.view \
     FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], \
     $8::bigint[], $9::text[]) AS given (",
    record_columns!(),
    ") WHERE records.id = given.id"
);

pub(super) const INSERT_AGENDA: &str = concat!(
    "INSERT INTO agenda (record_id, ",
    agenda_columns!(),
    ", kind) SELECT * FROM UNNEST($1::text[], $2::bigint[], $3::bytea[], $4::text[], $5::bigint[], $6::bigint[], \
     $7::bigint[], $8::bigint[], $9::text[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], \
     $14::bigint[], $15::bigint[], $16::text[])"
);
pub(super) const UPDATE_AGENDA: &str = concat!(
    "UPDATE agenda SET version = given.version, checksum = given.checksum, owner = given.owner, \
     lease_expires_at = given.lease_expires_at, heartbeat_at = given.heartbeat_at, \
     claim_version = given.claim_version, held = given.held, lane = given.lane, priority = given.priority, \
     sequence = given.sequence, ready_at = given.ready_at, ready = given.ready, due_at = given.due_at, \
     limit_at = given.limit_at FROM UNNEST($1::text[], $2::bigint[], $3::bytea[], $4::text[], $5::bigint[], \
     $6::bigint[], $7::bigint[], $8::bigint[], $9::text[], $10::bigint[], $11::bigint[], $12::bigint[], \
     $13::bigint[], $14::bigint[], $15::bigint[]) AS given (record_id, ",
    agenda_columns!(),
    ") WHERE agenda.record_id = given.record_id"
);

pub(super) const INSERT_BODIES: &str = "INSERT INTO bodies (record_id, name, sha256, bytes) \
     SELECT * FROM UNNEST($1::text[], $2::text[], $3::bytea[], $4::bytea[]) ON CONFLICT DO NOTHING";

// What a taken job is begun with.
pub(super) const TAKEN_JOBS: &str = "SELECT id, view FROM jobs WHERE id = ANY ($1::text[])";
pub(super) const TAKEN_BODIES: &str = "SELECT record_id, name, sha256, bytes FROM bodies \
     WHERE record_id = ANY ($1::text[]) AND octet_length(bytes) <= $2";

pub(super) const REMOVE_ERRORS: &str =
    "DELETE FROM bodies WHERE record_id = ANY ($1::text[]) AND name = 'error'";
pub(super) const REMOVE_BODIES: &str = "DELETE FROM bodies WHERE record_id = ANY ($1::text[])";
pub(super) const REMOVE_OTHER_BODIES: &str = "DELETE FROM bodies USING UNNEST($1::text[], $2::text[]) AS given (id, named) \
     WHERE record_id = given.id AND strpos(given.named, name || ' ' || encode(sha256, 'hex') || ';') = 0";
pub(super) const REMOVE_CHUNKS: &str = "DELETE FROM artifact_chunks WHERE record_id = ANY ($1::text[])";
pub(super) const REMOVE_JOBS: &str = "DELETE FROM jobs WHERE id = ANY ($1::text[]) RETURNING id, state";
pub(super) const REMOVE_OPERATIONS: &str = "DELETE FROM operations WHERE id = ANY ($1::text[])";
pub(super) const REMOVE_RECORDS: &str = "DELETE FROM records WHERE id = ANY ($1::text[])";
pub(super) const REMOVE_AGENDA: &str = "DELETE FROM agenda WHERE record_id = ANY ($1::text[])";
pub(super) const REMOVE_FACTS: &str = "DELETE FROM facts WHERE stream = ANY ($1::text[])";
pub(super) const REMOVE_OLDER_FACTS: &str = "DELETE FROM facts USING UNNEST($1::text[], $2::bigint[]) AS given (stream, version) \
     WHERE facts.stream = given.stream AND facts.version < given.version";

// Of keys whose records go: those whose time has passed go too, the others are marked.
pub(super) const REMOVE_KEYS: &str = "DELETE FROM idempotency_keys USING UNNEST($1::text[], $2::bigint[]) AS gone (id, at) \
     WHERE record_id = gone.id AND keep_until <= gone.at";
pub(super) const MARK_KEYS: &str =
    "UPDATE idempotency_keys SET outlives = 1 WHERE record_id = ANY ($1::text[]) AND outlives = 0";

// What another node forgets at this moment need not be waited for.
pub(super) const FORGET_KEYS: &str = "DELETE FROM idempotency_keys AS kept USING \
     (SELECT principal, route, key FROM idempotency_keys WHERE outlives = 1 AND keep_until <= $1 \
      ORDER BY keep_until, principal, route, key LIMIT $2 FOR UPDATE SKIP LOCKED) AS old \
     WHERE kept.principal = old.principal AND kept.route = old.route AND kept.key = old.key";

// Two nodes may both have found a key unused; the unique index picks one, and the other's batch is done again.
pub(super) const INSERT_KEYS: &str = "INSERT INTO idempotency_keys \
     (principal, route, key, request_sha256, record_id, answer, keep_until, outlives) \
     SELECT principal, route, key, request_sha256, record_id, answer, keep_until, \
            CASE WHEN EXISTS (SELECT 1 FROM agenda WHERE agenda.record_id = given.record_id) THEN 0 ELSE 1 END \
     FROM UNNEST($1::text[], $2::text[], $3::text[], $4::bytea[], $5::text[], $6::bytea[], $7::bigint[]) \
     AS given (principal, route, key, request_sha256, record_id, answer, keep_until) ON CONFLICT DO NOTHING";

pub(super) const INSERT_ASKS: &str = concat!(
    "INSERT INTO asks (",
    ask_columns!(),
    ") SELECT * FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], \
     $8::text[], $9::bytea[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[], $14::text[], $15::text[], \
     $16::bigint[]) ON CONFLICT (id) DO NOTHING"
);
pub(super) const CLOSE_ASKS: &str = "UPDATE asks SET closed_at = given.closed_at, close_reason = given.close_reason, \
     close_message = given.close_message, closed_by = given.closed_by, \
     forget_at = COALESCE(given.forget_at, asks.forget_at) \
     FROM UNNEST($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[]) \
     AS given (id, closed_at, close_reason, close_message, closed_by, forget_at) \
     WHERE asks.id = given.id AND asks.closed_at IS NULL";

// One key after the other, as they are given; held to the end of the transaction.
pub(super) const LOCK_LANES: &str = "SELECT pg_advisory_xact_lock(hashtextextended(\
     'longhaul lane ' || current_schema() || ' ' || lane, 0)) FROM UNNEST($1::text[]) AS lane";
// Held to the end of the transaction: whoever gets it next gives its positions after ours are seen by everyone.
pub(super) const LOCK_LEDGER: &str = "SELECT pg_advisory_xact_lock($1)";
// Under the lock of the ledger, so that nobody waits for these rows, least of all in a circle.
pub(super) const MOVE_TALLIES: &str = "INSERT INTO job_tallies (state, executor, jobs) \
     SELECT * FROM UNNEST($1::text[], $2::text[], $3::bigint[]) \
     ON CONFLICT (state, executor) DO UPDATE SET jobs = job_tallies.jobs + excluded.jobs";
// Executors come and go with the jobs that name them.
pub(super) const FORGET_TALLIES: &str = "DELETE FROM job_tallies WHERE jobs = 0";
pub(super) const INSERT_FACTS: &str = concat!(
    "INSERT INTO facts (",
    fact_columns!(),
    ") SELECT nextval('fact_positions'), given.* FROM UNNEST($1::text[], $2::bigint[], $3::bytea[], $4::text[], \
     $5::bigint[], $6::text[], $7::text[], $8::text[], $9::text[], $10::bytea[]) AS given RETURNING position"
);
