//! The capability that a call names: an executor, how it may be invoked, what the host grants to it, and whether there is room for more
//! of its work. All of it is settled before anything is written.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use api::deferred::Mode;
use api::{FieldError, Problem, ProblemCode};
use domain::Timestamp;
use domain::policy::{CancelPolicy, Hint, KindPolicy, TtlHints};
use engine::{Contract, ModeSupport, Modes};

use super::handle::kind_of;
use crate::problem::{of_refusal, of_store};
use crate::serve::Server;

/// An executor as it may be invoked.
#[derive(Clone)]
pub(crate) struct Capability {
    /// The executor's name.
    pub(crate) executor: String,
    /// The same as the contract writes it.
    pub(crate) kind: String,
    pub(crate) modes: Modes,
    pub(crate) policy: KindPolicy,
    /// What its operator promises of it.
    pub(crate) contract: Contract,
}

impl Capability {
    /// The one that a path names, for the jobs of a circle.
    pub(crate) fn named(server: &Server, circle: Option<&str>, name: &str) -> Result<Self, Problem> {
        let Some(executor) = server.daemon.executors().find(circle, name) else {
            let echoed: String = name.chars().take(128).collect();
            return Err(ProblemCode::NotFound.because(format!("no capability: {echoed}")));
        };
        let Some(kind) = kind_of(name) else {
            let told = "an executor that is invoked has a name of lower-case letters, digits, - and _, in parts joined by dots";
            let error = FieldError::new("invalid_kind", &["path", "executor"], told);
            return Err(ProblemCode::InvalidRequest.because(told).at(error));
        };
        let policy = server.daemon.policy().for_kind_in(circle, name);
        let contract = executor.contract.clone();
        Ok(Self { executor: name.to_owned(), kind, modes: executor.modes, policy, contract })
    }

    /// Refuses a mode that the executor's own entry does not allow.
    pub(crate) fn check(&self, mode: Mode) -> Result<(), Problem> {
        match (self.modes.support, mode) {
            (ModeSupport::SyncOnly, Mode::Async) => Err(ProblemCode::SyncOnly
                .because("this capability gives no handles; call it with timing.mode sync")),
            (ModeSupport::AsyncOnly, Mode::Sync) => Err(ProblemCode::AsyncOnly
                .because("this capability only gives handles; call it with timing.mode async")),
            (ModeSupport::SyncOnly, Mode::Sync)
            | (ModeSupport::AsyncOnly, Mode::Async)
            | (ModeSupport::Either, Mode::Sync | Mode::Async) => Ok(()),
        }
    }

    /// When to ask for the first time.
    pub(crate) fn retry_after_seconds(&self) -> u32 {
        self.policy.retry_after(self.modes.retry_after).seconds
    }

    /// When work that is accepted now ends at the latest.
    pub(crate) fn expires_at(
        &self,
        deadline_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Timestamp, Problem> {
        let hints = TtlHints { fail_after: Hint::Absent, action_ttl: self.modes.max_ttl, deadline_at };
        self.policy.expires_at(hints, now).map_err(|refusal| of_refusal(&refusal, ""))
    }

    /// Why new work cannot be stopped, if it cannot.
    pub(super) fn cancel_unavailable_reason(&self) -> Option<String> {
        match self.policy.cancel_policy {
            CancelPolicy::Provider => None,
            CancelPolicy::Deny => Some("denied by the host's policy".to_owned()),
        }
    }
}

/// Calls that were let in and are not written yet: they count as if they were.
#[derive(Default)]
pub(crate) struct Admissions {
    under_way: Mutex<BTreeMap<String, u64>>,
}

/// Room for one more, until it is written.
pub(super) struct Admitted<'a> {
    of: &'a Admissions,
    executor: &'a str,
}

/// Lets a call in, or sends it away because too much of its work is open.
pub(super) async fn admit<'a>(
    server: &'a Server,
    capability: &'a Capability,
) -> Result<Admitted<'a>, Problem> {
    let admitted = server.admissions.enter(&capability.executor);
    let open = server.store().open_jobs(&capability.executor).await.map_err(|error| of_store(&error))?;
    let (own, all) = server.admissions.under_way(&capability.executor);
    let full = |what: &str, limit: u32| {
        ProblemCode::TooManyOpen
            .because(format!("{limit} {what} are open already; nothing was accepted"))
            .retry_after(capability.retry_after_seconds())
    };
    let (of_module, in_all) =
        (capability.policy.max_open_per_module, server.daemon.policy().max_open_total.0);
    if open.of_executor + own > u64::from(of_module) {
        return Err(full("operations of this capability", of_module));
    }
    if open.total + all > u64::from(in_all) {
        return Err(full("operations", in_all));
    }
    Ok(admitted)
}

impl Admissions {
    fn enter<'a>(&'a self, executor: &'a str) -> Admitted<'a> {
        *self.lock().entry(executor.to_owned()).or_default() += 1;
        Admitted { of: self, executor }
    }

    fn under_way(&self, executor: &str) -> (u64, u64) {
        let under_way = self.lock();
        (under_way.get(executor).copied().unwrap_or_default(), under_way.values().sum())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.under_way.lock().expect("no holder of the lock panics")
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        let mut under_way = self.of.lock();
        if let Some(count) = under_way.get_mut(self.executor) {
            *count -= 1;
            if *count == 0 {
                under_way.remove(self.executor);
            }
        }
    }
}
