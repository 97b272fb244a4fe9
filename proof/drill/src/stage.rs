//! What the clients, the workers and whoever breaks things share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::nodes::Addresses;
use crate::oracle::Oracle;
use crate::plan::Sending;
use crate::wire::{Answer, Request, Sent, send};

/// How long anybody waits for an answer.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// Between two tries.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(25);

/// What all share.
pub struct Stage {
    pub seed: u64,
    pub addresses: Addresses,
    /// Set as soon as there is a node that knows it.
    pub token: OnceLock<String>,
    /// Where commands leave a line for each of their attempts.
    pub effects: PathBuf,
    oracle: Mutex<Oracle>,
    turns: AtomicU64,
    /// Nobody asks for new work any more.
    pub calm: AtomicBool,
    /// How much was open when somebody last looked.
    pub open: AtomicUsize,
    /// Clients that are not home yet.
    pub clients: AtomicUsize,
    /// Everybody goes home.
    pub over: AtomicBool,
}

impl Stage {
    pub fn new(seed: u64, effects: PathBuf) -> Self {
        Self {
            seed,
            addresses: Addresses::default(),
            token: OnceLock::new(),
            effects,
            oracle: Mutex::default(),
            turns: AtomicU64::new(0),
            calm: AtomicBool::new(false),
            open: AtomicUsize::new(0),
            clients: AtomicUsize::new(0),
            over: AtomicBool::new(false),
        }
    }

    pub fn oracle(&self) -> MutexGuard<'_, Oracle> {
        self.oracle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_calm(&self) -> bool {
        self.calm.load(Ordering::SeqCst)
    }

    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Sends it to one node after the other, in turn.
    pub fn send(&self, request: &Request<'_>, sending: Sending) -> Sent {
        match self.addresses.any(self.turns.fetch_add(1, Ordering::SeqCst)) {
            Some(url) => send(&url, self.token.get().map_or("", String::as_str), request, sending),
            None => Sent::Never,
        }
    }

    /// Asks until somebody answers, or everything is over. `unanswered` hears of every time that it may have happened.
    pub fn ask(
        &self,
        request: &Request<'_>,
        first: Sending,
        within: Duration,
        mut unanswered: impl FnMut(),
    ) -> Option<Answer> {
        let until = Instant::now() + within;
        let mut sending = first;
        while !self.is_over() && Instant::now() < until {
            match self.send(request, sending) {
                Sent::Answered(answer) if answer.status < 500 => return Some(answer),
                Sent::Answered(_) | Sent::Unanswered => unanswered(),
                Sent::Never => {}
            }
            sending = Sending::Whole;
            std::thread::sleep(TRY_AGAIN_AFTER);
        }
        None
    }

    /// Reads something, from whoever answers.
    pub fn read(&self, path: &str, within: Duration) -> Option<Answer> {
        let request = Request { method: "GET", path, key: None, body: None, within: ANSWER_WITHIN };
        self.ask(&request, Sending::Whole, within, || ())
    }

    /// Sleeps, unless everything is over.
    pub fn think(&self, time: Duration) {
        if !self.is_over() {
            std::thread::sleep(time);
        }
    }
}
