//! Reports: by the current attempt, by one that is not current any more, by the doer of unmanaged work.

use super::*;
use crate::Json;
use crate::limits::{
    KEPT_EVIDENCE, MAX_BODY_BYTES, MAX_ID_BYTES, MAX_LABEL_BYTES, MAX_NOTE_BYTES, MAX_PROGRESS_BYTES,
    MAX_SUMMARY_BYTES,
};

fn deliver(number: u32) -> JobCommand {
    JobCommand::Deliver { attempt_id: attempt(number) }
}

fn heartbeat(number: u32) -> JobCommand {
    JobCommand::Heartbeat { attempt_id: attempt(number), by: Reporter::Daemon }
}

fn stale(number: u32, state: JobStateName) -> Decision<JobFact> {
    refused_and_kept(number, state, Refusal::StaleAttempt)
}

fn refused_and_kept(number: u32, state: JobStateName, refusal: Refusal) -> Decision<JobFact> {
    let kept = StaleReport {
        attempt_id: attempt(number),
        state,
        at: Timestamp::default(),
        details: Details::default(),
    };
    Decision::Refused { refusal, evidence: Some(JobFact::StaleReportKept(kept)), consequences: Vec::new() }
}

// conforms: R48
#[test]
fn work_handed_over_is_delivered_and_not_running_yet() {
    let job = check(&[created(), dispatched(1)], deliver(1), Decision::fact(JobFact::Delivered)).unwrap();
    assert_eq!(job.state, JobState::Delivered);
}

#[test]
fn handing_over_again_changes_nothing_even_if_it_has_started() {
    check(&[created(), dispatched(1), JobFact::Delivered], deliver(1), Decision::Nothing);
    check(&[created(), dispatched(1), started()], deliver(1), Decision::Nothing);
}

// conforms: R49
#[test]
fn the_first_heartbeat_starts_delivered_work() {
    let given = [created(), dispatched(1), JobFact::Delivered];
    let job = check(&given, heartbeat(1), Decision::fact(started())).unwrap();
    assert_eq!(job.state, JobState::Running);
}

#[test]
fn later_heartbeats_leave_no_fact() {
    for (state, given) in dispatched_and_open() {
        if !matches!(state, JobStateName::Dispatching | JobStateName::Delivered) {
            check(&given, heartbeat(1), Decision::Nothing);
        }
    }
}

#[test]
fn a_heartbeat_after_the_end_is_told_so() {
    for (state, given) in dispatched_and_over() {
        check(&given, heartbeat(1), Decision::refuse(Refusal::Terminal { state }));
    }
}

#[test]
fn an_attempt_that_is_not_current_can_neither_deliver_nor_beat() {
    let given = [created(), dispatched(1), requeued(NOW), dispatched(2)];
    check(&given, deliver(1), Decision::refuse(Refusal::StaleAttempt));
    check(&given, heartbeat(1), Decision::refuse(Refusal::StaleAttempt));
    let queued_again = [created(), dispatched(1), requeued(NOW)];
    check(&queued_again, heartbeat(1), Decision::refuse(Refusal::StaleAttempt));
}

// conforms: R50
#[test]
fn an_executor_may_pause_its_work_for_input() {
    let given = [created(), dispatched(1), started()];
    let question = Details { reason: Some("permission_required".to_owned()), ..note("may I?") };
    let then = Decision::fact(JobFact::InputAwaited(question.clone()));
    let job = check(&given, reports_with(1, JobStateName::AwaitingInput, question), then).unwrap();
    assert_eq!(job.state, JobState::AwaitingInput);
    assert_eq!(job.state_reason.as_deref(), Some("permission_required"));
    assert_eq!(job.completed_at, None);
}

// conforms: R51
#[test]
fn an_executor_may_pause_its_work_for_a_decision() {
    let given = [created(), dispatched(1), started()];
    let then = Decision::fact(JobFact::Blocked(Details::default()));
    let job = check(&given, reports(1, JobStateName::Blocked), then).unwrap();
    assert_eq!(job.state, JobState::Blocked);
    assert_eq!(job.completed_at, None);
}

// conforms: R53
#[test]
fn an_executor_that_is_missing_makes_the_work_unavailable_whatever_attempts_are_left() {
    let missing = Details::because("missing_target");
    let then =
        JobFact::BecameUnavailable(Conclusion { cause: Unavailability::Reported, details: missing.clone() });
    let reported = reports_with(1, JobStateName::Unavailable, missing);
    let job = check(&[created(), dispatched(1)], reported, Decision::fact(then)).unwrap();
    assert_eq!(job.state, JobState::Unavailable { lease_lost: false });
    assert_eq!(job.state_reason.as_deref(), Some("missing_target"));
}

#[test]
fn a_completed_job_shows_result_reason_and_time() {
    let said = Details { reason: Some("rendered".to_owned()), ..result(summary("12 pages")) };
    let given = [created(), dispatched(1), started()];
    let then = Decision::fact(JobFact::Completed(said.clone()));
    let job = check(&given, reports_with(1, JobStateName::Completed, said), then).unwrap();
    assert_eq!(job.state, JobState::Completed);
    assert_eq!(job.state_reason.as_deref(), Some("rendered"));
    assert_eq!((job.result, job.completed_at), (summary("12 pages"), Some(NOW)));
}

#[test]
fn a_report_on_dispatched_work_needs_the_attempt() {
    for (_, given) in dispatched_and_open().into_iter().chain(dispatched_and_over()) {
        check(&given, patch(JobStateName::Completed), Decision::refuse(Refusal::AttemptRequired));
    }
}

#[test]
fn work_sent_back_to_the_queue_stays_fenced() {
    let given = [created(), dispatched(1), requeued(NOW)];
    check(&given, patch(JobStateName::Completed), Decision::refuse(Refusal::AttemptRequired));
    check(&given, reports(1, JobStateName::Completed), stale(1, JobStateName::Completed));
}

#[test]
fn an_attempt_sent_back_to_the_queue_stays_stale_after_the_job_has_ended_there() {
    let given = [created(), dispatched(1), requeued(NOW), cancelled(CancelCause::NeverStarted)];
    for state in [JobStateName::Completed, JobStateName::Cancelled] {
        check(&given, reports(1, state), stale(1, state));
    }
}

#[test]
fn a_stale_report_changes_nothing_and_is_kept_as_evidence() {
    let given = [created(), dispatched(1), requeued(NOW), dispatched(2), started()];
    let before = job(&given);
    let after =
        check(&given, reports(1, JobStateName::Completed), stale(1, JobStateName::Completed)).unwrap();
    let kept = &after.evidence[0];
    assert_eq!((kept.state, kept.at, &kept.attempt_id), (JobStateName::Completed, NOW, &attempt(1)));
    assert_eq!(after.stale_reports, 1);
    let same = Job { evidence: Vec::new(), stale_reports: 0, updated_at: before.updated_at, ..after };
    assert_eq!(same, before);
}

#[test]
fn a_report_of_an_attempt_on_work_never_dispatched_is_stale() {
    // Of an attempt that never was there is nothing to keep.
    check(&[created()], reports(1, JobStateName::Running), Decision::refuse(Refusal::StaleAttempt));
}

#[test]
fn a_stale_report_of_the_state_that_the_job_is_in_is_still_stale() {
    let given = [created(), dispatched(1), requeued(NOW), dispatched(2), completed()];
    check(&given, reports(1, JobStateName::Completed), stale(1, JobStateName::Completed));
}

#[test]
fn evidence_is_kept_up_to_its_limit_and_refused_without_a_trace_after_it() {
    let mut given = vec![created(), dispatched(1), requeued(NOW), dispatched(2)];
    for _ in 0..KEPT_EVIDENCE {
        let Decision::Refused { evidence: Some(kept), .. } = stale(1, JobStateName::Failed) else {
            unreachable!()
        };
        check(&given, reports(1, JobStateName::Failed), stale(1, JobStateName::Failed));
        given.push(kept);
    }
    let one_more = reports(1, JobStateName::Failed);
    let job = check(&given, one_more, Decision::refuse(Refusal::StaleAttempt)).unwrap();
    assert_eq!(job.evidence.len(), KEPT_EVIDENCE);
    assert!(job.counts_stale_report(&attempt(1)) && !job.counts_stale_report(&attempt(9)));
    let counted = JobFact::StaleReportsCounted { count: 40 };
    let count = JobCommand::CountStaleReports { count: 40 };
    let job = check(&given, count, Decision::fact(counted)).unwrap();
    assert_eq!((job.stale_reports, job.evidence.len()), (60, KEPT_EVIDENCE));
}

// conforms: R42
#[test]
fn the_same_state_again_adds_a_note_also_after_the_end() {
    for (state, given) in dispatched_and_open().into_iter().chain(dispatched_and_over()) {
        let then = Decision::fact(JobFact::Noted(note("by the way")));
        let before = job(&given);
        let after = check(&given, reports_with(1, state, note("by the way")), then).unwrap();
        assert_eq!((after.state, after.completed_at), (before.state, before.completed_at));
        assert_eq!((after.notes[0].note.as_str(), after.notes[0].state), ("by the way", state));
    }
}

#[test]
fn the_same_state_again_with_nothing_to_say_changes_nothing() {
    for (state, given) in dispatched_and_open().into_iter().chain(dispatched_and_over()) {
        check(&given, reports(1, state), Decision::Nothing);
    }
    check(&[created()], patch(JobStateName::Queued), Decision::Nothing);
}

// conforms: R43
#[test]
fn result_fields_left_out_keep_what_they_had() {
    let all = ResultRefs {
        data: Some(body(BodyName::Result, 1)),
        error: Some(body(BodyName::Error, 2)),
        artifacts: Some(body(BodyName::Artifacts, 3)),
        ..summary("first")
    };
    let given = [created(), dispatched(1), JobFact::Started(result(all.clone()))];
    let newer = ResultRefs { data: Some(body(BodyName::Result, 9)), ..ResultRefs::default() };
    let then = Decision::fact(JobFact::Completed(result(newer.clone())));
    let job = check(&given, reports_with(1, JobStateName::Completed, result(newer.clone())), then).unwrap();
    assert_eq!(job.result, ResultRefs { data: newer.data, ..all });
}

// conforms: R42 R43
#[test]
fn result_of_what_is_over_is_added_to_and_never_replaced() {
    let first = ResultRefs { data: Some(body(BodyName::Result, 1)), ..summary("first") };
    let given = [created(), dispatched(1), JobFact::Completed(result(first.clone()))];
    let again = |refs| reports_with(1, JobStateName::Completed, result(refs));
    check(&given, again(first.clone()), Decision::Nothing);
    let artifacts = Some(body(BodyName::Artifacts, 3));
    let more = result(ResultRefs { artifacts, ..ResultRefs::default() });
    let then = Decision::fact(JobFact::Noted(more.clone()));
    let job = check(&given, reports_with(1, JobStateName::Completed, more), then).unwrap();
    assert_eq!(job.result, ResultRefs { artifacts, ..first });
    let other = ResultRefs { data: Some(body(BodyName::Result, 9)), ..ResultRefs::default() };
    let evidence = JobFact::StaleReportKept(StaleReport {
        attempt_id: attempt(1),
        state: JobStateName::Completed,
        at: Timestamp::default(),
        details: result(other.clone()),
    });
    let refused = Decision::Refused {
        refusal: Refusal::Terminal { state: JobStateName::Completed },
        evidence: Some(evidence),
        consequences: Vec::new(),
    };
    check(&given, again(other), refused);
}

#[test]
fn nothing_that_was_deleted_on_request_comes_back_with_a_late_report() {
    let refs = ResultRefs { data: Some(body(BodyName::Result, 1)), ..ResultRefs::default() };
    let unavailable = Conclusion { cause: Unavailability::LeaseLost, details: Details::default() };
    let lost = JobFact::BecameUnavailable(unavailable);
    for end in [JobFact::Completed(result(refs.clone())), lost] {
        let given = [created(), dispatched(1), end, JobFact::Purged];
        let late = reports_with(1, JobStateName::Completed, result(refs.clone()));
        check(&given, late, Decision::refuse(Refusal::Purged));
    }
}

#[test]
fn reason_and_phase_are_those_of_the_newest_report_progress_stays_until_replaced() {
    let first = Details {
        reason: Some("executor_busy".to_owned()),
        phase: Some("warming up".to_owned()),
        progress: Some(Json::parse("{\"pages\":1}").unwrap()),
        ..Details::default()
    };
    let given = [created(), dispatched(1), JobFact::Started(first)];
    let then = Decision::fact(JobFact::Noted(note("still here")));
    let job = check(&given, reports_with(1, JobStateName::Running, note("still here")), then).unwrap();
    assert_eq!((job.state_reason, job.phase), (None, None));
    assert_eq!(job.notes[0].phase.as_deref(), Some("warming up"));
    assert_eq!(job.progress, Some(Json::parse("{\"pages\":1}").unwrap()));
}

#[test]
fn empty_report_of_the_same_state_clears_reason_and_phase() {
    let said = Details { phase: Some("warming up".to_owned()), ..Details::because("executor_busy") };
    let given = [created(), dispatched(1), JobFact::Started(said.clone())];
    let then = Decision::fact(JobFact::Noted(Details::default()));
    let job = check(&given, reports_with(1, JobStateName::Running, Details::default()), then).unwrap();
    assert_eq!((job.state_reason, job.phase), (None, None));
    let given = [&given[..], &[JobFact::Noted(Details::default())]].concat();
    check(&given, reports_with(1, JobStateName::Running, Details::default()), Decision::Nothing);
    let over = [created(), dispatched(1), JobFact::Started(Details::default()), JobFact::Completed(said)];
    check(&over, reports_with(1, JobStateName::Completed, Details::default()), Decision::Nothing);
    let stopping = [created(), dispatched(1), started(), cancel_requested()];
    check(&stopping, reports_with(1, JobStateName::Running, Details::default()), Decision::Nothing);
}

#[test]
fn a_note_that_comes_with_the_hand_over_is_not_lost() {
    let then = Decision::facts([JobFact::Delivered, JobFact::Noted(note("in the queue"))]);
    let reported = reports_with(1, JobStateName::Delivered, note("in the queue"));
    let job = check(&[created(), dispatched(1)], reported, then).unwrap();
    assert_eq!((job.state, job.notes.len()), (JobState::Delivered, 1));
}

// conforms: R41
#[test]
fn no_report_takes_a_terminal_job_back() {
    for (from, given) in dispatched_and_over() {
        for to in JobStateName::ALL.into_iter().filter(|to| !to.is_terminal()) {
            check(&given, reports(1, to), refused_and_kept(1, to, Refusal::Terminal { state: from }));
        }
    }
}

#[test]
fn no_report_replaces_one_end_by_another() {
    for (from, given) in dispatched_and_over() {
        if job(&given).state == (JobState::Unavailable { lease_lost: true }) {
            continue;
        }
        for to in JobStateName::ALL.into_iter().filter(|to| to.is_terminal() && *to != from) {
            check(&given, reports(1, to), refused_and_kept(1, to, Refusal::Terminal { state: from }));
        }
    }
}

#[test]
fn late_report_of_the_current_attempt_replaces_unavailable_once() {
    let lost = [created(), dispatched(1), unavailable(Unavailability::LeaseLost)];
    for (state, end) in [(JobStateName::Completed, completed()), (JobStateName::Failed, failed())] {
        let job = check(&lost, reports(1, state), Decision::fact(end.clone())).unwrap();
        assert_eq!((job.state.name(), job.completed_at), (state, Some(NOW)));
        assert_eq!(job.last_attempt().unwrap().end.as_ref().unwrap().state, state);

        let replaced = [lost.to_vec(), vec![end]].concat();
        for other in JobStateName::ALL.into_iter().filter(|other| *other != state) {
            check(&replaced, reports(1, other), refused_and_kept(1, other, Refusal::Terminal { state }));
        }
    }
}

#[test]
fn late_report_of_a_failure_ends_the_job_and_never_requeues_it() {
    let given = [created(), dispatched(1), unavailable(Unavailability::LeaseLost)];
    let late = report(Some(attempt(1)), JobStateName::Failed, Details::default(), Retryable::Yes);
    check(&given, late, Decision::fact(failed()));
}

#[test]
fn late_report_cannot_turn_unavailable_into_any_other_end() {
    let given = [created(), dispatched(1), unavailable(Unavailability::LeaseLost)];
    for to in [JobStateName::Cancelled, JobStateName::Expired] {
        let refusal = Refusal::Terminal { state: JobStateName::Unavailable };
        check(&given, reports(1, to), refused_and_kept(1, to, refusal));
    }
}

#[test]
fn late_report_of_an_earlier_attempt_leaves_unavailable_alone() {
    let lost = unavailable(Unavailability::LeaseLost);
    let given = [created(), dispatched(1), requeued(BEFORE), dispatched(2), lost];
    check(&given, reports(1, JobStateName::Completed), stale(1, JobStateName::Completed));
}

#[test]
fn reported_unavailability_is_not_replaced_by_a_late_report() {
    let given = [created(), dispatched(1), unavailable(Unavailability::Reported)];
    let refusal = Refusal::Terminal { state: JobStateName::Unavailable };
    check(&given, reports(1, JobStateName::Completed), refused_and_kept(1, JobStateName::Completed, refusal));
}

#[test]
fn the_doer_of_unmanaged_work_takes_it_from_the_queue_to_its_end() {
    let working = [created(), started()];
    check(&working[..1], patch(JobStateName::Running), Decision::fact(started()));
    let asking = JobFact::InputAwaited(Details::default());
    check(&working, patch(JobStateName::AwaitingInput), Decision::fact(asking.clone()));
    let paused = [created(), started(), asking];
    check(&paused, patch(JobStateName::Running), Decision::fact(started()));
    let job = check(&paused, patch(JobStateName::Completed), Decision::fact(completed())).unwrap();
    assert_eq!((job.state, job.attempts.len()), (JobState::Completed, 0));
}

#[test]
fn unmanaged_work_may_end_in_every_way_from_every_open_state() {
    let given = [
        vec![created()],
        vec![created(), started()],
        vec![created(), JobFact::InputAwaited(Details::default())],
        vec![created(), JobFact::Blocked(Details::default())],
    ];
    let ends = [
        (JobStateName::Completed, completed()),
        (JobStateName::Failed, failed()),
        (JobStateName::Cancelled, cancelled(CancelCause::Confirmed)),
        (JobStateName::Expired, expired(super::super::ExpiryCause::Reported)),
        (JobStateName::Unavailable, unavailable(Unavailability::Reported)),
    ];
    for given in &given {
        for (state, end) in &ends {
            check(given, patch(*state), Decision::fact(end.clone()));
        }
    }
}

#[test]
fn a_failure_of_unmanaged_work_is_final() {
    let failed_for_now = report(None, JobStateName::Failed, Details::default(), Retryable::Yes);
    check(&[created(), started()], failed_for_now, Decision::fact(failed()));
}

#[test]
fn unmanaged_work_is_never_dispatched_delivered_or_deferred_by_a_report() {
    for to in [JobStateName::Dispatching, JobStateName::Delivered, JobStateName::AwaitingExternal] {
        let refusal = Refusal::TransitionRefused { from: JobStateName::Queued, to };
        check(&[created()], patch(to), Decision::refuse(refusal));
    }
}

#[test]
fn what_goes_on_outside_is_not_ended_by_a_report() {
    let given = [created(), dispatched(1), deferred()];
    let refusal =
        Refusal::TransitionRefused { from: JobStateName::AwaitingExternal, to: JobStateName::Completed };
    check(&given, reports(1, JobStateName::Completed), Decision::refuse(refusal));
}

// conforms: R59 R60
#[test]
fn every_limited_part_of_a_report_is_taken_at_its_limit_and_refused_over_it() {
    type Say = fn(usize) -> Details;
    let fields: [(&'static str, usize, Say); 8] = [
        ("state_reason", MAX_LABEL_BYTES, |n| Details::because(&"x".repeat(n))),
        ("phase", MAX_LABEL_BYTES, |n| Details { phase: Some("x".repeat(n)), ..Details::default() }),
        ("progress_note", MAX_NOTE_BYTES, |n| note(&"x".repeat(n))),
        ("progress", MAX_PROGRESS_BYTES, |n| {
            let text = format!("\"{}\"", "x".repeat(n - 2));
            Details { progress: Some(Json::parse(&text).unwrap()), ..Details::default() }
        }),
        ("result_summary", MAX_SUMMARY_BYTES, |n| result(summary(&"x".repeat(n)))),
        ("result", MAX_BODY_BYTES, |n| {
            result(ResultRefs { data: Some(sized_body(BodyName::Result, n)), ..ResultRefs::default() })
        }),
        ("error", MAX_BODY_BYTES, |n| {
            result(ResultRefs { error: Some(sized_body(BodyName::Error, n)), ..ResultRefs::default() })
        }),
        ("artifacts", MAX_BODY_BYTES, |n| {
            result(ResultRefs {
                artifacts: Some(sized_body(BodyName::Artifacts, n)),
                ..ResultRefs::default()
            })
        }),
    ];
    let given = [created(), dispatched(1), started()];
    for (what, limit, say) in fields {
        let then = Decision::fact(JobFact::Noted(say(limit)));
        check(&given, reports_with(1, JobStateName::Running, say(limit)), then);
        let refusal = Refusal::TooLarge { what, limit };
        check(&given, reports_with(1, JobStateName::Running, say(limit + 1)), Decision::refuse(refusal));
    }
}

fn sized_body(name: BodyName, size: usize) -> BodyRef {
    BodyRef { size: size as u64, ..body(name, 1) }
}

#[test]
fn no_text_of_a_report_may_hold_a_character_that_no_database_can_read_again() {
    let given = [created(), dispatched(1), started()];
    let reason = Details::because("a\0b");
    let summary = ResultRefs { summary: Some("a\0b".to_owned()), ..ResultRefs::default() };
    for said in [reason, note("a\0b"), Details { result: summary, ..Details::default() }] {
        let when = reports_with(1, JobStateName::Running, said);
        check(&given, when, Decision::refuse(Refusal::NulInJson));
    }
}

#[test]
fn a_stale_report_over_a_limit_leaves_no_evidence() {
    let given = [created(), dispatched(1), requeued(NOW), dispatched(2)];
    let long = reports_with(1, JobStateName::Failed, note(&"x".repeat(MAX_NOTE_BYTES + 1)));
    let refusal = Refusal::TooLarge { what: "progress_note", limit: MAX_NOTE_BYTES };
    check(&given, long, Decision::refuse(refusal));
}

#[test]
fn an_attempt_id_over_its_limit_is_refused_and_not_kept_as_evidence() {
    let given = [created(), dispatched(1), started()];
    let made_up = AttemptId::new("x".repeat(MAX_ID_BYTES + 1));
    let long = report(Some(made_up), JobStateName::Failed, Details::default(), Retryable::No);
    let refusal = Refusal::TooLarge { what: "attempt_id", limit: MAX_ID_BYTES };
    check(&given, long, Decision::refuse(refusal));
}
