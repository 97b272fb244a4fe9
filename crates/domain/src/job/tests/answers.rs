//! Answers to work that waits for a person.

use super::*;
use crate::limits::MAX_BODY_BYTES;

fn answer() -> JobCommand {
    JobCommand::Answer { answer: body(BodyName::Answer, 1) }
}

fn answered() -> JobFact {
    JobFact::Answered(AnswerKept { answer: body(BodyName::Answer, 1) })
}

fn paused() -> [JobFact; 2] {
    [JobFact::InputAwaited(Details::default()), JobFact::Blocked(Details::default())]
}

#[test]
fn an_answer_sends_the_same_attempt_on() {
    for paused in paused() {
        let given = [created(), dispatched(1), paused];
        let job = check(&given, answer(), Decision::fact(answered())).unwrap();
        assert_eq!((job.state, job.resume_pending), (JobState::Running, true));
        assert_eq!((job.attempt_count, job.bodies), (1, vec![body(BodyName::Answer, 1)]));
    }
}

#[test]
fn the_answer_to_unmanaged_work_is_for_its_doer_to_read() {
    for paused in paused() {
        let job = check(&[created(), paused], answer(), Decision::fact(answered())).unwrap();
        assert_eq!((job.state, job.resume_pending), (JobState::Running, false));
    }
}

#[test]
fn work_that_waits_for_nobody_takes_no_answer() {
    let queued = (JobStateName::Queued, vec![created()]);
    let others = dispatched_and_open().into_iter().chain(dispatched_and_over()).chain([queued]);
    for (state, given) in others {
        if !matches!(state, JobStateName::AwaitingInput | JobStateName::Blocked) {
            check(&given, answer(), Decision::refuse(Refusal::NotAwaitingInput { state }));
        }
    }
}

#[test]
fn a_question_is_answered_once() {
    let given = [created(), dispatched(1), JobFact::InputAwaited(Details::default()), answered()];
    let refusal = Refusal::NotAwaitingInput { state: JobStateName::Running };
    check(&given, answer(), Decision::refuse(refusal));
}

#[test]
fn an_answer_over_its_limit_is_refused() {
    let long = BodyRef { size: MAX_BODY_BYTES as u64 + 1, ..body(BodyName::Answer, 1) };
    let given = [created(), dispatched(1), JobFact::InputAwaited(Details::default())];
    let refusal = Refusal::TooLarge { what: "answer", limit: MAX_BODY_BYTES };
    check(&given, JobCommand::Answer { answer: long }, Decision::refuse(refusal));
}
