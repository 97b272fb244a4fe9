//! Executors that are left alone for a while: their jobs wait where they are, without an attempt, and nobody looks at them meanwhile.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use domain::Timestamp;
use domain::job::JobStateName;
use engine::{
    Admission, Assignment, Clock, Executor, Executors, LeftOut, Link, Output, Produced, RunOrder, Specialist,
};

use crate::given::{Given, job};

/// Does everything, unless it is left alone.
#[derive(Clone, Default)]
struct Resting(Arc<Mutex<Option<Timestamp>>>);

impl Resting {
    fn rest_until(&self, until: Option<Timestamp>) {
        *self.0.lock().expect("no holder panics") = until;
    }

    fn executor(&self) -> (String, Executor) {
        let specialist = Arc::new(self.clone());
        let (retry, modes) = (Executors::DEFAULT_RETRY, engine::Modes::default());
        ("press".to_owned(), Executor { specialist, concurrency: 1, retry, modes })
    }
}

impl Specialist for Resting {
    fn produce(&self, _: Assignment, _: Link) -> Pin<Box<dyn Future<Output = Produced> + Send + '_>> {
        Box::pin(async { Produced::Completed(Output::default()) })
    }

    fn let_in(&self, now: Timestamp) -> Result<Admission, Timestamp> {
        self.left_alone_until(now).map_or_else(|| Ok(Admission::default()), Err)
    }

    fn left_alone_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.0.lock().expect("no holder panics").filter(|until| now < *until)
    }
}

#[tokio::test]
async fn job_whose_executor_is_left_alone_is_not_attempted_and_nobody_asks_the_store_meanwhile() {
    let press = Resting::default();
    let given = Given::new([press.executor()]);
    press.rest_until(Some(given.clock.now().plus_seconds(600)));
    let id = given.create(job("press").attempts(1)).await;
    given.settle().await;
    let asked = given.store_calls();
    given.clock.advance_seconds(599);
    given.settle().await;
    assert_eq!(given.store_calls(), asked);
    let waiting = given.load(&id).await;
    assert_eq!((waiting.state.name(), waiting.attempt_count), (JobStateName::Queued, 0));
    given.clock.advance_seconds(1);
    assert_eq!(given.until(&id, JobStateName::Completed).await.attempt_count, 1);
}

#[tokio::test]
async fn job_in_a_lane_of_others_is_put_off_without_an_attempt_and_the_others_go_on() {
    let press = Resting::default();
    let others = crate::given::scripted("echo", 1, |_, _| async { Produced::Completed(Output::default()) });
    let given = Given::new([press.executor(), others]);
    press.rest_until(Some(given.clock.now().plus_seconds(600)));
    let id = given.create(job("press").lane("echo").attempts(1)).await;
    let other = given.create(job("echo")).await;
    given.until(&other, JobStateName::Completed).await;
    given.settle().await;
    assert_eq!(given.load(&id).await.attempt_count, 0);
    // It is looked at again soon: somebody may have changed their mind.
    press.rest_until(None);
    given.clock.advance_seconds(60);
    assert_eq!(given.until(&id, JobStateName::Completed).await.attempt_count, 1);
}

#[tokio::test]
async fn whoever_is_not_left_alone_any_more_is_given_what_waits_at_once() {
    let press = Resting::default();
    let given = Given::new([press.executor()]);
    press.rest_until(Some(given.clock.now().plus_seconds(600)));
    let id = given.create(job("press")).await;
    given.settle().await;
    press.rest_until(None);
    given.daemon.attempts().look_at_lane("press");
    given.until(&id, JobStateName::Completed).await;
}

#[tokio::test]
async fn run_that_somebody_asks_for_is_let_in_all_the_same() {
    let press = Resting::default();
    let given = Given::new([press.executor()]);
    press.rest_until(Some(given.clock.now().plus_seconds(600)));
    let id = given.create(job("press")).await;
    given.settle().await;
    let order = RunOrder { actor: Arc::from("test"), keys: Vec::new() };
    given.daemon.run_now(&id, domain::job::Trigger::Run, order).await.expect("it is taken");
    given.until(&id, JobStateName::Completed).await;
}

// conforms: R53
#[tokio::test]
async fn job_whose_executor_is_left_out_waits_for_as_long_as_it_takes_without_an_attempt() {
    let press = LeftOut {
        name: "press".to_owned(),
        why: "it has no ink".to_owned(),
        lane: "press".to_owned(),
        retry: Executors::DEFAULT_RETRY,
        needs_its_node: false,
    };
    let given = Given::new([("press".to_owned(), press.executor())]);
    let id = given.create(job("press").attempts(1)).await;
    for _ in 0..3 {
        given.settle().await;
        given.clock.advance_seconds(24 * 3_600);
    }
    given.settle().await;
    let waiting = given.load(&id).await;
    assert_eq!((waiting.state.name(), waiting.attempt_count), (JobStateName::Queued, 0));
    // Whoever asks by hand is told why.
    let order = RunOrder { actor: Arc::from("test"), keys: Vec::new() };
    given.daemon.run_now(&id, domain::job::Trigger::Run, order).await.expect("it is taken");
    let ended = given.until(&id, JobStateName::Unavailable).await;
    assert_eq!(ended.state_reason.as_deref(), Some("executor_left_out"));
}
