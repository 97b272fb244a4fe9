//! The writers: tasks that take batches from one queue, each with a connection of its own, and repeat what was lost.
//!
//! A connection that goes while a transaction is open takes it along; one that goes at COMMIT leaves its end unknown. Either
//! way the same batch is asked again on the next connection: a commit whose facts are there under its ids is done, and is
//! never written twice. Only when that does not come to an end in time is the caller told that the outcome is unknown.

use std::sync::Arc;
use std::time::{Duration, Instant};

use store::{Loaded, Removal, StoreError};
use tokio::sync::watch;

use super::address::PostgresAddress;
use super::batch::{self, Answers, Asked, Done, KnownSteps, Undone};
use super::claims::Found;
use super::failure::PostgresError;
use super::figures::PostgresFigures;
use super::hints::Hints;
use super::session::Session;
use super::time::StoreTime;
use crate::queue::Queue;
use crate::recent::Recent;
use crate::request::{Item, Request};

/// Requests in one transaction.
const MAX_BATCH: usize = 512;
/// A batch whose connection was lost is asked again for this long.
const ASK_AGAIN_FOR: Duration = Duration::from_secs(15);
/// A batch that another transaction was in the way of is asked again this often.
const PASSING_TRIES: u32 = 5;
/// How long to wait before the next try, from the first to the longest.
const WAIT_FROM: Duration = Duration::from_millis(10);
const WAIT_TO: Duration = Duration::from_secs(1);

/// One of the writers.
pub(super) struct Writer {
    pub(super) address: PostgresAddress,
    pub(super) queue: Arc<Queue<Item>>,
    pub(super) figures: Arc<PostgresFigures>,
    pub(super) time: Arc<watch::Sender<Option<StoreTime>>>,
    pub(super) hints: Hints,
    /// Says why nothing can be written any more.
    pub(super) stop: Arc<watch::Sender<Option<String>>>,
    pub(super) ledger_lock: i64,
    pub(super) recent: Arc<Recent>,
    pub(super) session: Option<Session>,
    pub(super) known_steps: KnownSteps,
}

/// Why a batch has no answers.
struct Unanswered {
    error: PostgresError,
    /// Whether any of its transactions may have been committed.
    in_doubt: bool,
}

impl Writer {
    /// Until the queue is closed and empty.
    pub(super) async fn run(mut self) {
        while let Some(batch) = self.queue.take_async(MAX_BATCH).await {
            self.figures.batch(batch.len());
            let (requests, replies): (Vec<Request>, Vec<_>) =
                batch.into_iter().map(|item| (item.request, item.reply)).unzip();
            let answers = self.answer(&requests).await;
            for (reply, answer) in replies.into_iter().zip(answers) {
                // Whoever stopped waiting asks again by key.
                let _ = reply.send(answer);
            }
        }
    }

    /// All together; if one of them is in the way of the others, one by one.
    async fn answer(&mut self, requests: &[Request]) -> Answers {
        let all: Vec<&Request> = requests.iter().collect();
        match self.carry_out(&all).await {
            Ok(answers) => answers,
            Err(unanswered) if requests.len() > 1 && !unanswered.is_lost() => {
                let mut answers = Vec::with_capacity(requests.len());
                for request in requests {
                    match self.carry_out(&[request]).await {
                        Ok(answered) => answers.extend(answered),
                        Err(unanswered) => answers.push(Err(unanswered.told())),
                    }
                }
                answers
            }
            Err(unanswered) => {
                let told = unanswered.told();
                requests.iter().map(|_| Err(told.clone())).collect()
            }
        }
    }

    /// In one transaction, however often it has to be begun.
    async fn carry_out(&mut self, requests: &[&Request]) -> Result<Answers, Unanswered> {
        let begun = Instant::now();
        let mut in_doubt = false;
        let mut tries = 0;
        let mut wait = WAIT_FROM;
        loop {
            let asked = if in_doubt { Asked::Again } else { Asked::First };
            let undone = match self.transact(requests, asked).await {
                Ok(answers) => return Ok(answers),
                Err(undone) => undone,
            };
            if undone.in_doubt {
                self.figures.doubt();
            }
            in_doubt |= undone.in_doubt;
            tries += 1;
            let lost = matches!(undone.error, PostgresError::Lost(_));
            let again = lost || (undone.error.is_passing() && requests.len() == 1 && tries < PASSING_TRIES);
            if !again || begun.elapsed() + wait > ASK_AGAIN_FOR {
                return Err(Unanswered { error: undone.error, in_doubt });
            }
            if lost {
                tracing::warn!(error = %undone.error, "asking the database again");
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(WAIT_TO);
            }
        }
    }

    async fn transact(&mut self, requests: &[&Request], asked: Asked) -> Result<Answers, Undone> {
        if self.session.as_ref().is_none_or(Session::is_lost) {
            let connected = Session::connect_to_write(&self.address).await;
            self.session = Some(connected.map_err(|error| PostgresError::Lost(error.to_string()))?);
            self.figures.connection();
        }
        let session = self.session.as_ref().expect("it was connected above");
        let known = &mut self.known_steps;
        match batch::transact(session, requests, asked, &self.recent, self.ledger_lock, known).await {
            Ok(Done { answers, concerns_others, repeated, time, written, found }) => {
                self.time.send_replace(Some(time));
                self.figures.repeated(repeated);
                self.remember(requests, &answers, &written, found);
                if concerns_others {
                    self.hints.give();
                }
                Ok(answers)
            }
            Err(undone) => {
                if let PostgresError::Skewed(told) = &undone.error {
                    self.stop.send_replace(Some(told.clone()));
                }
                let is_over = session.is_lost() || undone.error.is_of_the_session();
                if is_over || session.run("ROLLBACK").await.is_err() {
                    self.session = None;
                }
                Err(undone)
            }
        }
    }

    /// What was written or taken is known from now on, as long as nobody else changes it; what did not fit has been changed.
    fn remember(&self, requests: &[&Request], answers: &Answers, written: &[usize], found: Vec<Found>) {
        for Found { id, loaded, bodies } in found {
            self.recent.wrote(&id, loaded, &bodies);
        }
        for place in written {
            let Request::Commit(prepared) = requests[*place] else { continue };
            for (change, text) in prepared.commit.changes.iter().zip(&prepared.texts) {
                match change.removal {
                    Removal::Record | Removal::Bodies | Removal::Errors | Removal::OlderFacts => {
                        self.recent.forget(&change.id);
                    }
                    Removal::Nothing => {
                        let loaded = Loaded { record: change.record.clone(), head: text.head, claim: None };
                        self.recent.wrote(&change.id, loaded, &change.bodies);
                    }
                }
            }
        }
        for (request, answer) in requests.iter().zip(answers) {
            if let (Request::Commit(prepared), Err(_)) = (request, answer) {
                prepared.records().for_each(|id| self.recent.forget(id));
            }
        }
    }
}

impl Unanswered {
    fn is_lost(&self) -> bool {
        matches!(self.error, PostgresError::Lost(_))
    }

    fn told(self) -> StoreError {
        if self.in_doubt { StoreError::OutcomeUnknown } else { self.error.told() }
    }
}
