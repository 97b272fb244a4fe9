//! Work that goes on outside: deferred, polled when it is due, cancelled out there, given up in time. The clock is moved by hand.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use domain::job::{CancelAnswer, JobCommand, JobState, JobStateName};
use domain::operation::{
    Ending, How, Operation, OperationFact, OperationStatus, OrphanReason, PollError, PollHints,
    ReportedStatus,
};
use domain::policy::Hint;
use domain::{Fact, JobId, OperationId, Record, Timestamp};
use engine::{
    Assignment, Clock, Deferral, Executor, Executors, Failure, Link, Output, Outside, Polled, Produced,
    Specialist,
};
use futures::future::BoxFuture;
use store::{Store, StoredFact};
use tokio::sync::Notify;

use crate::given::{self, Given, job, scripted};

/// A deterministic specialist: hands out a handle, then answers its polls from a list, one per call.
pub struct Scripted {
    produces: Mutex<VecDeque<Produced>>,
    polls: Mutex<VecDeque<Answer>>,
    cancels: Mutex<VecDeque<CancelAnswer>>,
    pub asked: Mutex<Vec<String>>,
    pub polled: Notify,
}

pub enum Answer {
    Says(Polled),
    Raises,
    Hangs,
}

impl Scripted {
    pub fn deferring<const N: usize>(polls: [Answer; N]) -> Arc<Self> {
        Self::producing([Produced::Deferred(handle())], polls)
    }

    pub fn producing<const M: usize, const N: usize>(
        produces: [Produced; M],
        polls: [Answer; N],
    ) -> Arc<Self> {
        Arc::new(Self {
            produces: Mutex::new(VecDeque::from(produces)),
            polls: Mutex::new(VecDeque::from(polls)),
            cancels: Mutex::default(),
            asked: Mutex::default(),
            polled: Notify::new(),
        })
    }

    fn answering_cancels<const N: usize>(self: Arc<Self>, answers: [CancelAnswer; N]) -> Arc<Self> {
        self.cancels.lock().expect("no holder of the lock panics").extend(answers);
        self
    }

    pub fn named(self: &Arc<Self>, name: &str) -> (String, Executor) {
        let specialist = self.clone();
        (
            name.to_owned(),
            Executor {
                specialist,
                concurrency: 8,
                retry: Executors::DEFAULT_RETRY,
                modes: engine::Modes::default(),
            },
        )
    }

    fn times(&self, what: &str) -> usize {
        self.asked
            .lock()
            .expect("no holder of the lock panics")
            .iter()
            .filter(|asked| asked.starts_with(what))
            .count()
    }
}

impl Specialist for Scripted {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed("scripted")
    }

    fn produce(&self, assignment: Assignment, _: Link) -> BoxFuture<'_, Produced> {
        self.asked.lock().expect("no holder of the lock panics").push(match &assignment.arrived {
            None => format!("produce {}", assignment.attempt_number),
            Some(arrived) => {
                format!("produce {} with {}", assignment.attempt_number, String::from_utf8_lossy(arrived))
            }
        });
        let next = self.produces.lock().expect("no holder of the lock panics").pop_front();
        Box::pin(async { next.unwrap_or(Produced::Deferred(handle())) })
    }

    fn poll(&self, outside: Outside) -> BoxFuture<'_, Result<Polled, PollError>> {
        self.asked
            .lock()
            .expect("no holder of the lock panics")
            .push(format!("poll {}", String::from_utf8_lossy(&outside.handle)));
        let next = self.polls.lock().expect("no holder of the lock panics").pop_front();
        self.polled.notify_one();
        Box::pin(async {
            match next {
                Some(Answer::Says(polled)) => Ok(polled),
                Some(Answer::Raises) => panic!("the service is upside down"),
                Some(Answer::Hangs) => std::future::pending().await,
                None => Ok(running(Hint::Absent, None)),
            }
        })
    }

    fn cancel(&self, outside: Outside) -> BoxFuture<'_, CancelAnswer> {
        self.asked
            .lock()
            .expect("no holder of the lock panics")
            .push(format!("cancel {}", String::from_utf8_lossy(&outside.handle)));
        let next = self
            .cancels
            .lock()
            .expect("no holder of the lock panics")
            .pop_front()
            .unwrap_or(CancelAnswer::Unreachable);
        Box::pin(async { next })
    }
}

pub fn handle() -> Deferral {
    let progress_hint = Some("queued at the press".to_owned());
    Deferral { retry_after: Hint::Seconds(5), progress_hint, ..Deferral::new(b"press-7".to_vec()) }
}

fn running(retry_after: Hint, progress_hint: Option<&str>) -> Polled {
    let progress_hint = progress_hint.map(str::to_owned);
    Polled::Open(ReportedStatus::Running, PollHints { retry_after, progress_hint, ..PollHints::default() })
}

fn goes_on(seconds: i64, hint: &str) -> Answer {
    Answer::Says(running(Hint::Seconds(seconds), Some(hint)))
}

fn done() -> Answer {
    Answer::Says(Polled::Completed(Output { data: Some(b"12".to_vec()), ..Output::default() }))
}

impl Given {
    pub async fn operation_of(&self, id: &JobId) -> Operation {
        let operation = self.operation_id_of(id).await;
        let loaded =
            self.store.inner.load(&operation.into()).await.expect("it can be read").expect("it is there");
        match &*loaded.record {
            Record::Operation(operation) => Operation::clone(operation),
            Record::Job(_) => unreachable!("an operation's id names an operation"),
        }
    }

    /// The operation that the job's facts name last.
    async fn operation_id_of(&self, id: &JobId) -> OperationId {
        let facts = self.store.inner.facts_of(&id.clone().into(), 0, 1_000).await.expect("it can be read");
        let deferred = facts.iter().rev().find_map(|fact| match &fact.fact {
            Fact::Job(domain::job::JobFact::Deferred { operation_id, .. }) => Some(operation_id.clone()),
            Fact::Job(domain::job::JobFact::SubmitIntended(intent)) => Some(intent.operation_id.clone()),
            Fact::Job(_) | Fact::Operation(_) => None,
        });
        deferred.expect("it was deferred")
    }

    async fn facts_of_operation(&self, id: &JobId) -> Vec<StoredFact> {
        let operation = self.operation_id_of(id).await;
        self.store.inner.facts_of(&operation.into(), 0, 1_000).await.expect("it can be read")
    }

    /// Moves the clock to the next poll, and lets it happen.
    pub async fn next_poll(&self, id: &JobId) {
        let operation = self.operation_of(id).await;
        self.clock.set(operation.next_poll_at);
        self.settle().await;
    }
}

// conforms: L8 L14 L15 L64 L65 L68 L75
#[tokio::test]
async fn a_handle_leaves_a_record_and_the_job_waits_for_it_in_one_commit() {
    let press = Scripted::deferring([]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    let waiting = given.until(&id, JobStateName::AwaitingExternal).await;
    let operation = given.operation_of(&id).await;
    assert_eq!(waiting.state.name(), JobStateName::AwaitingExternal);
    assert_eq!((&operation.link.job_id, &operation.link.kind[..]), (&id, "press"));
    assert_eq!((&operation.link.specialist[..], operation.interval_seconds), ("scripted", 5));
    assert_eq!(operation.progress_hint.as_deref(), Some("queued at the press"));
    assert_eq!(operation.status(), OperationStatus::Pending);
    let kept = given.store.inner.body(&operation.id.clone().into(), operation.handle.unwrap()).await.unwrap();
    assert_eq!(kept.as_deref(), Some(&b"press-7"[..]));
    let facts = given.store.inner.facts_after(0, 100).await.unwrap();
    let [.., job_fact, operation_fact] = &facts[..] else { panic!("{facts:?}") };
    assert!(matches!(job_fact.fact, Fact::Job(domain::job::JobFact::Deferred { .. })));
    assert!(matches!(operation_fact.fact, Fact::Operation(OperationFact::Dispatched(_))));
    assert_eq!(operation_fact.position, job_fact.position + 1, "nothing comes between the two");
}

// conforms: L1 L10 L11 L29 L76
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
    assert!(facts.iter().all(|fact| matches!(fact.fact, Fact::Job(_))));
}

// conforms: L12 L13 L77
#[tokio::test]
async fn a_failure_leaves_no_record_and_one_failed_fact() {
    let failure = Failure::permanent("no_paper", "out of paper");
    let press = Scripted::producing([Produced::Failed(failure)], []);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::Failed).await;
    let facts = given.store.inner.facts_after(0, 100).await.unwrap();
    let failed =
        facts.iter().filter(|fact| matches!(fact.fact, Fact::Job(domain::job::JobFact::Failed(_)))).count();
    assert_eq!(failed, 1);
    assert!(facts.iter().all(|fact| matches!(fact.fact, Fact::Job(_))));
}

// conforms: L18 L21 L22 L78 L90
#[tokio::test]
async fn two_handles_and_a_result_are_three_polls_two_polled_facts_one_resolved_and_a_completed_job() {
    let press = Scripted::deferring([goes_on(5, "page 1"), goes_on(5, "page 2"), done()]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    for _ in 0..3 {
        given.next_poll(&id).await;
    }
    let completed = given.until(&id, JobStateName::Completed).await;
    assert_eq!(given.result_of(&completed).await, b"12");
    assert_eq!(press.times("poll press-7"), 3);
    assert_eq!(completed.attempt_count, 1, "polls are no attempts");
    let kinds: Vec<_> = given.facts_of_operation(&id).await.iter().map(|fact| kind(&fact.fact)).collect();
    assert_eq!(kinds, ["dispatched", "polled", "polled", "resolved"]);
}

fn kind(fact: &Fact) -> &'static str {
    match fact {
        Fact::Operation(OperationFact::Dispatched(_)) => "dispatched",
        Fact::Operation(OperationFact::Polled(_)) => "polled",
        Fact::Operation(OperationFact::Resolved(_)) => "resolved",
        Fact::Operation(_) => "other",
        Fact::Job(_) => "job",
    }
}

// conforms: L4 L5 L48 L79
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
}

/// After the interval, and no more than a tenth of it later.
fn assert_within(next: Timestamp, from: Timestamp, seconds: u32) {
    let (earliest, latest) =
        (from.plus_seconds(u64::from(seconds)), from.plus_micros(i64::from(seconds) * 1_100_000));
    assert!(earliest <= next && next <= latest, "{next:?} is not in {earliest:?}..{latest:?}");
}

// conforms: L80
#[tokio::test]
async fn each_hint_is_in_its_fact_and_the_newest_in_the_view() {
    let press = Scripted::deferring([goes_on(5, "page 1"), goes_on(5, "page 2")]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    for hint in ["page 1", "page 2"] {
        given.next_poll(&id).await;
        let facts = given.facts_of_operation(&id).await;
        assert!(matches!(&facts.last().unwrap().fact, Fact::Operation(OperationFact::Polled(polled))
            if polled.progress_hint.as_deref() == Some(hint)));
        assert_eq!(given.operation_of(&id).await.progress_hint.as_deref(), Some(hint));
    }
}

// conforms: L17 L23 L24 L81 L91
#[tokio::test]
async fn a_failure_outside_fails_the_job_with_its_detail_and_code() {
    let failure = Failure::permanent("no_paper", "out of paper");
    let press = Scripted::deferring([Answer::Says(Polled::Failed(failure))]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.next_poll(&id).await;
    let failed = given.until(&id, JobStateName::Failed).await;
    assert_eq!(failed.state_reason.as_deref(), Some("no_paper"));
    let error = given.store.inner.body(&id.clone().into(), failed.result.error.unwrap()).await.unwrap();
    assert!(String::from_utf8(error.unwrap()).unwrap().contains("out of paper"));
    let operation = given.operation_of(&id).await;
    assert_eq!(operation.failure_detail(), Some("out of paper"));
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
    let Given { store, clock, daemon } = given;
    drop(daemon);
    given::settle().await;
    clock.advance_seconds(60);
    let given = Given::on(store, clock, []);
    given.settle().await;
    assert_eq!(given.state_of(&id).await, JobStateName::AwaitingExternal, "it may still come");
    given.clock.advance_seconds(given::GRACE_SECONDS);
    let failed = given.until(&id, JobStateName::Failed).await;
    assert_eq!(failed.state_reason.as_deref(), Some("specialist_unregistered"));
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
    assert_eq!(operation.last_error.as_ref().map(|error| &error.code[..]), Some("poll_raised"));
    assert!(operation.next_poll_at > given.clock.now(), "it is not asked again at once");
    given.next_poll(&id).await;
    given.until(&id, JobStateName::Completed).await;
}

// conforms: L2 L3 L50 L84
#[tokio::test]
async fn a_fresh_daemon_on_the_same_store_goes_on_where_the_other_was() {
    let press = Scripted::deferring([goes_on(5, "page 1")]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.next_poll(&id).await;
    let Given { store, clock, daemon } = given;
    drop(daemon);
    given::settle().await;
    let other = Scripted::deferring([done()]);
    let given = Given::on(store, clock, [other.named("press")]);
    given.next_poll(&id).await;
    given.until(&id, JobStateName::Completed).await;
    assert_eq!((other.times("produce"), other.times("poll press-7")), (0, 1));
}

// conforms: L51 L52 L53 L54 L85 O45 O82
#[tokio::test]
async fn a_poll_that_hangs_holds_up_no_other() {
    let hangs = Scripted::deferring([Answer::Hangs]);
    let quick =
        [Scripted::deferring([goes_on(5, "a"), done()]), Scripted::deferring([goes_on(5, "b"), done()])];
    let given = Given::new([hangs.named("hangs"), quick[0].named("one"), quick[1].named("two")]);
    let mut ids = Vec::new();
    for name in ["hangs", "one", "two"] {
        let id = given.create(job(name)).await;
        given.until(&id, JobStateName::AwaitingExternal).await;
        ids.push(id);
    }
    given.clock.advance_seconds(6);
    given.settle().await;
    assert_eq!([&hangs, &quick[0], &quick[1]].map(|one| one.times("poll")), [1, 1, 1]);
    assert_eq!(given.operation_of(&ids[0]).await.polls, 0);
    // The others are asked a second time while the first still hangs.
    given.clock.set(
        given.operation_of(&ids[1]).await.next_poll_at.max(given.operation_of(&ids[2]).await.next_poll_at),
    );
    given.until(&ids[1], JobStateName::Completed).await;
    given.until(&ids[2], JobStateName::Completed).await;
    given.settle().await;
    let stalled = given.operation_of(&ids[0]).await;
    assert_eq!(stalled.last_error.map(|error| error.code).as_deref(), Some("poll_timed_out"));
    assert_eq!(given.state_of(&ids[0]).await, JobStateName::AwaitingExternal);
}

// conforms: L59 L67 L92
#[tokio::test]
async fn an_answer_that_is_none_fails_the_job_and_names_what_it_was() {
    let press = Scripted::deferring([Answer::Says(Polled::Unexpected("a Printer".to_owned()))]);
    let odd = Scripted::producing([Produced::Unexpected("a Printer".to_owned())], []);
    let given = Given::new([press.named("press"), odd.named("odd")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.next_poll(&id).await;
    let failed = given.until(&id, JobStateName::Failed).await;
    assert_eq!(failed.state_reason.as_deref(), Some("poll_returned_unexpected_type"));
    let id = given.create(job("odd")).await;
    let failed = given.until(&id, JobStateName::Failed).await;
    let error = given.store.inner.body(&id.clone().into(), failed.result.error.unwrap()).await.unwrap();
    assert!(String::from_utf8(error.unwrap()).unwrap().contains("a Printer"));
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

#[tokio::test]
async fn a_cancel_reaches_the_service_and_is_confirmed_by_it() {
    let press = Scripted::deferring([]).answering_cancels([CancelAnswer::Cancelled]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.order(&id, JobCommand::RequestCancel { by: None, reason: "enough".to_owned() }).await;
    let ended = given.until(&id, JobStateName::Cancelled).await;
    assert_eq!(ended.state_reason.as_deref(), Some("cancelled"));
    assert_eq!(press.times("cancel press-7"), 1);
    assert_eq!(given.operation_of(&id).await.orphan(), None);
}

#[tokio::test]
async fn a_service_that_only_took_the_cancel_in_is_polled_until_it_says_so() {
    let press =
        Scripted::deferring([Answer::Says(Polled::Cancelled)]).answering_cancels([CancelAnswer::Accepted]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.order(&id, JobCommand::RequestCancel { by: None, reason: "enough".to_owned() }).await;
    given.settle().await;
    assert_eq!(given.state_of(&id).await, JobStateName::AwaitingExternal);
    given.next_poll(&id).await;
    given.until(&id, JobStateName::Cancelled).await;
}

#[tokio::test]
async fn a_cancel_that_nobody_confirms_ends_in_time_and_the_work_is_listed_until_it_is_stopped() {
    // A service that says nothing else cannot be reached.
    let press = Scripted::deferring([]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.order(&id, JobCommand::RequestCancel { by: None, reason: "enough".to_owned() }).await;
    given.settle().await;
    for _ in 0..30 {
        given.clock.advance_seconds(1);
        given.settle().await;
    }
    let ended = given.until(&id, JobStateName::Cancelled).await;
    assert_eq!(ended.state_reason.as_deref(), Some("cancel_unconfirmed"));
    assert_eq!(given.operation_of(&id).await.orphan(), Some(OrphanReason::CancelUnconfirmed));
    press.clone().answering_cancels([CancelAnswer::Cancelled]);
    for _ in 0..120 {
        given.clock.advance_seconds(1);
        given.settle().await;
    }
    assert_eq!(given.operation_of(&id).await.orphan(), None, "it was asked until it had stopped");
}

// conforms: O8 O81
#[tokio::test]
async fn work_that_never_ends_is_given_up_when_its_life_is_over_and_asked_to_stop() {
    let press = Scripted::deferring([]).answering_cancels([CancelAnswer::Cancelled]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    let expires_at = given.operation_of(&id).await.expires_at;
    given.clock.set(expires_at);
    let ended = given.until(&id, JobStateName::Expired).await;
    assert_eq!(ended.state_reason.as_deref(), Some("operation_expired"));
    given.settle().await;
    assert_eq!(press.times("cancel press-7"), 1);
    assert_eq!(given.operation_of(&id).await.orphan(), None);
}

// conforms: R27 R56
#[tokio::test]
async fn a_thousand_waiting_operations_cost_nothing_until_one_is_due() {
    let press = Scripted::deferring([]);
    let given = Given::new([press.named("press")]);
    let mut ids = Vec::new();
    for _ in 0..1_000 {
        ids.push(given.create(job("press")).await);
    }
    for id in &ids {
        given.until(id, JobStateName::AwaitingExternal).await;
    }
    given.settle().await;
    let asked = given.store_calls();
    given.clock.advance_seconds(4);
    given.settle().await;
    assert_eq!(given.store_calls(), asked);
}

#[tokio::test]
async fn no_more_polls_are_under_way_at_one_service_than_its_policy_grants() {
    let hangs = Scripted::deferring([
        Answer::Hangs,
        Answer::Hangs,
        Answer::Hangs,
        Answer::Hangs,
        Answer::Hangs,
        Answer::Hangs,
        Answer::Hangs,
        Answer::Hangs,
    ]);
    let given = Given::new([hangs.named("hangs")]);
    for _ in 0..8 {
        let id = given.create(job("hangs")).await;
        given.until(&id, JobStateName::AwaitingExternal).await;
    }
    given.clock.advance_seconds(6);
    given.settle().await;
    assert_eq!(hangs.times("poll"), 4);
    // When the first have run out of their time the others get their turn.
    for _ in 0..6 {
        given.clock.advance_seconds(1);
        given.settle().await;
    }
    assert!(hangs.times("poll") >= 8, "{}", hangs.times("poll"));
}

// conforms: O4 O47
#[tokio::test]
async fn an_executor_goes_on_with_what_came_from_outside() {
    let mut deferral = handle();
    deferral.then = domain::job::AfterExternal::Resume;
    let press =
        Scripted::producing([Produced::Deferred(deferral), Produced::Completed(Output::default())], [done()]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.next_poll(&id).await;
    let completed = given.until(&id, JobStateName::Completed).await;
    assert_eq!((completed.attempt_count, press.times("produce")), (1, 2));
    assert_eq!(press.times("produce 1 with 12"), 1, "it gets what came, and never the handle");
    assert!(matches!(completed.state, JobState::Completed));
}

#[tokio::test]
async fn somebody_who_wants_to_know_now_is_bound_by_the_shortest_interval() {
    let press = Scripted::deferring([goes_on(60, "page 1"), goes_on(60, "page 2")]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    let operation = given.operation_of(&id).await.id;
    let too_soon = given.daemon.poll_now(&operation).await.unwrap_err();
    assert_eq!(too_soon.code(), "not_due");
    given.clock.advance_seconds(1);
    given.daemon.poll_now(&operation).await.unwrap();
    assert_eq!(given.operation_of(&id).await.progress_hint.as_deref(), Some("page 1"));
    assert_eq!(given.daemon.poll_now(&operation).await.unwrap_err().code(), "not_due");
    given.clock.advance_seconds(1);
    given.daemon.poll_now(&operation).await.unwrap();
    assert_eq!((press.times("poll"), given.operation_of(&id).await.polls), (2, 2));
}

#[tokio::test]
async fn an_operation_that_is_being_asked_about_is_not_asked_about_twice() {
    let press = Scripted::deferring([Answer::Hangs]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.next_poll(&id).await;
    let operation = given.operation_of(&id).await.id;
    assert_eq!(given.daemon.poll_now(&operation).await.unwrap_err().code(), "claim_held");
    assert_eq!(press.times("poll"), 1);
}
