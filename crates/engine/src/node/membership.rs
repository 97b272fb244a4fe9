//! Keeps a node among those that share its store: a heartbeat, and a look whenever others may have written something.
//!
//! Hints between nodes may be lost; each heartbeat says what comes next and is the net under them. What others did to the attempts
//! that run here, and to the records that someone watches here, is found by one question about their versions.

mod agreement;
pub mod verdict;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use domain::{RecordId, Timestamp};
use store::{Node, Pulse, Ready, Reply, SharedStore, StoreError};
use tokio::sync::watch;

use crate::attempts::Younger;
use crate::{AsksWatched, Attempts, Changes, Engine, Polls, Pulls, Standing, Timer, Wakes};
pub use agreement::{Agreement, Jumped};

/// How often a node says that it lives.
const BEAT_EVERY_SECONDS: u64 = 10;
/// How soon it tries again if that failed.
const BEAT_AGAIN_AFTER_SECONDS: u64 = 1;
/// A store that does not answer by then is asked again, over another connection.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Hints of others are followed at most this often: each costs a few questions.
const LOOK_EVERY_MICROS: i64 = 100_000;
/// Attempts younger than this are looked at a little later: most are over by then.
const SETTLED_AFTER_MICROS: i64 = 1_000_000;
/// Records that are asked about at once.
const ASKED_AT_ONCE: usize = 1_000;

/// What a node needs to be one of several.
pub struct Membership {
    /// The store that they share.
    pub store: Arc<dyn SharedStore>,
    /// Changes whenever another node may have written something.
    pub hints: watch::Receiver<u64>,
    /// This node.
    pub node: Node,
}

/// A node that is one of several.
pub(crate) struct Member {
    pub(crate) membership: Membership,
    pub(crate) engine: Engine,
    pub(crate) timer: Arc<dyn Timer>,
    pub(crate) attempts: Arc<Attempts>,
    pub(crate) polls: Arc<Polls>,
    pub(crate) pulls: Arc<Pulls>,
    pub(crate) wakes: Arc<Wakes>,
    pub(crate) changes: Arc<Changes>,
    pub(crate) asks: Arc<AsksWatched>,
    pub(crate) standing: Arc<Standing>,
    /// What it does about the store's time.
    pub(crate) agreement: Option<Arc<Agreement>>,
    /// The versions of the records that were looked at.
    pub(crate) seen: BTreeMap<RecordId, u64>,
}

impl Member {
    /// As long as the store is there. Whoever stops the daemon drops this.
    pub(crate) async fn keep_up(mut self) {
        let timer = self.timer.clone();
        let mut beat_at = timer.now().plus_seconds(BEAT_EVERY_SECONDS);
        let mut look_at: Option<Timestamp> = None;
        loop {
            // The clock may be set back by an operator while this node looks around: it goes on saying that it lives.
            beat_at = beat_at.min(timer.now().plus_seconds(BEAT_EVERY_SECONDS));
            let later = async {
                match look_at {
                    Some(at) => timer.sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = timer.sleep_until(beat_at) => {
                    let beaten = self.beat().await;
                    // Others judge by the time that is new to all who lives.
                    let beaten = match self.agree_on_time().await {
                        Jumped::Yes => BEAT_AGAIN_AFTER_SECONDS,
                        Jumped::No => beaten,
                    };
                    beat_at = timer.now().plus_seconds(beaten);
                    look_at = self.look().await;
                }
                hinted = self.membership.hints.changed() => {
                    if hinted.is_err() {
                        return;
                    }
                    self.changes.look_again();
                    self.asks.look_again();
                    look_at = self.look().await;
                    self.feel_pulse().await;
                    timer.sleep_until(timer.now().plus_micros(LOOK_EVERY_MICROS)).await;
                }
                () = later => {
                    self.look().await;
                    look_at = None;
                }
            }
        }
    }

    /// Says that this node lives; in how many seconds it does so again.
    async fn beat(&self) -> u64 {
        let node = Node {
            attempts: self.attempts.count() as u64,
            polls: self.polls.count() as u64,
            heartbeat_at: self.timer.now(),
            ..self.membership.node.clone()
        };
        match answered(self.membership.store.beat(node)).await {
            Ok(pulse) => {
                self.heed(pulse);
                BEAT_EVERY_SECONDS
            }
            Err(error) => {
                tracing::warn!(code = error.code(), "no heartbeat: {error}");
                BEAT_AGAIN_AFTER_SECONDS
            }
        }
    }

    async fn agree_on_time(&self) -> Jumped {
        let Some(agreement) = &self.agreement else { return Jumped::No };
        match agreement.round().await {
            Ok(jumped) => jumped,
            Err(error) => {
                tracing::warn!(code = error.code(), "the store's time was not compared: {error}");
                Jumped::No
            }
        }
    }

    async fn feel_pulse(&self) {
        match answered(self.membership.store.pulse(&self.membership.node.id)).await {
            Ok(pulse) => self.heed(pulse),
            // The next heartbeat says the same.
            Err(error) => tracing::debug!(code = error.code(), "no pulse: {error}"),
        }
    }

    fn heed(&self, pulse: Pulse) {
        if let Some(at) = pulse.job_due_at {
            self.wakes.due(at);
        }
        if let Some(at) = pulse.operation_due_at {
            self.wakes.operation_due(at);
        }
        if let Some(at) = pulse.routing_due_at {
            self.wakes.routing_due(at);
        }
        match pulse.ready {
            Ready::Some => self.wakes.look_at_lanes(),
            Ready::None => {}
        }
        match pulse.pulled {
            Ready::Some => self.pulls.look_again(),
            Ready::None => {}
        }
        if pulse.taking.is_some_and(|taking| self.standing.told(taking)) {
            tracing::info!(taking = ?self.standing.taking(), "told by an operator");
            self.wakes.look_again();
            self.pulls.look_again();
        }
    }

    /// Finds out what others did to what matters here; when to look again, if attempts were too young.
    async fn look(&mut self) -> Option<Timestamp> {
        let now = self.timer.now();
        let (jobs, younger) = self.attempts.begun_before(now.plus_micros(-SETTLED_AFTER_MICROS));
        let mut ids: Vec<RecordId> = jobs.into_iter().map(RecordId::from).collect();
        ids.extend(self.changes.under_watch());
        let mut found = BTreeMap::new();
        for some in ids.chunks(ASKED_AT_ONCE) {
            match answered(self.membership.store.versions(some)).await {
                Ok(versions) => found.extend(versions),
                Err(error) => tracing::debug!(code = error.code(), "nothing seen of others: {error}"),
            }
        }
        for (id, version) in &found {
            if self.seen.get(id) != Some(version) {
                self.notice(id).await;
            }
        }
        self.seen = found;
        (younger == Younger::Some).then(|| now.plus_micros(SETTLED_AFTER_MICROS))
    }

    async fn notice(&self, id: &RecordId) {
        match self.engine.store().load(id).await {
            Ok(Some(loaded)) => {
                self.attempts.notice(&loaded.record);
                self.changes.notice(id, &loaded.record);
            }
            Ok(None) => {}
            Err(error) => tracing::debug!(record = %id, code = error.code(), "not looked at: {error}"),
        }
    }
}

/// The answer, if it comes in time.
pub(crate) async fn answered<T>(reply: Reply<'_, T>) -> Result<T, StoreError> {
    match tokio::time::timeout(ANSWER_WITHIN, reply).await {
        Ok(answer) => answer,
        Err(_) => Err(StoreError::Unavailable("the store does not answer".to_owned())),
    }
}
