//! What has been ordered and what has been refused, over all histories.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use domain::Command;
use domain::operation::{OperationCommand, PollAnswer};

use crate::steps::Step;
use crate::twins::Answer;

/// Commands of operations that jobs have too.
const JOB_WORDS_OF_OPERATIONS: [&str; 6] =
    ["request cancel", "record cancel answer", "expire", "move timers", "purge", "retire"];

/// Every command that a history must carry out.
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
    "expire of operation",
    "lose",
    "abandon",
    "purge of operation",
    "retire of operation",
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
    carried_out: BTreeMap<String, usize>,
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

/// The name of a command in words: those of an operation that jobs have too say so.
fn word_of(command: &Command) -> String {
    let (name, is_shared) = if let Some(command) = command.as_job() {
        (Name::of(command), false)
    } else if let Some(command) = command.as_operation() {
        if matches!(command, OperationCommand::RecordPoll(poll) if matches!(poll.answer, PollAnswer::NotNow { .. }))
        {
            return "record poll error".to_owned();
        }
        let name = Name::of(command);
        let is_shared = JOB_WORDS_OF_OPERATIONS.contains(&&*name);
        (name, is_shared)
    } else {
        return "not ordered here".to_owned();
    };
    if is_shared { format!("{name} of operation") } else { name }
}

/// The name of an enum's variant, and nothing of what is in it.
struct Name(String);

impl Name {
    fn of(value: &impl fmt::Debug) -> String {
        let mut name = Self(String::new());
        // It ends with an error once the name is there.
        let _ = write!(name, "{value:?}");
        let words = name.0.char_indices().flat_map(|(at, letter)| {
            let gap = (at > 0 && letter.is_uppercase()).then_some(' ');
            gap.into_iter().chain(letter.to_lowercase())
        });
        words.collect()
    }
}

impl fmt::Write for Name {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let name = text.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
        self.0.push_str(name);
        if name.len() == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}
