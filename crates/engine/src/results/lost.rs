//! The error of an attempt whose worker was lost: who it was, and when it was last heard of. It says nothing about what became of the
//! work: nobody knows.

use domain::job::{Holder, Job, JobCommand};
use domain::{Command, RecordId, Timestamp};

use crate::kept::Kept;
use crate::{Failure, OrderBody};

/// The code of the error, and the reason of the attempt.
const LEASE_LOST: &str = "lease_lost";

/// Adds who was lost to the command that ends its attempt. Any other command stays as it is.
pub(crate) fn name_the_lost(job: &Job, command: &mut Command, heard_at: Option<Timestamp>) -> Vec<OrderBody> {
    let Command::Job(JobCommand::LoseLease { error, .. }) = command else { return Vec::new() };
    // What is deleted on request is not written again.
    if job.purged_at.is_some() {
        return Vec::new();
    }
    let mut kept = Kept::of(RecordId::from(job.id.clone()));
    *error = kept.failure(Failure::permanent(LEASE_LOST, message(job, heard_at))).error;
    kept.into_bodies()
}

fn message(job: &Job, heard_at: Option<Timestamp>) -> String {
    let when = match heard_at {
        Some(at) => format!("it was last heard of at {}", rfc3339(at)),
        None => "it was not heard of before its lease ended".to_owned(),
    };
    let Some(attempt) = job.last_attempt() else { return format!("its worker was lost; {when}") };
    let Some(worker) = attempt.owner.outside_name() else {
        let node = attempt.owner.node();
        return format!("the daemon of node {node} ended or was cut off while it ran; {when}");
    };
    let peer = match &attempt.holder {
        Holder::Caller(caller) => caller.peer.as_deref(),
        Holder::Bearer | Holder::Daemon => None,
    };
    match peer {
        Some(peer) if peer == worker => format!("the worker {worker} was lost; {when}"),
        Some(peer) => format!("the worker {worker} of the peer {peer} was lost; {when}"),
        None => format!("the worker {worker} was lost; {when}"),
    }
}

fn rfc3339(at: Timestamp) -> String {
    jiff::Timestamp::from_microsecond(at.micros()).unwrap_or_default().to_string()
}
