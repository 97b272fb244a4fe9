//! What a job remembers, and for how long.

use super::*;
use crate::Misfold;
use crate::attention::Retention;
use crate::limits::{KEPT_ATTEMPTS, KEPT_NOTES};

// conforms: R44 L46
#[test]
fn a_job_is_in_one_of_twelve_states_and_no_other_word_is_one() {
    let words = JobStateName::ALL.map(JobStateName::as_str);
    assert_eq!(
        words,
        [
            "queued",
            "dispatching",
            "delivered",
            "running",
            "awaiting_input",
            "awaiting_external",
            "blocked",
            "completed",
            "failed",
            "cancelled",
            "expired",
            "unavailable"
        ]
    );
    for name in JobStateName::ALL {
        assert_eq!(JobStateName::parse(name.as_str()), Some(name));
        assert_eq!(serde_json::to_string(&name).unwrap(), format!("\"{name}\""));
    }
    for other in ["", "Queued", "dispatched", "done", "queued "] {
        assert_eq!(JobStateName::parse(other), None);
        assert!(serde_json::from_str::<JobStateName>(&format!("{other:?}")).is_err());
    }
}

// conforms: R45
#[test]
fn five_states_are_ends() {
    let ends: Vec<&str> =
        JobStateName::ALL.into_iter().filter(|name| name.is_terminal()).map(JobStateName::as_str).collect();
    assert_eq!(ends, ["completed", "failed", "cancelled", "expired", "unavailable"]);
}

#[test]
fn only_the_newest_notes_are_kept() {
    let mut given = vec![created(), dispatched(1), started()];
    given.extend((0..KEPT_NOTES).map(|number| JobFact::Noted(note(&number.to_string()))));
    let then = Decision::fact(JobFact::Noted(note("newest")));
    let job = check(&given, reports_with(1, JobStateName::Running, note("newest")), then).unwrap();
    assert_eq!(job.notes.len(), KEPT_NOTES);
    assert_eq!((job.notes[0].note.as_str(), job.notes[KEPT_NOTES - 1].note.as_str()), ("1", "newest"));
}

#[test]
fn only_the_newest_attempts_are_kept_and_all_are_counted() {
    let mut given = vec![created()];
    let all = u32::try_from(KEPT_ATTEMPTS).unwrap() + 5;
    for number in 1..=all {
        given.extend([dispatched_by(number, Trigger::Retry), failed()]);
    }
    let next = dispatched_by(all + 1, Trigger::Retry);
    let job = check(&given, dispatch(all + 1, Trigger::Retry), Decision::fact(next)).unwrap();
    assert_eq!((job.attempts.len(), job.attempt_count), (KEPT_ATTEMPTS, all + 1));
    assert_eq!((job.attempts[0].number, job.last_attempt().unwrap().number), (7, all + 1));
}

#[test]
fn the_newest_body_of_each_name_is_known() {
    let given = [
        created_with(|new| new.bodies = vec![body(BodyName::Prompt, 1), body(BodyName::Result, 2)]),
        dispatched(1),
    ];
    let newer = ResultRefs { data: Some(body(BodyName::Result, 3)), ..ResultRefs::default() };
    let then = Decision::fact(JobFact::Completed(result(newer.clone())));
    let job = check(&given, reports_with(1, JobStateName::Completed, result(newer)), then).unwrap();
    assert_eq!(job.bodies, [body(BodyName::Prompt, 1), body(BodyName::Result, 3)]);
}

#[test]
fn only_work_that_is_over_is_purged_and_once_is_enough() {
    for (_, given) in dispatched_and_over() {
        let job = check(&given, JobCommand::Purge, Decision::fact(JobFact::Purged)).unwrap();
        assert_eq!((job.purged, job.bodies.len()), (true, 0));
        let purged = [given, vec![JobFact::Purged]].concat();
        check(&purged, JobCommand::Purge, Decision::Nothing);
    }
    for (state, given) in dispatched_and_open() {
        check(&given, JobCommand::Purge, Decision::refuse(Refusal::NotTerminal { state }));
    }
}

#[test]
fn what_comes_after_a_purge_can_be_purged_too() {
    let purged = [created(), dispatched(1), failed(), JobFact::Purged];
    let error = ResultRefs { error: Some(body(BodyName::Error, 1)), ..ResultRefs::default() };
    let because_of_the_error =
        JobFact::Requeued { due_at: NOW, cause: RequeueCause::AttemptFailed, details: result(error.clone()) };
    let late = StaleReport {
        attempt_id: attempt(9),
        state: JobStateName::Failed,
        at: BEFORE,
        details: result(error.clone()),
    };
    for more in [
        vec![JobFact::Noted(result(error.clone()))],
        vec![dispatched(2), JobFact::Failed(result(error))],
        vec![dispatched(2), because_of_the_error, dispatched(3), failed()],
        vec![JobFact::StaleReportKept(late)],
    ] {
        let given = [&purged[..], &more].concat();
        check(&given, JobCommand::Purge, Decision::fact(JobFact::Purged));
    }
}

#[test]
fn what_was_purged_is_not_done_again_whatever_comes_in_between() {
    let error = ResultRefs { error: Some(body(BodyName::Error, 1)), ..ResultRefs::default() };
    let titled = created_with(|new| new.spec.title = "cat /etc/secret".to_owned());
    let purged = [titled, dispatched(1), failed(), JobFact::Purged, JobFact::Noted(result(error))];
    for trigger in [Trigger::Run, Trigger::Retry] {
        let job = check(&purged, dispatch(2, trigger), Decision::refuse(Refusal::Purged)).unwrap();
        assert_eq!((job.purged, job.purged_at), (false, Some(BEFORE)));
        assert_eq!(job.spec.title, "", "a title may repeat what was deleted");
    }
    // Written by a release that still let it be retried.
    let queued = [&purged[..], &[dispatched(2), requeued(BEFORE)]].concat();
    let job = check(&queued, dispatch(3, Trigger::Automatic), Decision::refuse(Refusal::Purged)).unwrap();
    assert_eq!(job.attention(Retention::DEFAULT).place, None, "nobody is offered what nobody may take");
}

#[test]
fn only_work_that_is_over_is_retired() {
    for (_, given) in dispatched_and_over() {
        check(&given, JobCommand::Retire, Decision::fact(JobFact::Retired));
    }
    for (state, given) in dispatched_and_open() {
        check(&given, JobCommand::Retire, Decision::refuse(Refusal::NotTerminal { state }));
    }
}

#[test]
fn a_stream_that_creates_its_job_twice_does_not_fold() {
    let mut job = job(&[created()]);
    assert_eq!(apply(&mut job, &created(), NOW), Err(Misfold("the job was created twice")));
}

#[test]
fn a_note_after_the_end_moves_the_time_of_the_last_change_and_not_that_of_the_end() {
    let given = [created(), dispatched(1), completed()];
    let then = Decision::fact(JobFact::Noted(note("sent")));
    let job = check(&given, reports_with(1, JobStateName::Completed, note("sent")), then).unwrap();
    assert_eq!((job.created_at, job.completed_at, job.updated_at), (BEFORE, Some(BEFORE), NOW));
}
