//! What becomes of the executor of an attempt: written down with the end that its own report brings, or once it is seen.

use super::*;

fn released(release: Release) -> Details {
    Details { release: Some(release), ..Details::default() }
}

fn record(number: u32, release: Release) -> JobCommand {
    JobCommand::RecordRelease { attempt_id: attempt(number), release }
}

fn seen(attempt: u32, release: Release) -> Decision<JobFact> {
    Decision::fact(JobFact::ExecutorReleased { attempt, release })
}

#[track_caller]
fn assert_release(job: &Job, release: Option<Release>) {
    let last = job.last_attempt().expect("there is one");
    assert_eq!(last.release.map(|observed| observed.release), release);
}

#[test]
fn end_that_an_executor_reports_says_what_became_of_it() {
    for release in [Release::Ended, Release::Persists] {
        for (state, fact) in [
            (JobStateName::Completed, JobFact::Completed(released(release))),
            (JobStateName::AwaitingInput, JobFact::InputAwaited(released(release))),
        ] {
            let given = [created(), dispatched(1)];
            let job = check(&given, reports_with(1, state, released(release)), Decision::fact(fact)).unwrap();
            let expected = ObservedRelease { at: NOW, release };
            assert_eq!(job.last_attempt().unwrap().release, Some(expected));
        }
    }
}

#[test]
fn executor_that_stopped_as_asked_is_released_with_the_cancel() {
    let given = [created(), dispatched(1), started(), cancel_requested()];
    let answer = |release| JobCommand::RecordCancelAnswer {
        attempt_id: attempt(1),
        answer: CancelAnswer::Cancelled,
        release,
    };
    for release in [None, Some(Release::Ended)] {
        let details = Details { release, ..Details::default() };
        let then = JobFact::Cancelled(Conclusion { cause: CancelCause::Confirmed, details });
        assert_release(&check(&given, answer(release), Decision::fact(then)).unwrap(), release);
    }
}

#[test]
fn release_that_is_seen_after_the_end_is_written_down_once() {
    for (_, given) in dispatched_and_over() {
        let job = check(&given, record(1, Release::Ended), seen(1, Release::Ended)).unwrap();
        assert_release(&job, Some(Release::Ended));
        let again = [given, vec![JobFact::ExecutorReleased { attempt: 1, release: Release::Ended }]].concat();
        check(&again, record(1, Release::Persists), Decision::Nothing);
    }
}

#[test]
fn same_end_reported_again_adds_only_the_release() {
    let given = [created(), dispatched(1), completed()];
    let again = reports_with(1, JobStateName::Completed, released(Release::Ended));
    let job = check(&given, again, seen(1, Release::Ended)).unwrap();
    assert_release(&job, Some(Release::Ended));
}

#[test]
fn release_of_an_earlier_attempt_is_kept_with_that_attempt() {
    let given = [created(), dispatched(1), requeued(NOW), dispatched(2)];
    let job = check(&given, record(1, Release::Ended), seen(1, Release::Ended)).unwrap();
    assert_release(&job, None);
    assert!(job.attempts[0].release.is_some());
}

#[test]
fn release_of_what_is_no_executor_of_ours_is_not_kept() {
    let caller = Holder::Caller(Caller { token: "tok-1".to_owned(), peer: None });
    for holder in [Holder::Bearer, caller] {
        let JobFact::Dispatched { attempt_id, number, owner, trigger, .. } = dispatched(1) else {
            unreachable!("it dispatches")
        };
        let handed = JobFact::Dispatched { attempt_id, number, owner, trigger, holder };
        check(&[created(), handed], record(1, Release::Ended), Decision::Nothing);
    }
    check(&[created(), dispatched(1)], record(7, Release::Ended), Decision::Nothing);
    check(&[], record(1, Release::Ended), Decision::Nothing);
}

#[test]
fn executor_that_is_called_again_is_not_released_yet() {
    let paused = JobFact::InputAwaited(released(Release::Ended));
    let answered = JobFact::Answered(AnswerKept { answer: body(BodyName::Answer, 1) });
    let resumed = job(&[created(), dispatched(1), paused, answered, JobFact::Resumed]);
    assert_release(&resumed, None);
}
