//! A memory store that counts what is asked of it, tells of every write, and can be told to misbehave.

use std::future::ready;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use domain::RecordId;
use futures::FutureExt;
use store::{
    ClaimOutcome, ClaimRequest, Commit, Committed, MemoryStore, ReadAnswer, ReadRequest, Reply, SideWrite,
    Store, StoreError,
};
use tokio::sync::Notify;

/// A memory store that counts what is asked of it and tells of every write.
#[derive(Default)]
pub struct Counted {
    pub inner: MemoryStore,
    /// So many commits are written and answered with "nobody knows".
    unknown: AtomicUsize,
    calls: AtomicU64,
    pub written: Notify,
    holds_commits: AtomicBool,
    commits_held: AtomicUsize,
    commits: AtomicUsize,
    refused_takes: AtomicUsize,
    /// So many questions for the newest run are answered as if they had come before it.
    overlooked_runs: AtomicUsize,
    /// The next commit or take is done and answered late.
    is_late: AtomicBool,
    late_answer: Notify,
    /// So many commits conflict.
    conflicts: AtomicUsize,
    most_taken: AtomicUsize,
    /// Of each commit: the records that it changes, and the plugins whose state it holds.
    told: Mutex<Vec<(Vec<RecordId>, Vec<String>)>>,
}

impl Counted {
    /// The most due records that were ever given at once.
    pub fn most_taken(&self) -> usize {
        self.most_taken.load(Ordering::SeqCst)
    }

    /// Commits that were asked for so far.
    pub fn commits(&self) -> usize {
        self.commits.load(Ordering::SeqCst)
    }

    /// So many times nothing due can be taken.
    pub fn refuse_takes(&self, times: usize) {
        self.refused_takes.store(times, Ordering::SeqCst);
    }

    /// So many times there is no newest run yet.
    pub fn overlook_runs(&self, times: usize) {
        self.overlooked_runs.store(times, Ordering::SeqCst);
    }

    /// The plugins whose state is in the commit that published this event; none if there was no such commit.
    pub fn remembered_with(&self, event: &RecordId) -> Option<Vec<String>> {
        let told = self.told.lock().expect("no holder panics");
        told.iter().find(|(records, _)| records.contains(event)).map(|(_, plugins)| plugins.clone())
    }

    /// Whether the commit that published this event changed that record too.
    pub fn changed_with(&self, event: &RecordId, other: &RecordId) -> bool {
        let told = self.told.lock().expect("no holder panics");
        told.iter().find(|(records, _)| records.contains(event)).is_some_and(|(all, _)| all.contains(other))
    }

    /// The most records that one commit changed.
    pub fn largest_commit(&self) -> usize {
        let told = self.told.lock().expect("no holder panics");
        told.iter().map(|(records, _)| records.len()).max().unwrap_or_default()
    }

    /// Commits so far count no more.
    pub fn forget_commits(&self) {
        self.told.lock().expect("no holder panics").clear();
    }

    /// The next commit, or take of one record, is done at once and not answered before `answer_late`.
    pub fn be_late(&self) {
        self.is_late.store(true, Ordering::SeqCst);
    }

    /// The next commits conflict, as one does with another of its batch.
    pub fn conflict(&self, commits: usize) {
        self.conflicts.store(commits, Ordering::SeqCst);
    }

    pub fn answer_late(&self) {
        self.late_answer.notify_one();
    }

    fn in_time<T: Send + 'static>(&self, answer: Result<T, StoreError>) -> Reply<'_, T> {
        let is_late = self.is_late.swap(false, Ordering::SeqCst);
        Box::pin(async move {
            if is_late {
                self.late_answer.notified().await;
            }
            answer
        })
    }

    /// From now on no commit is answered.
    pub fn hold_commits(&self) {
        self.holds_commits.store(true, Ordering::SeqCst);
    }

    /// Commits are answered again; those that were not never are.
    pub fn take_commits_again(&self) {
        self.holds_commits.store(false, Ordering::SeqCst);
    }

    pub fn commits_held(&self) -> usize {
        self.commits_held.load(Ordering::SeqCst)
    }

    /// The next commits are written, and nobody is told.
    pub fn keep_silent_about(&self, commits: usize) {
        self.unknown.store(commits, Ordering::SeqCst);
    }

    /// How often anything was asked of it.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn count(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }
}

impl Store for Counted {
    fn commit(&self, commit: Commit) -> Reply<'_, Committed> {
        self.count();
        if self.holds_commits.load(Ordering::SeqCst) {
            self.commits_held.fetch_add(1, Ordering::SeqCst);
            return Box::pin(std::future::pending());
        }
        self.commits.fetch_add(1, Ordering::SeqCst);
        if one_less(&self.conflicts) {
            return Box::pin(ready(Err(StoreError::Conflict)));
        }
        let mut answer = self.inner.commit_now(&commit);
        if answer.is_ok() {
            let records = commit.changes.iter().map(|change| change.id.clone()).collect();
            let plugins = commit.plugin_states.iter().map(|change| change.plugin.clone()).collect();
            self.told.lock().expect("no holder panics").push((records, plugins));
        }
        if one_less(&self.unknown) {
            answer = Err(StoreError::OutcomeUnknown);
        }
        self.written.notify_waiters();
        self.in_time(answer)
    }

    fn claim(&self, request: ClaimRequest) -> Reply<'_, ClaimOutcome> {
        self.count();
        let takes_due = matches!(request, ClaimRequest::TakeDue { .. });
        if takes_due && one_less(&self.refused_takes) {
            return Box::pin(ready(Err(StoreError::Unavailable("it is away".to_owned()))));
        }
        let takes_one = matches!(request, ClaimRequest::Take { .. });
        let outcome = self.inner.claim(request).now_or_never().expect("memory answers at once");
        if let (true, Ok(ClaimOutcome::Taken(taken))) = (takes_due, &outcome) {
            self.most_taken.fetch_max(taken.len(), Ordering::SeqCst);
        }
        if takes_one { self.in_time(outcome) } else { Box::pin(ready(outcome)) }
    }

    fn write(&self, write: SideWrite) -> Reply<'_, bool> {
        self.count();
        self.inner.write(write)
    }

    fn read(&self, request: ReadRequest) -> Reply<'_, ReadAnswer> {
        self.count();
        if matches!(request, ReadRequest::NewestRecord { .. }) && one_less(&self.overlooked_runs) {
            return Box::pin(ready(Ok(ReadAnswer::NewestRecord(None))));
        }
        self.inner.read(request)
    }
}

/// Whether there was one left.
fn one_less(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}
