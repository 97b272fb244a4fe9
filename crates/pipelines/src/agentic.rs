//! What pipelines do by themselves that run a tool for an agent: the routes of an agent say which tool, and no more.
//!
//! An agent asks by an event `agentic.tool_request.<tool>` and is resumed by the last step. Which turn had asked stands in the payload, and
//! is carried to that step; a tool that fails resumes the agent too, with `agentic.tool_result` and the status `error`. A file that says
//! otherwise (`carry`, `on_error`) has its way.

use domain::event::{TOOL_REQUEST, TOOL_RESULT};

use super::definition::{Definition, Step, StepKind};
use super::{Carry, Trigger};

/// What is carried where the file does not say it.
pub(super) fn usual_carry(trigger: &Trigger) -> Carry {
    match trigger {
        Trigger::On(kind) if kind.starts_with(TOOL_REQUEST) || kind == TOOL_RESULT => Carry::Payload,
        Trigger::On(_) | Trigger::OnHook(_) => Carry::default(),
    }
}

/// The step that goes on with an agent, if the pipeline runs a tool for it and says nothing of failures itself.
pub(super) fn resuming(definition: &Definition) -> Option<&Step> {
    let runs_a_tool =
        matches!(&definition.pipeline.trigger, Trigger::On(kind) if kind.starts_with(TOOL_REQUEST));
    let last = definition.steps.last().filter(|_| definition.steps.len() > 1)?;
    let resumes = runs_a_tool && definition.on_error.is_empty() && matches!(last.kind, StepKind::Uses);
    resumes.then_some(last)
}
