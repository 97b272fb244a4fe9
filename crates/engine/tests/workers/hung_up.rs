//! Whoever asks may go before the answer, as a request does whose client hangs up. What was asked for happens, and is not forgotten.

use std::sync::Arc;

use domain::JobId;
use domain::job::{JobCommand, JobSpec, JobStateName, NewJob, Trigger};
use engine::{Executors, Ids, Order, Output, Produced, RandomIds, RunOrder};
use futures::FutureExt;

use crate::given::{Given, job, scripted};

fn given() -> Given {
    Given::new([scripted("echo", 4, |_, _| async { Produced::Completed(Output::default()) })])
}

fn creation() -> (JobId, Order) {
    let id = RandomIds.job_id();
    let spec = JobSpec::plain(Some("echo"), Executors::DEFAULT_RETRY);
    let new = NewJob { spec, due_at: None, bodies: Vec::new() };
    let order = Order::new(id.clone(), JobCommand::Create(Box::new(new)), Arc::from("test"));
    (id, order)
}

#[tokio::test]
async fn job_whose_client_hangs_up_before_the_answer_is_done_all_the_same() {
    let given = given();
    given.settle().await;
    let (id, order) = creation();
    given.store.be_late();
    let unheard = given.daemon.engine().execute(order).now_or_never();
    assert!(unheard.is_none(), "it was answered before anybody could hang up");
    given.store.conflict(1);
    given.settle().await;
    assert_eq!(given.state_of(&id).await, JobStateName::Completed);
    assert_eq!(given.load(&id).await.attempt_count, 1);
}

#[tokio::test]
async fn attempt_whose_client_hangs_up_before_the_answer_begins_all_the_same() {
    let given = given();
    let id = given.create(job("echo").due_in(3_600)).await;
    given.settle().await;
    given.store.be_late();
    let order = RunOrder { actor: Arc::from("test"), keys: Vec::new() };
    assert!(given.daemon.run_now(&id, Trigger::Run, order).now_or_never().is_none());
    given.store.answer_late();
    given.settle().await;
    assert_eq!(given.state_of(&id).await, JobStateName::Completed);
}
