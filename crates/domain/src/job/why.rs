//! Why a job is not moving: what keeps it where it is, most important first, and the earliest time at which it could move by
//! itself. A pure function of the record and of what its node knows; it changes nothing and promises nothing.

use std::fmt::Write as _;

use super::cancel::{CancelAnswer, CancelRequest, KeptCancelAnswer};
use super::ends::SUBMIT_OUTCOME_UNKNOWN;
use super::hold::Hold;
use super::lane::Pull;
use super::phase::{Ended, Held, Phase, Waiting};
use super::state::Job;
use crate::Timestamp;
use crate::operation::{Operation, OperationLink};
use crate::time::earliest;

/// What the record does not know of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surroundings<'a> {
    /// When the lease of whoever holds it ends.
    pub lease_expires_at: Option<Timestamp>,
    /// Whether this node has its executor.
    pub executor: ExecutorHere<'a>,
    /// Whether the peer that it is assigned to is there.
    pub peer: PeerHere,
    /// Whether its lane has room.
    pub lane: LaneHere,
    /// What its error says for people, if it has one.
    pub error: Option<&'a str>,
    /// The work outside that it waits for.
    pub outside: Option<&'a Operation>,
}

/// Whether a node has the executor of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutorHere<'a> {
    /// It has.
    Registered,
    /// It has not, and does not wait for one longer than this.
    Missing {
        /// From then on the job fails.
        until: Timestamp,
    },
    /// It has, and leaves it alone because its jobs fail.
    LeftAlone {
        /// When it is tried again.
        until: Timestamp,
    },
    /// It cannot be used before the operator has mended it.
    LeftOut {
        /// Why.
        why: &'a str,
    },
}

/// Whether the peer that a job is assigned to is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerHere {
    /// The job is for no peer.
    NoneAssigned,
    /// It is there.
    Present,
    /// It is registered, and nobody hears of it.
    Absent {
        /// When it was heard of last.
        seen_at: Timestamp,
    },
    /// Nobody has registered it, nor heard of it.
    Unknown,
}

/// Whether a lane has room for another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneHere {
    /// It has.
    Free,
    /// No config names it; this node asks it from this time on.
    Unknown {
        /// When.
        until: Timestamp,
    },
    /// Every slot is taken.
    Full,
    /// This node takes nothing by itself.
    NotTaken,
    /// Only another node takes from it.
    Elsewhere {
        /// Whether that node is there.
        lives: bool,
    },
}

/// What keeps a job from moving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Most important first.
    pub reasons: Vec<Reason>,
    /// When it could move by itself at the earliest; none if it waits for someone.
    pub earliest_at: Option<Timestamp>,
}

/// One thing that keeps a job from moving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Stable.
    pub code: &'static str,
    /// For people: what it is, and what to do about it.
    pub detail: String,
    /// Until when, if that is known.
    pub until: Option<Timestamp>,
}

/// Why the job is not moving now.
pub fn why(job: &Job, around: Surroundings<'_>, now: Timestamp) -> Explanation {
    let mut reasons = Vec::new();
    let mut earliest_at = None;
    if let (Some(cancel), false) = (&job.cancel, job.state.name().is_terminal()) {
        let limit_at = job.cancel_limit_at();
        reasons.push(reason("cancel_pending", pending_cancel(job, cancel), limit_at));
        earliest_at = limit_at.map(|limit| limit.max(now));
    }
    match job.state.phase() {
        Phase::Queued { due_at } => {
            earliest_at = earliest(earliest_at, queued(job, due_at, around, now, &mut reasons));
        }
        Phase::Held(Held::Running) if job.goes_on_with_another() => reasons.push(reason(
            "waits_for_peer",
            "what it waited for has come; it is handed out again to whoever pulls next",
            None,
        )),
        Phase::Held(Held::Running) if job.resume_pending => {
            reasons.push(reason(
                "resume_pending",
                "what it waited for has come; its executor is called next",
                None,
            ));
            earliest_at = Some(now);
        }
        Phase::Held(_) if !job.attempts.is_empty() => {
            reasons.push(reason(
                "attempt_holds_it",
                format!("it is {}; its attempt reports, or loses it when the lease ends", job.state.name()),
                around.lease_expires_at,
            ));
            earliest_at = earliest(earliest_at, around.lease_expires_at);
        }
        Phase::Held(_) => reasons.push(reason(
            "kept_by_its_doer",
            "whoever does it keeps the record itself; report with PATCH",
            None,
        )),
        Phase::Waiting(Waiting::Input) => {
            reasons.push(reason("awaiting_input", "it waits for an answer; POST one to its /answer", None));
        }
        Phase::Waiting(Waiting::Blocked) => {
            reasons.push(reason("blocked", "it waits for a decision; POST one to its /answer", None));
        }
        Phase::Waiting(Waiting::External { operation, .. }) => match around.outside {
            Some(outside) => {
                reasons.push(waiting_outside(outside));
                reasons.extend(nobody_asks(outside, around.executor, now));
                let next = outside.next_poll_at.min(outside.expires_at).max(now);
                earliest_at = earliest(earliest_at, Some(next));
            }
            None => {
                reasons.push(reason("awaiting_external", format!("it goes on outside as {operation}"), None));
            }
        },
        Phase::Ended(_) => over(job, around.error, &mut reasons),
    }
    if let (Some(limit), false) = (job.expires_at(), job.state.name().is_terminal()) {
        reasons.push(reason("expires", "it expires at this time if it is not over by then", Some(limit)));
        earliest_at = earliest(earliest_at, Some(limit.max(now)));
    }
    Explanation { reasons, earliest_at }
}

/// How a cancel that is pending can end.
fn pending_cancel(job: &Job, cancel: &CancelRequest) -> String {
    if let Some(why) = cancel.unavailable_because() {
        return format!("someone asked to stop it, and it cannot be stopped: {why}; it goes on to its end");
    }
    if job.attempts.is_empty() {
        return "someone asked to stop it; it ends when whoever does it reports an end with PATCH".to_owned();
    }
    "someone asked to stop it; it ends when the executor confirms, or at this time at the latest".to_owned()
}

/// For whom it waits, when they are asked next, and what they said last.
pub(crate) fn waiting_outside(operation: &Operation) -> Reason {
    let OperationLink { kind, .. } = &operation.link;
    let mut told =
        format!("it waits for {kind}, where it goes on as {}; it is polled next at this time", operation.id);
    match (operation.polls, &operation.last_error) {
        (0, _) => told.push_str("; it was not polled yet"),
        (polls, Some(error)) => {
            let in_row = operation.errors_in_row;
            let _ = write!(
                told,
                "; polled {polls} times, the last {in_row} without a usable status: {}",
                error.code
            );
            let shown = error.shown();
            if !shown.is_empty() {
                let _ = write!(told, ": {shown}");
            }
        }
        (polls, None) => {
            let _ = write!(told, "; polled {polls} times, last answer: {}", operation.status());
        }
    }
    if operation.is_volatile() {
        told.push_str("; persistence is volatile: it is given up when the daemon that left it there is gone");
    }
    if let Some(hint) = &operation.progress_hint {
        let _ = write!(told, "; it says: {hint}");
    }
    if let Some(kept) = operation.cancel.as_ref().and_then(|cancel| cancel.answers.last()) {
        told.push_str("; ");
        told.push_str(&cancel_told(kept));
    }
    reason("awaiting_external", told, Some(operation.next_poll_at))
}

/// What came of asking a service to stop, in a sentence.
pub fn cancel_told(kept: &KeptCancelAnswer) -> String {
    let told = kept.told.as_deref().map(|told| format!(" ({told})")).unwrap_or_default();
    match &kept.answer {
        CancelAnswer::Refused(why) if kept.was_not_asked() => format!("it was not asked to stop: {why}"),
        CancelAnswer::Cancelled | CancelAnswer::NeverStarted => {
            format!("asked to stop it, it said that it has{told}")
        }
        CancelAnswer::Accepted => format!("asked to stop it, it said that it will{told}"),
        CancelAnswer::Refused(why) => format!("asked to stop it, it refused{told}: {why}"),
        CancelAnswer::Unreachable if kept.told.is_some() => {
            format!("asked to stop it, it gave no answer that says whether it has{told}")
        }
        CancelAnswer::Unreachable => "asked to stop it, it did not answer".to_owned(),
    }
}

/// Nobody here can ask its service.
fn nobody_asks(operation: &Operation, executor: ExecutorHere<'_>, now: Timestamp) -> Option<Reason> {
    let ExecutorHere::Missing { until } = executor else { return None };
    let told = format!(
        "this node has no executor named {:?}: add it to the config and start again; if nobody has it by then the job fails",
        operation.link.kind
    );
    Some(reason("executor_missing", told, Some(until.max(now))))
}

/// The peer that it waits for is not there.
fn nobody_hears(peer: &str, here: PeerHere) -> Option<Reason> {
    let told = match here {
        PeerHere::NoneAssigned | PeerHere::Present => return None,
        PeerHere::Absent { seen_at } => {
            let reason = reason(
                "peer_absent",
                format!(
                    "the peer {peer} does not wait for work and was last heard of at this time: start it"
                ),
                Some(seen_at),
            );
            return Some(reason);
        }
        PeerHere::Unknown => format!(
            "no peer {peer} is registered in this circle or was heard of: start it, or create the job for another"
        ),
    };
    Some(reason("peer_absent", told, None))
}

/// What keeps a queued job; when it could be taken, if anyone takes it by itself.
fn queued(
    job: &Job,
    due_at: Timestamp,
    around: Surroundings<'_>,
    now: Timestamp,
    reasons: &mut Vec<Reason>,
) -> Option<Timestamp> {
    if now < due_at {
        let (code, detail) = if job.attempts.is_empty() {
            ("not_due", "it was asked for at this time".to_owned())
        } else {
            let told = around.error.map(|error| format!(": {error}")).unwrap_or_default();
            let (made, most) = (job.attempt_count, job.tries_of_last().max_attempts);
            ("backing_off", format!("attempt {made} of {most} did not succeed{told}; the next one waits"))
        };
        reasons.push(reason(code, detail, Some(due_at)));
    }
    if let Some(hold) = job.hold() {
        reasons.push(hold.reason());
        return None;
    }
    let spec = &job.spec;
    let Some(executor) = &spec.executor else {
        let waits = |told: String| reason("waits_for_peer", told, None);
        if let Some(until) = around.lease_expires_at.filter(|end| *end > now) {
            let told =
                "someone has claimed it: it is theirs until this time, unless they renew or give it back";
            reasons.push(reason("claimed", told, Some(until)));
            return None;
        }
        reasons.push(match spec.pull() {
            Pull::Assigned(peer) => waits(format!("it waits for the peer {peer} to pull or report it")),
            Pull::Lane(lane) => waits(format!("it waits for someone who pulls from the lane {lane:?}")),
            Pull::Label(label) => waits(format!("it waits for someone who pulls with the label {label:?}")),
            Pull::Folder(path) => waits(format!("it waits for a peer that works in {path}")),
            Pull::Anyone => reason(
                "names_nobody",
                "it names no executor, peer or folder: it waits for a peer to pull it or for its doer to report",
                None,
            ),
        });
        if let (true, Some(error)) = (due_at <= now && job.was_lost_last(), around.error) {
            let detail = format!("attempt {} was lost: {error}; it is handed out again", job.attempt_count);
            reasons.push(reason("worker_lost", detail, None));
        }
        reasons.extend(nobody_hears(spec.assigned_peer_id.as_deref().unwrap_or_default(), around.peer));
        return None;
    };
    let mut from = due_at.max(now);
    match (around.executor, around.lane) {
        (_, LaneHere::Elsewhere { lives }) => {
            let node = spec.node().unwrap_or_default();
            let then = if lives {
                "which takes it next"
            } else {
                "which is not there: start it again on its data directory, or cancel the run"
            };
            reasons.push(reason(
                "workspace_elsewhere",
                format!("the files that earlier steps of its run left are on the node {node}, {then}"),
                None,
            ));
            return None;
        }
        (ExecutorHere::Missing { until }, _) => {
            from = from.max(until);
            reasons.push(reason(
                "executor_missing",
                format!(
                    "this node has no executor named {executor:?}: add it to the config and start again, or cancel the job; \
                     if nobody has it by then the job fails"
                ),
                Some(from),
            ));
        }
        (ExecutorHere::LeftAlone { until }, _) => {
            from = from.max(until);
            reasons.push(reason(
                "circuit_open",
                format!(
                    "{executor:?} has failed too often and is left alone until this time; no try is used up meanwhile. \
                     `longhaul plugin reset {executor}` lets it be tried at once, and so does a run of this job"
                ),
                Some(from),
            ));
        }
        (ExecutorHere::LeftOut { why }, _) => {
            reasons.push(reason(
                "executor_left_out",
                format!(
                    "this node leaves {executor:?} out: {why}. It waits, and no try is used up: mend it and start the daemon \
                     again, or cancel the job"
                ),
                None,
            ));
            return None;
        }
        (ExecutorHere::Registered, LaneHere::NotTaken) => {
            reasons.push(reason(
                "not_dispatched",
                format!(
                    "this daemon was started with --no-dispatch and takes nothing by itself: `longhaul jobs run {}` runs it here, \
                     or start a daemon without it",
                    job.id
                ),
                None,
            ));
            return None;
        }
        (ExecutorHere::Registered, LaneHere::Full) => reasons.push(reason(
            "lane_full",
            format!("every slot of the lane {:?} is taken; it is taken when one is free", spec.lane()),
            None,
        )),
        (ExecutorHere::Registered, LaneHere::Unknown { until }) if from < until => {
            from = until;
            reasons.push(reason(
                "lane_unknown",
                format!(
                    "no config of this node names the lane {:?}: name it there, or wait until it is asked all the same",
                    spec.lane()
                ),
                Some(until),
            ));
        }
        (ExecutorHere::Registered, LaneHere::Free | LaneHere::Unknown { .. }) if due_at <= now => {
            reasons.push(reason("ready", "nothing keeps it: it is taken next", None));
        }
        (ExecutorHere::Registered, LaneHere::Free | LaneHere::Unknown { .. }) => {}
    }
    Some(from)
}

fn over(job: &Job, error: Option<&str>, reasons: &mut Vec<Reason>) {
    let mut told = format!("it is {}", job.state.name());
    for said in [job.state_reason.as_deref(), error].into_iter().flatten() {
        told.extend([": ", said]);
    }
    let may_go_on = match job.state.phase() {
        Phase::Ended(Ended::Failed | Ended::Unavailable { .. }) => job.purged_at.is_none(),
        Phase::Ended(_) | Phase::Queued { .. } | Phase::Held(_) | Phase::Waiting(_) => false,
    };
    if may_go_on && job.cancel.is_some() {
        told.push_str("; someone asked to cancel it, so it is not begun again: create a new job");
    } else if may_go_on {
        told.push_str("; run or retry makes a new attempt");
        if job.state_reason.as_deref() == Some(SUBMIT_OUTCOME_UNKNOWN) {
            told.push_str(": the first start may still be running outside, so look there first");
        }
    }
    reasons.push(reason("over", told, None));
    reasons.extend(job.hold().map(Hold::reason));
}

fn reason(code: &'static str, detail: impl Into<String>, until: Option<Timestamp>) -> Reason {
    Reason { code, detail: detail.into(), until }
}
