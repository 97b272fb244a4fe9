//! The store's time on the wire, and how it stands to the wall clock.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How the store's time stands to the wall clock: the machine's, or the database server's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Clock {
    /// The time that every deadline, lease and due time is judged by.
    pub store_time: String,
    /// What the wall clock says.
    pub wall_time: String,
    /// The wall clock minus store time, in seconds; 0 while they agree.
    pub step_seconds: i64,
    /// Since when they disagree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Whether the difference is adopted when it has lasted; otherwise it waits for set-right.
    pub adopted_by_itself: bool,
    /// How long a difference has to last.
    pub adopt_after_seconds: u64,
    /// Steps that are remembered because records from before may still have to be moved.
    pub steps_adopted: u64,
    /// The difference as a sentence, while there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The steps that were adopted and are remembered, oldest first: at most 16.
    #[serde(default)]
    pub steps: Vec<ClockStep>,
}

/// A jump of the store's time that was adopted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClockStep {
    /// The store's time when it was adopted, as it was before.
    pub from: String,
    /// What it jumped to.
    pub to: String,
    /// By how many seconds; negative if it went back.
    pub seconds: i64,
    /// Who adopted it: `clock` if it had lasted, otherwise whoever set the clock right.
    pub adopted_by: String,
}

/// What came of setting the clock right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClockSet {
    /// By how many seconds store time has jumped; 0 if it agreed with the wall clock.
    pub jumped_seconds: i64,
    /// The clock afterwards.
    pub clock: Clock,
}
