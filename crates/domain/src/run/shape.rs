//! The shape of a pipeline: which step follows which, what waits for whom, where a failure goes. Compiled from its definition when a run
//! begins, and never changed afterwards: a run keeps the definition that it began with.
//!
//! What a step does (executor, templates, predicates) is not here: that is a body of the run, read by whoever prepares a step.

use serde::{Deserialize, Serialize};

use crate::Refusal;
use crate::limits::{MAX_LABEL_BYTES, check_text};

/// Nodes of one pipeline, with everything that it calls.
pub const MAX_NODES: usize = 256;

/// The nodes of a pipeline. The first one is where a run begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shape(pub Vec<Node>);

/// The place of a node in its shape.
pub type NodeIndex = u16;

/// One step of a pipeline, or a group of steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its name, unique in the pipeline; that of a called pipeline's step begins with the caller's and a slash.
    pub id: String,
    /// What it is.
    pub kind: NodeKind,
    /// What follows it in its sequence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NodeIndex>,
    /// Whether it may be skipped: someone must look at its predicate first.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub conditional: bool,
    /// What follows its failure.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub on_error: OnError,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// A job.
    Step,
    /// Branches that begin together; what follows the group waits for all of them. A sequence, or a pipeline that is called, is a
    /// group of one branch.
    Group {
        /// Where each branch begins.
        branches: Vec<NodeIndex>,
    },
}

/// What follows the failure of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// Its branch ends, and the run fails.
    #[default]
    Stop,
    /// What follows it goes on, and is told of the failure.
    Continue,
    /// This goes on instead, and is told of the failure; the branch ends there.
    Go(NodeIndex),
}

impl Shape {
    /// The node with this index.
    pub fn node(&self, index: NodeIndex) -> Option<&Node> {
        self.0.get(usize::from(index))
    }

    /// Refuses a shape that a run could not walk: every index must name a later node, so that there is no way back.
    pub fn check(&self) -> Result<(), Refusal> {
        if self.0.is_empty() {
            return Err(Refusal::InvalidPolicy { field: "steps" });
        }
        if self.0.len() > MAX_NODES {
            return Err(Refusal::TooLarge { what: "steps of a pipeline", limit: MAX_NODES });
        }
        for (at, node) in self.0.iter().enumerate() {
            check_text("step", &node.id, MAX_LABEL_BYTES)?;
            let is_later = |index: &NodeIndex| usize::from(*index) > at && usize::from(*index) < self.0.len();
            let fits = match &node.kind {
                NodeKind::Step => true,
                NodeKind::Group { branches } => !branches.is_empty() && branches.iter().all(is_later),
            };
            let goes = match node.on_error {
                OnError::Go(index) => is_later(&index),
                OnError::Stop | OnError::Continue => true,
            };
            if !fits || !goes || !node.next.as_ref().is_none_or(is_later) {
                return Err(Refusal::InvalidPolicy { field: "steps" });
            }
        }
        Ok(())
    }
}
