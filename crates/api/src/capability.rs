//! The executors on the wire: what may be asked for by name, without anything of how it is done.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An executor.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Capability {
    /// What jobs call it.
    pub name: String,
    /// The circle that it is for; `null` if it is for everybody.
    #[serde(default)]
    pub circle: Option<String>,
    /// The kind of its deferred operations; `null` if its name cannot be one: then it cannot be invoked, only named by jobs.
    pub kind: Option<String>,
    /// sync-only, either or async-only; `null` if only another node has it.
    pub execution_mode_support: Option<String>,
    /// What it asks of the host for work that it leaves outside.
    pub deferred_profile: DeferredProfile,
    /// Whether a node that is heard of and does not drain has it.
    pub available: bool,
}

/// What an executor asks of the host; only hints.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct DeferredProfile {
    /// Seconds until it is asked for the first time.
    pub preferred_retry_after_seconds: Option<i64>,
    /// Seconds that its work may take.
    pub preferred_max_ttl_seconds: Option<i64>,
}

/// All executors that the caller may name, by name.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CapabilityList {
    /// They.
    pub capabilities: Vec<Capability>,
}
