//! The contract with specialists: what they are given, what is theirs alone, what they may count on when a process ends.

use std::sync::{Arc, Mutex};

use domain::Fact;
use domain::job::{JobFact, JobStateName, Trigger};
use domain::operation::{OperationFact, PollError};
use engine::{
    Assignment, Deferral, Executor, Executors, Failure, Link, Modes, Outside, Polled, Produced, RunOrder,
    Specialist,
};
use futures::future::BoxFuture;
use store::Store;

use crate::given::{self, Given, in_a_process_that_dies, job, scripted};
use crate::specialist::{Answer, Scripted, done, goes_on};

#[tokio::test]
async fn an_attempt_is_given_its_job_with_circle_kind_and_input_and_who_made_it_and_why() {
    let seen: Arc<Mutex<Vec<Assignment>>> = Arc::default();
    let sees = seen.clone();
    let given = Given::new([scripted("press", 1, move |assignment, _| {
        sees.lock().expect("no holder of the lock panics").push(assignment);
        async { Produced::Failed(Failure::permanent("no_paper", "none")) }
    })]);
    let id = given.create(job("press").circle("acme").by("peer-ada").input(b"{\"pages\":12}")).await;
    given.until(&id, JobStateName::Failed).await;
    let order = RunOrder { actor: Arc::from("token:ann"), keys: Vec::new() };
    given.daemon.run_now(&id, Trigger::Retry, order).await.unwrap();
    given.until(&id, JobStateName::Failed).await;
    let seen = seen.lock().expect("no holder of the lock panics").clone();
    for (assignment, (trigger, number)) in seen.iter().zip([(Trigger::Automatic, 1), (Trigger::Retry, 2)]) {
        let Assignment { job, attempt_id, attempt_number, input, .. } = assignment;
        assert_eq!((&job.id, job.spec.executor.as_deref()), (&id, Some("press")));
        assert_eq!((job.spec.circle.as_deref(), &input[..]), (Some("acme"), &b"{\"pages\":12}"[..]));
        assert_eq!(job.spec.created_by_peer_id.as_deref(), Some("peer-ada"));
        let attempt = job.last_attempt().expect("it is dispatched");
        assert_eq!((&attempt.id, attempt.trigger, *attempt_number), (attempt_id, trigger, number));
    }
    assert_eq!(seen.len(), 2);
}

/// Leaves work outside under a handle, and remembers what it is asked about.
struct Remembers {
    handle: Vec<u8>,
    asked: Mutex<Vec<Outside>>,
}

impl Specialist for Remembers {
    fn produce(&self, _: Assignment, _: Link) -> BoxFuture<'_, Produced> {
        let deferral = Deferral::new(self.handle.clone());
        Box::pin(async { Produced::Deferred(deferral) })
    }

    fn poll(&self, outside: Outside) -> BoxFuture<'_, Result<Polled, PollError>> {
        self.asked.lock().expect("no holder of the lock panics").push(outside);
        Box::pin(async { Ok(Polled::TimedOut) })
    }
}

// conforms: L16 L19 L15
#[tokio::test]
async fn a_poll_is_given_the_job_its_circle_and_the_handle_byte_for_byte() {
    let handle: Vec<u8> = (0..=255).rev().collect();
    let press = Arc::new(Remembers { handle: handle.clone(), asked: Mutex::default() });
    let executor = Executor {
        specialist: press.clone(),
        concurrency: 1,
        retry: Executors::DEFAULT_RETRY,
        modes: Modes::default(),
    };
    let given = Given::new([("press".to_owned(), executor)]);
    let id = given.create(job("press").circle("acme")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.next_poll(&id).await;
    let asked = press.asked.lock().expect("no holder of the lock panics").clone();
    let [outside] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(outside.handle, handle);
    assert_eq!(
        (&outside.operation.link.job_id, outside.operation.link.circle.as_deref()),
        (&id, Some("acme"))
    );
    assert_eq!(outside.operation.progress_hint, None, "a handle need not have one");
}

// conforms: L20
#[tokio::test]
async fn what_a_poll_hands_over_is_committed_with_the_end_of_the_operation_and_of_the_job() {
    let press = Scripted::deferring([done()]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    let before = given.store.commits();
    given.next_poll(&id).await;
    let completed = given.until(&id, JobStateName::Completed).await;
    assert_eq!(given.store.commits(), before + 1);
    assert_eq!(given.result_of(&completed).await, b"12");
    let facts = given.store.inner.facts_after(0, 1_000).await.unwrap();
    let resolved = facts.iter().find(|fact| matches!(fact.fact, Fact::Operation(OperationFact::Resolved(_))));
    let finished = facts.iter().find(|fact| matches!(fact.fact, Fact::Job(JobFact::Completed(_))));
    assert_eq!(resolved.unwrap().at, finished.unwrap().at);
}

// conforms: L25 L26 L3
#[tokio::test]
async fn a_question_that_died_with_its_process_is_asked_again_and_nothing_was_written_for_it() {
    let (id, store, clock) = in_a_process_that_dies(async {
        let press = Scripted::deferring([Answer::Hangs]);
        let given = Given::new([press.named("press")]);
        let id = given.create(job("press")).await;
        given.until(&id, JobStateName::AwaitingExternal).await;
        let before = given.operation_of(&id).await;
        given.next_poll(&id).await;
        assert_eq!(press.times("poll press-7"), 1);
        assert_eq!(given.operation_of(&id).await, before, "a question changes nothing by itself");
        (id, given.store, given.clock)
    });
    let press = Scripted::deferring([done()]);
    let given = Given::on(store, clock, [press.named("press")]);
    // The claim of the dead process ends with its lease.
    given.clock.advance_seconds(60);
    given.until(&id, JobStateName::Completed).await;
    assert_eq!((press.times("produce"), press.times("poll press-7")), (0, 1), "the same question");
}

// conforms: L30
#[test]
fn the_idempotence_contract_stands_with_the_interface() {
    let interface = include_str!("../../src/specialist.rs");
    for said in [
        "**The idempotence contract.**",
        "`poll` is a question, never an action",
        "the same question may be asked twice",
    ] {
        assert!(interface.contains(said), "{said}");
    }
}

// conforms: L69 L98
#[tokio::test]
async fn the_scripted_specialist_gives_one_answer_of_its_list_to_each_call() {
    let failure = Failure::permanent("no_ink", "there is no ink");
    let press =
        Scripted::deferring([goes_on(5, "page 1"), Answer::Raises, Answer::Says(Polled::Failed(failure))]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.next_poll(&id).await;
    assert_eq!(given.operation_of(&id).await.progress_hint.as_deref(), Some("page 1"));
    given.next_poll(&id).await;
    assert_eq!(given.operation_of(&id).await.errors_in_row, 1);
    given.next_poll(&id).await;
    assert_eq!(given.until(&id, JobStateName::Failed).await.state_reason.as_deref(), Some("no_ink"));
    assert_eq!(press.times("poll"), 3);
}

// conforms: L60 L3
#[tokio::test(start_paused = true)]
async fn a_daemon_that_stops_waits_for_its_questions_half_a_minute_and_not_longer() {
    let door = Arc::new(tokio::sync::Semaphore::new(0));
    let twelve =
        || Polled::Completed(engine::Output { data: Some(b"12".to_vec()), ..engine::Output::default() });
    for (answers_after, ends_as) in [(29, JobStateName::Completed), (31, JobStateName::AwaitingExternal)] {
        let press = Scripted::deferring([Answer::SaysOnce(door.clone(), twelve())]);
        let given = Given::new([press.named("press")]);
        let id = given.create(job("press")).await;
        given.until(&id, JobStateName::AwaitingExternal).await;
        given.next_poll(&id).await;
        assert_eq!(press.times("poll"), 1);
        let began = tokio::time::Instant::now();
        let opens = door.clone();
        tokio::spawn(async move {
            tokio::time::sleep(std::time::Duration::from_secs(answers_after)).await;
            opens.add_permits(1);
        });
        given.daemon.stop().await;
        assert_eq!(given.state_of(&id).await, ends_as, "{answers_after}");
        assert!(began.elapsed().as_secs() <= 30, "{:?}", began.elapsed());
        tokio::time::sleep(std::time::Duration::from_mins(1)).await;
        let _ = door.try_acquire().map(tokio::sync::SemaphorePermit::forget);
        assert_eq!(given.state_of(&id).await, ends_as, "what was given up writes nothing");
        // Whoever comes next asks at once: the claim was given back.
        if ends_as == JobStateName::AwaitingExternal {
            let Given { store, clock, .. } = given;
            let other = Scripted::deferring([done()]);
            let given = Given::on(store, clock, [other.named("press")]);
            given.until(&id, JobStateName::Completed).await;
        }
    }
}

#[tokio::test]
async fn the_polling_ends_before_the_attempts_do_and_what_they_report_is_kept() {
    let gate = given::Gate::default();
    let inside = gate.clone();
    let press = Scripted::deferring([done()]);
    let slow = scripted("slow", 1, move |assignment, _| {
        let gate = inside.clone();
        async move {
            gate.pass(&assignment.job.id).await;
            Produced::Completed(engine::Output::default())
        }
    });
    let given = Given::new([press.named("press"), slow]);
    let outside = given.create(job("press")).await;
    given.until(&outside, JobStateName::AwaitingExternal).await;
    let running = given.create(job("slow")).await;
    gate.arrived(&running).await;
    let daemon = given.daemon.clone();
    let stopped = tokio::spawn(async move { daemon.stop().await });
    given.settle().await;
    given.next_poll(&outside).await;
    assert_eq!(press.times("poll"), 0, "nobody polls any more");
    gate.open();
    stopped.await.unwrap();
    assert_eq!(given.state_of(&running).await, JobStateName::Completed);
}
