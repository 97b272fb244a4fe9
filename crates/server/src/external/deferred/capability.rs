//! The capability that a call names: an executor, how it may be invoked, what the host grants to it, and whether there is room for more
//! of its work. All of it is settled before anything is written.

use api::ProblemCode;
use api::deferred::Mode;
use domain::Timestamp;
use domain::policy::{Hint, HostPolicy, KindPolicy, LifeLimit, OpenLimit, TtlHints};
use engine::accept::{AdmissionError, AdmissionPermit};
use engine::{Contract, Executors, ModeSupport, Modes};

use super::handle::kind_of;
use crate::problem::{at, echoed, of_refusal, of_store};
use crate::{Result, Server};

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
    /// Why its work cannot be stopped, if it cannot.
    pub(super) not_cancelable: Option<String>,
    /// The circle for whose jobs it was found.
    circle: Option<String>,
}

/// Why work of an executor cannot be stopped, if none can: its connector has no cancel, or the host passes none on.
pub(super) fn not_cancelable_because(
    executors: &Executors,
    policy: &HostPolicy,
    circle: Option<&str>,
    name: &str,
) -> Option<String> {
    let own = executors.find(circle, name).and_then(|executor| executor.specialist.not_cancelable_because());
    own.or_else(|| policy.for_kind_in(circle, name).not_cancelable_because().map(str::to_owned))
}

impl Capability {
    /// The one that a path names, for the jobs of a circle.
    pub(crate) fn named(server: &Server, circle: Option<&str>, name: &str) -> Result<Self> {
        let Some(executor) = server.daemon.executors().find(circle, name) else {
            return Err(ProblemCode::NotFound.because(format!("no capability: {}", echoed(name))));
        };
        let Some(kind) = kind_of(name) else {
            let told = "an executor that is invoked has a name of lower-case letters, digits, - and _, in parts joined by dots";
            return Err(at(ProblemCode::InvalidRequest, "invalid_kind", &["path", "executor"], told));
        };
        let policy = server.daemon.policy().for_kind_in(circle, name);
        let contract = executor.contract.clone();
        let (executors, host) = (server.daemon.executors(), server.daemon.policy());
        let not_cancelable = not_cancelable_because(executors, host, circle, name);
        Ok(Self {
            executor: name.to_owned(),
            kind,
            modes: executor.modes,
            policy,
            contract,
            not_cancelable,
            circle: circle.map(str::to_owned),
        })
    }

    /// Refuses a mode that the executor's own entry does not allow.
    pub(crate) fn check(&self, mode: Mode) -> Result<()> {
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

    /// When work that is accepted now ends at the latest, and what bounds it.
    pub(crate) fn life(
        &self,
        deadline_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(Timestamp, LifeLimit)> {
        let hints = TtlHints { fail_after: Hint::Absent, action_ttl: self.modes.max_ttl, deadline_at };
        self.policy.life(hints, now).map_err(|refusal| of_refusal(&refusal, ""))
    }

    /// The digest of its entry in the catalog: of its operator's file, or of what is registered of it if it has none.
    pub(super) fn digest(&self) -> String {
        let digest = self.contract.digest.unwrap_or_else(|| {
            let Modes { support, retry_after, max_ttl } = self.modes;
            let parameters = self.contract.parameters.as_ref().map(|schema| schema.text());
            let profile = [retry_after.seconds(), max_ttl.seconds()];
            let entry = serde_json::json!([self.executor, support.as_str(), profile, parameters]);
            store::sha256(entry.to_string().as_bytes())
        });
        format!("sha256:{digest}")
    }
}

/// Lets a call in, or turns it away because too much of its work is open.
pub(super) async fn admit<'a>(server: &'a Server, capability: &'a Capability) -> Result<AdmissionPermit<'a>> {
    let (policy, circle, kind) = (server.daemon.policy(), capability.circle.as_deref(), &capability.executor);
    let permit = server.admissions.admit(server.store(), policy, circle, kind).await;
    let (what, limit, name, is_own, key) = match permit {
        Ok(permit) => return Ok(permit),
        Err(AdmissionError::Store(error)) => return Err(of_store(error)),
        Err(AdmissionError::Full(OpenLimit::OfKind(limit))) => {
            let name = "max_open_per_module";
            let key = format!(
                "policy.{name} in the connector file of {kind}, or policy.defaults.{name} in longhaul.yaml"
            );
            ("operations of this capability", limit, name, policy.is_of_kind(circle, kind, name), key)
        }
        Err(AdmissionError::Full(OpenLimit::InAll(limit))) => {
            let key = "policy.max_open_total in longhaul.yaml".to_owned();
            ("operations", limit, "max_open_total", false, key)
        }
    };
    let whose = if is_own { "connector policy" } else { "host default" };
    let told = format!(
        "{limit} {what} are open already; nothing was accepted. The limit is {name} = {limit} ({whose}); change {key}"
    );
    Err(ProblemCode::TooManyOpen.because(told).retry_after(capability.retry_after_seconds()))
}
