//! Ids made from what caused them, never from chance: done again after a crash, the same thing has the same id, and is not there twice.

use domain::run::VisitIndex;
use domain::{EventId, JobId, RunId};
use store::sha256;

/// The event that a job emitted as the how manieth. Those of one job sort as they were emitted, and are looked after in that order.
pub(crate) fn event_id(job_id: &JobId, ordinal: u32) -> EventId {
    EventId::new(format!("event-{}{ordinal:08x}", &digest(&["emitted", job_id.as_str()])[..24]))
}

/// The event of the end of a record: each time that it ends is another.
pub(crate) fn ended_event_id(ended: &str, version: u64) -> EventId {
    EventId::new(format!("event-{}", digest(&["ended", ended, &version.to_string()])))
}

/// The event that somebody publishes under an idempotency key.
pub fn event_id_of_key(principal: &str, route: &str, key: &str) -> EventId {
    EventId::new(format!("event-{}", digest(&["keyed", principal, route, key])))
}

/// The run of a pipeline that an event starts.
pub fn run_id_of(event_id: &EventId, pipeline: &str) -> RunId {
    RunId::new(format!("run-{}", digest(&["started", event_id.as_str(), pipeline])))
}

/// The run of a pipeline under a dedupe key, after this one: two that start it at once start the same.
pub(crate) fn run_id_under_key(pipeline: &str, key: &str, after: Option<&RunId>) -> RunId {
    let after = after.map_or("", RunId::as_str);
    RunId::new(format!("run-{}", digest(&["deduped", pipeline, key, after])))
}

/// The job of a step.
pub(crate) fn job_id(run_id: &RunId, visit: VisitIndex) -> JobId {
    JobId::new(format!("work-{}", digest(&["step", run_id.as_str(), &visit.to_string()])))
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
        let first = run_id_under_key("tides", "k", None);
        assert_ne!(run_id_under_key("tides", "k", Some(&first)), first);
        assert_ne!(job_id(&first, 1), job_id(&first, 2));
    }
}
