//! One batch, one transaction: lock and read what its requests stand on, answer those that do not fit, write the others, take
//! and renew, and last the facts, under the lock of the ledger.
//!
//! Statements that do not wait for each other's answers are sent together. Nothing here is repeated: see `writer.rs`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;

use domain::job::JobStateName;
use domain::{RecordId, Timestamp};
use store::limits::MAX_FORGOTTEN_KEYS;
use store::{AgendaRow, Committed, IdempotencyKey, KeptKey, Removal, StoreError};
use tokio_postgres::{Row, Statement};

use super::claims;
use super::columnar::Columnar;
use super::failure::PostgresError;
use super::nodes;
use super::session::{Parameter, Session};
use super::statements::{
    FACT_IDS, FORGET_KEYS, FORGET_TALLIES, INSERT_AGENDA, INSERT_BODIES, INSERT_FACTS, INSERT_JOBS,
    INSERT_KEYS, INSERT_OPERATIONS, KEPT_KEYS, LOCK_LEDGER, LOCK_ROWS, MARK_KEYS, MOVE_TALLIES,
    REMOVE_AGENDA, REMOVE_BODIES, REMOVE_CHUNKS, REMOVE_FACTS, REMOVE_JOBS, REMOVE_KEYS, REMOVE_OPERATIONS,
    STORE_TIME, UPDATE_AGENDA, UPDATE_JOBS, UPDATE_OPERATIONS,
};
use super::tally::{Before, Moved};
use super::time::StoreTime;
use crate::checks::{Doubt, fits, is_repeated};
use crate::database::{Columns, Given, Unfit, bytes, digest, text, unsigned};
use crate::floor;
use crate::prepare::Prepared;
use crate::request::{Answer, Request, TokenRequest};
use crate::rows::{ViewValues, agenda_values, agenda_with_id, new_agenda_values, signed, time};
use crate::tokens;

/// What each request is answered.
pub(super) type Answers = Vec<Result<Answer, StoreError>>;

/// A batch that is done.
pub(super) struct Done {
    pub(super) answers: Answers,
    /// Whether other nodes should look: the ledger has grown, or they are ordered about, or a token is.
    pub(super) concerns_others: bool,
    /// Commits that were there already.
    pub(super) repeated: u64,
    pub(super) time: StoreTime,
}

/// A batch that is not, or of which nobody knows.
pub(super) struct Undone {
    pub(super) error: PostgresError,
    /// Whether the server was asked to commit and did not say what became of it.
    pub(super) in_doubt: bool,
}

impl<E: Into<PostgresError>> From<E> for Undone {
    fn from(error: E) -> Self {
        Self { error: error.into(), in_doubt: false }
    }
}

/// Whether what is asked may have been done before, by a transaction whose end nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    First,
    Again,
}

/// The agenda row of a record that the batch names.
#[derive(Default)]
struct Held {
    row: Option<AgendaRow>,
    was_there: bool,
    changed: bool,
}

/// The rows that the batch names, by record.
type Rows = BTreeMap<RecordId, Held>;

/// Carries out a batch.
pub(super) async fn transact(
    session: &Session,
    requests: &[&Request],
    asked: Asked,
    ledger_lock: i64,
) -> Result<Done, Undone> {
    let Read { mut rows, kept, time } = read(session, requests).await?;
    let mut answers: Vec<Option<Result<Answer, StoreError>>> = requests.iter().map(|_| None).collect();
    let fitting = judge(session, requests, &rows, &kept, &mut answers).await?;
    let repeated = answers.iter().flatten().filter(|answer| answer.is_ok()).count() as u64;
    for prepared in fitting.iter().map(|(_, prepared)| *prepared) {
        commit_to(&mut rows, prepared);
    }
    // After the commits: a renewal must not overtake the result of its own owner.
    for (request, answer) in requests.iter().zip(&mut answers) {
        if let Request::Claim(request) = request
            && let Some(id) = claims::record_of(request)
        {
            let held = rows.entry(id.clone()).or_default();
            let claimed = claims::claim(request, id, held.row.as_mut(), asked);
            held.changed |= claimed.is_ok();
            *answer = Some(claimed);
        }
    }
    let before = write(session, &fitting, &rows).await?;
    claims::lock_lanes(session, requests).await?;
    for (request, answer) in requests.iter().zip(&mut answers) {
        match request {
            Request::Claim(request) if answer.is_none() => {
                *answer = Some(claims::take(session, request).await?);
            }
            Request::Token(request) => {
                let carried_out = tokens::carry_out(session, request).await?;
                *answer = Some(match (carried_out, request, asked) {
                    (Err(StoreError::Conflict), TokenRequest::Keep(token), Asked::Again)
                        if tokens::token(session, token.sha256).await.as_ref()
                            == Ok(&Some(token.clone())) =>
                    {
                        Ok(Answer::Done)
                    }
                    (carried_out, _, _) => carried_out,
                });
            }
            Request::Node(request) => *answer = Some(crate::nodes::carry_out(session, request).await?),
            Request::Claim(_) | Request::Commit(_) => {}
        }
    }
    let others_wrote = answers.iter().flatten().any(Answer::has_written);
    if fitting.is_empty() && !others_wrote {
        // Nothing to sync: refusals and empty takes cost no write.
        session.run("ROLLBACK").await?;
    } else {
        // Its own place in memory: whoever waits for a batch would carry all of its statements along.
        Box::pin(end(session, &fitting, &before, &mut answers, ledger_lock)).await?;
    }
    let wrote_facts =
        fitting.iter().any(|(_, prepared)| prepared.texts.iter().any(|text| !text.facts.is_empty()));
    let orders = requests.iter().zip(&answers).any(|(request, answer)| {
        matches!(request, Request::Token(_) | Request::Node(_))
            && answer.as_ref().is_some_and(Answer::has_written)
    });
    let answers = answers.into_iter().map(|answer| answer.expect("every request was answered")).collect();
    Ok(Done { answers, concerns_others: wrote_facts || orders, repeated, time })
}

/// What the batch stands on.
struct Read {
    rows: Rows,
    kept: HashMap<IdempotencyKey, KeptKey>,
    time: StoreTime,
}

/// Begins, and locks and reads everything that is named.
async fn read(session: &Session, requests: &[&Request]) -> Result<Read, Undone> {
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
            Request::Token(_) | Request::Node(_) => {}
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
    let locked =
        async { if rows.is_empty() { Ok(Vec::new()) } else { session.rows(&lock_rows, &ids).await } };
    let kept = async {
        if keys.is_empty() { Ok(Vec::new()) } else { session.rows(&kept_keys, &keys.parameters()).await }
    };
    let (begun, time, locked, kept) = futures::join!(session.run("BEGIN"), time, locked, kept);
    begun?;
    let time = time?;
    let (locked, found) = (locked?, kept?);
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

/// Answers the commits that do not fit, or are there already; the others, by their places in the batch.
async fn judge<'a>(
    session: &Session,
    requests: &[&'a Request],
    rows: &Rows,
    kept: &HashMap<IdempotencyKey, KeptKey>,
    answers: &mut [Option<Result<Answer, StoreError>>],
) -> Result<Vec<(usize, &'a Prepared)>, Undone> {
    let mut fitting = Vec::new();
    let mut doubted: Vec<(usize, &Prepared)> = Vec::new();
    let mut touched: HashSet<&RecordId> = HashSet::new();
    let mut used: HashMap<&IdempotencyKey, &KeptKey> = HashMap::new();
    for (place, request) in requests.iter().enumerate() {
        let Request::Commit(prepared) = *request else { continue };
        let keys = &prepared.commit.keys;
        let taken = |kept: &KeptKey| Some(Err(StoreError::KeyTaken(Box::new(kept.clone()))));
        if prepared.records().any(|id| touched.contains(id)) {
            answers[place] = Some(Err(StoreError::Conflict));
            continue;
        }
        if let Some(first) = keys.iter().find_map(|key| used.get(&key.key)) {
            answers[place] = taken(first);
            continue;
        }
        let stand: Vec<Option<AgendaRow>> =
            prepared.records().map(|id| rows.get(id).and_then(|held| held.row.clone())).collect();
        match fits(&prepared.commit.changes, &stand) {
            Err(Doubt::OtherHead) => doubted.push((place, prepared)),
            Err(Doubt::Fenced) => answers[place] = Some(Err(StoreError::Fenced)),
            Ok(()) => {
                if let Some(kept) = keys.iter().find_map(|key| kept.get(&key.key)) {
                    answers[place] = taken(kept);
                    continue;
                }
                touched.extend(prepared.records());
                used.extend(keys.iter().map(|key| (&key.key, key)));
                fitting.push((place, prepared));
            }
        }
    }
    if !doubted.is_empty() {
        let known = known_facts(session, &doubted).await?;
        for (place, prepared) in doubted {
            let found = is_repeated(&prepared.commit.changes, |stream, version| {
                Ok::<_, std::convert::Infallible>(known.get(&(stream.as_str().to_owned(), version)).copied())
            });
            let repeated = found.unwrap_or_else(|never| match never {});
            answers[place] = Some(repeated.map(Answer::Committed).ok_or(StoreError::Conflict));
        }
    }
    Ok(fitting)
}

/// The facts that stand where those of these commits would stand: their ids and positions.
async fn known_facts(
    session: &Session,
    doubted: &[(usize, &Prepared)],
) -> Result<HashMap<(String, u64), ([u8; 16], u64)>, Undone> {
    let mut places = Columnar::<2>::new();
    for change in doubted.iter().flat_map(|(_, prepared)| &prepared.commit.changes) {
        for (version, _) in (change.expected.version + 1..).zip(&change.facts) {
            places.push([change.id.as_str().into(), signed(version).into()]);
        }
    }
    let statement = session.prepare(FACT_IDS).await?;
    let rows = session.rows(&statement, &places.parameters()).await?;
    let known =
        rows.iter().map(|row| Ok(((text(row, 0)?, unsigned(row, 1)?), (digest(row, 2)?, unsigned(row, 3)?))));
    Ok(known.collect::<Result<_, Unfit>>()?)
}

/// What a commit leaves in the agenda.
fn commit_to(rows: &mut Rows, prepared: &Prepared) {
    let commit = &prepared.commit;
    for (change, text) in commit.changes.iter().zip(&prepared.texts) {
        let held = rows.entry(change.id.clone()).or_default();
        held.changed = true;
        held.row = match (change.removal, held.row.take()) {
            (Removal::Record, _) => None,
            (Removal::Nothing | Removal::Bodies, None) => {
                Some(AgendaRow::new(text.head, change.agenda.clone(), commit.at, commit.lease))
            }
            (Removal::Nothing | Removal::Bodies, Some(mut row)) => {
                row.commit(text.head, change.agenda.clone(), commit.at, commit.lease);
                Some(row)
            }
        };
    }
}

/// Everything but the facts: one statement per table and kind of write, all sent together. In which state the jobs were before.
async fn write(session: &Session, fitting: &[(usize, &Prepared)], rows: &Rows) -> Result<Before, Undone> {
    let (mut new_jobs, mut jobs) = (Columnar::new(), Columnar::new());
    let (mut new_operations, mut operations) = (Columnar::new(), Columnar::new());
    let (mut new_agenda, mut agenda) = (Columnar::new(), Columnar::new());
    let (mut bodies, mut keys, mut gone_keys) =
        (Columnar::<4>::new(), Columnar::<7>::new(), Columnar::<2>::new());
    let (mut purged, mut gone): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut named: Vec<&KeptKey> = Vec::new();
    let mut keyed = 0_u64;
    let mut earliest = i64::MAX;
    for commit in fitting.iter().map(|(_, prepared)| *prepared) {
        for (change, text) in commit.commit.changes.iter().zip(&commit.texts) {
            let id = change.id.as_str();
            let was_there = rows.get(&change.id).is_some_and(|held| held.was_there);
            match change.removal {
                Removal::Nothing => {}
                Removal::Bodies => purged.push(id),
                Removal::Record => {
                    gone_keys.push([id.into(), commit.commit.at.micros().into()]);
                    purged.push(id);
                    gone.push(id);
                    continue;
                }
            }
            match ViewValues::of(&change.id, &change.record, &text.view) {
                ViewValues::Job(values) if !was_there => new_jobs.push(values),
                ViewValues::Operation(values) if !was_there => new_operations.push(values),
                ViewValues::Job(values) if !text.facts.is_empty() => jobs.push(values),
                ViewValues::Operation(values) if !text.facts.is_empty() => operations.push(values),
                ViewValues::Job(_) | ViewValues::Operation(_) => {}
            }
            if change.removal == Removal::Nothing {
                for new in &change.bodies {
                    let body = [id.into(), new.body.name.as_str().into(), new.body.sha256.0[..].into()];
                    bodies.push([body[0], body[1], body[2], new.bytes[..].into()]);
                }
            }
        }
        keyed += u64::from(!commit.commit.keys.is_empty());
        if !commit.commit.keys.is_empty() {
            earliest = earliest.min(commit.commit.at.micros());
        }
        named.extend(&commit.commit.keys);
    }
    named.sort_by(|a, b| a.key.cmp(&b.key));
    for kept in named {
        keys.push([
            kept.key.principal.as_str().into(),
            kept.key.route.as_str().into(),
            kept.key.key.as_str().into(),
            kept.request_sha256.0[..].into(),
            kept.record.as_str().into(),
            kept.answer[..].into(),
            kept.keep_until.micros().into(),
        ]);
    }
    for (id, held) in rows.iter().filter(|(_, held)| held.changed) {
        match &held.row {
            Some(row) if held.was_there => agenda.push(agenda_values(id, row)),
            Some(row) => new_agenda.push(new_agenda_values(id, row)),
            None => {}
        }
    }
    let forgotten = keyed.saturating_mul(MAX_FORGOTTEN_KEYS as u64);
    let (earliest, forgotten) = (Given::from(earliest), Given::from(signed(forgotten)));
    let mut writes = Writes { session, statements: Vec::new() };
    // First, and in the order of ids: two nodes that make the same records meet here, and not in a circle.
    writes.all(INSERT_AGENDA, &new_agenda).await?;
    writes.all(INSERT_JOBS, &new_jobs).await?;
    writes.all(UPDATE_JOBS, &jobs).await?;
    writes.all(INSERT_OPERATIONS, &new_operations).await?;
    writes.all(UPDATE_OPERATIONS, &operations).await?;
    writes.all(UPDATE_AGENDA, &agenda).await?;
    if !purged.is_empty() {
        writes.one(REMOVE_BODIES, vec![&purged]).await?;
        writes.one(REMOVE_CHUNKS, vec![&purged]).await?;
    }
    writes.all(INSERT_BODIES, &bodies).await?;
    if !gone.is_empty() {
        for statement in [REMOVE_JOBS, REMOVE_OPERATIONS, REMOVE_AGENDA] {
            writes.one(statement, vec![&gone]).await?;
        }
        writes.all(REMOVE_KEYS, &gone_keys).await?;
        writes.one(MARK_KEYS, vec![&gone]).await?;
    }
    if keyed > 0 {
        writes.one(FORGET_KEYS, vec![&earliest, &forgotten]).await?;
    }
    // The last of them, so that its count is the last.
    writes.all(INSERT_KEYS, &keys).await?;
    let Sent { last, returned } = writes.send().await?;
    if keys.is_empty() || last == keys.len() as u64 {
        let before = returned.iter().map(|row| {
            let state = text(row, 1)?;
            let state = JobStateName::parse(&state)
                .ok_or_else(|| Unfit::new(1, format_args!("{state:?} is no state of a job")))?;
            Ok((text(row, 0)?, state))
        });
        return Ok(before.collect::<Result<_, Unfit>>()?);
    }
    // As the unique index itself would say it.
    let told = "another node was first with an idempotency key".to_owned();
    Err(PostgresError::Refused { code: tokio_postgres::error::SqlState::UNIQUE_VIOLATION, told }.into())
}

/// What came of statements that were sent together.
struct Sent {
    /// How many rows the last one touched.
    last: u64,
    /// The rows that any of them returned.
    returned: Vec<Row>,
}

/// Statements that are sent together.
struct Writes<'a> {
    session: &'a Session,
    statements: Vec<(Statement, Vec<Parameter<'a>>)>,
}

impl<'a> Writes<'a> {
    async fn all<const N: usize>(
        &mut self,
        statement: &'static str,
        rows: &'a Columnar<'_, N>,
    ) -> Result<(), PostgresError> {
        if rows.is_empty() { Ok(()) } else { self.one(statement, rows.parameters()).await }
    }

    async fn one(&mut self, statement: &'static str, given: Vec<Parameter<'a>>) -> Result<(), PostgresError> {
        self.statements.push((self.session.prepare(statement).await?, given));
        Ok(())
    }

    /// In this order. After the first that fails the server refuses the rest; the first says why.
    async fn send(self) -> Result<Sent, PostgresError> {
        let sent = self.statements.iter().map(|(statement, given)| async {
            if statement.columns().is_empty() {
                return Ok((self.session.execute(statement, given).await?, Vec::new()));
            }
            let rows = self.session.rows(statement, given).await?;
            Ok::<_, PostgresError>((rows.len() as u64, rows))
        });
        let mut all = Sent { last: 0, returned: Vec::new() };
        for one in futures::future::join_all(sent).await {
            let (touched, rows) = one?;
            all.last = touched;
            all.returned.extend(rows);
        }
        Ok(all)
    }
}

/// The facts, and the end: sent together, so that the lock of the ledger is held only for as long as the server needs.
async fn end(
    session: &Session,
    fitting: &[(usize, &Prepared)],
    before: &Before,
    answers: &mut [Option<Result<Answer, StoreError>>],
    ledger_lock: i64,
) -> Result<(), Undone> {
    let mut facts = Columnar::<10>::new();
    let mut gone: Vec<&str> = Vec::new();
    let mut gone_at: Option<Timestamp> = None;
    for commit in fitting.iter().map(|(_, prepared)| *prepared) {
        push_facts(&mut facts, commit);
        for change in commit.commit.changes.iter().filter(|change| change.removal == Removal::Record) {
            gone.push(change.id.as_str());
            gone_at = gone_at.max(Some(commit.commit.at));
        }
    }
    let moved = Moved::by(fitting, before);
    let tallies = moved.rows();
    let [lock_ledger, move_tallies, forget_tallies, insert_facts, remove_facts] = [
        session.prepare(LOCK_LEDGER).await?,
        session.prepare(MOVE_TALLIES).await?,
        session.prepare(FORGET_TALLIES).await?,
        session.prepare(INSERT_FACTS).await?,
        session.prepare(REMOVE_FACTS).await?,
    ];
    let columns = facts.parameters();
    let lock = async {
        if facts.is_empty() { Ok(Vec::new()) } else { session.rows(&lock_ledger, &[&ledger_lock]).await }
    };
    let tally = async {
        if tallies.is_empty() { Ok(0) } else { session.execute(&move_tallies, &tallies.parameters()).await }
    };
    let forget = async { if gone.is_empty() { Ok(0) } else { session.execute(&forget_tallies, &[]).await } };
    let insert =
        async { if facts.is_empty() { Ok(Vec::new()) } else { session.rows(&insert_facts, &columns).await } };
    let remove =
        async { if gone.is_empty() { Ok(0) } else { session.execute(&remove_facts, &[&gone]).await } };
    if let Some(at) = gone_at {
        // Rare, and therefore not worth to be sent with the rest.
        floor::keep_time(session, at).await?;
    }
    let (locked, tallied, forgotten, inserted, removed, ended) =
        futures::join!(lock, tally, forget, insert, remove, session.run("COMMIT"));
    // The first that failed says why; the server refuses what comes after it.
    let written =
        locked.and(tallied).and(forgotten).and(inserted).and_then(|rows| removed.and(ended).map(|()| rows));
    let rows = written.map_err(|error| {
        // Once any of them was lost, so was what became of the last.
        let in_doubt = matches!(error, PostgresError::Lost(_));
        Undone { error, in_doubt }
    })?;
    // It is written; a position that cannot be read would be no reason to write it again.
    let positions: Vec<u64> = rows.iter().map(|row| unsigned(row, 0).unwrap_or_default()).collect();
    let mut next = 0;
    for (place, prepared) in fitting {
        let count: usize = prepared.texts.iter().map(|text| text.facts.len()).sum();
        next += count;
        let position = if count == 0 { 0 } else { positions.get(next - 1).copied().unwrap_or_default() };
        answers[*place] = Some(Ok(Answer::Committed(Committed { position })));
    }
    Ok(())
}

fn push_facts<'a>(facts: &mut Columnar<'a, 10>, prepared: &'a Prepared) {
    let commit = &prepared.commit;
    for (change, text) in commit.changes.iter().zip(&prepared.texts) {
        let versions = change.expected.version + 1..;
        for ((new, encoded), version) in change.facts.iter().zip(&text.facts).zip(versions) {
            facts.push([
                change.id.as_str().into(),
                signed(version).into(),
                new.id.0[..].into(),
                encoded.kind.into(),
                commit.at.micros().into(),
                (&*commit.actor).into(),
                commit.causation_id.as_deref().into(),
                commit.correlation_id.as_deref().into(),
                encoded.payload.as_str().into(),
                encoded.checksum.0[..].into(),
            ]);
        }
    }
}
