//! Work that goes on outside: deferred, polled when it is due, resumed after a restart. The clock is moved by hand.

use std::sync::Arc;

use domain::job::JobStateName;
use domain::operation::{
    CancelOrigin, Ending, How, OperationCommand, OperationFact, OperationStatus, OrphanReason,
};
use domain::policy::Hint;
use domain::{Fact, Timestamp};
use engine::{Clock, Deferral, Failure, Order, Output, Outside, Polled, Produced};
use store::Store;

use crate::given::{self, Given, job, scripted};
use crate::specialist::{Answer, Scripted, done, goes_on, handle};

// conforms: L8 L14 L15 L32 L65 L75
#[tokio::test]
async fn a_handle_leaves_a_record_and_the_job_waits_for_it_in_one_commit() {
    let external_job_id = Some("r-7".to_owned());
    let unlike_the_default = Deferral { retry_after: Hint::Seconds(7), external_job_id, ..handle() };
    let press = Scripted::producing([Produced::Deferred(unlike_the_default)], []);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    let waiting = given.until(&id, JobStateName::AwaitingExternal).await;
    let operation = given.operation_of(&id).await;
    assert_eq!(waiting.state.name(), JobStateName::AwaitingExternal);
    assert_eq!((&operation.link.job_id, &operation.link.kind[..]), (&id, "press"));
    assert_eq!((&operation.link.specialist[..], operation.interval_seconds), ("scripted", 7));
    assert_eq!(operation.progress_hint.as_deref(), Some("queued at the press"));
    assert_eq!(operation.external_job_id.as_deref(), Some("r-7"));
    assert_eq!(operation.status(), OperationStatus::Pending);
    let kept = given.store.inner.body(&operation.id.clone().into(), operation.handle.unwrap()).await.unwrap();
    assert_eq!(kept.as_deref(), Some(&b"press-7"[..]));
    let facts = given.store.inner.facts_after(0, 100).await.unwrap();
    let [_, dispatched, job_fact, operation_fact] = &facts[..] else { panic!("{facts:?}") };
    assert!(matches!(dispatched.fact, Fact::Job(domain::job::JobFact::Dispatched { .. })));
    assert!(matches!(job_fact.fact, Fact::Job(domain::job::JobFact::Deferred { .. })));
    assert!(matches!(operation_fact.fact, Fact::Operation(OperationFact::Dispatched(_))));
    assert_eq!(operation.dispatched_at, operation_fact.at);
    assert_eq!((operation.last_polled_at, operation.completed_at()), (None, None));
    assert_eq!(operation_fact.position, job_fact.position + 1, "nothing comes between the two");
}

// conforms: L64
#[tokio::test]
async fn create_does_not_wait_for_the_handle() {
    let gate = given::Gate::default();
    let inside = gate.clone();
    let given = Given::new([scripted("press", 1, move |assignment, _| {
        let gate = inside.clone();
        async move {
            gate.pass(&assignment.job.id).await;
            Produced::Deferred(handle())
        }
    })]);
    let id = given.create(job("press")).await;
    gate.arrived(&id).await;
    assert_eq!(given.state_of(&id).await, JobStateName::Dispatching);
    gate.open();
    given.until(&id, JobStateName::AwaitingExternal).await;
    assert_eq!(given.operation_of(&id).await.status(), OperationStatus::Pending);
}

// conforms: L8 L11 L29 L76
#[tokio::test]
async fn a_finished_result_leaves_no_record_and_is_never_polled() {
    let press = Scripted::producing([Produced::Completed(Output::default())], []);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::Completed).await;
    given.clock.advance_seconds(3_600);
    given.settle().await;
    assert_eq!(press.times("poll"), 0);
    let facts = given.store.inner.facts_after(0, 100).await.unwrap();
    let [_, dispatched, completed] = &facts[..] else { panic!("{facts:?}") };
    assert!(matches!(dispatched.fact, Fact::Job(domain::job::JobFact::Dispatched { .. })));
    assert!(matches!(completed.fact, Fact::Job(domain::job::JobFact::Completed(_))));
    assert_eq!(given.store.commits(), 3, "one for each of them");
}

// conforms: L8 L12 L13 L29 L77
#[tokio::test]
async fn a_failure_leaves_no_record_and_one_failed_fact() {
    let failure = Failure::permanent("no_paper", "out of paper");
    let press = Scripted::producing([Produced::Failed(failure)], []);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::Failed).await;
    given.clock.advance_seconds(3_600);
    given.settle().await;
    assert_eq!(press.times("poll"), 0);
    let facts = given.store.inner.facts_after(0, 100).await.unwrap();
    let [_, dispatched, failed] = &facts[..] else { panic!("{facts:?}") };
    assert!(matches!(dispatched.fact, Fact::Job(domain::job::JobFact::Dispatched { .. })));
    assert!(matches!(failed.fact, Fact::Job(domain::job::JobFact::Failed(_))));
    assert_eq!(given.store.commits(), 3, "one for each of them");
}

// conforms: L18 L21 L41 L69 L78 L90
#[tokio::test]
async fn two_handles_and_a_result_are_three_polls_two_polled_facts_one_resolved_and_a_completed_job() {
    let press = Scripted::deferring([goes_on(5, "page 1"), goes_on(5, "page 2"), done()]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    for _ in 0..2 {
        given.next_poll(&id).await;
    }
    let before = given.store.inner.facts_after(0, 100).await.unwrap().len();
    given.next_poll(&id).await;
    let completed = given.until(&id, JobStateName::Completed).await;
    let last = given.store.inner.facts_after(0, 100).await.unwrap().split_off(before);
    let ends: Vec<_> = last.iter().map(|fact| kind(&fact.fact)).collect();
    assert_eq!(ends, ["job", "resolved"], "the resolution and the end of the job, and nothing more");
    assert_eq!(given.result_of(&completed).await, b"12");
    let how = given.operation_of(&id).await.ended.unwrap().how;
    assert!(
        matches!(how, How::Resolved(Ending::Completed { result }) if result.data == completed.result.data)
    );
    assert_eq!(press.times("poll press-7"), 3);
    assert_eq!(completed.attempt_count, 1, "polls are no attempts");
    let kinds: Vec<_> = given.facts_of_operation(&id).await.iter().map(|fact| kind(&fact.fact)).collect();
    assert_eq!(kinds, ["dispatched", "polled", "polled", "resolved"]);
}

fn kind(fact: &Fact) -> &'static str {
    match (fact.as_job(), fact.as_operation()) {
        (Some(_), _) => "job",
        (_, Some(OperationFact::Dispatched(_))) => "dispatched",
        (_, Some(OperationFact::Polled(_))) => "polled",
        (_, Some(OperationFact::Resolved(_))) => "resolved",
        (_, _) => "other",
    }
}

// conforms: L4 L5 L48 L49 L79
#[tokio::test]
async fn the_next_poll_comes_after_the_interval_that_was_said_last() {
    let press = Scripted::deferring([goes_on(2, "a"), goes_on(10, "b")]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.next_poll(&id).await;
    let polled_at = given.clock.now();
    assert_within(given.operation_of(&id).await.next_poll_at, polled_at, 2);
    given.next_poll(&id).await;
    let polled_at = given.clock.now();
    assert_within(given.operation_of(&id).await.next_poll_at, polled_at, 10);
    // A moment before it is due nobody asks.
    let due_at = given.operation_of(&id).await.next_poll_at;
    given.clock.set(due_at.plus_micros(-1));
    given.settle().await;
    assert_eq!(press.times("poll"), 2);
    given.clock.set(due_at);
    given.settle().await;
    assert_eq!(press.times("poll"), 3);
    // Nothing new is said of it: it stays as it is, however often it is asked.
    for _ in 0..5 {
        assert_within(given.operation_of(&id).await.next_poll_at, given.clock.now(), 10);
        given.next_poll(&id).await;
    }
    assert_eq!(press.times("poll"), 8);
}

/// After the interval, and no more than a tenth of it later.
fn assert_within(next: Timestamp, from: Timestamp, seconds: u32) {
    let (earliest, latest) =
        (from.plus_seconds(u64::from(seconds)), from.plus_micros(i64::from(seconds) * 1_100_000));
    assert!(earliest <= next && next <= latest, "{next:?} is not in {earliest:?}..{latest:?}");
}

// conforms: L22 L47 L80
#[tokio::test]
async fn each_hint_is_in_its_fact_and_the_newest_in_the_view() {
    let press = Scripted::deferring([goes_on(5, "page 1"), goes_on(9, "page 2")]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    // The interval stands in the fact when it is another than before.
    for (hint, changed, interval) in [("page 1", None, 5), ("page 2", Some(9), 9)] {
        given.next_poll(&id).await;
        let facts = given.facts_of_operation(&id).await;
        assert!(matches!(&facts.last().unwrap().fact, Fact::Operation(OperationFact::Polled(polled))
            if polled.progress_hint.as_deref() == Some(hint) && polled.interval_seconds == changed));
        let operation = given.operation_of(&id).await;
        assert_eq!((operation.progress_hint.as_deref(), operation.interval_seconds), (Some(hint), interval));
        assert_eq!(given.state_of(&id).await, JobStateName::AwaitingExternal);
    }
}

// conforms: L17 L18 L23 L24 L81 L91
#[tokio::test]
async fn a_failure_outside_fails_the_job_with_its_detail_and_code() {
    let failure = Failure::permanent("no_paper", "out of paper");
    let press = Scripted::deferring([Answer::Says(Polled::Failed(failure))]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    let before = given.store.inner.facts_after(0, 100).await.unwrap().len();
    given.next_poll(&id).await;
    let failed = given.until(&id, JobStateName::Failed).await;
    let last = given.store.inner.facts_after(0, 100).await.unwrap().split_off(before);
    let ends: Vec<_> = last.iter().map(|fact| kind(&fact.fact)).collect();
    assert_eq!(ends, ["job", "resolved"], "the resolution and the end of the job, and nothing more");
    assert_eq!(failed.state_reason.as_deref(), Some("no_paper"));
    let error = given.store.inner.body(&id.clone().into(), failed.result.error.unwrap()).await.unwrap();
    assert!(String::from_utf8(error.unwrap()).unwrap().contains("out of paper"));
    let operation = given.operation_of(&id).await;
    let told = operation.failure_detail().unwrap();
    assert!(told.starts_with("no_paper: ") && !told.contains("out of paper"), "{told}");
    assert!(matches!(operation.ended.unwrap().how, How::Resolved(Ending::Failed { error_code, .. })
        if error_code.as_deref() == Some("no_paper")));
}

// conforms: L56 L82
#[tokio::test]
async fn an_operation_whose_executor_nobody_has_fails_its_job_after_the_grace_period() {
    let press = Scripted::deferring([]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    let Given { store, clock, daemon, .. } = given;
    drop(daemon);
    given::settle().await;
    clock.advance_seconds(60);
    let given = Given::on(store, clock, []);
    given.settle().await;
    assert_eq!(given.state_of(&id).await, JobStateName::AwaitingExternal, "it may still come");
    given.clock.advance_seconds(given::GRACE_SECONDS);
    let failed = given.until(&id, JobStateName::Failed).await;
    assert_eq!(failed.state_reason.as_deref(), Some("specialist_unregistered"));
    let operation = given.operation_of(&id).await;
    assert_eq!(operation.orphan(), Some(OrphanReason::NobodyToAsk), "it may go on outside");
    // Nobody can ask to stop it either: that is tried now and then, and not again and again.
    let by = None;
    let command =
        OperationCommand::RequestCancel { by, reason: "enough".to_owned(), origin: CancelOrigin::Caller };
    let order = Order::new(operation.id.clone(), command, Arc::from("operator"));
    given.daemon.engine().execute(order).await.unwrap();
    given.settle().await;
    let cancel = given.operation_of(&id).await.cancel.expect("it was asked for");
    assert_eq!(cancel.answers.len(), 1);
    assert!(cancel.next_try_at.is_some_and(|at| at > given.clock.now()), "{cancel:?}");
}

#[tokio::test]
async fn a_service_that_names_its_error_like_ours_leaves_no_orphan() {
    let failed = Answer::Says(Polled::Failed(Failure::permanent("specialist_unregistered", "ours is away")));
    let press = Scripted::deferring([failed]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.next_poll(&id).await;
    given.until(&id, JobStateName::Failed).await;
    assert_eq!(given.operation_of(&id).await.orphan(), None);
}

// conforms: L57 L58 L83
#[tokio::test]
async fn a_poll_that_raises_is_written_down_backed_off_and_asked_again() {
    let press = Scripted::deferring([Answer::Raises, done()]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.next_poll(&id).await;
    let operation = given.operation_of(&id).await;
    assert_eq!(given.state_of(&id).await, JobStateName::AwaitingExternal);
    assert_eq!((operation.polls, operation.last_polled_at), (1, Some(given.clock.now())));
    assert_eq!(
        (operation.interval_seconds, operation.progress_hint.as_deref()),
        (5, Some("queued at the press"))
    );
    assert_eq!(operation.last_error.as_ref().map(|error| &error.code[..]), Some("poll_raised"));
    assert!(operation.next_poll_at > given.clock.now(), "it is not asked again at once");
    let kinds: Vec<_> = given.facts_of_operation(&id).await.iter().map(|fact| kind(&fact.fact)).collect();
    assert_eq!(kinds, ["dispatched", "polled"]);
    given.next_poll(&id).await;
    given.until(&id, JobStateName::Completed).await;
}

// conforms: L2 L3 L50 L84
#[tokio::test]
async fn a_fresh_daemon_on_the_same_store_goes_on_where_the_other_was() {
    let (soon, late) =
        (Scripted::deferring([goes_on(20, "page 1")]), Scripted::deferring([goes_on(90, "page 7")]));
    let given = Given::new([soon.named("soon"), late.named("late")]);
    let mut ids = Vec::new();
    for name in ["soon", "late"] {
        let id = given.create(job(name)).await;
        given.until(&id, JobStateName::AwaitingExternal).await;
        given.next_poll(&id).await;
        ids.push(id);
    }
    let (soon_before, late_before) = (given.operation_of(&ids[0]).await, given.operation_of(&ids[1]).await);
    let Given { store, clock, daemon, .. } = given;
    drop(daemon);
    given::settle().await;
    // One became due while nobody was there: the first look of the next process finds it, and leaves the other alone.
    clock.set(soon_before.next_poll_at);
    let (soon, late) = (Scripted::deferring([done()]), Scripted::deferring([done()]));
    let given = Given::on(store, clock, [soon.named("soon"), late.named("late")]);
    given.until(&ids[0], JobStateName::Completed).await;
    assert_eq!((soon.times("produce"), soon.times("poll press-7")), (0, 1));
    // It keeps the interval that the other process was told.
    given.clock.set(late_before.next_poll_at.plus_micros(-1));
    given.settle().await;
    assert_eq!((late.times("poll"), given.operation_of(&ids[1]).await), (0, late_before.clone()));
    given.clock.set(late_before.next_poll_at);
    given.until(&ids[1], JobStateName::Completed).await;
    assert_eq!((late.times("produce"), late.times("poll press-7")), (0, 1));
}

// conforms: L51 L52 L53 L54 L85
#[tokio::test]
async fn a_poll_that_hangs_holds_up_no_other() {
    let hangs = Scripted::deferring([Answer::Hangs]);
    let quick =
        [Scripted::deferring([goes_on(2, "a"), done()]), Scripted::deferring([goes_on(2, "b"), done()])];
    let door = Arc::new(tokio::sync::Semaphore::new(0));
    let slow = Scripted::deferring([Answer::SaysOnce(door.clone(), Polled::Completed(Output::default()))]);
    let raises = Scripted::deferring([Answer::Raises]);
    let given = Given::new([
        hangs.named("hangs"),
        quick[0].named("one"),
        quick[1].named("two"),
        slow.named("slow"),
        raises.named("raises"),
    ]);
    let mut ids = Vec::new();
    for name in ["hangs", "one", "two", "slow", "raises"] {
        let id = given.create(job(name)).await;
        given.until(&id, JobStateName::AwaitingExternal).await;
        ids.push(id);
    }
    let before = given.store.commits();
    given.clock.advance_seconds(6);
    given.settle().await;
    assert_eq!([&hangs, &quick[0], &quick[1], &slow, &raises].map(|one| one.times("poll")), [1; 5]);
    let mut polls = Vec::new();
    for id in &ids {
        polls.push(given.operation_of(id).await.polls);
    }
    assert_eq!(polls, [0, 1, 1, 0, 1], "nobody waits for another, and one that raises takes nothing with it");
    assert_eq!(given.store.commits(), before + 3, "each is written down alone");
    // The others are asked a second time while the first still hangs.
    given.clock.set(
        given.operation_of(&ids[1]).await.next_poll_at.max(given.operation_of(&ids[2]).await.next_poll_at),
    );
    given.until(&ids[1], JobStateName::Completed).await;
    given.until(&ids[2], JobStateName::Completed).await;
    let stalled = given.operation_of(&ids[0]).await;
    assert_eq!((stalled.polls, stalled.last_error), (0, None), "it has not been given up meanwhile");
    given.settle().await;
    let before = given.store.commits();
    door.add_permits(1);
    given.until(&ids[3], JobStateName::Completed).await;
    assert_eq!(given.store.commits(), before + 1, "it comes later, and alone");
    given.clock.advance_seconds(5);
    given.settle().await;
    let stalled = given.operation_of(&ids[0]).await;
    assert_eq!(stalled.last_error.map(|error| error.code).as_deref(), Some("poll_timed_out"));
    assert_eq!(given.state_of(&ids[0]).await, JobStateName::AwaitingExternal);
}

// conforms: L59 L67 L92 L99
#[tokio::test]
async fn unexpected_answer_fails_the_job_and_names_found_and_expected() {
    let press = Scripted::deferring([Answer::Says(Polled::Failed(Failure::unexpected_poll("a Printer")))]);
    let odd = Scripted::producing([Produced::Unexpected("a Printer".to_owned())], []);
    let given = Given::new([press.named("press"), odd.named("odd")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.next_poll(&id).await;
    let failed = given.until(&id, JobStateName::Failed).await;
    let is_named = |job: &domain::job::Job| {
        // One kind of error: what differs is who was given the answer.
        job.state_reason.as_deref().is_some_and(|reason| reason.ends_with("_returned_unexpected_type"))
    };
    assert!(is_named(&failed), "{:?}", failed.state_reason);
    assert_eq!(failed.state_reason.as_deref(), Some("poll_returned_unexpected_type"));
    let told = async |job: &domain::job::Job| {
        let error = job.result.error.expect("it has one");
        let error = given.store.inner.body(&job.id.clone().into(), error).await.unwrap();
        String::from_utf8(error.expect("it is kept")).unwrap()
    };
    let message = told(&failed).await;
    assert!(message.contains("a Printer; expected is one of Open, Completed, Failed"), "{message}");
    let id = given.create(job("odd")).await;
    let failed = given.until(&id, JobStateName::Failed).await;
    assert!(is_named(&failed), "{:?}", failed.state_reason);
    assert_eq!(failed.state_reason.as_deref(), Some("produce_returned_unexpected_type"));
    let message = told(&failed).await;
    assert!(message.contains("a Printer; expected is one of Completed, Failed, Unavailable"), "{message}");
}

// conforms: L28
#[tokio::test]
async fn a_specialist_that_never_defers_says_so_when_it_is_asked() {
    let (_, executor) = scripted("plain", 1, |_, _| async { Produced::Completed(Output::default()) });
    let press = Scripted::deferring([]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    let outside = Outside { operation: Arc::new(given.operation_of(&id).await), handle: Vec::new() };
    let error = executor.specialist.poll(outside).await.unwrap_err();
    assert_eq!(error.code, "poll_not_supported");
}
