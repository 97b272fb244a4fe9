//! What was heard of work outside, written down: the answer, and with a result all that follows from it, in one commit.
//!
//! Events, the state of a plugin and the next steps of a run count only if the job takes the result. The job may have ended since it was
//! looked at: `Order::result_of` leaves that to the commit.

use domain::job::{AfterExternal, Job, JobState};
use domain::operation::{Operation, OperationCommand, PollAnswer};
use domain::planted::{Bug, planted};
use domain::{Command, Record, RecordId, Refusal};

use super::question::{Question, failed};
use crate::attempts::MAX_AGAIN;
use crate::kept::Kept;
use crate::preparation::{Stage, WorkResult};
use crate::{EngineError, Order, Outcome, StateUpdate};

/// The order that writes an answer down, and what its specialist hands over with a result.
pub(super) struct Heard {
    pub(super) order: Order,
    pub(super) handed_over: Option<(WorkResult, Option<StateUpdate>)>,
}

impl From<Order> for Heard {
    fn from(order: Order) -> Self {
        Self { order, handed_over: None }
    }
}

impl Question<'_> {
    /// Writes down what was heard, with all that follows from it.
    pub(super) async fn write_down(
        &self,
        operation: &Operation,
        heard: &Heard,
    ) -> Result<Outcome, EngineError> {
        let mut again = 0;
        loop {
            let order = self.with_what_follows(operation, heard).await?;
            match self.engine().execute(order).await {
                // What it starts under a key was started by somebody else a moment ago: looked at again, it is a duplicate.
                Err(EngineError::Refused(Refusal::AlreadyExists)) if again < MAX_AGAIN => again += 1,
                written => return written,
            }
        }
    }

    async fn with_what_follows(&self, operation: &Operation, heard: &Heard) -> Result<Order, EngineError> {
        let mut order = heard.order.clone();
        let handed_over = heard.handed_over.as_ref().filter(|_| !planted(Bug::PollHandsNothingOver));
        let Some((result, state)) = handed_over else { return Ok(order) };
        order.result_of = Some(operation.link.job_id.clone());
        order.plugin_state.clone_from(state);
        let Some((job, stage)) = self.waiting_job(operation).await? else { return Ok(order) };
        if stage != Stage::Last {
            // What its job emits at its own end is counted apart.
            emits_nothing(&mut order);
        }
        let result = WorkResult { stage, ..result.clone() };
        let fail = |command: &mut Command, failure, kept: &mut Kept| {
            if let Command::Operation(OperationCommand::RecordPoll(poll)) = command {
                poll.answer = PollAnswer::Failed(failed(failure, kept));
            }
        };
        self.engine().with_follow_ups(&job, &result, order, fail).await
    }

    /// The job that waits for this work, and what a result is to it.
    async fn waiting_job(&self, operation: &Operation) -> Result<Option<(Job, Stage)>, EngineError> {
        let id = RecordId::from(operation.link.job_id.clone());
        let Some(loaded) = self.engine().store().load(&id).await? else { return Ok(None) };
        let Record::Job(job) = &*loaded.record else { return Ok(None) };
        let stage = match &job.state {
            JobState::AwaitingExternal { operation: awaited, then } if *awaited == operation.id => match then
            {
                AfterExternal::Finish => Stage::Last,
                AfterExternal::Resume => Stage::Arrived(operation.id.clone()),
            },
            JobState::AwaitingExternal { .. }
            | JobState::Queued { .. }
            | JobState::Dispatching
            | JobState::Delivered
            | JobState::Running
            | JobState::AwaitingInput
            | JobState::Blocked
            | JobState::Completed
            | JobState::Failed
            | JobState::Cancelled
            | JobState::Expired
            | JobState::Unavailable { .. } => return Ok(None),
        };
        Ok(Some((Job::clone(job), stage)))
    }
}

fn emits_nothing(order: &mut Order) {
    if let Command::Operation(OperationCommand::RecordPoll(poll)) = &mut order.command
        && let PollAnswer::Completed(result) = &mut poll.answer
    {
        result.emitted = 0;
    }
}
