//! The writer: one thread, one transaction per batch, one sync, then all answers.
//!
//! In a batch every commit is checked against what is there, then those that fit are written, then claims are carried out.
//! Conflicts are answered before anything is written, so no savepoint is needed. If a statement still fails, the batch is
//! rolled back and run again one by one.
//!
//! A batch of nothing but takes for workers of this process is not synced: the next commit's sync covers the log up to it, and whoever took
//! dies with the machine.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use store::{
    AgendaRow, Checksum, ClaimOutcome, ClaimRequest, IdempotencyKey, KeptKey, Loaded, Removal, SideWrite,
    StoreError, failpoint,
};
use tokio::sync::watch;

use super::apply;
use super::check::{self, Checked};
use super::checkpoint::WakeUp;
use super::claims;
use super::connect::APPLICATION_ID;
use super::counts::{Counts, Moved};
use super::failure::{self, Failure};
use super::jumps::Jumps;
use super::watermark::MarkWriter;
use crate::clock;
use crate::database::at_once;
use crate::prepare::Prepared;
use crate::queue::Queue;
use crate::recent::Recent;
use crate::request::{Answer, Item, Request};
use crate::{Durability, side_writes};

/// Requests in one transaction.
const MAX_BATCH: usize = 1_024;

/// What the connection says when every commit is synced.
const FULL: i64 = 2;

/// What the writer has done so far: for the bench and the metrics.
#[derive(Default)]
pub struct WriterFigures {
    batches: AtomicU64,
    synced: AtomicU64,
    requests: AtomicU64,
}

pub(crate) struct Writer {
    connection: Connection,
    queue: Arc<Queue<Item>>,
    stop: Arc<watch::Sender<Option<String>>>,
    figures: Arc<WriterFigures>,
    recent: Arc<Recent>,
    counts: Arc<Counts>,
    last_position: u64,
    /// Where the time of the store has jumped.
    jumps: Jumps,
    durability: Durability,
    /// Whether the connection syncs its next commit.
    syncs: bool,
    /// What was acknowledged, for the next start; none where a test has another file layer.
    mark: Option<Arc<Mutex<MarkWriter>>>,
    /// Frames in the log after the last commit.
    log_frames: Arc<AtomicU32>,
}

impl Writer {
    pub(crate) fn new(
        mut connection: Connection,
        queue: Arc<Queue<Item>>,
        stop: Arc<watch::Sender<Option<String>>>,
        figures: Arc<WriterFigures>,
        recent: Arc<Recent>,
        counts: Arc<Counts>,
        checkpointer: WakeUp,
    ) -> rusqlite::Result<Self> {
        let log_frames = Arc::new(AtomicU32::new(0));
        let counted = log_frames.clone();
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            counted.store(pages.unsigned_abs(), Ordering::Relaxed);
            checkpointer.log_has(pages);
            Ok(())
        }))?;
        let last_position = apply::last_position(&connection)?;
        let jumps = Jumps::before(at_once(clock::clock(&connection))?.steps);
        let syncs = connection.pragma_query_value(None, "synchronous", |row| row.get::<_, i64>(0))? >= FULL;
        let durability = if syncs { Durability::Full } else { Durability::Relaxed };
        Ok(Self {
            connection,
            queue,
            stop,
            figures,
            recent,
            counts,
            last_position,
            jumps,
            durability,
            syncs,
            mark: None,
            log_frames,
        })
    }

    /// The same, which writes down what it acknowledges.
    pub(crate) fn marking(mut self, mark: Option<Arc<Mutex<MarkWriter>>>) -> Self {
        self.mark = mark;
        self
    }

    pub(crate) fn run(mut self) {
        while let Some(batch) = self.queue.take(MAX_BATCH) {
            self.figures.batches.fetch_add(1, Ordering::Relaxed);
            self.figures.requests.fetch_add(batch.len() as u64, Ordering::Relaxed);
            self.process(batch);
        }
    }

    fn process(&mut self, batch: Vec<Item>) {
        if let Some(reason) = self.stop.borrow().clone() {
            return refuse(batch, &StoreError::Unavailable(reason));
        }
        let (requests, replies): (Vec<Request>, Vec<_>) =
            batch.into_iter().map(|item| (item.request, item.reply)).unzip();
        match self.transact(&requests) {
            Ok(answers) => {
                for (reply, answer) in replies.into_iter().zip(answers) {
                    // Whoever stopped waiting asks again by key.
                    let _ = reply.send(answer);
                }
            }
            Err(Failure::Statement(_)) if requests.len() > 1 => {
                for (request, reply) in requests.into_iter().zip(replies) {
                    self.process(vec![Item { request, reply }]);
                }
            }
            Err(failure) => {
                let error = self.judge(failure);
                for reply in replies {
                    let _ = reply.send(Err(error.clone()));
                }
            }
        }
    }

    /// One transaction for all: checks, writes, claims, sync.
    fn transact(&mut self, requests: &[Request]) -> Result<Vec<Result<Answer, StoreError>>, Failure> {
        self.sync_if_needed(requests)?;
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut position = self.last_position;
        let mut jumps = self.jumps.clone();
        let outcome = fill(&self.connection, &self.recent, requests, &mut position, &mut jumps);
        let wrote = match &outcome {
            Ok(filled) => filled.wrote,
            Err(_) => false,
        };
        if !wrote {
            // Nothing to sync: refusals and empty takes cost no write.
            self.roll_back();
            return outcome.map(|filled| filled.answers).map_err(Failure::from);
        }
        let filled = outcome?;
        if let Err(failure) = self.stamp() {
            self.roll_back();
            return Err(failure);
        }
        let mut tally = self.counts.lock();
        failpoint("commit.before");
        if let Err(error) = self.connection.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([]))
        {
            tally.doubt();
            drop(tally);
            self.roll_back();
            return Err(Failure::at_commit(error));
        }
        failpoint("commit.after");
        self.figures.synced.fetch_add(u64::from(self.syncs), Ordering::Relaxed);
        tally.add(&filled.moved);
        drop(tally);
        self.last_position = position;
        self.mark_acknowledged(filled.head);
        self.jumps = jumps;
        self.remember(requests, filled.written, &filled.answers);
        Ok(filled.answers)
    }

    /// The first commit of a process writes the first page, and with it raises the file's counter: an earlier file is known by that.
    fn stamp(&self) -> Result<(), Failure> {
        let Some(mark) = &self.mark else { return Ok(()) };
        let mut mark = mark.lock().expect("no holder of the lock panics");
        if mark.is_opening() {
            // A log that no watermark announces would be taken for another store's after a kill.
            mark.write_opening().map_err(|error| mark_failure(&error))?;
            self.connection.pragma_update(None, "application_id", APPLICATION_ID)?;
        }
        Ok(())
    }

    /// Before anybody is answered. What was not synced is promised to nobody.
    fn mark_acknowledged(&self, head: Option<Checksum>) {
        let Some(mark) = &self.mark else { return };
        if self.syncs || self.durability == Durability::Relaxed {
            let frames = self.log_frames.load(Ordering::Relaxed);
            let mut mark = mark.lock().expect("no holder of the lock panics");
            mark.acknowledged(self.last_position, head, frames);
        }
    }

    /// Between two transactions, because nothing else takes effect.
    fn sync_if_needed(&mut self, requests: &[Request]) -> rusqlite::Result<()> {
        let needed =
            self.durability == Durability::Full && !requests.iter().all(Request::stands_on_next_commit);
        if needed != self.syncs {
            self.connection.pragma_update(None, "synchronous", if needed { "FULL" } else { "NORMAL" })?;
            self.syncs = needed;
        }
        Ok(())
    }

    /// What was written is known without a read, from now on.
    fn remember(
        &self,
        requests: &[Request],
        written: Vec<(usize, Vec<AgendaRow>)>,
        answers: &[Result<Answer, StoreError>],
    ) {
        // In the order in which they were written: commits, then claims.
        for (index, rows) in written {
            let Request::Commit(prepared) = &requests[index] else { continue };
            for (change, row) in prepared.commit.changes.iter().zip(rows) {
                match change.removal {
                    Removal::Record | Removal::Bodies | Removal::Errors | Removal::OlderFacts => {
                        self.recent.forget(&change.id);
                    }
                    Removal::Nothing => {
                        let record = change.record.clone();
                        let loaded = Loaded { record, head: row.head, claim: row.claim };
                        self.recent.wrote(&change.id, loaded, &change.bodies);
                    }
                }
            }
        }
        for (request, answer) in requests.iter().zip(answers) {
            match (request, answer) {
                (Request::Claim(_), Ok(Answer::Claim(ClaimOutcome::Taken(taken)))) => {
                    for taken in taken {
                        self.recent.claimed(&taken.id, &taken.claim);
                    }
                }
                (Request::Claim(ClaimRequest::HandBack { id, .. }), Ok(_)) => {
                    self.recent.forget(id);
                }
                (
                    Request::Claim(ClaimRequest::EndLeases { .. })
                    | Request::Write(SideWrite::KeepClock { .. } | SideWrite::TimersMoved { .. }),
                    _,
                ) => self.recent.forget_all(),
                (Request::Claim(_) | Request::Commit(_) | Request::Write(_), _) => {}
            }
        }
    }

    fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            // If even this fails, the next BEGIN does, and its caller is told.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    /// A disk that failed once is not asked again: the cache may hold what the disk does not.
    fn judge(&self, failure: Failure) -> StoreError {
        match failure {
            Failure::Full => StoreError::Full,
            Failure::FullInDoubt => StoreError::OutcomeUnknown,
            Failure::Locked => failure::locked(),
            Failure::Statement(reason) => StoreError::Broken(reason),
            Failure::Fatal(reason) => {
                self.stop.send_replace(Some(reason));
                StoreError::OutcomeUnknown
            }
        }
    }
}

impl Drop for Writer {
    /// Also when the thread panics: nobody waits for a writer that has gone.
    fn drop(&mut self) {
        self.queue.close();
        while self.queue.take(MAX_BATCH).is_some() {}
        self.stop.send_if_modified(|reason| {
            let first = reason.is_none();
            if first {
                *reason = Some("the writer has ended".to_owned());
            }
            first
        });
    }
}

struct Filled {
    /// The checksum of the last fact.
    head: Option<Checksum>,
    answers: Vec<Result<Answer, StoreError>>,
    wrote: bool,
    /// The agenda rows that each written commit left.
    written: Vec<(usize, Vec<AgendaRow>)>,
    /// What that does to the counts.
    moved: Moved,
}

/// Puts the batch into the open transaction.
fn fill(
    connection: &Connection,
    recent: &Recent,
    requests: &[Request],
    position: &mut u64,
    jumps: &mut Jumps,
) -> rusqlite::Result<Filled> {
    let mut answers: Vec<Option<Result<Answer, StoreError>>> = requests.iter().map(|_| None).collect();
    let mut fitting: Vec<(usize, &Prepared, Vec<Option<AgendaRow>>)> = Vec::new();
    let mut touched = HashSet::new();
    let mut plugins = HashSet::new();
    let mut keys: HashMap<&IdempotencyKey, &KeptKey> = HashMap::new();
    for (index, request) in requests.iter().enumerate() {
        let Request::Commit(prepared) = request else { continue };
        let taken = prepared.commit.keys.iter().find_map(|key| keys.get(&key.key));
        answers[index] = if prepared.records().any(|id| touched.contains(id))
            || prepared.plugins().any(|plugin| plugins.contains(plugin))
        {
            Some(Err(StoreError::Conflict))
        } else if let Some(first) = taken {
            Some(Err(StoreError::KeyTaken(Box::new((*first).clone()))))
        } else {
            match check::check(connection, prepared)? {
                Ok(Checked::Repeated(committed)) => Some(Ok(Answer::Committed(committed))),
                Ok(Checked::Fits(rows)) => {
                    touched.extend(prepared.records());
                    plugins.extend(prepared.plugins());
                    keys.extend(prepared.commit.keys.iter().map(|key| (&key.key, key)));
                    fitting.push((index, prepared, rows));
                    None
                }
                Err(error) => Some(Err(error)),
            }
        };
    }
    let mut wrote = false;
    let mut written = Vec::with_capacity(fitting.len());
    let mut moved = Moved::default();
    let mut head = None;
    for (index, prepared, rows) in fitting {
        let mut facts = prepared.texts.iter().flat_map(|text| &text.facts);
        head = facts.next_back().map(|fact| fact.checksum).or(head);
        for (change, row) in prepared.commit.changes.iter().zip(&rows) {
            moved.note(connection, recent, change, row.as_ref())?;
        }
        let (committed, rows) = apply::apply(connection, prepared, rows, position, jumps)?;
        answers[index] = Some(Ok(Answer::Committed(committed)));
        written.push((index, rows));
        wrote = true;
    }
    // After the commits: a renewal must not overtake the result of its own owner.
    for (index, request) in requests.iter().enumerate() {
        let answer = match request {
            Request::Commit(_) => continue,
            Request::Claim(request) => claims::carry_out(connection, request, jumps)?,
            Request::Write(SideWrite::KeepClock { anchor, adopted }) => {
                jumps.keep(at_once(clock::keep(connection, *anchor, adopted.as_ref()))?);
                Ok(Answer::Written(true))
            }
            Request::Write(write) => at_once(side_writes::carry_out(connection, write))?.map(Answer::Written),
        };
        wrote |= Answer::has_written(&answer);
        answers[index] = Some(answer);
    }
    let answers = answers.into_iter().map(|answer| answer.expect("every request was answered")).collect();
    Ok(Filled { head, answers, wrote, written, moved })
}

fn refuse(batch: Vec<Item>, error: &StoreError) {
    for item in batch {
        let _ = item.reply.send(Err(error.clone()));
    }
}

impl WriterFigures {
    /// Transactions so far.
    pub fn batches(&self) -> u64 {
        self.batches.load(Ordering::Relaxed)
    }

    /// Those that were written and synced.
    pub fn synced(&self) -> u64 {
        self.synced.load(Ordering::Relaxed)
    }

    /// Requests in them.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

/// What it means for a commit that the watermark of the opening could not be written.
fn mark_failure(error: &std::io::Error) -> Failure {
    if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
        return Failure::Full;
    }
    Failure::Statement(format!("the watermark of commits cannot be written: {error}"))
}
