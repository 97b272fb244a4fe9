//! What follows from the facts of a job.

use super::*;
use crate::job::{Caller, Details, Holder, JobSpec, NewJob, Trigger, apply};
use crate::{AttemptId, JobId, OwnerId, RetryPolicy};

const AT: Timestamp = Timestamp::from_seconds(1_000);

fn job(facts: &[JobFact]) -> Job {
    let mut spec = JobSpec::plain(None, RetryPolicy::ONCE);
    spec.assigned_peer_id = Some("peer-b".to_owned());
    let new = NewJob { spec, due_at: None, bodies: Vec::new() };
    let mut job = Job::new(JobId::new("work-1"), &new, AT);
    for fact in facts {
        apply(&mut job, fact, AT).unwrap();
    }
    job
}

fn dispatched(number: u32, trigger: Trigger) -> JobFact {
    let attempt_id = AttemptId::new(format!("attempt-{number}"));
    JobFact::Dispatched {
        attempt_id,
        number,
        owner: OwnerId::new("worker:b"),
        trigger,
        holder: Holder::Daemon,
    }
}

fn told(facts: &[JobFact], new: usize) -> Vec<(String, &'static str)> {
    let new: Vec<Fact> = facts[facts.len() - new..].iter().cloned().map(Fact::from).collect();
    let effects = follow(&Before::of(None), &Record::from(job(facts)), &new, AT);
    let told = effects.asks.into_iter().map(|change| match change {
        AskChange::Opened(ask) => (ask.id, "opened"),
        AskChange::Closed { id, closing } => (id, closing.reason.as_str()),
    });
    told.collect()
}

#[test]
fn ask_of_a_pulled_attempt_does_not_tell_its_id() {
    let JobFact::Dispatched { number, owner, trigger, .. } = dispatched(1, Trigger::Automatic) else {
        unreachable!("it is one")
    };
    let attempt_id = AttemptId::new("attempt-0197a9c2");
    let holder = Holder::Caller(Caller { token: "tok-1".to_owned(), peer: None });
    let pulled = [JobFact::Dispatched { attempt_id, number, owner, trigger, holder }, JobFact::Delivered];
    assert_eq!(told(&pulled, 2), [("ask-1-1".to_owned(), "opened")]);
}

// conforms: R7 R37
#[test]
fn hand_out_opens_an_ask_and_its_end_or_the_next_one_closes_it() {
    let first = [dispatched(1, Trigger::Automatic), JobFact::Delivered];
    assert_eq!(told(&first, 2), [("ask-1".to_owned(), "opened")]);
    let ended = [&first[..], &[JobFact::Completed(Details::default())]].concat();
    assert_eq!(told(&ended, 1), [("ask-1".to_owned(), "fire_completed")]);
    let again = [&first[..], &[dispatched(2, Trigger::Automatic), JobFact::Delivered]].concat();
    let closed_and_opened = [("ask-1".to_owned(), "fire_completed"), ("ask-2".to_owned(), "opened")];
    assert_eq!(told(&again, 2), closed_and_opened);
    let asked_for = [dispatched(1, Trigger::Run), JobFact::Delivered];
    assert_eq!(told(&asked_for, 2), []);
}
