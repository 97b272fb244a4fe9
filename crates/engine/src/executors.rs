//! The executors that this node has, by name.

mod approval;
pub mod http;
pub mod process;

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::RetryPolicy;
use domain::policy::Hint;

use crate::{CommitWatch, Schema, Specialist};

pub use approval::{Approval, Gated};

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
    pub parameters: Option<Schema>,
    /// Whether a person has to approve it first.
    pub approval: Approval,
}

/// All executors of this node.
#[derive(Clone, Default)]
pub struct Executors {
    by_name: BTreeMap<String, Executor>,
    contracts: BTreeMap<String, Contract>,
    watches: Vec<Arc<dyn CommitWatch>>,
}

impl Executors {
    /// Three attempts, a second apart and then longer: builtin and process executors.
    pub const DEFAULT_RETRY: RetryPolicy =
        RetryPolicy { max_attempts: 3, backoff_seconds: 1, max_backoff_seconds: 60 };

    /// Adds one; a later one of the same name replaces it.
    pub fn register(&mut self, name: &str, executor: Executor) {
        self.by_name.insert(name.to_owned(), executor);
    }

    /// Says what the executor of this name promises.
    pub fn promise(&mut self, name: &str, contract: Contract) {
        self.contracts.insert(name.to_owned(), contract);
    }

    /// What the executor with this name promises, if an operator said so.
    pub fn contract(&self, name: &str) -> Option<&Contract> {
        self.contracts.get(name)
    }

    /// Adds what follows every commit of the node because of what executors keep outside the store.
    pub fn watched_by(&mut self, watch: Arc<dyn CommitWatch>) {
        self.watches.push(watch);
    }

    /// What follows every commit.
    pub(crate) fn watches(&self) -> &[Arc<dyn CommitWatch>] {
        &self.watches
    }

    /// The executor with this name.
    pub fn get(&self, name: &str) -> Option<&Executor> {
        self.by_name.get(name)
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}
