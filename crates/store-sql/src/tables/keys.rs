//! Idempotency keys as rows: written with their commit, kept to the later of their own time and their record's end.
//!
//! A key that outlives its record is marked when the record goes, and forgotten later, a bounded batch at a time.

use std::sync::Arc;

use domain::{Digest, RecordId, Timestamp};
use store::limits::MAX_FORGOTTEN_KEYS;
use store::{IdempotencyKey, KeptKey, StoreError};

use crate::database::{Database, Unfit, bytes, digest, one, text};
use crate::dialect::Sql;
use crate::rows::{signed, time};

// The record may have gone with this very commit: then nothing but time would ever take the key away.
static INSERT_KEY: Sql = Sql::new(
    "INSERT INTO idempotency_keys (principal, route, key, request_sha256, record_id, answer, keep_until, outlives) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, \
             CASE WHEN EXISTS (SELECT 1 FROM agenda WHERE agenda.record_id = $5) THEN 0 ELSE 1 END)",
);

/// Writes the keys of a commit, after its changes, and makes room for them.
pub(crate) async fn insert<D: Database>(
    database: &D,
    keys: &[KeptKey],
    at: Timestamp,
) -> Result<(), D::Error> {
    if keys.is_empty() {
        return Ok(());
    }
    forget_some(database, at).await?;
    for kept in keys {
        let given = [
            kept.key.principal.as_str().into(),
            kept.key.route.as_str().into(),
            kept.key.key.as_str().into(),
            kept.request_sha256.0[..].into(),
            kept.record.as_str().into(),
            kept.answer[..].into(),
            kept.keep_until.micros().into(),
        ];
        database.execute(&INSERT_KEY, &given).await?;
    }
    Ok(())
}

static FORGETTABLE: Sql = Sql::new(
    "SELECT principal, route, key FROM idempotency_keys WHERE outlives = 1 AND keep_until <= $1 \
     ORDER BY keep_until, principal, route, key LIMIT $2",
);
static FORGET: Sql =
    Sql::new("DELETE FROM idempotency_keys WHERE principal = $1 AND route = $2 AND key = $3");

async fn forget_some<D: Database>(database: &D, at: Timestamp) -> Result<(), D::Error> {
    let given = [at.micros().into(), signed(MAX_FORGOTTEN_KEYS as u64).into()];
    let forgettable =
        database.query(&FORGETTABLE, &given, |row| Ok([text(row, 0)?, text(row, 1)?, text(row, 2)?])).await?;
    for [principal, route, key] in &forgettable {
        let given = [principal.as_str().into(), route.as_str().into(), key.as_str().into()];
        database.execute(&FORGET, &given).await?;
    }
    Ok(())
}

static REMOVE_KEYS: Sql = Sql::new("DELETE FROM idempotency_keys WHERE record_id = $1 AND keep_until <= $2");
static MARK_KEYS: Sql = Sql::new("UPDATE idempotency_keys SET outlives = 1 WHERE record_id = $1");

/// The record goes: so do the keys whose time has passed, the others outlive it.
pub(crate) async fn record_goes<D: Database>(
    database: &D,
    id: &RecordId,
    at: Timestamp,
) -> Result<(), D::Error> {
    database.execute(&REMOVE_KEYS, &[id.as_str().into(), at.micros().into()]).await?;
    database.execute(&MARK_KEYS, &[id.as_str().into()]).await?;
    Ok(())
}

static KEY: Sql = Sql::new(
    "SELECT request_sha256, record_id, answer, keep_until FROM idempotency_keys \
     WHERE principal = $1 AND route = $2 AND key = $3",
);

/// A kept key inside the writer's transaction.
pub(crate) async fn kept_key<D: Database>(
    database: &D,
    key: &IdempotencyKey,
) -> Result<Option<KeptKey>, D::Error> {
    let given = [key.principal.as_str().into(), key.route.as_str().into(), key.key.as_str().into()];
    one(database, &KEY, &given, |row| {
        Ok(KeptKey {
            key: key.clone(),
            request_sha256: Digest(digest(row, 0)?),
            record: RecordId::parse(&text(row, 1)?).map_err(|refusal| Unfit::new(1, refusal))?,
            answer: Arc::from(bytes(row, 2)?),
            keep_until: time(row, 3)?,
        })
    })
    .await
}

pub(crate) async fn key<D: Database>(
    database: &D,
    key: &IdempotencyKey,
) -> Result<Option<KeptKey>, StoreError> {
    kept_key(database, key).await.map_err(D::read_failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::query_plan;

    #[test]
    fn keys_are_forgotten_through_an_index_and_never_by_a_scan() {
        for statement in [&FORGETTABLE, &FORGET, &REMOVE_KEYS, &MARK_KEYS] {
            let plan = query_plan(statement);
            assert!(plan.iter().all(|step| step.starts_with("SEARCH")), "{}: {plan:?}", statement.sqlite());
        }
    }
}
