//! The executors that this node has, by circle and name.

mod approval;
mod hint;
mod left_out;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use domain::breaker::all_left_alone;
use domain::policy::Hint;
use domain::{Digest, RetryPolicy, Timestamp};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::{CommitWatch, Specialist};

pub use approval::{Approval, Gated};
pub use hint::hint;
pub use left_out::LeftOut;

/// One executor.
#[derive(Clone)]
pub struct Executor {
    /// What does the work.
    pub specialist: Arc<dyn Specialist>,
    /// Attempts at the same time on this node.
    pub concurrency: usize,
    /// How jobs that do not say otherwise are tried.
    pub retry: RetryPolicy,
    /// How it may be invoked.
    pub modes: Modes,
}

/// How an executor may be invoked, and what it hints of work that goes on outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// Whether the caller waits for the result, gets a handle, or may choose.
    pub support: ModeSupport,
    /// When to ask first, as the executor would like it; the host clamps it.
    pub retry_after: Hint,
    /// How long such work may take, as the executor would like it; the host clamps it.
    pub max_ttl: Hint,
}

/// Whether the caller of an executor waits for the result, gets a handle, or may choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModeSupport {
    /// Waits.
    #[default]
    SyncOnly,
    /// Chooses.
    Either,
    /// Gets a handle.
    AsyncOnly,
}

impl ModeSupport {
    /// The word of the contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SyncOnly => "sync-only",
            Self::Either => "either",
            Self::AsyncOnly => "async-only",
        }
    }
}

/// What an operator promises of an executor to whoever invokes it. One whose parameters have a schema is an action of the catalog.
#[derive(Clone, Debug, Default)]
pub struct Contract {
    /// For people.
    pub description: Option<String>,
    /// What its input must be, before anything is dispatched.
    pub parameters: Option<Arc<dyn InputSchema>>,
    /// Whether a person has to approve it first.
    pub approval: Approval,
    /// The digest of its operator's file, if it has one: what its entry of the catalog is known by.
    pub digest: Option<Digest>,
}

/// The schema of an executor's input, as its operator wrote it.
pub trait InputSchema: fmt::Debug + Send + Sync {
    /// As it was written.
    fn text(&self) -> &Value;

    /// Whether a document fits. What is not JSON fits nothing.
    fn check(&self, document: &[u8]) -> Result<(), Misfit>;
}

/// Where a document does not fit, and which word of the schema says so. It names the place and never the value: the value may be private.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// A JSON pointer into the document; empty for the whole.
    pub place: String,
    /// A JSON pointer into the schema.
    pub rule: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.place.is_empty() { "the whole" } else { &self.place };
        write!(f, "{place} does not fit {} of the schema", self.rule)
    }
}

/// All executors of this node: by name, and where a circle has one of its own under that name, that one for the jobs of the circle.
#[derive(Clone, Default)]
pub struct Executors {
    by_name: BTreeMap<String, Named>,
    /// Lanes that are not called like the executor whose jobs queue there, and that executor's name.
    by_lane: BTreeMap<String, String>,
    watches: Vec<Arc<dyn CommitWatch>>,
}

/// The executors of one name.
#[derive(Clone, Default)]
struct Named {
    common: Option<Registered>,
    by_circle: BTreeMap<String, Registered>,
}

/// An executor, and its places on this node.
#[derive(Clone)]
pub struct Registered {
    executor: Executor,
    /// What its operator promises of it.
    pub contract: Contract,
    /// The circle that it is for; none if it is for everybody.
    pub circle: Option<String>,
    /// Its places, whatever lane its jobs come from.
    pub(crate) slots: Arc<Semaphore>,
}

impl Deref for Registered {
    type Target = Executor;

    fn deref(&self) -> &Executor {
        &self.executor
    }
}

impl Executors {
    /// Three attempts, a second apart and then longer: builtin and process executors.
    pub const DEFAULT_RETRY: RetryPolicy =
        RetryPolicy { max_attempts: 3, backoff_seconds: 1, max_backoff_seconds: 60 };

    /// Adds one for everybody; a later one of the same name replaces it.
    pub fn register(&mut self, name: &str, executor: Executor) {
        self.register_for(None, name, executor);
    }

    /// Adds one for the jobs of a circle; a later one of the same name and circle replaces it.
    pub fn register_for(&mut self, circle: Option<&str>, name: &str, executor: Executor) {
        self.register_under(circle, name, executor, Contract::default());
    }

    /// Adds one for the jobs of a circle, or for everybody, that keeps to a contract.
    pub fn register_under(
        &mut self,
        circle: Option<&str>,
        name: &str,
        executor: Executor,
        contract: Contract,
    ) {
        if let Some(lane) = executor.specialist.lane() {
            self.by_lane.insert(lane.into_owned(), name.to_owned());
        }
        let slots = Arc::new(Semaphore::new(executor.concurrency));
        let registered = Registered { executor, contract, circle: circle.map(str::to_owned), slots };
        let named = self.by_name.entry(name.to_owned()).or_default();
        match circle {
            None => named.common = Some(registered),
            Some(circle) => {
                named.by_circle.insert(circle.to_owned(), registered);
            }
        }
    }

    /// Adds what follows every commit of the node because of what executors keep outside the store.
    pub fn watched_by(&mut self, watch: Arc<dyn CommitWatch>) {
        self.watches.push(watch);
    }

    /// What follows every commit.
    pub(crate) fn watches(&self) -> &[Arc<dyn CommitWatch>] {
        &self.watches
    }

    /// The executor of this name for the jobs of a circle: its own, else the one for everybody.
    pub fn find(&self, circle: Option<&str>, name: &str) -> Option<&Registered> {
        let named = self.by_name.get(name)?;
        let own = circle.and_then(|circle| named.by_circle.get(circle));
        own.or(named.common.as_ref())
    }

    /// The same, if it can be used.
    pub fn find_usable(&self, circle: Option<&str>, name: &str) -> Option<&Registered> {
        self.find(circle, name).filter(|found| found.specialist.left_out_because().is_none())
    }

    /// The attempts that all executors whose jobs queue in this lane may have together at the same time; none if there is none.
    pub(crate) fn concurrency(&self, lane: &str) -> Option<usize> {
        let own = || self.by_name.get(self.by_lane.get(lane)?);
        let named = self.by_name.get(lane).or_else(own)?;
        Some(named.common.iter().chain(named.by_circle.values()).map(|one| one.concurrency).sum())
    }

    /// Until when every executor whose jobs queue in this lane is left alone; none if one of them may be asked.
    pub(crate) fn left_alone_until(&self, lane: &str, now: Timestamp) -> Option<Timestamp> {
        let until = |one: &Registered| one.specialist.left_alone_until(now);
        // Nobody is, nearly always.
        if self.all().all(|(_, one)| until(one).is_none()) {
            return None;
        }
        let queues =
            |name: &str, one: &Registered| one.specialist.lane().map_or(name == lane, |own| own == lane);
        all_left_alone(self.all().filter(|(name, one)| queues(name, one)).map(|(_, one)| until(one)))
    }

    /// What whoever named an executor that is not here may have meant: `; did you mean "…"?`, or nothing if no name is near.
    pub fn near(&self, circle: Option<&str>, name: &str) -> String {
        let known: Vec<&str> = self.names().filter(|name| self.find(circle, name).is_some()).collect();
        hint(name, &known)
    }

    /// All of them, by name: those for everybody, and those of each circle.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Registered)> {
        self.by_name.iter().flat_map(|(name, named)| {
            named.common.iter().chain(named.by_circle.values()).map(move |one| (name.as_str(), one))
        })
    }

    /// As other nodes are told of them: `name` if it is for everybody, `circle/name` if it is for a circle.
    pub fn published(&self) -> Vec<String> {
        let name = |(name, one): (&str, &Registered)| match &one.circle {
            None => name.to_owned(),
            Some(circle) => format!("{circle}/{name}"),
        };
        self.all().map(name).collect()
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}
