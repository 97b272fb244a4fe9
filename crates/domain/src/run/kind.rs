//! Runs as one kind of record.

use super::command::RunCommand;
use super::fact::RunFact;
use super::state::Run;
use crate::BodyRef;
use crate::kind::{Kind, Removal, Summary};

impl Kind for Run {
    fn is_over(&self) -> bool {
        self.end.is_some()
    }

    fn named_bodies(&self) -> Vec<BodyRef> {
        vec![self.begun.plan, self.begun.input]
    }

    fn summary(&self) -> Summary<'_> {
        Summary {
            status: self.state().as_str(),
            name: &self.begun.pipeline,
            circle: self.begun.circle.as_deref(),
            key: self.begun.dedupe_key.as_deref(),
            began_at: self.started_at,
            updated_at: self.updated_at,
        }
    }
}

impl Run {
    /// Whether its older facts go while it is open.
    pub(crate) const IS_CHECKPOINTED: bool = false;
}

impl RunCommand {
    /// Whether it asks for a new record: refused first when too much waits.
    pub(crate) const fn is_new_work(&self) -> bool {
        matches!(self, Self::Start(_))
    }

    /// Whether only the holder of the claim may order it.
    pub(crate) const fn needs_claim(&self) -> bool {
        false
    }
}

impl RunFact {
    /// How the names begin under which they are stored.
    pub(crate) const KIND_PREFIXES: &'static [&'static str] = &["run."];

    /// The name and version under which it is stored: never changed once it was released.
    pub(crate) const fn kind_name(&self) -> &'static str {
        match self {
            Self::Started(_) => "run.started/1",
            Self::StepStarted { .. } => "run.step_started/1",
            Self::GroupEntered { .. } => "run.group_entered/1",
            Self::StepEnded { .. } => "run.step_ended/1",
            Self::StepReopened { .. } => "run.step_reopened/1",
            Self::CancelRequested { .. } => "run.cancel_requested/1",
            Self::CancelContinued { .. } => "run.cancel_continued/1",
            Self::Condemned { .. } => "run.condemned/1",
            Self::Ended(_) => "run.ended/1",
            Self::TimersMoved { .. } => "run.timers_moved/1",
            Self::Retired => "run.retired/1",
        }
    }

    /// What it takes away.
    pub(crate) const fn removal(&self) -> Removal {
        if matches!(self, Self::Retired) { Removal::Record } else { Removal::Nothing }
    }
}
