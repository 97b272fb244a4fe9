//! Jobs that become due: many at one moment, and one at the moment at which somebody looks.

use std::sync::Arc;

use domain::job::JobStateName;
use domain::{Lease, OwnerId};
use engine::{
    Attempts, AttendJobs, Changes, Clock, DispatchJobs, Executors, OnRuntime, Output, Produced, Wakes, Worker,
};
use futures::FutureExt;

use crate::given::{Given, job, scripted, settings};

const JOBS: usize = 100;

#[tokio::test]
async fn jobs_that_become_due_at_one_moment_do_not_wait_for_each_others_sync() {
    let given = Given::new([]);
    for _ in 0..JOBS {
        given.create(job("echo").due_in(60)).await;
    }
    given.daemon.stop().await;
    given.clock.advance_seconds(60);
    given.store.hold_commits();
    let engine = given.daemon.engine().clone();
    let worker = AttendJobs::new(engine, OwnerId::new("node-a"), Lease::DEFAULT, Arc::new(Wakes::default()));
    // No commit is answered: whoever waits for the first before the second has asked for one.
    assert!(worker.round(given.clock.now()).now_or_never().is_none());
    assert_eq!(given.store.commits_held(), JOBS);
}

#[tokio::test]
async fn job_that_becomes_ready_after_the_look_at_the_clock_and_before_that_at_its_lane_is_taken() {
    let given = Given::new([]);
    let id = given.create(job("echo").due_in(60)).await;
    given.daemon.stop().await;
    let (engine, owner, wakes) =
        (given.daemon.engine().clone(), OwnerId::new("node-a"), Arc::new(Wakes::default()));
    let mut executors = Executors::default();
    let (name, executor) = scripted("echo", 1, |_, _| async { Produced::Completed(Output::default()) });
    executors.register(&name, executor);
    let attempts = Attempts::new(
        engine.clone(),
        executors,
        given.clock.clone(),
        Arc::new(OnRuntime),
        wakes.clone(),
        Arc::new(Changes::default()),
        &settings(),
    );
    let looked_at = given.clock.now();
    let dispatch =
        DispatchJobs::new(engine.clone(), owner.clone(), Arc::new(attempts), wakes.clone(), looked_at);
    dispatch.round(looked_at).await.expect("the store answers");
    given.clock.advance_seconds(60);
    let attend = AttendJobs::new(engine, owner, Lease::DEFAULT, wakes.clone());
    attend.round(given.clock.now()).await.expect("the store answers");
    wakes.ready(&Arc::from("echo"));
    // It names its lane once: whoever comes with the time of before must not find it held and forget it.
    dispatch.round(looked_at).await.expect("the store answers");
    given.settle().await;
    assert_eq!(given.state_of(&id).await, JobStateName::Completed);
}
