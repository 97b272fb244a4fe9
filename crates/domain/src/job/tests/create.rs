//! Accepting a job, and what is over a limit.

use std::collections::BTreeSet;

use super::*;
use crate::RunId;
use crate::job::lane::{AFTER_PULLED, PULLED, Pull, is_pulled, pinned_to};
use crate::job::spec::MAX_PRIORITY;
use crate::limits::{MAX_BODIES, MAX_BODY_BYTES, MAX_ID_BYTES, MAX_LABEL_BYTES, MAX_TAGS, MAX_TITLE_BYTES};
use crate::retry::{MAX_ATTEMPTS, MAX_BACKOFF_SECONDS};
use crate::run::StepLink;

fn create(new: NewJob) -> JobCommand {
    JobCommand::Create(Box::new(new))
}

// conforms: R46
#[test]
fn a_new_job_is_queued_due_at_once_and_reached_no_executor() {
    let job = check(&[], create(new_job()), Decision::fact(created())).unwrap();
    assert_eq!(job.state, JobState::Queued { due_at: NOW });
    assert_eq!((job.attempt_count, job.attempts.len()), (0, 0));
    assert_eq!((job.created_at, job.completed_at), (NOW, None));
}

#[test]
fn a_job_for_later_is_queued_until_then() {
    let later = NOW.plus_seconds(3_600);
    let new = NewJob { due_at: Some(later), ..new_job() };
    let job = check(&[], create(new), Decision::fact(created_with(|new| new.due_at = Some(later)))).unwrap();
    assert_eq!(job.state, JobState::Queued { due_at: later });
}

#[test]
fn a_job_is_created_once() {
    check(&[created()], create(new_job()), Decision::refuse(Refusal::AlreadyExists));
}

#[test]
fn every_other_command_needs_a_job() {
    let commands = [
        dispatch(1, Trigger::Automatic),
        JobCommand::QueueAgain { trigger: Trigger::Retry },
        JobCommand::Resume { attempt_id: attempt(1) },
        JobCommand::Deliver { attempt_id: attempt(1) },
        JobCommand::Heartbeat { attempt_id: attempt(1), by: Reporter::Daemon },
        patch(JobStateName::Running),
        defer(1, new_operation()),
        JobCommand::Answer { answer: body(BodyName::Answer, 1) },
        request_cancel(),
        cancel_or_refuse(),
        JobCommand::CountCancelRepeats { count: 1 },
        JobCommand::RecordCancelAnswer {
            attempt_id: attempt(1),
            answer: CancelAnswer::Accepted,
            release: None,
        },
        JobCommand::TimeOutCancel,
        lose_lease(1),
        JobCommand::TimeOutAttempt { attempt_id: attempt(1), jitter: Jitter(0) },
        JobCommand::Expire,
        JobCommand::Purge,
        JobCommand::Retire,
    ];
    for command in commands {
        check(&[], command, Decision::refuse(Refusal::UnknownRecord));
    }
}

#[test]
fn a_job_whose_time_is_over_already_is_refused() {
    let limits: [fn(&mut NewJob, Timestamp); 2] =
        [|new, at| new.spec.deadline_at = Some(at), |new, at| new.spec.expires_at = Some(at)];
    for limit in limits {
        for (at, then) in [
            (BEFORE, None),
            (NOW, None),
            (NOW.plus_micros(1), Some(created_with(|new| limit(new, NOW.plus_micros(1))))),
        ] {
            let mut new = new_job();
            limit(&mut new, at);
            let then = then.map_or(Decision::refuse(Refusal::DeadlineElapsed), Decision::fact);
            check(&[], create(new), then);
        }
    }
}

#[test]
fn every_limited_field_is_taken_at_its_limit_and_refused_over_it() {
    type Set = fn(&mut NewJob, usize);
    let fields: [(&'static str, usize, Set); 18] = [
        ("title", MAX_TITLE_BYTES, |new, n| new.spec.title = "x".repeat(n)),
        ("kind", MAX_LABEL_BYTES, |new, n| new.spec.kind = "x".repeat(n)),
        ("visibility", MAX_LABEL_BYTES, |new, n| new.spec.visibility = "x".repeat(n)),
        ("executor", MAX_LABEL_BYTES, |new, n| new.spec.executor = Some("x".repeat(n))),
        ("lane", MAX_LABEL_BYTES, |new, n| new.spec.lane = Some("x".repeat(n))),
        ("created_by_peer_id", MAX_ID_BYTES, |new, n| new.spec.created_by_peer_id = Some("x".repeat(n))),
        ("owner_peer_id", MAX_ID_BYTES, |new, n| new.spec.owner_peer_id = Some("x".repeat(n))),
        ("assigned_peer_id", MAX_ID_BYTES, |new, n| new.spec.assigned_peer_id = Some("x".repeat(n))),
        ("path", MAX_TITLE_BYTES, |new, n| new.spec.path = Some("x".repeat(n))),
        ("session_id", MAX_ID_BYTES, |new, n| new.spec.session_id = Some("x".repeat(n))),
        ("correlation_id", MAX_ID_BYTES, |new, n| new.spec.correlation_id = Some("x".repeat(n))),
        ("circle", MAX_LABEL_BYTES, |new, n| new.spec.circle = Some("x".repeat(n))),
        ("source_kind", MAX_LABEL_BYTES, |new, n| new.spec.source_kind = Some("x".repeat(n))),
        ("source_id", MAX_ID_BYTES, |new, n| new.spec.source_id = Some("x".repeat(n))),
        ("scope", MAX_LABEL_BYTES, |new, n| new.spec.scope = Some("x".repeat(n))),
        ("tags", MAX_TAGS, |new, n| new.spec.tags = vec!["x".to_owned(); n]),
        ("tag", MAX_LABEL_BYTES, |new, n| new.spec.tags = vec!["x".repeat(n)]),
        ("bodies", MAX_BODIES, |new, n| new.bodies = vec![body(BodyName::Input, 1); n]),
    ];
    for (what, limit, set) in fields {
        check(&[], create(with(set, limit)), Decision::fact(created_with(|new| set(new, limit))));
        let over = Decision::refuse(Refusal::TooLarge { what, limit });
        check(&[], create(with(set, limit + 1)), over);
    }
}

fn with(set: fn(&mut NewJob, usize), amount: usize) -> NewJob {
    let mut new = new_job();
    set(&mut new, amount);
    new
}

#[test]
fn a_body_over_its_limit_is_refused_by_its_name() {
    let sized = |size| NewJob { bodies: vec![BodyRef { size, ..body(BodyName::Prompt, 1) }], ..new_job() };
    let most = MAX_BODY_BYTES as u64;
    check(&[], create(sized(most)), Decision::fact(JobFact::Created(Box::new(sized(most)))));
    let refusal = Refusal::TooLarge { what: "prompt", limit: MAX_BODY_BYTES };
    check(&[], create(sized(most + 1)), Decision::refuse(refusal));
}

#[test]
fn a_priority_beyond_the_bounds_is_refused() {
    for priority in [-MAX_PRIORITY, MAX_PRIORITY] {
        let given = |new: &mut NewJob| new.spec.priority = priority;
        let mut new = new_job();
        given(&mut new);
        check(&[], create(new), Decision::fact(created_with(given)));
    }
    for priority in [-MAX_PRIORITY - 1, MAX_PRIORITY + 1, i32::MIN, i32::MAX] {
        let mut new = new_job();
        new.spec.priority = priority;
        check(&[], create(new), Decision::refuse(Refusal::InvalidPolicy { field: "priority" }));
    }
}

#[test]
fn a_retry_policy_that_asks_for_nothing_or_too_much_is_refused() {
    let policies = [
        RetryPolicy { max_attempts: 0, ..THRICE },
        RetryPolicy { max_attempts: MAX_ATTEMPTS + 1, ..THRICE },
        RetryPolicy { backoff_seconds: 61, ..THRICE },
        RetryPolicy { max_backoff_seconds: MAX_BACKOFF_SECONDS + 1, ..THRICE },
    ];
    for retry in policies {
        let mut new = new_job();
        new.spec.retry = retry;
        check(&[], create(new), Decision::refuse(Refusal::InvalidPolicy { field: "retry" }));
    }
}

#[test]
fn a_job_queues_in_its_own_lane_else_in_its_executors() {
    let lane = |lane: Option<&str>, executor: Option<&str>| {
        let spec = JobSpec { lane: lane.map(str::to_owned), ..JobSpec::plain(executor, THRICE) };
        spec.lane().into_owned()
    };
    assert_eq!(lane(Some("fast"), Some("render")), "fast");
    assert_eq!(lane(None, Some("render")), "render");
    assert!(is_pulled(&lane(None, None)) && is_pulled(&lane(Some("fast"), None)));
}

#[test]
fn a_step_that_begins_with_files_of_one_node_queues_for_that_node_and_no_caller_may() {
    let step = StepLink {
        run_id: RunId::new("run-1"),
        visit: 1,
        pipeline: "tides".to_owned(),
        step: "two".to_owned(),
        ordinal: 0,
        node: Some("daemon-1".to_owned()),
    };
    let mut spec = JobSpec::plain(Some("render"), THRICE);
    spec.lane = Some("serial:plugin:render".to_owned());
    spec.step = Some(Box::new(step));
    let lane = spec.lane().into_owned();
    assert_eq!(pinned_to(&lane), Some(("daemon-1", "serial:plugin:render")));
    assert_eq!(pinned_to("serial:plugin:render"), None);
    let mut new = new_job();
    new.spec.lane = Some(lane);
    check(&[], create(new), Decision::refuse(Refusal::InvalidPolicy { field: "lane" }));
}

#[test]
fn a_job_without_an_executor_is_pulled_by_its_peer_else_its_lane_else_its_label_else_its_folder_else_by_anyone()
 {
    let some = |text: &str| Some(text.to_owned());
    let mut spec = JobSpec::plain(None, THRICE);
    assert_eq!(spec.pull(), Pull::Anyone);
    spec.path = some("/srv/shop");
    assert_eq!(spec.pull(), Pull::Folder("/srv/shop"));
    spec.label = some("gpu");
    assert_eq!(spec.pull(), Pull::Label("gpu"));
    spec.lane = some("print");
    assert_eq!(spec.pull(), Pull::Lane("print"));
    spec.assigned_peer_id = some("repow-shop-1");
    assert_eq!(spec.pull(), Pull::Assigned("repow-shop-1"));
    assert_eq!(spec.lane(), Pull::Assigned("repow-shop-1").lane(None));
}

#[test]
fn no_two_circles_and_no_two_ways_to_pull_share_a_lane() {
    // Names that would run into each other if they were only joined.
    let names = ["", "a", "b", "a:b", "1:a", "1:a:", ":", "-", "-:", "1:a:1:a:"];
    let circles = names.iter().map(|name| Some(*name)).chain([None]);
    let pulls = |circle: Option<&str>| {
        let of = |name: &'static str| {
            [Pull::Assigned(name), Pull::Lane(name), Pull::Label(name), Pull::Folder(name)]
                .map(|pull| pull.lane(circle))
        };
        names.iter().flat_map(|name| of(name)).chain([Pull::Anyone.lane(circle)]).collect::<Vec<_>>()
    };
    let lanes: Vec<String> = circles.flat_map(pulls).collect();
    let different: BTreeSet<&String> = lanes.iter().collect();
    assert_eq!(different.len(), lanes.len());
    assert!(lanes.iter().all(|lane| (PULLED..AFTER_PULLED).contains(&lane.as_str())));
}

#[test]
fn a_name_that_reads_like_a_pulled_lane_is_refused() {
    for (executor, lane) in [(Some("pull:any:-:"), None), (Some("render"), Some("pull:any:-:"))] {
        let mut new = new_job();
        new.spec = JobSpec { lane: lane.map(str::to_owned), ..JobSpec::plain(executor, THRICE) };
        check(&[], create(new), Decision::refuse(Refusal::InvalidPolicy { field: "lane" }));
    }
}
