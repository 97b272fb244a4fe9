//! Many jobs that become due at one moment.

use std::sync::Arc;

use domain::{Lease, OwnerId};
use engine::{AttendJobs, Clock, Wakes, Worker};
use futures::FutureExt;

use crate::given::{Given, job};

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
