//! What the host grants to work outside: every bound is the host's, every word of a connector only a hint.

mod clamp;
pub(crate) mod stored;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use clamp::{Clamped, Hint, TtlHints};

use crate::Refusal;

/// The host's policy: the defaults, and what differs per kind of operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostPolicy {
    /// For every kind that is not overridden.
    pub defaults: KindPolicy,
    /// Per kind, the fields that differ.
    pub kind_overrides: BTreeMap<String, KindOverride>,
    /// Open operations in all; over it a request is refused, never accepted.
    pub max_open_total: Limit<1_024>,
    /// Polls under way in all.
    pub max_concurrent_polls_total: Limit<32>,
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
    /// Status polls per operation; one more ends it.
    pub max_attempts: u32,
    /// The largest payload taken from a connector.
    pub max_response_bytes: u64,
    /// The time for the initial call.
    pub invoke_timeout_ms: u32,
    /// The time for one status call.
    pub status_timeout_ms: u32,
    /// What it means when the connector does not know the operation.
    pub unknown_policy: UnknownPolicy,
    /// Whether a cancel is passed on.
    pub cancel_policy: CancelPolicy,
    /// Whether the operation outlives the daemon.
    pub persistence: Persistence,
    /// Open operations of one module.
    pub max_open_per_module: u32,
    /// Polls under way at one module.
    pub max_concurrent_polls_per_module: u32,
    /// How much later than clamped a poll may be, in parts of a thousand.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_retry_after_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retry_after_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_retry_after_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ttl_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_response_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invoke_timeout_ms: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_timeout_ms: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_policy: Option<UnknownPolicy>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_error_backoff_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
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
    /// It may be forgotten.
    Volatile,
}

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

impl HostPolicy {
    /// The policy for one kind of operation.
    pub fn for_kind(&self, kind: &str) -> KindPolicy {
        match self.kind_overrides.get(kind) {
            Some(differing) => differing.over(&self.defaults),
            None => self.defaults.clone(),
        }
    }

    /// The policy for one kind of operation in a circle: under `circle/kind` if the circle has one of its own, else that of the kind.
    pub fn for_kind_in(&self, circle: Option<&str>, kind: &str) -> KindPolicy {
        let own = circle.and_then(|circle| self.kind_overrides.get(&format!("{circle}/{kind}")));
        own.map_or_else(|| self.for_kind(kind), |differing| differing.over(&self.defaults))
    }

    /// Refuses a policy whose bounds cannot be held.
    pub fn check(&self) -> Result<(), Refusal> {
        if self.max_open_total.0 == 0 {
            return Err(Refusal::InvalidPolicy { field: "max_open_total" });
        }
        if self.max_concurrent_polls_total.0 == 0 {
            return Err(Refusal::InvalidPolicy { field: "max_concurrent_polls_total" });
        }
        self.defaults.check()?;
        self.kind_overrides.keys().try_for_each(|kind| self.for_kind(kind).check())
    }
}

impl KindPolicy {
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
