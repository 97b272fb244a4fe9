//! The workers over the memory store, with a clock moved by hand: what happens by itself, and when nothing does.

mod asked;
mod called_back;
mod carried;
mod circles;
mod contract;
mod due;
mod fan_out;
mod given;
mod hung_up;
mod left_alone;
mod logged;
mod outside;
mod outside_bounds;
mod pinned;
mod pipelines;
mod polled;
mod polled_on_disk;
mod specialist;
mod submit;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use domain::BodyName;
use domain::job::{JobCommand, JobStateName};
use engine::{Assignment, Clock, Failure, Link, Output, Produced, Progress, Specialist, Stop};
use futures::future::BoxFuture;

use given::{Given, answer, job, scripted};
use store::{Store, body_ref};

// conforms: L1
#[tokio::test]
async fn a_created_job_is_dispatched_and_completed() {
    let given = Given::new([scripted("echo", 4, |assignment, _| async move {
        Produced::Completed(Output { data: Some(assignment.input), ..Output::default() })
    })]);
    let id = given.create(job("echo").input(br#"{"a":1}"#)).await;
    let done = given.until(&id, JobStateName::Completed).await;
    assert_eq!(given.result_of(&done).await, br#"{"a":1}"#);
    assert_eq!(done.attempt_count, 1);
}

// conforms: R56
#[tokio::test]
async fn an_idle_daemon_asks_nothing_of_the_store() {
    let given = Given::new([scripted("echo", 4, |_, _| async { Produced::Completed(Output::default()) })]);
    let id = given.create(job("echo")).await;
    given.until(&id, JobStateName::Completed).await;
    // The end of the lease that the attempt had is the last time that anyone looks at.
    given.clock.advance_seconds(60);
    given.settle().await;
    let asked = given.store_calls();
    given.clock.advance_seconds(3_600);
    given.settle().await;
    assert_eq!(given.store_calls(), asked);
}

// conforms: R26 R27 R93 R94
#[tokio::test]
async fn what_is_over_is_left_alone_until_its_retention_ends_and_then_goes() {
    const DAY: u32 = 86_400;
    let given = Given::new([
        scripted("echo", 1, |_, _| async { Produced::Completed(Output::default()) }),
        scripted("broken", 1, |_, _| async { Produced::Failed(Failure::permanent("no", "no")) }),
    ]);
    let completed = given.create(job("echo")).await;
    let failed = given.create(job("broken")).await;
    given.until(&completed, JobStateName::Completed).await;
    given.until(&failed, JobStateName::Failed).await;
    let later = given.create(job("echo").due_in(u64::from(5 * DAY))).await;
    given.clock.advance_seconds(60);
    given.settle().await;
    let asked = given.store_calls();
    for _ in 0..4 * 24 {
        given.clock.advance_seconds(3_600);
        given.settle().await;
    }
    assert_eq!(given.store_calls(), asked, "there is nothing to look for before something is due");
    given.clock.advance_seconds(DAY);
    given.until(&later, JobStateName::Completed).await;
    given.clock.advance_seconds(2 * DAY - 61);
    given.settle().await;
    assert!(!given.is_gone(&completed).await);
    given.clock.advance_seconds(1);
    given.settle().await;
    assert!(given.is_gone(&completed).await, "seven days are over");
    given.clock.advance_seconds(22 * DAY);
    given.settle().await;
    assert!(!given.is_gone(&failed).await);
    given.clock.advance_seconds(DAY);
    given.settle().await;
    assert!(given.is_gone(&failed).await, "what did not succeed is kept for thirty");
}

#[tokio::test]
async fn very_many_that_are_to_go_at_once_go_in_bounded_batches() {
    let given = Given::new([scripted("echo", 8, |_, _| async { Produced::Completed(Output::default()) })]);
    let mut ids = Vec::new();
    for _ in 0..600 {
        ids.push(given.create(job("echo")).await);
    }
    for id in &ids {
        given.until(id, JobStateName::Completed).await;
    }
    given.clock.advance_seconds(8 * 86_400);
    for id in &ids {
        while !given.is_gone(id).await {
            given.settle().await;
        }
    }
    assert_eq!(given.store.most_taken(), 256);
}

#[tokio::test]
async fn a_commit_of_which_nobody_heard_wakes_the_workers_all_the_same() {
    let given = Given::new([scripted("echo", 1, |_, _| async { Produced::Completed(Output::default()) })]);
    given.settle().await;
    let id = given.create_unknowingly("echo").await;
    given.settle().await;
    assert_eq!(given.state_of(&id).await, JobStateName::Completed);
}

/// A job whose only attempt is at work, until the gate is opened.
async fn at_work() -> (Given, given::Gate, domain::JobId) {
    let gate = given::Gate::default();
    let inside = gate.clone();
    let given = Given::new([scripted("slow", 1, move |assignment, _| {
        let gate = inside.clone();
        async move {
            gate.pass(&assignment.job.id).await;
            Produced::Completed(Output::default())
        }
    })]);
    let id = given.create(job("slow").attempts(1)).await;
    gate.arrived(&id).await;
    given.settle().await;
    (given, gate, id)
}

#[tokio::test]
async fn an_attempt_that_lives_keeps_its_job_when_the_clock_jumps_over_its_lease() {
    for jump in [61, 3_600] {
        let (given, gate, id) = at_work().await;
        given.clock.advance_seconds(jump);
        // Its end may come before or after anybody has noticed the jump.
        if jump == 61 {
            given.settle().await;
        }
        gate.open();
        let done = given.until(&id, JobStateName::Completed).await;
        assert_eq!((done.attempt_count, done.evidence.len()), (1, 0));
    }
}

/// Whoever attends to the record took it just before the report came: the report goes on under the claim of its own process.
#[tokio::test]
async fn a_report_goes_on_under_the_claim_that_its_own_process_took_meanwhile() {
    let (given, gate, id) = at_work().await;
    let record = id.clone().into();
    let claim = given.store.inner.load(&record).await.unwrap().unwrap().claim.expect("an attempt has it");
    let ended = claim.lease_expires_at.plus_seconds(1);
    let take = store::Take::by(claim.owner, ended, domain::Lease::DEFAULT, 1);
    given.store.inner.take(&record, take).await.unwrap();
    gate.open();
    let done = given.until(&id, JobStateName::Completed).await;
    assert_eq!((done.attempt_count, done.evidence.len()), (1, 0));
}

#[tokio::test]
async fn a_deadline_ends_the_job_of_an_attempt_that_lives() {
    let given = Given::new([scripted("deaf", 1, |_, _| std::future::pending())]);
    let id = given.create(job("deaf").deadline_in(&given, 90)).await;
    given.until(&id, JobStateName::Dispatching).await;
    given.settle().await;
    given.clock.advance_seconds(90);
    given.until(&id, JobStateName::Expired).await;
}

#[tokio::test]
async fn a_job_is_not_started_before_it_is_due() {
    let given = Given::new([scripted("echo", 4, |_, _| async { Produced::Completed(Output::default()) })]);
    let id = given.create(job("echo").due_in(60)).await;
    given.clock.advance_seconds(59);
    given.settle().await;
    assert_eq!(given.state_of(&id).await, JobStateName::Queued);
    given.clock.advance_seconds(1);
    given.until(&id, JobStateName::Completed).await;
}

#[tokio::test]
async fn a_failed_attempt_is_tried_again_after_its_backoff() {
    let given = Given::new([scripted("flaky", 1, |assignment, _| async move {
        if assignment.attempt_number == 1 {
            return Produced::Failed(Failure::transient("unlucky", "the first time"));
        }
        Produced::Completed(Output::default())
    })]);
    let id = given.create(job("flaky").attempts(2)).await;
    given.until(&id, JobStateName::Queued).await;
    given.settle().await;
    assert_eq!(given.state_of(&id).await, JobStateName::Queued);
    given.clock.advance_seconds(60);
    let done = given.until(&id, JobStateName::Completed).await;
    assert_eq!(done.attempt_count, 2);
}

// conforms: L1
#[tokio::test]
async fn a_permanent_failure_is_not_tried_again() {
    let given = Given::new([scripted("broken", 1, |_, _| async {
        Produced::Failed(Failure::permanent("no_such_file", "it is not there"))
    })]);
    let id = given.create(job("broken").attempts(3)).await;
    let failed = given.until(&id, JobStateName::Failed).await;
    assert_eq!(failed.state_reason.as_deref(), Some("no_such_file"));
    assert_eq!(failed.attempt_count, 1);
}

// conforms: L66
#[tokio::test]
async fn a_panic_of_a_specialist_is_a_failed_attempt_and_nothing_more() {
    let given = Given::new([scripted("panics", 1, |_, _| async { panic!("at the disco") })]);
    let id = given.create(job("panics").attempts(1)).await;
    let failed = given.until(&id, JobStateName::Failed).await;
    assert_eq!(failed.state_reason.as_deref(), Some("executor_panicked"));
    let error = given.store.inner.body(&id.into(), failed.result.error.expect("it has one")).await;
    let error = String::from_utf8(error.unwrap().expect("it is kept")).unwrap();
    assert!(error.contains("specialist raised: at the disco"), "{error}");
}

// conforms: R70
#[tokio::test]
async fn a_cancel_starts_nothing() {
    let started = Arc::new(AtomicUsize::new(0));
    let counted = started.clone();
    let given = Given::new([scripted("asks", 1, move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Produced::AwaitingInput { question: b"null".to_vec() } }
    })]);
    let id = given.create(job("asks")).await;
    given.until(&id, JobStateName::AwaitingInput).await;
    given.order(&id, JobCommand::RequestCancel { by: None, reason: "enough".to_owned() }).await;
    given.settle().await;
    given.clock.advance_seconds(30);
    let ended = given.until(&id, JobStateName::Cancelled).await;
    assert_eq!(ended.state_reason.as_deref(), Some("cancel_unconfirmed"));
    assert_eq!(started.load(Ordering::SeqCst), 1);
}

// conforms: R69
#[tokio::test]
async fn a_cancel_reaches_the_running_attempt_and_is_confirmed_by_it() {
    let given = Given::new([scripted("slow", 1, |_, mut link| async move {
        assert_eq!(link.stopped().await, Stop::Cancelled);
        Produced::Stopped
    })]);
    let id = given.create(job("slow")).await;
    given.until(&id, JobStateName::Dispatching).await;
    given.order(&id, JobCommand::RequestCancel { by: None, reason: "enough".to_owned() }).await;
    let ended = given.until(&id, JobStateName::Cancelled).await;
    assert_eq!(ended.state_reason.as_deref(), Some("cancelled"));
}

#[tokio::test]
async fn an_attempt_past_its_time_limit_is_stopped_and_fails() {
    let given = Given::new([scripted("slow", 1, |_, mut link| async move {
        assert_eq!(link.stopped().await, Stop::TimeOver);
        Produced::Stopped
    })]);
    let id = given.create(job("slow").attempts(1).timeout(10)).await;
    given.until(&id, JobStateName::Dispatching).await;
    given.settle().await;
    given.clock.advance_seconds(10);
    let failed = given.until(&id, JobStateName::Failed).await;
    assert_eq!(failed.state_reason.as_deref(), Some("timed_out"));
}

// conforms: A27
#[tokio::test]
async fn long_work_is_shown_as_running_with_its_progress_and_keeps_its_lease() {
    let given = Given::new([scripted("slow", 1, |_, mut link| async move {
        link.tell(Progress { note: Some("half way".to_owned()), ..Progress::default() });
        link.stopped().await;
        Produced::Stopped
    })]);
    let id = given.create(job("slow")).await;
    given.until(&id, JobStateName::Dispatching).await;
    given.settle().await;
    given.clock.advance_seconds(1);
    let running = given.until(&id, JobStateName::Running).await;
    assert_eq!(running.notes[0].note, "half way");
    let record = id.clone().into();
    for _ in 0..10 {
        given.clock.advance_seconds(20);
        given.settle().await;
        let claim = given.store.inner.load(&record).await.unwrap().unwrap().claim.expect("an attempt has it");
        let (renewed_at, now) = (claim.heartbeat_at, given.clock.now());
        assert!(renewed_at.plus_seconds(30) > now, "it is {now:?}, and was renewed at {renewed_at:?}");
    }
    assert_eq!(given.state_of(&id).await, JobStateName::Running);
}

#[tokio::test]
async fn a_lane_runs_no_more_than_its_executor_allows_and_in_the_order_of_creation() {
    let gate = given::Gate::default();
    let given = Given::new([scripted("one", 1, {
        let gate = gate.clone();
        move |assignment, _| {
            let gate = gate.clone();
            async move {
                gate.pass(&assignment.job.id).await;
                Produced::Completed(Output::default())
            }
        }
    })]);
    let mut ids = Vec::new();
    for _ in 0..3 {
        given.clock.advance_seconds(1);
        ids.push(given.create(job("one")).await);
    }
    for id in &ids {
        gate.arrived(id).await;
        assert_eq!(gate.inside(), 1);
        gate.open();
        given.until(id, JobStateName::Completed).await;
    }
}

#[tokio::test]
async fn a_higher_priority_goes_first() {
    let gate = given::Gate::default();
    let given = Given::new([scripted("one", 1, {
        let gate = gate.clone();
        move |assignment, _| {
            let gate = gate.clone();
            async move {
                gate.pass(&assignment.job.id).await;
                Produced::Completed(Output::default())
            }
        }
    })]);
    let first = given.create(job("one")).await;
    gate.arrived(&first).await;
    let ordinary = given.create(job("one")).await;
    let urgent = given.create(job("one").priority(5)).await;
    for id in [&first, &urgent, &ordinary] {
        gate.arrived(id).await;
        gate.open();
        given.until(id, JobStateName::Completed).await;
    }
}

#[tokio::test]
async fn a_full_lane_does_not_hold_up_another() {
    let given = Given::new([
        scripted("stuck", 1, |_, mut link| async move {
            link.stopped().await;
            Produced::Stopped
        }),
        scripted("quick", 1, |_, _| async { Produced::Completed(Output::default()) }),
    ]);
    for _ in 0..5 {
        given.create(job("stuck")).await;
    }
    let id = given.create(job("quick")).await;
    given.until(&id, JobStateName::Completed).await;
}

#[tokio::test]
async fn a_job_that_asks_goes_on_in_the_same_attempt_with_all_answers_so_far() {
    let given = Given::new([scripted("asks", 1, |assignment, _| async move {
        match &assignment.answers[..] {
            [] => Produced::AwaitingInput { question: br#""which?""#.to_vec() },
            [_] => Produced::AwaitingInput { question: br#""how many?""#.to_vec() },
            answers => {
                let data = [b"[", &answers.join(&b',')[..], b"]"].concat();
                Produced::Completed(Output { data: Some(data), ..Output::default() })
            }
        }
    })]);
    let id = given.create(job("asks")).await;
    let asking = given.until(&id, JobStateName::AwaitingInput).await;
    let question = asking.bodies.iter().find(|body| body.name == BodyName::Question);
    assert_eq!(question, Some(&body_ref(BodyName::Question, br#""which?""#)));
    answer(&given, &id, br#""the red one""#).await;
    given.until(&id, JobStateName::AwaitingInput).await;
    answer(&given, &id, b"2").await;
    let done = given.until(&id, JobStateName::Completed).await;
    assert_eq!(given.result_of(&done).await, br#"["the red one",2]"#);
    assert_eq!(done.attempt_count, 1);
}

#[tokio::test]
async fn an_executor_that_nobody_has_fails_the_job_after_the_grace_period() {
    let given = Given::new([]);
    let id = given.create(job("unheard-of").attempts(1)).await;
    given.settle().await;
    assert_eq!(given.state_of(&id).await, JobStateName::Queued);
    given.clock.advance_seconds(given::GRACE_SECONDS);
    let failed = given.until(&id, JobStateName::Failed).await;
    assert_eq!(failed.state_reason.as_deref(), Some("specialist_unregistered"));
}

#[tokio::test]
async fn what_no_database_can_read_again_is_taken_out_of_what_is_said_for_people_and_refused_elsewhere() {
    let given = Given::new([
        scripted("talks", 1, |_, _| async {
            Produced::Completed(Output { summary: Some("a\0b".to_owned()), ..Output::default() })
        }),
        scripted("raves", 1, |_, _| async { Produced::Failed(Failure::permanent("a\0b", "no")) }),
    ]);
    let talked = given.create(job("talks")).await;
    let talked = given.until(&talked, JobStateName::Completed).await;
    assert_eq!(talked.result.summary.as_deref(), Some("a\u{fffd}b"));
    let raved = given.create(job("raves").attempts(1)).await;
    let raved = given.until(&raved, JobStateName::Failed).await;
    assert_eq!(raved.state_reason.as_deref(), Some("report_refused"));
}

/// A plugin's jobs queue in a lane that is not called like it: after a start they wait for nobody.
#[tokio::test]
async fn the_lane_that_an_executor_says_is_its_own_is_served_from_the_start_and_within_its_places() {
    struct InItsLane(given::Gate);
    impl Specialist for InItsLane {
        fn produce(&self, assignment: Assignment, _: Link) -> BoxFuture<'_, Produced> {
            Box::pin(async move {
                self.0.pass(&assignment.job.id).await;
                Produced::Completed(Output::default())
            })
        }

        fn lane(&self) -> Option<Cow<'_, str>> {
            Some(Cow::Borrowed("plugin:grind"))
        }
    }
    let gate = given::Gate::default();
    let (name, mut grind) = scripted("grind", 2, |_, _| async { Produced::Stopped });
    grind.specialist = Arc::new(InItsLane(gate.clone()));
    let given = Given::new([(name, grind)]);
    for _ in 0..3 {
        given.create(job("grind").lane("plugin:grind")).await;
    }
    given.settle().await;
    assert_eq!(gate.inside(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_what_ends_by_itself_and_hands_back_the_rest() {
    let given = Given::new([scripted("slow", 2, |_, mut link| async move {
        assert_eq!(link.stopped().await, Stop::Shutdown);
        Produced::Stopped
    })]);
    let id = given.create(job("slow").attempts(2)).await;
    given.until(&id, JobStateName::Dispatching).await;
    let Given { daemon, store, clock, .. } = given;
    daemon.stop().await;
    // The next boot finds it due at once, and tries it again.
    let given = Given::on(
        store,
        clock,
        [scripted("slow", 2, |_, _| async { Produced::Completed(Output::default()) })],
    );
    given.until(&id, JobStateName::Queued).await;
    given.clock.advance_seconds(60);
    let done = given.until(&id, JobStateName::Completed).await;
    assert_eq!(done.attempt_count, 2);
}

// conforms: R40
#[tokio::test]
async fn delivered_work_of_which_nobody_hears_again_is_found_when_its_lease_ends() {
    let given = Given::new([scripted("courier", 1, |_, _| async { Produced::Delivered })]);
    let id = given.create(job("courier").attempts(1)).await;
    given.until(&id, JobStateName::Delivered).await;
    given.settle().await;
    given.clock.advance_seconds(120);
    let lost = given.until(&id, JobStateName::Unavailable).await;
    assert_eq!(lost.state_reason.as_deref(), Some("runner_interrupted"));
}

#[tokio::test]
async fn a_result_that_is_too_large_fails_the_job_and_the_record_says_why() {
    let given = Given::new([scripted("verbose", 1, |_, _| async {
        Produced::Completed(Output { data: Some(vec![b'1'; 2_000_000]), ..Output::default() })
    })]);
    let id = given.create(job("verbose")).await;
    let failed = given.until(&id, JobStateName::Failed).await;
    assert_eq!(failed.state_reason.as_deref(), Some("report_refused"));
    assert_eq!(failed.attempt_count, 1);
}

#[tokio::test]
async fn jobs_of_one_executor_wait_for_each_other_whatever_lane_they_come_from() {
    let gate = given::Gate::default();
    let inside = gate.clone();
    let given = Given::new([scripted("press", 1, move |assignment, _| {
        let gate = inside.clone();
        async move {
            gate.pass(&assignment.job.id).await;
            Produced::Completed(Output::default())
        }
    })]);
    let first = given.create(job("press").lane("covers")).await;
    let second = given.create(job("press").lane("pages")).await;
    given.clock.advance_seconds(given::GRACE_SECONDS);
    given.until(&first, JobStateName::Dispatching).await;
    given.until(&second, JobStateName::Dispatching).await;
    given.settle().await;
    assert_eq!(gate.inside(), 1);
    gate.open();
    gate.open();
    given.until(&first, JobStateName::Completed).await;
    given.until(&second, JobStateName::Completed).await;
}

#[tokio::test]
async fn work_that_is_deaf_when_its_time_is_over_fails_all_the_same() {
    let given = Given::new([scripted("deaf", 1, |_, _| std::future::pending())]);
    let id = given.create(job("deaf").attempts(1).timeout(10)).await;
    given.until(&id, JobStateName::Dispatching).await;
    for _ in 0..2 {
        given.settle().await;
        given.clock.advance_seconds(30);
    }
    let failed = given.until(&id, JobStateName::Failed).await;
    assert_eq!(failed.state_reason.as_deref(), Some("timed_out"));
}
