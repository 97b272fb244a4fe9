//! Taking, renewing and handing back: only agenda rows, never a fact. The rules are the row's own.
//!
//! What is ready is taken to be begun at once: unless this process remembers it, it is read in the same transaction, all together.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use domain::job::anywhere;
use domain::{Lease, Record, RecordId, RecordKind, Timestamp};
use store::{AgendaRow, ClaimRequest, Loaded, NewBody, StoreError, Take, Taken, decode_sealed_view, sha256};
use tokio_postgres::Row;

use super::batch::{Asked, KnownSteps};
use super::columnar::Columnar;
use super::failure::PostgresError;
use super::session::{Parameter, Session};
use super::statements::{LOCK_LANES, LOCK_ROWS, TAKEN_BODIES, TAKEN_JOBS, UPDATE_AGENDA};
use crate::agenda::{DUE, HELD, READY, left_by, take_limit};
use crate::database::{Database, Unfit, bytes, digest, text};
use crate::recent::{MAX_BODY_BYTES, Recent};
use crate::request::{Answer, Request};
use crate::rows::{agenda_values, agenda_with_id};

/// A job that was taken, and what it is begun with.
pub(super) struct Found {
    pub(super) id: RecordId,
    pub(super) loaded: Loaded,
    pub(super) bodies: Vec<NewBody>,
}

/// The record that a request names.
pub(super) fn record_of(request: &ClaimRequest) -> Option<&RecordId> {
    match request {
        ClaimRequest::Take { id, .. }
        | ClaimRequest::Renew { id, .. }
        | ClaimRequest::HandBack { id, .. } => Some(id),
        ClaimRequest::TakeDue { .. } | ClaimRequest::TakeReady { .. } | ClaimRequest::EndLeases { .. } => {
            None
        }
    }
}

/// Changes the locked row of the record that a request names.
pub(super) fn claim(
    request: &ClaimRequest,
    id: &RecordId,
    row: Option<&mut AgendaRow>,
    asked: Asked,
    steps: &KnownSteps,
) -> Result<Answer, StoreError> {
    let row = row.ok_or(StoreError::UnknownRecord)?;
    if asked == Asked::Again
        && let Some(answer) = done_before(request, row, steps)
    {
        // Who had it before was overwritten when it was asked for the first time.
        return Ok(Answer::taken(vec![Taken::of(id.clone(), answer)]));
    }
    Ok(match request {
        ClaimRequest::Take { take, .. } => {
            let heard_at = row.heard_at();
            let claim = row.take(&take.owner, steps.carried(take.now), take.lease)?;
            Answer::taken(vec![Taken { id: id.clone(), claim, heard_at }])
        }
        ClaimRequest::Renew { fence, now, lease, .. } => {
            let claim = row.renew(fence, steps.carried(*now), *lease)?;
            Answer::taken(vec![Taken::of(id.clone(), claim)])
        }
        ClaimRequest::HandBack { fence, now, due_at, .. } => {
            let carried = steps.carried(*now);
            let by_micros = carried.micros().saturating_sub(now.micros());
            row.hand_back(fence, carried, due_at.plus_micros(by_micros))?;
            Answer::RELEASED
        }
        ClaimRequest::TakeDue { .. } | ClaimRequest::TakeReady { .. } | ClaimRequest::EndLeases { .. } => {
            Answer::RELEASED
        }
    })
}

/// A claim that this very request gave, in a transaction whose end nobody knew: owner, time and version say so.
fn done_before(request: &ClaimRequest, row: &AgendaRow, steps: &KnownSteps) -> Option<domain::Claim> {
    let claim = row.claim.as_ref().filter(|_| row.held)?;
    let was_at = |now: Timestamp| [now, steps.carried(now)].contains(&claim.heartbeat_at);
    let ours = match request {
        ClaimRequest::Take { take, .. } => claim.owner == take.owner && was_at(take.now),
        ClaimRequest::Renew { fence, now, .. } => {
            claim.owner == fence.owner && claim.claim_version == fence.claim_version + 1 && was_at(*now)
        }
        // Repeated as it is: what was released stays released.
        ClaimRequest::HandBack { .. } => false,
        ClaimRequest::TakeDue { .. } | ClaimRequest::TakeReady { .. } | ClaimRequest::EndLeases { .. } => {
            false
        }
    };
    ours.then(|| claim.clone())
}

/// Locks the lanes whose limits the requests ask to be kept, until the end of the transaction: of those who take from a lane, or
/// from one that is the same but for its node, at once, each counts what the others have taken. Always in the same order, and after the rows that the batch names.
pub(super) async fn lock_lanes(session: &Session, requests: &[&Request]) -> Result<(), PostgresError> {
    let limited = requests.iter().filter_map(|request| match request {
        Request::Claim(ClaimRequest::TakeReady { lane, limit: Some(_), .. }) => Some(anywhere(lane)),
        Request::Claim(_) | Request::Commit(_) | Request::Write(_) => None,
    });
    let lanes: Vec<&str> = limited.collect::<BTreeSet<_>>().into_iter().collect();
    if !lanes.is_empty() {
        let statement = session.prepare(LOCK_LANES).await?;
        session.rows(&statement, &[&lanes]).await?;
    }
    Ok(())
}

/// Takes what is due or ready. What an unfinished transaction may have taken before comes back when its lease ends.
pub(super) async fn take(
    session: &Session,
    request: &ClaimRequest,
    recent: &Recent,
    found: &mut Vec<Found>,
    steps: &KnownSteps,
) -> Result<Result<Answer, StoreError>, PostgresError> {
    match request {
        ClaimRequest::TakeDue { kind, take } => {
            let now = steps.carried(take.now);
            let given = [kind.as_str().into(), now.micros().into(), take_limit(take).into()];
            take_all(session, session.query(&DUE, &given, agenda_with_id).await?, take, steps).await
        }
        ClaimRequest::TakeReady { lane, limit, take } => {
            let left = left_by(session, lane, *limit, take).await?;
            let given = [lane.as_str().into(), left.into()];
            let rows = session.query(&READY, &given, agenda_with_id).await?;
            find(session, &rows, recent, found).await?;
            take_all(session, rows, take, steps).await
        }
        ClaimRequest::EndLeases { owners, now } => {
            let latest = now.plus_seconds(u64::from(Lease::BOUNDS_SECONDS.1));
            let mut held = Vec::new();
            for kind in RecordKind::ALL {
                let given = [kind.as_str().into(), latest.micros().into()];
                held.extend(session.query(&HELD, &given, agenda_with_id).await?);
            }
            let is_dead = |row: &AgendaRow| {
                row.claim.as_ref().is_some_and(|claim| claim.owner.as_str().starts_with(owners.as_str()))
            };
            let ids: Vec<String> =
                held.into_iter().filter(|(_, row)| is_dead(row)).map(|(id, _)| id).collect();
            let given: [Parameter<'_>; 1] = [&ids];
            let statement = session.prepare(LOCK_ROWS).await?;
            let locked = session.each_row(&statement, &given, |row| agenda_with_id(row)).await?;
            let mut ended = Vec::new();
            for (id, mut row) in locked.into_iter().filter(|(_, row)| is_dead(row)) {
                row.end_lease(*now);
                ended.extend(RecordId::parse(&id).ok().map(|id| (id, row)));
            }
            update(session, &ended).await?;
            Ok(Ok(Answer::RELEASED))
        }
        ClaimRequest::Take { .. } | ClaimRequest::Renew { .. } | ClaimRequest::HandBack { .. } => {
            Ok(Ok(Answer::RELEASED))
        }
    }
}

/// Reads what is about to be taken and not remembered as it is.
async fn find(
    session: &Session,
    rows: &[(String, AgendaRow)],
    recent: &Recent,
    found: &mut Vec<Found>,
) -> Result<(), PostgresError> {
    let unknown = rows.iter().filter(|(id, row)| !recent.has(id, row.head));
    let unknown: BTreeMap<&str, &AgendaRow> = unknown.map(|(id, row)| (id.as_str(), row)).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let ids: Vec<&str> = unknown.keys().copied().collect();
    let most = i32::try_from(MAX_BODY_BYTES).expect("it is small");
    let [jobs, bodies] = [session.prepare(TAKEN_JOBS).await?, session.prepare(TAKEN_BODIES).await?];
    let (of_jobs, of_bodies): ([Parameter<'_>; 1], [Parameter<'_>; 2]) = ([&ids], [&ids, &most]);
    let (jobs, bodies) = futures::join!(
        session.each_row(&jobs, &of_jobs, |row| Ok::<_, Unfit>((text(row, 0)?, text(row, 1)?))),
        session.each_row(&bodies, &of_bodies, KeptBody::read),
    );
    let mut bodies_of: HashMap<String, Vec<KeptBody>> = HashMap::new();
    for (id, body) in bodies? {
        bodies_of.entry(id).or_default().push(body);
    }
    for (id, view) in jobs? {
        let Ok(parsed) = RecordId::parse(&id) else { continue };
        // One that cannot be read, or is not of the newest fact, is no reason to take nothing: whoever begins it finds out.
        let Ok((record, head)) = decode_sealed_view(&parsed, &view) else { continue };
        let Some(row) = unknown.get(id.as_str()).filter(|row| row.head == head) else { continue };
        let bodies = bodies_of.remove(&id).unwrap_or_default();
        let bodies = bodies.into_iter().filter_map(|body| body.of(&record)).collect();
        found.push(Found { id: parsed, loaded: Loaded { record, head: row.head, claim: None }, bodies });
    }
    Ok(())
}

/// The row of a body.
struct KeptBody {
    name: String,
    sha256: [u8; 32],
    bytes: Arc<[u8]>,
}

impl KeptBody {
    /// With the id of its record.
    fn read(row: &Row) -> Result<(String, Self), Unfit> {
        let (name, sha256) = (text(row, 1)?, digest(row, 2)?);
        Ok((text(row, 0)?, Self { name, sha256, bytes: Arc::from(bytes(row, 3)?) }))
    }

    /// As the record names it.
    fn of(self, record: &Record) -> Option<NewBody> {
        let Record::Job(job) = record else { return None };
        let named =
            job.bodies.iter().find(|body| body.name.as_str() == self.name && body.sha256.0 == self.sha256);
        // One that is damaged is left to whoever reads it, and is told.
        let whole = named.filter(|body| sha256(&self.bytes) == body.sha256);
        whole.map(|body| NewBody { body: *body, bytes: self.bytes })
    }
}

async fn take_all(
    session: &Session,
    rows: Vec<(String, AgendaRow)>,
    take: &Take,
    steps: &KnownSteps,
) -> Result<Result<Answer, StoreError>, PostgresError> {
    let now = steps.carried(take.now);
    let mut taken = Vec::with_capacity(rows.len());
    let mut changed = Vec::with_capacity(rows.len());
    for (id, mut row) in rows {
        let Ok(id) = RecordId::parse(&id) else {
            let told = format!("the agenda has a row for {id:?}, which names no record");
            return Ok(Err(StoreError::Broken(told)));
        };
        let heard_at = row.heard_at();
        // A record that someone else holds is skipped, never waited for.
        if let Ok(claim) = row.take(take.owner_after(taken.len()), now, take.lease) {
            taken.push(Taken { id: id.clone(), claim, heard_at });
            changed.push((id, row));
        }
    }
    update(session, &changed).await?;
    Ok(Ok(Answer::taken(taken)))
}

async fn update(session: &Session, changed: &[(RecordId, AgendaRow)]) -> Result<(), PostgresError> {
    if changed.is_empty() {
        return Ok(());
    }
    let mut rows = Columnar::new();
    for (id, row) in changed {
        rows.push(agenda_values(id, row));
    }
    let statement = session.prepare(UPDATE_AGENDA).await?;
    Session::execute(session, &statement, &rows.parameters()).await?;
    Ok(())
}
