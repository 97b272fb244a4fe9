//! Steps that begin with files of one node queue for that node, and no other takes them.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use domain::job::{JobCommand, JobStateName};
use domain::run::{RunState, StepLink};
use domain::{JobId, Lease, OwnerId, RetryPolicy, RunId};
use engine::{
    Assignment, Clock as _, Executor, Executors, Link, Modes, Order, Output, Produced, SERIAL, Specialist,
};
use serde_json::json;
use store::{Store as _, Take};

use crate::given::routed::World;
use crate::given::{Draft, Gate, Given, job, scripted};

/// It leaves files, and only the node of an earlier step can read those.
struct Keeping;

impl Specialist for Keeping {
    fn produce<'a>(&'a self, _: Assignment, _: Link) -> Pin<Box<dyn Future<Output = Produced> + Send + 'a>> {
        Box::pin(async { Produced::Completed(Output { left_files: true, ..Output::default() }) })
    }

    fn traits(&self) -> engine::ExecutorTraits {
        engine::ExecutorTraits { needs_its_node: true, ..engine::ExecutorTraits::default() }
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
    job("keeping").of_step(link(node))
}

fn link(node: &str) -> StepLink {
    StepLink {
        run_id: RunId::new("run-1"),
        visit: 1,
        pipeline: "line".to_owned(),
        step: "two".to_owned(),
        ordinal: 0,
        node: Some(node.to_owned()),
    }
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

#[tokio::test]
async fn what_is_pinned_to_a_node_waits_for_its_turn_with_the_rest_of_its_lane() {
    let gate = Gate::default();
    let inside = gate.clone();
    let given = Given::new([scripted("press", 4, move |assignment, _| {
        let gate = inside.clone();
        async move {
            gate.pass(&assignment.job.id).await;
            Produced::Completed(Output::default())
        }
    })]);
    let serial = format!("{SERIAL}press");
    let mut ids = Vec::new();
    for node in [None, Some("test"), None, Some("test")] {
        let draft = job("press").lane(&serial);
        ids.push(given.create(if let Some(node) = node { draft.of_step(link(node)) } else { draft }).await);
    }
    for done in 1..=ids.len() {
        given.settle().await;
        assert_eq!(gate.inside(), 1, "one at a time, and the next as soon as the last is over");
        gate.open();
        given.settle().await;
        assert_eq!(completed(&given, &ids).await, done);
    }
}

/// Another node has the place when this one looks: it is looked at again when that place is free, however it became so.
#[tokio::test]
async fn place_that_an_outsider_had_is_used_by_what_is_pinned_here_as_soon_as_it_is_free() {
    let given = Given::new([scripted("press", 4, |_, _| async { Produced::Completed(Output::default()) })]);
    let serial = format!("{SERIAL}press");
    let first = given.create(job("press").lane(&serial).due_in(1)).await;
    given.settle().await;
    let take = Take::by(OwnerId::new("other-1"), given.clock.now(), Lease::DEFAULT, 1);
    let taken = given.store.inner.take(&first.clone().into(), take).await.expect("nobody else has it");
    let pinned = given.create(job("press").lane(&serial).of_step(link("test"))).await;
    given.settle().await;
    assert_eq!(given.state_of(&pinned).await, JobStateName::Queued);
    let gone = JobCommand::RequestCancel { by: None, reason: "no longer needed".to_owned() };
    let mut order = Order::new(first.clone(), gone, Arc::from("other"));
    order.fence = Some(taken.claim.fence());
    given.daemon.engine().execute(order).await.expect("it is allowed");
    given.until(&pinned, JobStateName::Completed).await;
}

async fn completed(given: &Given, ids: &[JobId]) -> usize {
    let mut count = 0;
    for id in ids {
        count += usize::from(given.state_of(id).await == JobStateName::Completed);
    }
    count
}
