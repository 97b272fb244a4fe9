//! Runs as one kind of record.

use super::command::RunCommand;
use super::fact::RunFact;
use super::state::Run;
use super::{apply, decide, decide_new};
use crate::attention::{Attention, Retention};
use crate::kind::{Kind, Removal, Summary};
use crate::{BodyRef, Decision, Jitter, Misfold, RunId, Timestamp};

impl Kind for Run {
    type Id = RunId;
    type Command = RunCommand;
    type Fact = RunFact;

    const FACT_PREFIXES: &'static [&'static str] = &["run."];

    fn decide_new(id: &RunId, command: &RunCommand, _: Timestamp) -> Decision<RunFact> {
        decide_new(id, command)
    }

    fn decide(&self, command: &RunCommand, now: Timestamp) -> Decision<RunFact> {
        decide(self, command, now)
    }

    fn begin(id: &RunId, fact: &RunFact, at: Timestamp) -> Option<Self> {
        if let RunFact::Started(new) = fact { Some(Self::new(id.clone(), new, at)) } else { None }
    }

    fn apply(&mut self, fact: &RunFact, at: Timestamp) -> Result<(), Misfold> {
        apply(self, fact, at)
    }

    fn schedule(&self, retention: Retention) -> Attention {
        self.attention(retention)
    }

    fn due_command(
        &self,
        retention: Retention,
        _: impl FnOnce() -> Jitter,
        now: Timestamp,
    ) -> Option<RunCommand> {
        Run::due_command(self, retention, now)
    }

    fn move_timers(by_micros: i64) -> RunCommand {
        RunCommand::MoveTimers { by_micros }
    }

    fn is_move(command: &RunCommand) -> bool {
        matches!(command, RunCommand::MoveTimers { .. })
    }

    fn moved_by(fact: &RunFact) -> Option<i64> {
        if let RunFact::TimersMoved { by_micros } = fact { Some(*by_micros) } else { None }
    }

    fn id(&self) -> &RunId {
        &self.id
    }

    fn set_id(&mut self, id: RunId) {
        self.id = id;
    }

    fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

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

    fn is_new_work(command: &RunCommand) -> bool {
        matches!(command, RunCommand::Start(_))
    }

    fn fact_kind(fact: &RunFact) -> &'static str {
        match fact {
            RunFact::Started(_) => "run.started/1",
            RunFact::StepStarted { .. } => "run.step_started/1",
            RunFact::GroupEntered { .. } => "run.group_entered/1",
            RunFact::StepEnded { .. } => "run.step_ended/1",
            RunFact::StepReopened { .. } => "run.step_reopened/1",
            RunFact::CancelRequested { .. } => "run.cancel_requested/1",
            RunFact::CancelContinued { .. } => "run.cancel_continued/1",
            RunFact::Condemned { .. } => "run.condemned/1",
            RunFact::Ended(_) => "run.ended/1",
            RunFact::TimersMoved { .. } => "run.timers_moved/1",
            RunFact::Retired => "run.retired/1",
        }
    }

    fn removal(fact: &RunFact) -> Removal {
        if matches!(fact, RunFact::Retired) { Removal::Record } else { Removal::Nothing }
    }
}
