//! The scripted slow service: takes work, takes its time, and answers in the manner that the start asked for.
//!
//! Accepted starts are written before they are answered, once per key; the ledger of them is what tests count. The requests
//! are in `door`; nothing of the misbehaviour is here: see `zoo`.

mod door;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;

use crate::callback::tell_of_the_end;
use crate::clock::Clock;
use crate::counters::{Counters, Requests};
use crate::http::Server;
use crate::ledger::{AfterRestart, Ledger, Start};
use crate::measures::Measures;
use crate::signature::WebhookSecret;
use crate::state::StateError;
use crate::tasks::Tasks;
use crate::work::Work;

use door::Door;

/// How the service is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where it keeps what it accepted; without it, a stopped service forgets everything.
    pub state: Option<PathBuf>,
    /// What becomes of unfinished work when it is started again on the same state.
    pub after_restart: AfterRestart,
    /// By which its work goes on.
    pub clock: Clock,
    /// How many seconds of work go by in one second.
    pub speed: f64,
    /// With which callbacks are signed, as Standard Webhooks has it (`whsec_` and base64); without it they are not.
    pub callback_secret: Option<WebhookSecret>,
    /// How slow, late and large the misbehaviour is.
    pub measures: Measures,
}

/// A running slow service.
#[derive(Debug)]
pub struct SlowService {
    server: Server,
    inner: Arc<Inner>,
}

/// A service that cannot be started.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// The address is taken, or not ours.
    #[error("cannot listen: {0}")]
    Listen(#[from] std::io::Error),
    /// The state cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// Time would not go by.
    #[error("speed must be a number above 0, not {0}")]
    Speed(f64),
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) clock: Clock,
    pub(crate) measures: Measures,
    pub(crate) counters: Counters,
    pub(crate) callback_secret: Option<WebhookSecret>,
    speed: f64,
    ledger: Mutex<Ledger>,
    callbacks: Tasks,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            state: None,
            after_restart: AfterRestart::default(),
            clock: Clock::real(),
            speed: 1.0,
            callback_secret: None,
            measures: Measures::default(),
        }
    }
}

impl SlowService {
    /// Opens the state and listens.
    pub async fn start(options: Options) -> Result<Self, ServiceError> {
        if !(options.speed > 0.0 && options.speed.is_finite()) {
            return Err(ServiceError::Speed(options.speed));
        }
        let now = options.clock.now_micros();
        let ledger = Ledger::open(options.state.as_deref(), options.after_restart, now)?;
        let unfinished = ledger.works().iter().filter(|work| !work.state(now).is_over());
        let unfinished: Vec<String> = unfinished.map(|work| work.id.clone()).collect();
        let inner = Arc::new(Inner {
            clock: options.clock,
            measures: options.measures,
            counters: Counters::default(),
            callback_secret: options.callback_secret,
            speed: options.speed,
            ledger: Mutex::new(ledger),
            callbacks: Tasks::new(),
        });
        let server = Server::start(options.listen, Arc::new(Door(inner.clone()))).await?;
        for id in unfinished {
            promise_callback(&inner, &id);
        }
        Ok(Self { server, inner })
    }

    /// Where it is reached, without a slash at the end.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Every start that it accepted, oldest first; a repeated one counts once.
    pub fn starts(&self) -> Vec<Start> {
        self.inner.ledger().starts()
    }

    /// What it was asked so far.
    pub fn requests(&self) -> Requests {
        self.inner.counters.read()
    }

    /// Ends it: no connection, callback or open file is left.
    pub async fn stop(mut self) {
        self.server.stop().await;
        self.inner.callbacks.stop().await;
    }
}

impl Drop for SlowService {
    fn drop(&mut self) {
        // The tasks hold the state; without this they would outlive the service.
        self.inner.callbacks.abort();
    }
}

impl Inner {
    pub(crate) fn work(&self, id: &str) -> Option<Work> {
        self.ledger().by_id(id).cloned()
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whoever gave an address is told of the end, even if the answer to the start never arrives.
fn promise_callback(inner: &Arc<Inner>, id: &str) {
    if inner.work(id).is_some_and(|work| work.script.callback_url.is_some()) {
        inner.callbacks.spawn(tell_of_the_end(inner.clone(), id.to_owned()));
    }
}
