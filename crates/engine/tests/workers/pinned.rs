//! Steps that begin with files of one node queue for that node, and no other takes them.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use domain::job::JobStateName;
use domain::run::{RunState, StepLink};
use domain::{RetryPolicy, RunId};
use engine::{Assignment, Executor, Executors, Link, Modes, Output, Produced, Specialist};
use serde_json::json;

use crate::given::routed::World;
use crate::given::{Draft, Given, job};

/// It leaves files, and only the node of an earlier step can read those.
struct Keeping;

impl Specialist for Keeping {
    fn produce<'a>(&'a self, _: Assignment, _: Link) -> Pin<Box<dyn Future<Output = Produced> + Send + 'a>> {
        Box::pin(async { Produced::Completed(Output { left_files: true, ..Output::default() }) })
    }

    fn needs_its_node(&self) -> bool {
        true
    }
}

fn keeping() -> Executors {
    let executor = Executor {
        specialist: Arc::new(Keeping),
        concurrency: 2,
        retry: RetryPolicy::ONCE,
        modes: Modes::default(),
    };
    let mut executors = Executors::default();
    executors.register("keeping", executor);
    executors
}

fn step_at(node: &str) -> Draft {
    job("keeping").of_step(StepLink {
        run_id: RunId::new("run-1"),
        visit: 1,
        pipeline: "line".to_owned(),
        step: "two".to_owned(),
        node: Some(node.to_owned()),
    })
}

#[tokio::test]
async fn job_that_only_another_node_can_do_is_left_to_it() {
    let given = Given::with(keeping());
    let (elsewhere, here) = (given.create(step_at("other")).await, given.create(step_at("test")).await);
    given.until(&here, JobStateName::Completed).await;
    assert_eq!(given.state_of(&elsewhere).await, JobStateName::Queued);
    assert!(given.daemon.attempts().is_pinned_elsewhere(&given.load(&elsewhere).await.spec.lane()));
}

#[tokio::test]
async fn step_that_begins_with_files_queues_for_the_node_that_has_them_and_the_first_one_for_any() {
    let yaml = "pipelines: [{ name: line, on: go, steps: [{ id: one, uses: keeping }, { id: two, uses: keeping }] }]";
    let world = World::with(yaml, Given::with(keeping()));
    let id = world.publish("go", json!({}), None).await;
    world.until(&world.started(&id).await, RunState::Completed).await;
    let nodes: BTreeMap<String, Option<String>> = world
        .jobs()
        .into_iter()
        .map(|job| (job.spec.title.clone(), job.spec.node().map(str::to_owned)))
        .collect();
    let expected = [("line: one", None), ("line: two", Some("test"))];
    assert_eq!(nodes, expected.map(|(title, node)| (title.to_owned(), node.map(str::to_owned))).into());
}
