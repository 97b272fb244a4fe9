//! What has been ordered and what has been refused, over all histories.

use std::collections::BTreeMap;
use std::fmt;

use domain::Command;
use domain::job::JobCommand;
use domain::operation::{OperationCommand, PollAnswer};

use crate::steps::Step;
use crate::twins::Answer;

/// Every command; a new variant does not compile until it has its word in `word_of`, and belongs here.
const COMMANDS: [&str; 32] = [
    "create",
    "dispatch",
    "resume",
    "deliver",
    "heartbeat",
    "report",
    "defer",
    "conclude operation",
    "answer",
    "request cancel",
    "record cancel answer",
    "time out cancel",
    "lose lease",
    "expire",
    "purge",
    "retire",
    "accept",
    "accept orphan",
    "record poll",
    "record poll error",
    "request cancel of operation",
    "record cancel answer of operation",
    "expire operation",
    "lose",
    "abandon",
    "purge operation",
    "retire operation",
    "intend submit",
    "lose submit",
    "settle",
    "queue again",
    "time out attempt",
];

/// Every code that an order can be refused with.
///
/// Left out: `invalid_json`, `duplicate_key` and `nul_in_json` (said at the door, before there is an order), `contended` and `outcome_unknown`
/// (need others at the same time, or a failing disk: `execute` and `crash`), `too_many_consequences` (no order has so many).
const REFUSALS: [&str; 30] = [
    "unknown_record",
    "wrong_record_kind",
    "already_exists",
    "unknown_id_form",
    "too_large",
    "wrong_body",
    "claim_required",
    "invalid_policy",
    "deadline_elapsed",
    "not_due",
    "transition_refused",
    "terminal",
    "not_terminal",
    "lease_held",
    "not_runnable",
    "not_retryable",
    "attempt_required",
    "stale_attempt",
    "attempt_not_yours",
    "answer_required",
    "cancel_pending",
    "no_cancel_pending",
    "not_awaiting_input",
    "not_cancelable",
    "operation_open",
    "claim_held",
    "claim_lost",
    "idempotency_key_taken",
    "submit_open",
    "not_orphaned",
];

#[derive(Default)]
pub struct Coverage {
    carried_out: BTreeMap<&'static str, usize>,
    refused: BTreeMap<&'static str, usize>,
    steps: usize,
}

impl Coverage {
    pub fn saw(&mut self, step: &Step, answer: &Answer) {
        self.steps += 1;
        if let (Step::Order(order), Answer::Executed { position: Some(_), .. }) = (step, answer) {
            *self.carried_out.entry(word_of(&order.command)).or_default() += 1;
        }
        match answer {
            Answer::Refused(error) => *self.refused.entry(error.code()).or_default() += 1,
            Answer::NotTaken(error) => *self.refused.entry(error.code()).or_default() += 1,
            Answer::Executed { .. } | Answer::Taken(_) | Answer::Done => {}
        }
    }

    /// What never happened.
    pub fn missing(&self) -> Vec<&'static str> {
        let commands = COMMANDS.iter().filter(|word| !self.carried_out.contains_key(**word));
        let refusals = REFUSALS.iter().filter(|code| !self.refused.contains_key(**code));
        commands.chain(refusals).copied().collect()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} steps; carried out {:?}; refused {:?}", self.steps, self.carried_out, self.refused)
    }
}

fn word_of(command: &Command) -> &'static str {
    if let Some(command) = command.as_job() {
        return match command {
            JobCommand::Create(_) => "create",
            JobCommand::Dispatch(_) => "dispatch",
            JobCommand::QueueAgain { .. } => "queue again",
            JobCommand::Resume { .. } => "resume",
            JobCommand::Deliver { .. } => "deliver",
            JobCommand::Heartbeat { .. } => "heartbeat",
            JobCommand::Report(_) => "report",
            JobCommand::IntendSubmit { .. } => "intend submit",
            JobCommand::LoseSubmit { .. } => "lose submit",
            JobCommand::Defer { .. } => "defer",
            JobCommand::ConcludeOperation { .. } => "conclude operation",
            JobCommand::Answer { .. } => "answer",
            JobCommand::RequestCancel { .. } => "request cancel",
            JobCommand::CancelOrRefuse { .. } => "cancel or refuse",
            JobCommand::RecordCancelTry { .. } => "record cancel try",
            JobCommand::RecordRelease { .. } => "record release",
            JobCommand::CountCancelRepeats { .. } => "count cancel repeats",
            JobCommand::RecordCancelAnswer { .. } => "record cancel answer",
            JobCommand::TimeOutCancel => "time out cancel",
            JobCommand::LoseLease { .. } => "lose lease",
            JobCommand::CountStaleReports { .. } => "count stale reports",
            JobCommand::TimeOutAttempt { .. } => "time out attempt",
            JobCommand::Expire => "expire",
            JobCommand::Purge => "purge",
            JobCommand::MoveTimers { .. } => "move timers",
            JobCommand::Retire => "retire",
        };
    }
    let Some(command) = command.as_operation() else { return "not ordered here" };
    match command {
        OperationCommand::Accept(_) => "accept",
        OperationCommand::AcceptOrphan { .. } => "accept orphan",
        OperationCommand::RecordPoll(poll) if matches!(poll.answer, PollAnswer::NotNow { .. }) => {
            "record poll error"
        }
        OperationCommand::RecordPoll(_) => "record poll",
        OperationCommand::RequestCancel { .. } => "request cancel of operation",
        OperationCommand::RecordCancelAnswer { .. } => "record cancel answer of operation",
        OperationCommand::Settle { .. } => "settle",
        OperationCommand::Expire => "expire operation",
        OperationCommand::Lose => "lose",
        OperationCommand::Abandon { .. } => "abandon",
        OperationCommand::MoveTimers { .. } => "move timers of operation",
        OperationCommand::Purge => "purge operation",
        OperationCommand::Retire => "retire operation",
    }
}
