//! Services that call back: heard at once, never lost, and bound by the host's limits all the same.

use std::sync::{Arc, Mutex};

use domain::job::{JobStateName, Resubmit};
use domain::operation::{PollError, PollHints, ReportedStatus};
use domain::{Digest, OperationId};
use engine::{
    Assignment, Clock, Deferral, Executor, Executors, Intent, Link, Modes, Output, Outside, Polled, Produced,
    Specialist,
};
use futures::future::BoxFuture;
use tokio::sync::Semaphore;

use crate::given::{Given, in_a_process_that_dies, job};
use crate::specialist::{Answer, Scripted, done, goes_on, running};

fn news() -> Arc<[u8]> {
    Arc::from(&b"news"[..])
}

#[tokio::test]
async fn a_callback_while_its_service_is_being_asked_leads_to_another_question_right_after_it() {
    let door = Arc::new(Semaphore::new(0));
    let stale = running(domain::policy::Hint::Seconds(300), Some("page 1"));
    let press = Scripted::deferring([Answer::SaysOnce(door.clone(), stale), done()]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.next_poll(&id).await;
    let operation = given.operation_of(&id).await.id;
    assert_eq!(press.times("poll"), 1);
    let (daemon, heard) = (given.daemon.clone(), operation.clone());
    let heard = tokio::spawn(async move { daemon.called_back(&heard, news()).await });
    given.settle().await;
    assert_eq!(press.times("poll"), 1, "it is being asked about");
    door.add_permits(1);
    // The clock stands: by itself it would be asked about in five minutes.
    given.until(&id, JobStateName::Completed).await;
    heard.await.unwrap().unwrap();
    assert_eq!(press.times("poll"), 2);
}

#[tokio::test]
async fn a_service_that_calls_again_and_again_is_asked_no_more_often_than_the_host_grants() {
    let press = Scripted::deferring([goes_on(300, "page 1"), goes_on(300, "page 2"), done()]);
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    let operation = given.operation_of(&id).await.id;
    given.daemon.called_back(&operation, news()).await.unwrap();
    assert_eq!(press.times("poll"), 1, "the first time counts at once");
    let calls: Vec<_> = (0..5)
        .map(|_| {
            let (daemon, operation) = (given.daemon.clone(), operation.clone());
            tokio::spawn(async move { daemon.called_back(&operation, news()).await })
        })
        .collect();
    given.settle().await;
    assert_eq!(press.times("poll"), 1, "inside of the shortest interval");
    given.clock.advance_seconds(1);
    given.settle().await;
    assert_eq!(
        press.times("poll"),
        2,
        "the news is not left until the next due time, and one question is enough"
    );
    for call in calls {
        call.await.unwrap().unwrap();
    }
    let (daemon, again) = (given.daemon.clone(), operation.clone());
    let again = tokio::spawn(async move { daemon.called_back(&again, news()).await });
    given.settle().await;
    assert_eq!(press.times("poll"), 2);
    given.clock.advance_seconds(1);
    given.until(&id, JobStateName::Completed).await;
    again.await.unwrap().unwrap();
    assert_eq!(press.times("poll"), 3);
}

/// A service that calls back with the result, and is never told it by a poll.
#[derive(Default)]
struct Caller {
    keys: Mutex<Vec<OperationId>>,
    /// It answers a submit only when it may.
    answers: Option<Arc<Semaphore>>,
}

impl Caller {
    fn named(self: &Arc<Self>, name: &str) -> (String, Executor) {
        let (specialist, retry) = (self.clone(), Executors::DEFAULT_RETRY);
        (name.to_owned(), Executor { specialist, concurrency: 1, retry, modes: Modes::default() })
    }

    fn keys(&self) -> Vec<OperationId> {
        self.keys.lock().expect("no holder of the lock panics").clone()
    }
}

impl Specialist for Caller {
    fn produce(&self, _: Assignment, link: Link) -> BoxFuture<'_, Produced> {
        Box::pin(async move {
            let intent = Intent { request_sha256: Digest([3; 32]), resubmit: Resubmit::SameKey };
            let Ok(intended) = link.intend(intent).await else { return Produced::Stopped };
            self.keys.lock().expect("no holder of the lock panics").push(intended.key);
            if let Some(answers) = &self.answers {
                answers.acquire().await.expect("it is never closed").forget();
            }
            Produced::Deferred(Deferral::new(b"press-7".to_vec()))
        })
    }

    fn poll(&self, _: Outside) -> BoxFuture<'_, Result<Polled, PollError>> {
        Box::pin(async { Ok(Polled::Open(ReportedStatus::Running, PollHints::default())) })
    }

    fn traits(&self) -> engine::ExecutorTraits {
        engine::ExecutorTraits { is_called_back: true, ..engine::ExecutorTraits::default() }
    }

    fn read_callback(&self, body: &[u8]) -> Option<Polled> {
        Some(Polled::Completed(Output { data: Some(body.to_vec()), ..Output::default() }))
    }
}

#[tokio::test]
async fn a_callback_that_comes_before_its_operation_is_heard_as_soon_as_that_is_there() {
    let door = Arc::new(Semaphore::new(0));
    let press = Arc::new(Caller { answers: Some(door.clone()), ..Caller::default() });
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    while press.keys().is_empty() {
        given.settle().await;
    }
    let until = given.clock.now().plus_seconds(600);
    given.daemon.engine().keep_early_callback(&press.keys()[0], b"12", until).await.unwrap();
    door.add_permits(1);
    // The clock stands: nobody asks.
    let completed = given.until(&id, JobStateName::Completed).await;
    assert_eq!(given.result_of(&completed).await, b"12");
}

#[tokio::test]
async fn a_callback_that_came_before_its_operation_survives_the_end_of_the_process() {
    let (id, store, clock) = in_a_process_that_dies(async {
        let press = Arc::new(Caller { answers: Some(Arc::new(Semaphore::new(0))), ..Caller::default() });
        let given = Given::new([press.named("press")]);
        let id = given.create(job("press").attempts(2)).await;
        while press.keys().is_empty() {
            given.settle().await;
        }
        let until = given.clock.now().plus_seconds(600);
        given.daemon.engine().keep_early_callback(&press.keys()[0], b"12", until).await.unwrap();
        (id, given.store, given.clock)
    });
    clock.advance_seconds(61);
    let press = Arc::new(Caller::default());
    let given = Given::on(store, clock, [press.named("press")]);
    given.settle().await;
    given.clock.advance_seconds(60);
    let completed = given.until(&id, JobStateName::Completed).await;
    assert_eq!(given.result_of(&completed).await, b"12");
    assert_eq!(press.keys().len(), 1, "it was asked again under the same key");
}

#[tokio::test]
async fn what_nobody_heard_before_the_end_of_the_process_is_read_at_the_first_poll() {
    let press = Arc::new(Caller::default());
    let given = Given::new([press.named("press")]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::AwaitingExternal).await;
    given.settle().await;
    let until = given.clock.now().plus_seconds(600);
    let operation = given.operation_of(&id).await.id;
    given.daemon.engine().keep_early_callback(&operation, b"12", until).await.unwrap();
    given.daemon.engine().keep_early_callback(&operation, b"13", until).await.unwrap();
    given.next_poll(&id).await;
    let completed = given.until(&id, JobStateName::Completed).await;
    assert_eq!(given.result_of(&completed).await, b"12", "the first stays");
}
