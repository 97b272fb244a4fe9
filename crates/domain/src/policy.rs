//! What the host grants to work outside: every bound is the host's, every word of a connector only a hint.

mod clamp;
pub(crate) mod stored;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use clamp::{Clamped, Hint, LifeLimit, TtlHints};

use crate::Refusal;
use crate::duration::written;

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

/// What the host grants to one kind of operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KindPolicy {
    /// No poll sooner.
    pub min_retry_after_seconds: u32,
    /// No poll later.
    pub max_retry_after_seconds: u32,
    /// When the connector gives no hint.
    pub default_retry_after_seconds: u32,
    /// The longest life of one operation.
    pub max_ttl_seconds: u64,
    /// Status polls per operation; the last one ends it. Where nobody sets it and the life is longer than usual, it is as many as that
    /// life has room for.
    pub max_attempts: u32,
    /// The largest payload taken from a connector.
    pub max_response_bytes: u64,
    /// The time for the initial call.
    pub invoke_timeout_ms: u32,
    /// The time for one status call.
    pub status_timeout_ms: u32,
    /// What it means when the connector does not know the operation.
    pub unknown_policy: UnknownPolicy,
    /// What it means when the work ran out of its own time.
    pub timed_out_policy: TimedOutPolicy,
    /// Whether a cancel is passed on.
    pub cancel_policy: CancelPolicy,
    /// Whether the operation outlives the daemon.
    pub persistence: Persistence,
    /// Open operations of one module.
    pub max_open_per_module: u32,
    /// Polls under way at one module.
    pub max_concurrent_polls_per_module: u32,
    /// How much later than clamped a poll may be, in parts of a thousand; never later than the longest wait.
    pub jitter_permille: u16,
    /// The wait after a failed poll: first, and at most.
    pub poll_error_backoff_seconds: u32,
    /// The longest wait after failed polls.
    pub max_poll_error_backoff_seconds: u32,
    /// Diagnostics kept on one operation.
    pub diagnostics_max_items: u16,
    /// Bytes of one diagnostic.
    pub diagnostics_max_bytes: u32,
}

/// What differs from the defaults for one kind; absent fields are inherited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields of `KindPolicy`")]
pub struct KindOverride {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "written::some_seconds")]
    pub min_retry_after_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "written::some_seconds")]
    pub max_retry_after_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "written::some_seconds")]
    pub default_retry_after_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "written::some_seconds")]
    pub max_ttl_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_response_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "written::some_milliseconds")]
    pub invoke_timeout_ms: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "written::some_milliseconds")]
    pub status_timeout_ms: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_policy: Option<UnknownPolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_out_policy: Option<TimedOutPolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_policy: Option<CancelPolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistence: Option<Persistence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_open_per_module: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrent_polls_per_module: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_permille: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "written::some_seconds")]
    pub poll_error_backoff_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "written::some_seconds")]
    pub max_poll_error_backoff_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostics_max_items: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostics_max_bytes: Option<u32>,
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

/// Whether an operation outlives the daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Persistence {
    /// It does.
    #[default]
    Durable,
    /// It ends with the daemon that left it outside.
    Volatile,
}

impl Persistence {
    /// The word of the configuration and of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Durable => "durable",
            Self::Volatile => "volatile",
        }
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

impl Default for KindPolicy {
    fn default() -> Self {
        Self {
            min_retry_after_seconds: 1,
            max_retry_after_seconds: 300,
            default_retry_after_seconds: 5,
            max_ttl_seconds: 900,
            max_attempts: 720,
            max_response_bytes: 65_536,
            invoke_timeout_ms: 5_000,
            status_timeout_ms: 5_000,
            unknown_policy: UnknownPolicy::Terminal,
            timed_out_policy: TimedOutPolicy::Terminal,
            cancel_policy: CancelPolicy::Provider,
            persistence: Persistence::Durable,
            max_open_per_module: 64,
            max_concurrent_polls_per_module: 4,
            jitter_permille: 100,
            poll_error_backoff_seconds: 1,
            max_poll_error_backoff_seconds: 60,
            diagnostics_max_items: 32,
            diagnostics_max_bytes: 8_192,
        }
    }
}

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
        if self.job_ttl_seconds.0 == 0 || u64::from(self.job_ttl_seconds.0) > TTL_CEILING_SECONDS {
            return Err(Refusal::InvalidPolicy { field: "job_ttl_seconds" });
        }
        if self.max_open_total.0 == 0 {
            return Err(Refusal::InvalidPolicy { field: "max_open_total" });
        }
        if self.max_concurrent_polls_total.0 == 0 {
            return Err(Refusal::InvalidPolicy { field: "max_concurrent_polls_total" });
        }
        self.for_all().check()?;
        self.kind_overrides.keys().try_for_each(|kind| self.for_kind(kind).check())
    }
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
        let fits = |fits: bool, field| if fits { Ok(()) } else { Err(Refusal::InvalidPolicy { field }) };
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

impl KindOverride {
    fn over(&self, base: &KindPolicy) -> KindPolicy {
        KindPolicy {
            min_retry_after_seconds: self.min_retry_after_seconds.unwrap_or(base.min_retry_after_seconds),
            max_retry_after_seconds: self.max_retry_after_seconds.unwrap_or(base.max_retry_after_seconds),
            default_retry_after_seconds: self
                .default_retry_after_seconds
                .unwrap_or(base.default_retry_after_seconds),
            max_ttl_seconds: self.max_ttl_seconds.unwrap_or(base.max_ttl_seconds),
            max_attempts: self.max_attempts.unwrap_or(base.max_attempts),
            max_response_bytes: self.max_response_bytes.unwrap_or(base.max_response_bytes),
            invoke_timeout_ms: self.invoke_timeout_ms.unwrap_or(base.invoke_timeout_ms),
            status_timeout_ms: self.status_timeout_ms.unwrap_or(base.status_timeout_ms),
            unknown_policy: self.unknown_policy.unwrap_or(base.unknown_policy),
            timed_out_policy: self.timed_out_policy.unwrap_or(base.timed_out_policy),
            cancel_policy: self.cancel_policy.unwrap_or(base.cancel_policy),
            persistence: self.persistence.unwrap_or(base.persistence),
            max_open_per_module: self.max_open_per_module.unwrap_or(base.max_open_per_module),
            max_concurrent_polls_per_module: self
                .max_concurrent_polls_per_module
                .unwrap_or(base.max_concurrent_polls_per_module),
            jitter_permille: self.jitter_permille.unwrap_or(base.jitter_permille),
            poll_error_backoff_seconds: self
                .poll_error_backoff_seconds
                .unwrap_or(base.poll_error_backoff_seconds),
            max_poll_error_backoff_seconds: self
                .max_poll_error_backoff_seconds
                .unwrap_or(base.max_poll_error_backoff_seconds),
            diagnostics_max_items: self.diagnostics_max_items.unwrap_or(base.diagnostics_max_items),
            diagnostics_max_bytes: self.diagnostics_max_bytes.unwrap_or(base.diagnostics_max_bytes),
        }
    }
}
