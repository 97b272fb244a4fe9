//! The moves that the design allows, written out as data: from, to, by. Nothing more, nothing less.

use std::collections::BTreeSet;

use crate::walk::Move;

/// Every from, to every to, by every by.
type Rule = (&'static [&'static str], &'static [&'static str], &'static [&'static str]);

const QUEUED: &[&str] = &["queued, never dispatched", "queued, to be tried again"];
const NEVER_DISPATCHED: &[&str] = &[
    "queued, never dispatched",
    "running, never dispatched",
    "awaiting_input, never dispatched",
    "blocked, never dispatched",
];
const EVERY_END: &[&str] = &["completed", "failed", "cancelled", "expired", "unavailable"];
const LEASE_BOUND: &[&str] = &["dispatching", "delivered", "running"];
const DISPATCHED: &[&str] =
    &["dispatching", "delivered", "running", "awaiting_input", "awaiting_external", "blocked"];

/// The life of a job.
const JOB: &[Rule] = &[
    (&["(none)"], &["queued"], &["create"]),
    // Taken by a worker or a peer that pulls, or run.
    (QUEUED, &["dispatching"], &["dispatch", "run"]),
    (QUEUED, &["cancelled"], &["cancel"]),
    // Unmanaged work: its doer keeps the record, without an attempt.
    (&["queued, never dispatched"], &["running", "awaiting_input", "blocked"], &["report"]),
    (&["running, never dispatched"], &["awaiting_input", "blocked"], &["report"]),
    (NEVER_DISPATCHED, EVERY_END, &["report"]),
    // The executor's answer.
    (&["dispatching"], &["delivered"], &["deliver", "report"]),
    (&["dispatching", "delivered"], &["running"], &["heartbeat", "report"]),
    (LEASE_BOUND, &["awaiting_external"], &["defer"]),
    (&["dispatching"], &["awaiting_input", "completed", "failed", "unavailable", "cancelled"], &["report"]),
    (
        &["delivered", "running"],
        &["awaiting_input", "blocked", "completed", "failed", "cancelled"],
        &["report"],
    ),
    // Paused for a person: work that was dispatched goes on by an answer alone.
    (&["awaiting_input, never dispatched"], &["blocked"], &["report"]),
    (&["awaiting_input"], &["running"], &["answer"]),
    (&["blocked", "blocked, never dispatched"], &["awaiting_input"], &["report"]),
    (
        &["blocked", "awaiting_input, never dispatched", "blocked, never dispatched"],
        &["running"],
        &["answer", "report"],
    ),
    (&["blocked"], EVERY_END, &["report"]),
    (&["awaiting_input"], &["cancelled"], &["report"]),
    // Outside: its operation was resolved, its granted life is over, or it confirmed a cancel.
    (
        &["awaiting_external"],
        &["completed", "failed", "running", "queued", "expired", "cancelled"],
        &["operation ended"],
    ),
    // The end of its time.
    (QUEUED, &["expired"], &["expire"]),
    (DISPATCHED, &["expired"], &["expire"]),
    (
        &["running, never dispatched", "awaiting_input, never dispatched", "blocked, never dispatched"],
        &["expired"],
        &["expire"],
    ),
    // Cancelled: confirmed, or the time limit of the cancel over, or the lease lost while it was pending. Work that was never
    // dispatched waits for its worker, and work that cannot be stopped for its end.
    (DISPATCHED, &["cancelled"], &["cancel confirmed", "cancel timed out"]),
    (LEASE_BOUND, &["cancelled"], &["lease lost"]),
    // The end of a lease; a retryable failure with attempts left.
    (LEASE_BOUND, &["unavailable"], &["lease lost"]),
    (LEASE_BOUND, &["queued"], &["lease lost", "report", "submit"]),
    // Nobody knows whether a service took the work: asked again under the same key, or not at all. One end, whoever finds it out.
    (LEASE_BOUND, &["failed"], &["submit"]),
    (&["dispatching"], &["failed"], &["lease lost"]),
    // Work that someone outside pulls: an attempt that takes too long; each hand-out is an attempt of its own.
    (&["delivered", "running"], &["queued"], &["attempt timed out"]),
    (&["running"], &["dispatching"], &["dispatch"]),
    (&["running"], &["cancelled"], &["cancel"]),
    // Documented repairs. Pulled work goes back to those who pull.
    (&["failed", "unavailable, lease lost"], &["queued"], &["run", "retry"]),
    (&["delivered"], &["queued"], &["retry"]),
    (&["failed", "unavailable", "unavailable, lease lost"], &["dispatching"], &["run", "retry"]),
    (&["delivered"], &["dispatching"], &["retry"]),
    (&["unavailable, lease lost"], &["completed", "failed"], &["report"]),
];

/// The life of an operation: pending, running, and one end that absorbs.
const OPERATION: &[Rule] = &[
    (&["(none)"], &["pending"], &["accept"]),
    (&["pending"], &["running"], &["poll"]),
    (&["pending", "running"], &["completed", "failed", "timed-out", "cancelled", "unknown"], &["poll"]),
    (&["pending", "running"], &["cancelled"], &["cancel confirmed"]),
    // A poll expires it when its life is over, or when it was the last one granted.
    (&["pending", "running"], &["expired"], &["expire", "poll", "job ended", "daemon gone"]),
];

pub(crate) fn job_moves() -> BTreeSet<Move> {
    moves(JOB)
}

pub(crate) fn operation_moves() -> BTreeSet<Move> {
    moves(OPERATION)
}

fn moves(rules: &[Rule]) -> BTreeSet<Move> {
    let mut moves = BTreeSet::new();
    for (froms, tos, bys) in rules {
        for from in *froms {
            for to in *tos {
                for by in *bys {
                    moves.insert(((*from).to_owned(), (*to).to_owned(), (*by).to_owned()));
                }
            }
        }
    }
    moves
}
