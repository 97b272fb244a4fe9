//! Artifacts stay as long as their job has its bodies.

use domain::job::{JobCommand, JobStateName};

use crate::given::{Ended, Given, PATIENCE};

async fn with_artifacts(given: &Given) -> Ended {
    let ended = given.run_script("echo one; echo two >&2").await;
    assert_eq!(ended.job.state.name(), JobStateName::Completed);
    assert!(given.artifacts.dir().join(ended.job.id.as_str()).is_dir());
    ended
}

/// Removal is on a thread of its own and tells nobody: it is looked for.
async fn until_gone(given: &Given, ended: &Ended) {
    let path = given.artifacts.dir().join(ended.job.id.as_str());
    let wait = async {
        while path.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("they are removed");
}

#[tokio::test]
async fn purge_removes_the_artifacts_of_its_job_and_of_no_other() {
    let given = Given::new();
    let (purged, other) = (with_artifacts(&given).await, with_artifacts(&given).await);
    given.order(&purged.job.id, JobCommand::Purge).await;
    until_gone(&given, &purged).await;
    assert_eq!(given.artifacts.jobs().unwrap(), [other.job.id]);
}

#[tokio::test]
async fn job_that_is_retired_by_itself_takes_its_artifacts_with_it() {
    let given = Given::new();
    let ended = with_artifacts(&given).await;
    given.clock.advance_seconds(1_001);
    until_gone(&given, &ended).await;
}
