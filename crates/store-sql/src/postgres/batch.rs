//! One batch, one transaction: lock and read what its requests stand on, answer those that do not fit, write the others, take
//! and renew, and last the facts, under the lock of the ledger.
//!
//! Statements that do not wait for each other's answers are sent together. Nothing here is repeated: see `writer.rs`.

mod end;
mod judge;
mod read;
mod together;
mod write;

use std::collections::BTreeMap;

use domain::timeline::Steps;
use domain::{RecordId, Timestamp};
use store::{AgendaRow, Removal, SideWrite, StoreError};

use super::claims::{self, Found};
use super::failure::PostgresError;
use super::session::Session;
use super::time::StoreTime;
use crate::clock;
use crate::plugin_state;
use crate::prepare::Prepared;
use crate::recent::Recent;
use crate::request::{Answer, Request};
use crate::side_writes;
use crate::tokens;
use end::end;
use judge::judge;
use read::{Read, read};
use write::write;

/// What each request is answered.
pub(super) type Answers = Vec<Result<Answer, StoreError>>;

/// A batch that is done.
pub(super) struct Done {
    pub(super) answers: Answers,
    /// Whether other nodes should look: the ledger has grown, or they are ordered about, or a token is, or a peer was asked.
    pub(super) concerns_others: bool,
    /// Commits that were there already.
    pub(super) repeated: u64,
    pub(super) time: StoreTime,
    /// The places of the commits that were written.
    pub(super) written: Vec<usize>,
    /// What was read of those that were taken.
    pub(super) found: Vec<Found>,
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

/// Where the time of the store has jumped, what that is known as of, and the store's time as this batch has heard it.
#[derive(Default)]
pub(super) struct KnownSteps {
    revision: i64,
    steps: Steps,
    now: Option<Timestamp>,
}

impl KnownSteps {
    /// A time as it is now, if it was read before a step. Its reader may not have heard of the step yet.
    pub(super) fn carried(&self, read_at: Timestamp) -> Timestamp {
        self.steps.carried(read_at, self.now)
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
    recent: &Recent,
    ledger_lock: i64,
    known: &mut KnownSteps,
) -> Result<Done, Undone> {
    let Read { mut rows, kept, time } = read(session, requests).await?;
    if known.revision != time.revision {
        let steps = clock::clock(session).await?.steps;
        *known = KnownSteps { revision: time.revision, steps, now: None };
    }
    known.now = Some(time.at);
    let steps = &*known;
    let mut answers: Vec<Option<Result<Answer, StoreError>>> = requests.iter().map(|_| None).collect();
    let fitting = judge(session, requests, &rows, &kept, &mut answers).await?;
    let repeated = answers.iter().flatten().filter(|answer| answer.is_ok()).count() as u64;
    for prepared in fitting.iter().map(|(_, prepared)| *prepared) {
        commit_to(&mut rows, prepared, steps);
    }
    // After the commits: a renewal must not overtake the result of its own owner.
    for (request, answer) in requests.iter().zip(&mut answers) {
        if let Request::Claim(request) = request
            && let Some(id) = claims::record_of(request)
        {
            let held = rows.entry(id.clone()).or_default();
            let claimed = claims::claim(request, id, held.row.as_mut(), asked, steps);
            held.changed |= claimed.is_ok();
            *answer = Some(claimed);
        }
    }
    let before = write(session, &fitting, &rows).await?;
    for (_, prepared) in &fitting {
        plugin_state::change(session, &prepared.commit.plugin_states).await?;
    }
    claims::lock_lanes(session, requests).await?;
    let mut found = Vec::new();
    for (request, answer) in requests.iter().zip(&mut answers) {
        match request {
            Request::Claim(request) if answer.is_none() => {
                *answer = Some(claims::take(session, request, recent, &mut found, steps).await?);
            }
            Request::Write(write) => {
                let written = side_writes::carry_out(session, write).await?;
                let written = match (written, write, asked) {
                    (Err(StoreError::Conflict), SideWrite::KeepToken { token }, Asked::Again)
                        if tokens::token(session, token.sha256).await.as_ref()
                            == Ok(&Some(token.clone())) =>
                    {
                        Ok(true)
                    }
                    (written, _, _) => written,
                };
                *answer = Some(written.map(Answer::Written));
            }
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
    let made_ready =
        fitting.iter().any(|(_, prepared)| prepared.commit.changes.iter().any(|change| change.agenda.ready));
    let orders = requests.iter().zip(&answers).any(|(request, answer)| {
        matches!(request, Request::Write(write) if concerns_others(write))
            && answer.as_ref().is_some_and(Answer::has_written)
    });
    let answers = answers.into_iter().map(|answer| answer.expect("every request was answered")).collect();
    let written = fitting.iter().map(|(place, _)| *place).collect();
    let concerns_others = wrote_facts || made_ready || orders;
    Ok(Done { answers, concerns_others, repeated, time, written, found })
}

/// Whether other nodes should look: peers are looked up when they are needed, and the time has hints of its own.
fn concerns_others(write: &SideWrite) -> bool {
    match write {
        SideWrite::KeepToken { .. }
        | SideWrite::RevokeToken { .. }
        | SideWrite::KeepNode { .. }
        | SideWrite::TellNode { .. }
        | SideWrite::RemoveNode { .. }
        | SideWrite::KeepAsk { .. }
        | SideWrite::CloseAsk { .. } => true,
        SideWrite::KeepPeer { .. }
        | SideWrite::ForgetPeer { .. }
        | SideWrite::NoteSightings { .. }
        | SideWrite::KeepClock { .. }
        | SideWrite::TimersMoved { .. } => false,
    }
}

/// What a commit leaves in the agenda.
fn commit_to(rows: &mut Rows, prepared: &Prepared, steps: &KnownSteps) {
    let commit = &prepared.commit;
    let now = steps.carried(commit.at);
    for (change, text) in commit.changes.iter().zip(&prepared.texts) {
        let held = rows.entry(change.id.clone()).or_default();
        held.changed = true;
        held.row = match (change.removal, held.row.take()) {
            (Removal::Record, _) => None,
            (Removal::Nothing | Removal::Bodies | Removal::Errors | Removal::OlderFacts, None) => {
                Some(AgendaRow::new(text.head, change.agenda.clone(), now, commit.lease))
            }
            (Removal::Nothing | Removal::Bodies | Removal::Errors | Removal::OlderFacts, Some(mut row)) => {
                row.commit(text.head, change.agenda.clone(), now, commit.lease);
                Some(row)
            }
        };
    }
}
