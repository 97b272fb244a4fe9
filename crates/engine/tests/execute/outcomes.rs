//! Conflicts and unknown outcomes: decided anew on what is there, repeated word for word, never doubled.

use std::sync::Arc;

use domain::job::{JobCommand, JobStateName, Reporter, Trigger};
use engine::{EngineError, Order, Outcome};
use store::{Commit, FactId, Store, StoreError};

use crate::scripted::{Act, Scripted};
use crate::world::{START, World, at, attempt, create, dispatch, job, report};

fn cancel() -> JobCommand {
    JobCommand::RequestCancel { by: None, reason: "not needed".to_owned() }
}

fn order(name: &str, command: JobCommand) -> Order {
    Order::new(job(name), command, Arc::from("tester"))
}

/// A dispatched job on a store that follows a script, and an engine beside it that does not.
async fn scripted() -> (Arc<Scripted>, World, World) {
    let store = Arc::new(Scripted::default());
    let world = World::on(store.clone());
    world.dispatched("a").await;
    store.commits();
    let beside = World::on(store.inner.clone());
    (store, world, beside)
}

fn fact_ids(commit: &Commit) -> Vec<FactId> {
    commit.changes.iter().flat_map(|change| &change.facts).map(|fact| fact.id).collect()
}

#[tokio::test]
async fn order_that_met_a_conflict_is_decided_anew_on_what_is_there() {
    let (store, world, beside) = scripted().await;
    store.next_commits([Act::LetFirst(beside.engine.clone(), vec![order("a", cancel())])]);
    world.done(job("a"), report(1, JobStateName::Running)).await;
    assert_eq!(
        world.kinds(job("a")).await,
        ["job.created", "job.dispatched", "job.cancel_requested", "job.started"]
    );
    let commits = store.commits();
    assert_eq!(commits.len(), 2);
    assert_ne!(fact_ids(&commits[0]), fact_ids(&commits[1]));
}

#[tokio::test]
async fn order_whose_reason_has_gone_is_refused_after_the_conflict() {
    let (store, world, beside) = scripted().await;
    let ended = order("a", report(1, JobStateName::Completed));
    store.next_commits([Act::LetFirst(beside.engine.clone(), vec![ended])]);
    assert_eq!(world.refused(job("a"), report(1, JobStateName::Running)).await, "terminal");
    assert_eq!(
        world.kinds(job("a")).await,
        ["job.created", "job.dispatched", "job.completed", "job.stale_report_kept"]
    );
}

#[tokio::test]
async fn create_under_an_id_that_is_taken_is_refused_and_written_nowhere() {
    let (store, world, _) = scripted().await;
    assert_eq!(world.refused(job("a"), create(|_| {})).await, "already_exists");
    assert_eq!(world.kinds(job("a")).await.len(), 2);
    // The second try looked before it decided.
    assert_eq!(store.commits().len(), 1);
}

#[tokio::test]
async fn order_that_keeps_meeting_conflicts_is_given_up_in_the_end() {
    let (store, world, _) = scripted().await;
    store.next_commits((0..1_000).map(|_| Act::Say(StoreError::Conflict)));
    assert_eq!(world.refused(job("a"), cancel()).await, "contended");
    assert!((2..=100).contains(&store.commits().len()));
    assert_eq!(world.kinds(job("a")).await.len(), 2);
}

#[tokio::test]
async fn commit_of_unknown_outcome_is_repeated_word_for_word_and_never_doubles() {
    let unknown = || StoreError::OutcomeUnknown;
    let scripts: [fn() -> Vec<Act>; 4] = [
        || vec![Act::ApplyAndSay(StoreError::OutcomeUnknown)],
        || vec![Act::Say(StoreError::OutcomeUnknown)],
        || vec![Act::Say(StoreError::OutcomeUnknown), Act::ApplyAndSay(StoreError::OutcomeUnknown)],
        || vec![Act::ApplyAndSay(StoreError::OutcomeUnknown), Act::Say(StoreError::OutcomeUnknown)],
    ];
    for script in scripts {
        let (store, world, _) = scripted().await;
        let acts = script();
        let repeats = acts.len();
        store.next_commits(acts);
        let Outcome::Changed { position, .. } = world.execute(job("a"), cancel()).await.unwrap() else {
            panic!("nothing changed")
        };
        assert_eq!(position, 3);
        assert_eq!(world.kinds(job("a")).await, ["job.created", "job.dispatched", "job.cancel_requested"]);
        let commits = store.commits();
        assert_eq!(commits.len(), repeats + 1);
        assert!(commits.iter().all(|commit| fact_ids(commit) == fact_ids(&commits[0])));
    }
    // One that stays unknown is told as unknown, and was tried under one name only.
    let (store, world, _) = scripted().await;
    store.next_commits((0..1_000).map(|_| Act::ApplyAndSay(unknown())));
    let refused = world.execute(job("a"), cancel()).await.unwrap_err();
    assert_eq!(refused, EngineError::Store(unknown()));
    assert_eq!(world.kinds(job("a")).await.len(), 3);
    let commits = store.commits();
    assert!((2..=10).contains(&commits.len()));
    assert!(commits.iter().all(|commit| fact_ids(commit) == fact_ids(&commits[0])));
}

#[tokio::test]
async fn caller_is_not_told_that_nothing_happened_once_the_outcome_was_unknown() {
    for then in [StoreError::Busy, StoreError::Full, StoreError::Unavailable("stopped".to_owned())] {
        let (store, world, _) = scripted().await;
        let say = (0..1_000).map(|_| Act::Say(then.clone()));
        store.next_commits(std::iter::once(Act::ApplyAndSay(StoreError::OutcomeUnknown)).chain(say));
        assert_eq!(world.refused(job("a"), cancel()).await, "outcome_unknown", "{then}");
        assert_eq!(world.kinds(job("a")).await.len(), 3);
        // Without that it is the truth.
        let (store, world, _) = scripted().await;
        store.next_commits([Act::Say(then.clone())]);
        assert_eq!(world.refused(job("a"), cancel()).await, then.code());
        assert_eq!(world.kinds(job("a")).await.len(), 2);
    }
}

#[tokio::test]
async fn attending_with_an_unknown_outcome_does_not_double_either() {
    let (store, world, _) = scripted().await;
    world.wait(60);
    let taken = world.take(job("a"), "node-b").await;
    store.next_commits([Act::ApplyAndSay(StoreError::OutcomeUnknown)]);
    world.engine.attend(&taken, Arc::from("worker:expire")).await.unwrap();
    assert_eq!(world.kinds(job("a")).await, ["job.created", "job.dispatched", "job.requeued"]);
}

#[tokio::test]
async fn attending_is_decided_anew_when_another_was_first() {
    let (store, world, beside) = scripted().await;
    world.wait(60);
    let taken = world.take(job("a"), "node-b").await;
    // The lease was over, but before that is written the executor pauses for input, and needs no lease.
    let pausing = order("a", report(1, JobStateName::AwaitingInput));
    store.next_commits([Act::LetFirst(beside.engine.clone(), vec![pausing])]);
    let outcome = world.engine.attend(&taken, Arc::from("worker:attend")).await.unwrap();
    assert!(matches!(outcome, Outcome::AlreadySo { .. }));
    assert_eq!(world.kinds(job("a")).await, ["job.created", "job.dispatched", "job.input_awaited"]);
    assert_eq!(world.store.earliest_due(domain::RecordKind::Job).await, Ok(None));
}

#[tokio::test]
async fn time_never_goes_back_within_a_record() {
    let (store, world, beside) = scripted().await;
    // Ours has read the clock; the other, whose clock is ahead, commits before ours loads the record.
    beside.clock.set(at(7));
    store.before_next_load(beside.engine.clone(), order("a", cancel()));
    world.done(job("a"), report(1, JobStateName::Running)).await;
    let facts = store.inner.facts_of(&job("a").into(), 0, 10).await.unwrap();
    let times: Vec<_> = facts.iter().map(|fact| fact.at).collect();
    assert_eq!(times, [START, START, at(7), at(7)]);
    // And the view is what a replay of those times gives.
    let mut replayed = None;
    for fact in &facts {
        domain::record::apply(&mut replayed, &fact.stream, &fact.fact, fact.at).unwrap();
    }
    assert_eq!(replayed.as_ref(), Some(&*world.record(job("a")).await));
}

#[tokio::test]
async fn order_on_what_is_remembered_reads_nothing() {
    let (store, world, _) = scripted().await;
    store.remember(job("a")).await;
    let fence = store.inner.load(&job("a").into()).await.unwrap().unwrap().claim.unwrap().fence();
    let loads = store.loads();
    world.engine.execute(order("a", report(1, JobStateName::Running)).under(fence)).await.unwrap();
    assert_eq!(store.loads(), loads);
    assert_eq!(store.commits().len(), 1);
}

#[tokio::test]
async fn order_on_what_has_changed_since_it_was_remembered_is_decided_anew() {
    let (store, world, beside) = scripted().await;
    store.remember(job("a")).await;
    beside.done(job("a"), cancel()).await;
    world.done(job("a"), report(1, JobStateName::Running)).await;
    assert_eq!(
        world.kinds(job("a")).await,
        ["job.created", "job.dispatched", "job.cancel_requested", "job.started"]
    );
}

#[tokio::test]
async fn order_that_memory_alone_would_refuse_is_decided_on_what_is_there() {
    let store = Arc::new(Scripted::default());
    let world = World::on(store.clone());
    world.done(job("a"), create(|_| {})).await;
    store.remember(job("a")).await;
    let beside = World::on(store.inner.clone());
    let fence = beside.take(job("a"), "node-b").await.claim.fence();
    let dispatched = order("a", dispatch(1, Trigger::Automatic)).under(fence);
    beside.engine.execute(dispatched).await.unwrap();
    // The attempt is not known to what is remembered.
    world.done(job("a"), report(1, JobStateName::Running)).await;
    assert_eq!(world.kinds(job("a")).await, ["job.created", "job.dispatched", "job.started"]);
}

#[tokio::test]
async fn order_that_memory_alone_would_call_done_is_decided_on_what_is_there() {
    let (store, world, beside) = scripted().await;
    let beat = || JobCommand::Heartbeat { attempt_id: attempt(1), by: Reporter::Daemon };
    beside.done(job("a"), report(1, JobStateName::Running)).await;
    store.remember(job("a")).await;
    beside.done(job("a"), report(1, JobStateName::Blocked)).await;
    let before = world.kinds(job("a")).await.len();
    // What is remembered runs already; what is there has paused since, and is shown so.
    let Outcome::AlreadySo { record } = world.execute(job("a"), beat()).await.unwrap() else {
        panic!("something changed")
    };
    assert_eq!(record, world.record(job("a")).await);
    assert_eq!(world.kinds(job("a")).await.len(), before);
}
