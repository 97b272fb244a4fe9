//! What the steps of a pipeline do. A run keeps it as a body beside its shape: JSON that stays readable when the pipeline's file is gone.

use domain::RetryPolicy;
use domain::run::NodeIndex;
use serde::{Deserialize, Serialize};

use super::{Baggage, Predicate, With};

/// A plan as JSON.
pub const MAX_PLAN_BYTES: usize = 49_152;

/// One detail for each node of the shape, in the same place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Plan(pub Vec<Detail>);

/// What one node does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// Who does it; nobody does a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
    /// What it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<With>,
    /// What is carried from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baggage: Option<Baggage>,
    /// Whether it is done at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Predicate>,
    /// How often it is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// How long one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// How the failure that it follows is told to it.
    #[serde(default, skip_serializing_if = "FailureTold::is_usual")]
    pub failure_told: FailureTold,
}

/// How a failure is told to what follows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureTold {
    /// As a step that failed, with what it was given.
    #[default]
    AsStep,
    /// As the answer of a tool to the agent that asked for it.
    AsToolResult,
}

impl FailureTold {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it by reference")]
    fn is_usual(&self) -> bool {
        *self == Self::AsStep
    }
}

/// How often a step is tried, where it says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// Attempts in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// Wait before the second attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_seconds: Option<u32>,
}

/// The body of a run is no plan.
#[derive(Debug, thiserror::Error)]
#[error("what the run keeps is no plan: {0}")]
pub struct PlanError(serde_json::Error);

impl Plan {
    /// Reads what a run kept.
    pub fn parse(json: &[u8]) -> Result<Self, PlanError> {
        serde_json::from_slice(json).map_err(PlanError)
    }

    /// What a run keeps.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a plan is texts, numbers, lists and objects with texts as keys")
    }

    /// What this node does.
    pub fn detail(&self, index: NodeIndex) -> Option<&Detail> {
        self.0.get(usize::from(index))
    }
}

impl Retry {
    /// How the step is tried, if its executor would be tried so.
    pub fn policy(self, usual: RetryPolicy) -> RetryPolicy {
        let backoff_seconds = self.backoff_seconds.unwrap_or(usual.backoff_seconds);
        RetryPolicy {
            max_attempts: self.max_attempts.unwrap_or(usual.max_attempts),
            backoff_seconds,
            max_backoff_seconds: usual.max_backoff_seconds.max(backoff_seconds),
        }
    }
}
