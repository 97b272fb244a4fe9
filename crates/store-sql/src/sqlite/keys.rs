//! Idempotency keys as rows: written with their commit, kept to the later of their own time and their record's end.
//!
//! A key that outlives its record is marked when the record goes, and forgotten later, a bounded batch at a time.

use std::sync::Arc;

use domain::{Digest, RecordId, Timestamp};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, params};
use store::limits::MAX_FORGOTTEN_KEYS;
use store::{IdempotencyKey, KeptKey, StoreError};

use super::failure::read_failed;
use crate::dialect::Sql;
use crate::rows::signed;

// The record may have gone with this very commit: then nothing but time would ever take the key away.
static INSERT_KEY: Sql = Sql::new(
    "INSERT INTO idempotency_keys (principal, route, key, request_sha256, record_id, answer, keep_until, outlives) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, \
             CASE WHEN EXISTS (SELECT 1 FROM agenda WHERE agenda.record_id = $5) THEN 0 ELSE 1 END)",
);

/// Writes the keys of a commit, after its changes, and makes room for them.
pub(crate) fn insert(connection: &Connection, keys: &[KeptKey], at: Timestamp) -> rusqlite::Result<()> {
    if keys.is_empty() {
        return Ok(());
    }
    forget_some(connection, at)?;
    let mut statement = connection.prepare_cached(INSERT_KEY.sqlite())?;
    for kept in keys {
        statement.execute(params![
            kept.key.principal,
            kept.key.route,
            kept.key.key,
            kept.request_sha256.0,
            kept.record.as_str(),
            &kept.answer[..],
            kept.keep_until.micros(),
        ])?;
    }
    Ok(())
}

static FORGETTABLE: Sql = Sql::new(
    "SELECT principal, route, key FROM idempotency_keys WHERE outlives = 1 AND keep_until <= $1 \
     ORDER BY keep_until, principal, route, key LIMIT $2",
);
static FORGET: Sql =
    Sql::new("DELETE FROM idempotency_keys WHERE principal = $1 AND route = $2 AND key = $3");

fn forget_some(connection: &Connection, at: Timestamp) -> rusqlite::Result<()> {
    let forgettable: Vec<(String, String, String)> = connection
        .prepare_cached(FORGETTABLE.sqlite())?
        .query_map(params![at.micros(), signed(MAX_FORGOTTEN_KEYS as u64)], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?
        .collect::<Result<_, _>>()?;
    for key in forgettable {
        connection.prepare_cached(FORGET.sqlite())?.execute(key)?;
    }
    Ok(())
}

static REMOVE_KEYS: Sql = Sql::new("DELETE FROM idempotency_keys WHERE record_id = $1 AND keep_until <= $2");
static MARK_KEYS: Sql = Sql::new("UPDATE idempotency_keys SET outlives = 1 WHERE record_id = $1");

/// The record goes: so do the keys whose time has passed, the others outlive it.
pub(crate) fn record_goes(connection: &Connection, id: &RecordId, at: Timestamp) -> rusqlite::Result<()> {
    connection.prepare_cached(REMOVE_KEYS.sqlite())?.execute(params![id.as_str(), at.micros()])?;
    connection.prepare_cached(MARK_KEYS.sqlite())?.execute([id.as_str()])?;
    Ok(())
}

static KEY: Sql = Sql::new(
    "SELECT request_sha256, record_id, answer, keep_until FROM idempotency_keys \
     WHERE principal = $1 AND route = $2 AND key = $3",
);

/// A kept key inside the writer's transaction.
pub(crate) fn kept_key(connection: &Connection, key: &IdempotencyKey) -> rusqlite::Result<Option<KeptKey>> {
    let found: Option<([u8; 32], String, Vec<u8>, i64)> = connection
        .prepare_cached(KEY.sqlite())?
        .query_row((&key.principal, &key.route, &key.key), |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .optional()?;
    let kept = |(request, record, answer, keep_until): ([u8; 32], String, Vec<u8>, i64)| {
        Ok(KeptKey {
            key: key.clone(),
            request_sha256: Digest(request),
            record: RecordId::parse(&record).map_err(|refusal| {
                rusqlite::Error::FromSqlConversionFailure(1, Type::Text, Box::new(refusal))
            })?,
            answer: Arc::from(answer),
            keep_until: Timestamp::from_micros(keep_until),
        })
    };
    found.map(kept).transpose()
}

pub(crate) fn key(connection: &Connection, key: &IdempotencyKey) -> Result<Option<KeptKey>, StoreError> {
    kept_key(connection, key).map_err(read_failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_forgotten_through_an_index_and_never_by_a_scan() {
        let mut connection = Connection::open_in_memory().unwrap();
        crate::migrate_to(&mut connection, crate::SCHEMA_VERSION).unwrap();
        for statement in [&FORGETTABLE, &FORGET, &REMOVE_KEYS, &MARK_KEYS] {
            let explained = format!("EXPLAIN QUERY PLAN {}", statement.sqlite());
            let mut explained = connection.prepare(&explained).unwrap();
            let parameters = vec![0_i64; explained.parameter_count()];
            let plan: Vec<String> = explained
                .query_map(rusqlite::params_from_iter(parameters), |row| row.get(3))
                .unwrap()
                .collect::<Result<_, _>>()
                .unwrap();
            assert!(plan.iter().all(|step| step.starts_with("SEARCH")), "{}: {plan:?}", statement.sqlite());
        }
    }
}
