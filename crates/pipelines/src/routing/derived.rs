//! Ids made from what caused them, never from chance: done again after a crash, the same thing has the same id, and is not there twice.

use domain::run::VisitIndex;
use domain::{EventId, JobId, OperationId, RunId};
use store::sha256;

/// The event that a job emitted as the how manieth. Those of one job sort as they were emitted, and are looked after in that order.
pub(crate) fn event_id(job_id: &JobId, ordinal: u32) -> EventId {
    let job_id = job_id.as_str();
    EventId::new(format!("event-{}{}{ordinal:04x}", near(job_id), &digest(&["emitted", job_id])[..16]))
}

/// The event that came as the how manieth with the end of work outside after which its job goes on: the job may emit others later, and
/// may have left other work outside before.
pub(crate) fn arrived_event_id(job_id: &JobId, operation_id: &OperationId, ordinal: u32) -> EventId {
    let digest = digest(&["arrived", job_id.as_str(), operation_id.as_str()]);
    EventId::new(format!("event-{}{}{ordinal:04x}", near(job_id.as_str()), &digest[..16]))
}

/// The event of the end of a record: each time that it ends is another.
pub(crate) fn ended_event_id(ended: &str, version: u64) -> EventId {
    let digest = digest(&["ended", ended, &version.to_string()]);
    EventId::new(format!("event-{}{}", near(ended), &digest[..20]))
}

/// The event that somebody publishes under an idempotency key.
pub fn event_id_of_key(principal: &str, route: &str, key: &str) -> EventId {
    EventId::new(format!("event-{}", digest(&["keyed", principal, route, key])))
}

/// The run of a pipeline that an event starts.
pub fn run_id_of(event_id: &EventId, pipeline: &str) -> RunId {
    let digest = digest(&["started", event_id.as_str(), pipeline]);
    RunId::new(format!("run-{}{}", near(event_id.as_str()), &digest[..20]))
}

/// The run of a pipeline under a dedupe key, after this one: two that start it at once start the same.
pub(crate) fn run_id_under_key(pipeline: &str, key: &str, after: Option<&RunId>) -> RunId {
    let after = after.map_or("", RunId::as_str);
    RunId::new(format!("run-{}", digest(&["deduped", pipeline, key, after])))
}

/// The job of a step of a run that this event started. The run alone would not do: under a key its id comes again when it was kept long
/// enough, and its jobs may be kept for longer.
pub(crate) fn job_id(run_id: &RunId, event_id: &EventId, visit: VisitIndex) -> JobId {
    let digest = digest(&["step", run_id.as_str(), event_id.as_str(), &visit.to_string()]);
    JobId::new(format!("work-{}{}", near(run_id.as_str()), &digest[..20]))
}

/// Where an id begins: with the time, if it was not made from a key. What is made from it begins alike, and lies beside it in every index.
fn near(id: &str) -> String {
    let begin: String = id.split_once('-').map_or(id, |(_, rest)| rest).chars().take(12).collect();
    format!("{begin:0>12}")
}

/// 128 bits in hex. Each part has its length before it: no two lists of parts read alike.
fn digest(parts: &[&str]) -> String {
    let mut text = String::new();
    for part in parts {
        text.push_str(&part.len().to_string());
        text.push(':');
        text.push_str(part);
    }
    sha256(text.as_bytes()).to_string()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_cause_has_the_same_id_and_another_one_another() {
        let (a, b) = (JobId::new("work-1"), JobId::new("work-11"));
        assert_eq!(event_id(&a, 1), event_id(&a, 1));
        assert_ne!(event_id(&a, 11), event_id(&b, 1));
        let (event, begin) = (EventId::new("event-01a1e9c5c7d776b0b3c77b0c01baa9c0"), "01a1e9c5c7d7");
        let run = run_id_of(&event, "tides");
        let job = job_id(&run, &event, 0);
        for made in [run.as_str(), job.as_str(), event_id(&job, 0).as_str()] {
            let (_, rest) = made.split_once('-').expect("it says what it is");
            assert!(rest.len() == 32 && rest.starts_with(begin), "{made}");
        }
        let first = run_id_under_key("tides", "k", None);
        assert_ne!(run_id_under_key("tides", "k", Some(&first)), first);
        assert_ne!(job_id(&first, &event, 1), job_id(&first, &event, 2));
        assert_ne!(job_id(&first, &event, 1), job_id(&first, &EventId::new("event-2"), 1));
        let (first, later) = (OperationId::new("op-1"), OperationId::new("op-2"));
        assert_ne!(arrived_event_id(&a, &first, 0), arrived_event_id(&a, &later, 0));
        assert_ne!(arrived_event_id(&a, &first, 0), event_id(&a, 0));
        assert!(event_id(&a, 1) < event_id(&a, 2) && event_id(&a, 9) < event_id(&a, 10));
    }
}
