//! Work outside within the host's bounds: stopped, given up in time, asked about no more often than is granted. The clock is moved by hand.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use domain::job::{CancelAnswer, JobCommand, JobState, JobStateName};
use domain::operation::{OperationStatus, OrphanReason, PollError, Settlement};
use domain::policy::Hint;
use domain::run::RunState;
use domain::{OperationId, RetryPolicy};
use engine::{
    Assignment, Clock, Deferral, Executor, Link, ManualClock, Modes, Output, Outside, Polled, Produced,
    Specialist, Timer,
};
use futures::future::BoxFuture;
use serde_json::json;

use crate::given::routed::{self, World};
use crate::given::{Counted, Given, job};
use crate::specialist::{Answer, Scripted, done, goes_on, handle, running};

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

#[tokio::test]
async fn what_was_given_up_is_asked_about_until_its_service_says_that_it_ended() {
    let press = Scripted::deferring([goes_on(5, "inking"), Answer::Raises, done()])
        .answering_cancels([CancelAnswer::Accepted]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.clock.set(given.operation_of(&id).await.expires_at);
    let ended = given.until(&id, JobStateName::Expired).await;
    given.settle().await;
    assert_eq!((press.times("cancel press-7"), press.times("poll")), (1, 0));
    for polls in 1..=3 {
        let orphan = given.operation_of(&id).await;
        assert_eq!(orphan.orphan(), Some(OrphanReason::ExpiredWhileOpen));
        given.clock.set(orphan.late_poll_at().expect("it is asked about"));
        given.settle().await;
        assert_eq!(press.times("poll press-7"), polls);
    }
    let settled = given.operation_of(&id).await;
    let status = OperationStatus::Completed;
    assert_eq!(settled.settled, Some(Settlement::EndedOutside { status }));
    assert_eq!((settled.orphan(), settled.late_poll_at()), (None, None));
    assert_eq!(settled.status(), OperationStatus::Expired);
    assert_eq!(given.load(&id).await, ended, "the job's end stays as it was");
}

#[tokio::test]
async fn nobody_is_asked_for_ever_about_what_was_given_up() {
    let press = Scripted::deferring([]).answering_cancels([CancelAnswer::Refused("no".to_owned())]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.clock.set(given.operation_of(&id).await.expires_at);
    given.until(&id, JobStateName::Expired).await;
    given.settle().await;
    while let Some(due_at) = given.operation_of(&id).await.late_poll_at() {
        given.clock.set(due_at);
        given.settle().await;
    }
    let asked = press.times("poll press-7");
    assert!((10..=40).contains(&asked), "{asked}");
    given.clock.advance_seconds(86_400);
    given.settle().await;
    assert_eq!(press.times("poll press-7"), asked);
    assert_eq!(given.operation_of(&id).await.orphan(), Some(OrphanReason::ExpiredWhileOpen), "nobody knows");
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

// conforms: O82
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

const HONEST: usize = 10;
const HANGING: usize = 24;
const SLOTS: usize = 4;
const ANSWER_MICROS: i64 = 20_000;
const STEP_MICROS: i64 = 20_000;
const TIME_LIMIT_MICROS: i64 = 5_000_000;

/// A service that answers some of its work in 20 ms and the rest never.
struct HalfHung {
    clock: Arc<ManualClock>,
    seen: Mutex<Seen>,
}

#[derive(Clone, Default)]
struct Seen {
    under_way: usize,
    most_under_way: usize,
    /// Operations that have hung before.
    hung: BTreeSet<OperationId>,
    hung_under_way: usize,
    most_hung_under_way: usize,
    honest_polls: usize,
    hanging_polls: usize,
    /// How late an honest operation was polled at most after its first poll.
    late_micros: i64,
}

/// A poll under way, until it ends or is given up.
struct UnderWay<'a>(&'a HalfHung, OperationId, bool);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let Self(service, id, hangs) = self;
        let mut seen = service.seen();
        seen.under_way -= 1;
        if *hangs && !seen.hung.insert(id.clone()) {
            seen.hung_under_way -= 1;
        }
    }
}

impl HalfHung {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("no holder panics")
    }

    fn begin(&self, outside: &Outside) -> UnderWay<'_> {
        let (id, hangs) = (outside.operation.id.clone(), outside.handle == b"\"hangs\"");
        let late = self.clock.now().micros() - outside.operation.next_poll_at.micros();
        let mut seen = self.seen();
        seen.under_way += 1;
        seen.most_under_way = seen.most_under_way.max(seen.under_way);
        if hangs {
            seen.hanging_polls += 1;
            seen.hung_under_way += usize::from(seen.hung.contains(&id));
            seen.most_hung_under_way = seen.most_hung_under_way.max(seen.hung_under_way);
        } else {
            seen.honest_polls += 1;
            if outside.operation.polls > 0 {
                seen.late_micros = seen.late_micros.max(late);
            }
        }
        UnderWay(self, id, hangs)
    }
}

impl Specialist for HalfHung {
    fn produce(&self, assignment: Assignment, _: Link) -> BoxFuture<'_, Produced> {
        let deferral = Deferral { retry_after: Hint::Seconds(5), ..Deferral::new(assignment.input) };
        Box::pin(async { Produced::Deferred(deferral) })
    }

    fn poll(&self, outside: Outside) -> BoxFuture<'_, Result<Polled, PollError>> {
        let under_way = self.begin(&outside);
        Box::pin(async move {
            let UnderWay(_, _, hangs) = &under_way;
            if *hangs {
                std::future::pending::<()>().await;
            }
            self.clock.sleep_until(self.clock.now().plus_micros(ANSWER_MICROS)).await;
            drop(under_way);
            Ok(running(Hint::Seconds(2), None))
        })
    }
}

impl HalfHung {
    /// Lets time pass until this is so, at most 100 seconds, and tells what was seen meanwhile.
    async fn until(&self, given: &Given, is_so: impl Fn(&Seen) -> bool) -> Seen {
        let before = self.seen().honest_polls;
        self.seen().late_micros = 0;
        for _ in 0..100_000_000 / STEP_MICROS {
            if is_so(&self.seen()) {
                break;
            }
            given.clock.set(given.clock.now().plus_micros(STEP_MICROS));
            given.settle().await;
        }
        let seen = self.seen().clone();
        Seen { honest_polls: seen.honest_polls - before, ..seen }
    }
}

// conforms: O82
#[tokio::test]
async fn operations_that_hang_leave_half_the_slots_to_others() {
    let clock = Arc::new(ManualClock::at(domain::Timestamp::from_seconds(1_700_000_000)));
    let service = Arc::new(HalfHung { clock: clock.clone(), seen: Mutex::default() });
    let (specialist, retry) = (service.clone(), RetryPolicy::ONCE);
    let executor = Executor { specialist, concurrency: HONEST + HANGING, retry, modes: Modes::default() };
    let given = Given::on(Arc::new(Counted::default()), clock, [("press".to_owned(), executor)]);
    for number in 0..HONEST + HANGING {
        let hangs = number % 3 != 0 || number >= 3 * HONEST;
        let input: &[u8] = if hangs { b"\"hangs\"" } else { b"\"answers\"" };
        let id = given.create(job("press").input(input)).await;
        given.until(&id, JobStateName::AwaitingExternal).await;
    }
    // Who hangs is known only afterwards: until then all slots may be held for one time limit.
    let first = service.until(&given, |seen| seen.hung.len() == HANGING).await;
    let known_at = given.clock.now().plus_micros(60_000_000);
    let later = service.until(&given, |_| given.clock.now() >= known_at).await;
    let held = first.most_hung_under_way;
    assert!(held <= SLOTS / 2, "{held} slots of {SLOTS} held by what hung before");
    assert!(first.late_micros <= TIME_LIMIT_MICROS + 1_000_000, "{} µs late at first", first.late_micros);
    assert!(later.late_micros <= 1_000_000, "{} µs late", later.late_micros);
    assert_eq!(later.hung.len(), HANGING, "all that hang were polled");
    assert_eq!((later.most_under_way, later.most_hung_under_way), (SLOTS, SLOTS / 2));
    // Every two seconds, at most half of it late.
    assert!(later.honest_polls >= 20 * HONEST, "{} honest polls", later.honest_polls);
    assert!(later.hanging_polls > HANGING, "{} polls that hang", later.hanging_polls);
}

/// As long as nobody has seen how long its answers take, the questions that are not answered say it.
#[tokio::test]
async fn what_is_put_off_at_a_service_that_hangs_is_not_taken_again_and_again() {
    let hangs = Scripted::deferring([Answer::Hangs, Answer::Hangs, Answer::Hangs, Answer::Hangs]);
    let given = Given::new([hangs.named("hangs")]);
    for _ in 0..100 {
        let id = given.create(job("hangs")).await;
        given.until(&id, JobStateName::AwaitingExternal).await;
    }
    given.clock.advance_seconds(6);
    given.settle().await;
    let asked = given.store_calls();
    for _ in 0..100 {
        given.clock.set(given.clock.now().plus_micros(20_000));
        given.settle().await;
    }
    assert_eq!(hangs.times("poll"), 4);
    let asked = given.store_calls() - asked;
    assert!(asked < 600, "{asked}");
}

// conforms: O4 O47
#[tokio::test]
async fn step_after_external_work_is_given_its_result_alone() {
    let yaml =
        "pipelines: [{ name: p, on: go, steps: [{ id: print, uses: press }, { id: bind, uses: bind }] }]";
    let pages = Output { data: Some(br#"{"pages":12}"#.to_vec()), ..Output::default() };
    let press = Scripted::deferring([goes_on(5, "page 1"), Answer::Says(Polled::Completed(pages))]);
    let world =
        World::new(yaml, |seen| [press.named("press"), routed::noting("bind", seen, |_| routed::done())]);
    let event = world.publish("go", json!({}), None).await;
    let run = world.started(&event).await;
    let id = world.jobs()[0].id.clone();
    world.given.until(&id, JobStateName::AwaitingExternal).await;
    world.given.next_poll(&id).await;
    assert_eq!(press.times("poll"), 1);
    assert_eq!((world.jobs().len(), world.seen()), (1, Vec::new()), "its branch stands still meanwhile");
    world.given.next_poll(&id).await;
    world.until(&run, RunState::Completed).await;
    assert_eq!(world.seen(), [("bind".to_owned(), json!({ "pages": 12 }))]);
}

// conforms: O4
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
