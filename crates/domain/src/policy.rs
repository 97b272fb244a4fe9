//! What the host grants to work outside: every bound is the host's, every word of a connector only a hint.

mod clamp;
mod kind;
pub(crate) mod stored;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use clamp::{Clamped, Hint, LifeLimit, TtlHints};
pub use kind::{KindOverride, KindPolicy};

use crate::Refusal;
use crate::duration::written;
use crate::words::words;

/// The host's policy: the defaults, and what differs per kind of operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostPolicy {
    /// For every kind that is not overridden; absent fields are those of `KindPolicy::default`.
    pub defaults: KindOverride,
    /// Per kind, the fields that differ.
    pub kind_overrides: BTreeMap<String, KindOverride>,
    /// Open operations in all; over it a request is refused, never accepted.
    pub max_open_total: Limit<1_024>,
    /// Polls under way in all.
    pub max_concurrent_polls_total: Limit<32>,
    /// The life of work outside that belongs to a job without a deadline, unless its kind has a `max_ttl_seconds` of its own.
    #[serde(deserialize_with = "limit_seconds")]
    pub job_ttl_seconds: Limit<86_400>,
}

fn limit_seconds<'de, D: serde::Deserializer<'de>, const DEFAULT: u32>(
    deserializer: D,
) -> Result<Limit<DEFAULT>, D::Error> {
    written::seconds(deserializer).map(Limit)
}

/// What it means when a connector does not know the operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnknownPolicy {
    /// It is over.
    #[default]
    Terminal,
    /// It is asked again until the operation expires.
    RetryUntilExpiry,
}

/// What it means when a service says that the work ran out of its own time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimedOutPolicy {
    /// It is over.
    #[default]
    Terminal,
    /// It is submitted again while attempts are left.
    Resubmit,
}

/// Whether a cancel is passed on to the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CancelPolicy {
    /// If the provider can.
    #[default]
    Provider,
    /// Never.
    Deny,
}

words! {
    /// Whether an operation outlives the daemon.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Persistence {
        /// It does.
        #[default]
        Durable = "durable",
        /// It ends with the daemon that left it outside.
        Volatile = "volatile",
    }
}

/// What bounds the life of a job that leaves work outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobLife {
    /// Nothing.
    Unbounded,
    /// A deadline or an expiry of its creator.
    Bounded,
    /// What the host granted when it gave a handle for it.
    OfHandle,
}

/// Why `persistence: volatile` is refused for every kind at once.
pub const NOT_VOLATILE: &str = "persistence: volatile is for a kind that declares it: write it under kind_overrides, or in the policy of a connector's file";

/// A count with its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Limit<const DEFAULT: u32>(pub u32);

impl<const DEFAULT: u32> Default for Limit<DEFAULT> {
    fn default() -> Self {
        Self(DEFAULT)
    }
}

/// No poll may be put off longer than this, whatever the policy says.
pub const RETRY_AFTER_CEILING_SECONDS: u32 = 3_600;
/// No operation may live longer than this: a year.
pub const TTL_CEILING_SECONDS: u64 = 366 * 86_400;

/// The limit of open operations that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenLimit {
    /// `max_open_per_module` of the kind.
    OfKind(u32),
    /// `max_open_total`.
    InAll(u32),
}

impl HostPolicy {
    /// The policy for kinds without one of their own.
    pub fn for_all(&self) -> KindPolicy {
        self.granted(None)
    }

    /// The policy for one kind of operation.
    pub fn for_kind(&self, kind: &str) -> KindPolicy {
        self.granted(self.kind_overrides.get(kind))
    }

    /// The policy for one kind of operation in a circle: under `circle/kind` if the circle has one of its own, else that of the kind.
    pub fn for_kind_in(&self, circle: Option<&str>, kind: &str) -> KindPolicy {
        self.granted(self.override_of(circle, kind))
    }

    /// What is granted to work that belongs to a job: as for its kind, but a life until the job's own end, or of `job_ttl_seconds` if it
    /// has none. A life that the kind's own policy grants, or that the operator has set for all, comes before both. With it what bounds
    /// that life. The polls suffice for all of it, unless the operator has set their number.
    pub fn for_job(&self, circle: Option<&str>, kind: &str, life: JobLife) -> (KindPolicy, LifeLimit) {
        let (policy, own) = (self.for_kind_in(circle, kind), self.override_of(circle, kind));
        let is_set = own.and_then(|own| own.max_ttl_seconds).or(self.defaults.max_ttl_seconds).is_some();
        let (life_seconds, limit) = match life {
            _ if is_set => (policy.max_ttl_seconds, LifeLimit::MaxTtl),
            JobLife::OfHandle | JobLife::Bounded => (TTL_CEILING_SECONDS, LifeLimit::JobTtl),
            JobLife::Unbounded => (u64::from(self.job_ttl_seconds.0), LifeLimit::JobTtl),
        };
        let policy = KindPolicy { max_ttl_seconds: life_seconds, ..policy };
        let may_extend = match life {
            JobLife::OfHandle => false,
            JobLife::Bounded | JobLife::Unbounded => !self.sets_max_attempts(own),
        };
        (if may_extend { policy.with_polls_for_its_life() } else { policy }, limit)
    }

    /// The defaults, and what differs from them. A life longer than the usual one has polls for all of it.
    fn granted(&self, own: Option<&KindOverride>) -> KindPolicy {
        let usual = KindPolicy::default();
        let for_all = self.defaults.over(&usual);
        let policy = own.map_or_else(|| for_all.clone(), |own| own.over(&for_all));
        if policy.max_ttl_seconds > usual.max_ttl_seconds && !self.sets_max_attempts(own) {
            policy.with_polls_for_its_life()
        } else {
            policy
        }
    }

    fn sets_max_attempts(&self, own: Option<&KindOverride>) -> bool {
        own.and_then(|own| own.max_attempts).or(self.defaults.max_attempts).is_some()
    }

    /// Whether the kind has a policy of its own that says something of this field.
    pub fn is_of_kind(&self, circle: Option<&str>, kind: &str, field: &str) -> bool {
        let own = self.override_of(circle, kind).and_then(|own| serde_json::to_value(own).ok());
        own.is_some_and(|own| own.get(field).is_some())
    }

    /// Refuses one more open operation of a kind when so many would be open then: of the kind, and of all kinds.
    pub fn check_open(
        &self,
        circle: Option<&str>,
        kind: &str,
        of_kind: u64,
        in_all: u64,
    ) -> Result<(), OpenLimit> {
        let (own, all) = (self.for_kind_in(circle, kind).max_open_per_module, self.max_open_total.0);
        if of_kind > u64::from(own) {
            return Err(OpenLimit::OfKind(own));
        }
        if in_all > u64::from(all) { Err(OpenLimit::InAll(all)) } else { Ok(()) }
    }

    fn override_of(&self, circle: Option<&str>, kind: &str) -> Option<&KindOverride> {
        let own = circle.and_then(|circle| self.kind_overrides.get(&format!("{circle}/{kind}")));
        own.or_else(|| self.kind_overrides.get(kind))
    }

    /// Refuses a policy whose bounds cannot be held.
    pub fn check(&self) -> Result<(), Refusal> {
        let job_ttl_seconds = u64::from(self.job_ttl_seconds.0);
        fits((1..=TTL_CEILING_SECONDS).contains(&job_ttl_seconds), "job_ttl_seconds")?;
        fits(self.max_open_total.0 >= 1, "max_open_total")?;
        fits(self.max_concurrent_polls_total.0 >= 1, "max_concurrent_polls_total")?;
        self.for_all().check()?;
        self.kind_overrides.keys().try_for_each(|kind| self.for_kind(kind).check())
    }
}

fn fits(fits: bool, field: &'static str) -> Result<(), Refusal> {
    if fits { Ok(()) } else { Err(Refusal::InvalidPolicy { field }) }
}

impl KindPolicy {
    /// Why the host passes no cancel on, if it does not.
    pub const fn not_cancelable_because(&self) -> Option<&'static str> {
        match self.cancel_policy {
            CancelPolicy::Provider => None,
            CancelPolicy::Deny => Some("denied by the host's policy"),
        }
    }

    /// With at least as many polls as its life has room for at the shortest interval, so that the life ends the work and not their
    /// number; only callbacks, each of which is a poll, can reach it.
    fn with_polls_for_its_life(self) -> Self {
        let shortest_seconds = u64::from(self.min_retry_after_seconds.max(1));
        let polls = (self.max_ttl_seconds / shortest_seconds).saturating_add(1);
        let polls = u32::try_from(polls).unwrap_or(u32::MAX);
        Self { max_attempts: self.max_attempts.max(polls), ..self }
    }

    /// Refuses bounds that contradict each other or the host's ceilings.
    pub fn check(&self) -> Result<(), Refusal> {
        let (min, max) = (self.min_retry_after_seconds, self.max_retry_after_seconds);
        fits(min >= 1, "min_retry_after_seconds")?;
        fits((min..=RETRY_AFTER_CEILING_SECONDS).contains(&max), "max_retry_after_seconds")?;
        fits((min..=max).contains(&self.default_retry_after_seconds), "default_retry_after_seconds")?;
        fits((1..=TTL_CEILING_SECONDS).contains(&self.max_ttl_seconds), "max_ttl_seconds")?;
        fits(self.max_attempts >= 1, "max_attempts")?;
        fits(self.max_response_bytes >= 1, "max_response_bytes")?;
        fits(self.invoke_timeout_ms >= 1, "invoke_timeout_ms")?;
        fits(self.status_timeout_ms >= 1, "status_timeout_ms")?;
        fits(self.max_open_per_module >= 1, "max_open_per_module")?;
        fits(self.max_concurrent_polls_per_module >= 1, "max_concurrent_polls_per_module")?;
        fits(self.jitter_permille <= 1_000, "jitter_permille")?;
        fits(self.poll_error_backoff_seconds >= 1, "poll_error_backoff_seconds")?;
        fits(
            (self.poll_error_backoff_seconds..=RETRY_AFTER_CEILING_SECONDS)
                .contains(&self.max_poll_error_backoff_seconds),
            "max_poll_error_backoff_seconds",
        )
    }
}
