//! What may be granted to a kind of operation: each field once, with its baseline.

use serde::{Deserialize, Serialize};

use super::{CancelPolicy, Persistence, TimedOutPolicy, UnknownPolicy};
use crate::duration::written;

/// One line per field: its name, type and baseline, and who reads it from a file where it is a duration.
macro_rules! policy_fields {
    ($($(#[$doc:meta])* $field:ident: $Type:ty = $baseline:expr $(, as $read:literal)?;)+) => {
        /// What the host grants to one kind of operation.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct KindPolicy {
            $($(#[$doc])* pub $field: $Type,)+
        }

        /// What differs from the defaults for one kind; absent fields are inherited.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct KindOverride {
            $(
                $(#[$doc])*
                #[serde(skip_serializing_if = "Option::is_none" $(, deserialize_with = $read)?)]
                pub $field: Option<$Type>,
            )+
        }

        /// What a field means that is left out of a stored policy, for ever.
        pub(super) const BASELINE: KindPolicy = KindPolicy { $($field: $baseline,)+ };

        impl KindOverride {
            /// This policy, with what differs from it.
            pub(super) fn over(&self, base: &KindPolicy) -> KindPolicy {
                KindPolicy { $($field: self.$field.unwrap_or(base.$field),)+ }
            }

            /// What of a policy is not the baseline.
            pub(super) fn differing(granted: &KindPolicy) -> Self {
                Self { $($field: (granted.$field != BASELINE.$field).then_some(granted.$field),)+ }
            }
        }
    };
}

policy_fields! {
    /// No poll sooner.
    min_retry_after_seconds: u32 = 1, as "written::some_seconds";
    /// No poll later.
    max_retry_after_seconds: u32 = 300, as "written::some_seconds";
    /// When the connector gives no hint.
    default_retry_after_seconds: u32 = 5, as "written::some_seconds";
    /// The longest life of one operation.
    max_ttl_seconds: u64 = 900, as "written::some_seconds";
    /// Status polls per operation; the last one ends it. Where nobody sets it and the life is longer than usual, it is as many as that
    /// life has room for.
    max_attempts: u32 = 720;
    /// The largest payload taken from a connector.
    max_response_bytes: u64 = 65_536;
    /// The time for the initial call.
    invoke_timeout_ms: u32 = 5_000, as "written::some_milliseconds";
    /// The time for one status call.
    status_timeout_ms: u32 = 5_000, as "written::some_milliseconds";
    /// What it means when the connector does not know the operation.
    unknown_policy: UnknownPolicy = UnknownPolicy::Terminal;
    /// What it means when the work ran out of its own time.
    timed_out_policy: TimedOutPolicy = TimedOutPolicy::Terminal;
    /// Whether a cancel is passed on.
    cancel_policy: CancelPolicy = CancelPolicy::Provider;
    /// Whether the operation outlives the daemon.
    persistence: Persistence = Persistence::Durable;
    /// Open operations of one module.
    max_open_per_module: u32 = 64;
    /// Polls under way at one module.
    max_concurrent_polls_per_module: u32 = 4;
    /// How much later than clamped a poll may be, in parts of a thousand; never later than the longest wait.
    jitter_permille: u16 = 100;
    /// The wait after a failed poll: first, and at most.
    poll_error_backoff_seconds: u32 = 1, as "written::some_seconds";
    /// The longest wait after failed polls.
    max_poll_error_backoff_seconds: u32 = 60, as "written::some_seconds";
    /// Diagnostics kept on one operation.
    diagnostics_max_items: u16 = 32;
    /// Bytes of one diagnostic.
    diagnostics_max_bytes: u32 = 8_192;
}

impl Default for KindPolicy {
    /// The baseline so far; it stays what it is when a default becomes another.
    fn default() -> Self {
        BASELINE
    }
}
