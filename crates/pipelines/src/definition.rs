//! A pipeline as its file defines it: read and checked by itself, its calls not yet followed.

use serde_saphyr::Location;

use super::{Detail, Pipeline};

/// A pipeline by itself.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) at: Location,
    /// All that its file says but the steps: what those come to is not known before they are compiled.
    pub(super) pipeline: Pipeline,
    pub(super) steps: Vec<Step>,
    /// What runs when a step fails that says nothing itself.
    pub(super) on_error: Vec<Step>,
}

/// A step by itself.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) at: Location,
    pub(super) id: String,
    pub(super) kind: StepKind,
    pub(super) detail: Detail,
    /// None: as the pipeline says.
    pub(super) on_error: Option<Answer>,
}

/// What a step is.
#[derive(Debug)]
pub(super) enum StepKind {
    /// A job; who does it stands in the detail.
    Uses,
    Call(String),
    Steps(Vec<Step>),
    Split(Vec<Step>),
}

/// What follows the failure of a step.
#[derive(Debug)]
pub(super) enum Answer {
    Stop,
    Continue,
    Steps(Vec<Step>),
}
