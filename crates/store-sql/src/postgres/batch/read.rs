//! What a batch stands on: everything that its requests name, locked and read in one go. Here a transaction begins.

use std::collections::HashMap;
use std::time::Instant;

use domain::RecordId;
use store::{IdempotencyKey, KeptKey};

use super::super::claims;
use super::super::columnar::Columnar;
use super::super::nodes;
use super::super::session::{Parameter, Session};
use super::super::statements::{KEPT_KEYS, LOCK_ROWS, STORE_TIME};
use super::super::time::StoreTime;
use super::{Held, Rows, Undone};
use crate::database::{Columns, Unfit, bytes, digest, text};
use crate::request::Request;
use crate::rows::{agenda_with_id, time};

const SYNCED: &str = "BEGIN";
/// Its answer does not wait for the disk: whoever has it commits next, and what is lost with the server before that is refused then by the
/// fence.
const UNSYNCED: &str = "BEGIN; SET LOCAL synchronous_commit = off";

/// What the batch stands on.
pub(super) struct Read {
    pub(super) rows: Rows,
    pub(super) kept: HashMap<IdempotencyKey, KeptKey>,
    pub(super) time: StoreTime,
}

/// Begins, and locks and reads everything that is named.
pub(super) async fn read(session: &Session, requests: &[&Request]) -> Result<Read, Undone> {
    let mut rows = Rows::new();
    let mut keys = Columnar::<3>::new();
    for request in requests {
        match request {
            Request::Commit(prepared) => {
                rows.extend(prepared.records().map(|id| (id.clone(), Held::default())));
                for KeptKey { key, .. } in &prepared.commit.keys {
                    keys.push([
                        key.principal.as_str().into(),
                        key.route.as_str().into(),
                        key.key.as_str().into(),
                    ]);
                }
            }
            Request::Claim(request) => {
                rows.extend(claims::record_of(request).map(|id| (id.clone(), Held::default())));
            }
            Request::Write(_) => {}
        }
    }
    let [lock_rows, kept_keys, store_time] = [
        session.prepare(LOCK_ROWS).await?,
        session.prepare(KEPT_KEYS).await?,
        session.prepare(STORE_TIME).await?,
    ];
    let ids: Vec<&str> = rows.keys().map(RecordId::as_str).collect();
    let ids: [Parameter<'_>; 1] = [&ids];
    let time = async {
        let sent = Instant::now();
        let rows = session.rows(&store_time, &[]).await?;
        let answered = Instant::now();
        let row = rows.first().ok_or_else(|| Unfit::new(0, "the server says no time"))?;
        nodes::measured(row, sent, answered)
    };
    // Whoever takes names no row, and locks the table all the same: no step of the clock is adopted until the end.
    let takes = requests.iter().any(|request| matches!(request, Request::Claim(_)));
    let locked = async {
        if rows.is_empty() && !takes { Ok(Vec::new()) } else { session.rows(&lock_rows, &ids).await }
    };
    let kept = async {
        if keys.is_empty() { Ok(Vec::new()) } else { session.rows(&kept_keys, &keys.parameters()).await }
    };
    let begin =
        if requests.iter().all(|request| request.stands_on_next_commit()) { UNSYNCED } else { SYNCED };
    // The time last, when the rows are locked: a step of the clock that was adopted before that is known then.
    let (begun, locked, kept, time) = futures::join!(session.run(begin), locked, kept, time);
    // In the order in which they were sent: after the first failure the server refuses all others only because their transaction has failed.
    begun?;
    let (locked, found, time) = (locked?, kept?, time?);
    for row in &locked {
        let (id, row) = agenda_with_id(row)?;
        if let Some(held) = RecordId::parse(&id).ok().and_then(|id| rows.get_mut(&id)) {
            *held = Held { row: Some(row), was_there: true, changed: false };
        }
    }
    let kept = found.iter().map(|row| kept_key(row)).collect::<Result<_, _>>()?;
    Ok(Read { rows, kept, time })
}

fn kept_key(row: &dyn Columns) -> Result<(IdempotencyKey, KeptKey), Unfit> {
    let key = IdempotencyKey { principal: text(row, 0)?, route: text(row, 1)?, key: text(row, 2)? };
    let kept = KeptKey {
        key: key.clone(),
        request_sha256: domain::Digest(digest(row, 3)?),
        record: RecordId::parse(&text(row, 4)?).map_err(|refusal| Unfit::new(4, refusal))?,
        answer: bytes(row, 5)?.into(),
        keep_until: time(row, 6)?,
    };
    Ok((key, kept))
}
