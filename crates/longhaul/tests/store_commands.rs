//! The store's commands on the real binary: verify, rebuild, export.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use domain::attention::Retention;
use domain::event::{EventCommand, NewEvent, Origin};
use domain::job::{
    Details, Dispatch, Holder, JobCommand, JobSpec, JobStateName, NewJob, Report, Reporter, Retryable,
    SubmitWord, Trigger,
};
use domain::operation::{Cancelability, NewOperation, OperationCommand};
use domain::policy::{Hint, KindPolicy};
use domain::run::{NewRun, Node, NodeKind, OnError, RunCommand, Shape};
use domain::{
    AttemptId, BodyName, Command as Ordered, EventId, Jitter, JobId, Lease, OperationId, OwnerId, RecordId,
    RetryPolicy, RunId, Timestamp,
};
use engine::{Clock, Engine, Ids, Order, OrderBody, RandomIds, SystemClock};
use store::{NewBody, Store, Take, body_ref};
use store_sql::{SqliteOptions, SqliteStore};

const JOBS: usize = 5;

fn longhaul(data_dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .args(arguments)
        .arg("--data-dir")
        .arg(data_dir)
        .output()
        .expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn open(data_dir: &Path) -> Arc<SqliteStore> {
    let path = data_dir.join("longhaul.sqlite");
    Arc::new(SqliteStore::open(&SqliteOptions::at(path)).expect("the store opens"))
}

/// A store with a few finished jobs.
async fn filled(data_dir: &Path) -> Arc<SqliteStore> {
    let store = open(data_dir);
    let clock = Arc::new(SystemClock::starting_at(Timestamp::default()));
    let engine = Engine::new(store.clone(), clock.clone(), Arc::new(RandomIds), Retention::DEFAULT);
    for _ in 0..JOBS {
        let id = RandomIds.job_id();
        let spec = JobSpec::plain(Some("noop"), RetryPolicy::ONCE);
        let new = NewJob { spec, due_at: None, bodies: Vec::new() };
        execute(&engine, &id, JobCommand::Create(Box::new(new))).await;
        let owner = OwnerId::new("test");
        let take = Take::by(owner.clone(), clock.now(), Lease::DEFAULT, 1);
        let taken = store.take(&id.clone().into(), take).await.expect("it is free");
        let attempt_id = RandomIds.attempt_id();
        let dispatch = Dispatch {
            attempt_id: attempt_id.clone(),
            owner,
            trigger: Trigger::Automatic,
            holder: Holder::Daemon,
        };
        let order = Order::new(id.clone(), JobCommand::Dispatch(dispatch), Arc::from("test"));
        engine.execute(order.under(taken.claim.fence())).await.expect("it is dispatched");
        let report = Report {
            attempt_id: Some(attempt_id),
            state: JobStateName::Completed,
            details: Details::default(),
            retryable: Retryable::No,
            jitter: Jitter::default(),
            submit: SubmitWord::Unsaid,
            by: Reporter::Daemon,
        };
        let order = Order::new(id, JobCommand::Report(Box::new(report)), Arc::from("test"));
        engine.execute(order.under(taken.claim.fence())).await.expect("it completes");
    }
    store
}

async fn execute(engine: &Engine, id: &JobId, command: JobCommand) {
    engine.execute(Order::new(id.clone(), command, Arc::from("test"))).await.expect("it is allowed");
}

/// Adds an event, an operation and a run, and claims each of them.
async fn claim_every_other_kind(store: &Arc<SqliteStore>) {
    let clock = Arc::new(SystemClock::starting_at(Timestamp::default()));
    let engine = Engine::new(store.clone(), clock.clone(), Arc::new(RandomIds), Retention::DEFAULT);
    let body = |name, bytes: &'static [u8]| NewBody { body: body_ref(name, bytes), bytes: Arc::from(bytes) };
    let payload = body(BodyName::Payload, b"{}");
    let published = NewEvent::new("tide", payload.body, Origin::Published { by: None });
    let handle = body(BodyName::Handle, b"press-1");
    let operation = NewOperation {
        job_id: RandomIds.job_id(),
        attempt_id: AttemptId::new("attempt-1"),
        kind: "press".to_owned(),
        specialist: "press".to_owned(),
        circle: None,
        handle: Some(handle.body),
        cancelability: Cancelability::Cancelable,
        retry_after: Hint::Absent,
        fail_after: Hint::Absent,
        action_ttl: Hint::Absent,
        deadline_at: None,
        progress_hint: None,
        policy: KindPolicy::default(),
        ttl_limit: None,
        external_job_id: None,
        jitter: Jitter::default(),
    };
    let (plan, input) = (body(BodyName::Plan, b"{}"), body(BodyName::Input, b"{}"));
    let step = Node {
        id: "one".to_owned(),
        kind: NodeKind::Step,
        next: None,
        conditional: false,
        on_error: OnError::Stop,
    };
    let run = NewRun {
        pipeline: "tides".to_owned(),
        version: "1".to_owned(),
        shape: Shape(vec![step]),
        plan: plan.body,
        input: input.body,
        event_id: EventId::new("event-1"),
        parent: None,
        circle: None,
        depth: 0,
        max_depth: None,
        dedupe_key: None,
        correlation: None,
    };
    let orders: [(RecordId, Ordered, Vec<NewBody>); 3] = [
        (EventId::new("event-1").into(), EventCommand::Publish(Box::new(published)).into(), vec![payload]),
        (OperationId::new("op-1").into(), OperationCommand::Accept(Box::new(operation)).into(), vec![handle]),
        (RunId::new("run-1").into(), RunCommand::Start(Box::new(run)).into(), vec![plan, input]),
    ];
    for (id, command, bodies) in orders {
        let bodies = bodies.into_iter().map(|body| OrderBody { record: id.clone(), body }).collect();
        let order = Order { bodies, ..Order::new(id.clone(), command, Arc::from("test")) };
        engine.execute(order).await.expect("it is allowed");
        let take = Take::by(OwnerId::new("test"), clock.now(), Lease::DEFAULT, 1);
        store.take(&id, take).await.expect("it is free");
    }
}

fn damage(data_dir: &Path, sql: &str) {
    let connection = rusqlite::Connection::open(data_dir.join("longhaul.sqlite")).expect("the file opens");
    connection.execute_batch(sql).expect("the damage is done");
}

#[tokio::test]
async fn verify_beside_an_open_store_finds_it_clean() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path()).await;
    let output = longhaul(dir.path(), &["verify"]);
    assert!(output.status.success(), "{}", text(&output.stdout));
    assert_eq!(text(&output.stdout), "15 facts, 5 records, 0 differences\n");
    drop(store);
}

#[tokio::test]
async fn verify_since_a_place_sees_only_what_was_touched_and_says_how_far_it_went() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()).await);
    let told = |since: &str| text(&longhaul(dir.path(), &["verify", "--since", since]).stdout);
    assert_eq!(
        told("0"),
        "15 facts, 5 records, 0 differences\nwhat was touched after position 0, up to position 15\n"
    );
    // The last job alone, from its first fact on.
    assert!(told("14").starts_with("3 facts, 1 records, 0 differences\n"), "{}", told("14"));
    damage(dir.path(), "UPDATE jobs SET state = 'queued' WHERE rowid = 2");
    assert!(told("14").contains(" 0 differences"), "{}", told("14"));
    assert!(told("3").contains("its columns are"), "{}", told("3"));
}

#[tokio::test]
async fn verify_names_what_differs_and_rebuild_repairs_it() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()).await);
    damage(dir.path(), "UPDATE jobs SET state = 'queued' WHERE rowid = 2");
    let output = longhaul(dir.path(), &["verify"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("its columns are"), "{}", text(&output.stdout));
    let output = longhaul(dir.path(), &["rebuild"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "rebuilt 5 records from 15 facts\n");
    assert!(longhaul(dir.path(), &["verify"]).status.success());
}

#[tokio::test]
async fn a_damaged_fact_is_found_and_rebuild_refuses_it() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()).await);
    damage(
        dir.path(),
        "DROP TRIGGER facts_are_never_changed; UPDATE facts SET actor = 'nobody' WHERE position = 5",
    );
    let output = longhaul(dir.path(), &["verify"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("has checksum"), "{}", text(&output.stdout));
    let output = longhaul(dir.path(), &["rebuild"]);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(told.starts_with("error[store_broken]: ") && told.contains("has checksum"), "{told}");
}

#[tokio::test]
async fn rebuild_is_refused_while_the_store_is_open_and_names_the_holder() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path()).await;
    let output = longhaul(dir.path(), &["rebuild"]);
    assert_eq!(output.status.code(), Some(1));
    let pid = std::process::id().to_string();
    let told = text(&output.stderr);
    assert!(told.starts_with("error[store_locked]: ") && told.contains(&pid), "{told}");
    drop(store);
}

#[tokio::test]
async fn export_writes_every_fact_as_a_json_line_in_the_order_of_commits() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()).await);
    let output = longhaul(dir.path(), &["export", "facts"]);
    assert!(output.status.success());
    let lines: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let positions: Vec<u64> = lines.iter().map(|line| line["position"].as_u64().unwrap()).collect();
    assert_eq!(positions, (1..=15).collect::<Vec<_>>());
    assert_eq!(lines[0]["kind"], "job.created/1");
    assert_eq!(lines[2]["kind"], "job.completed/1");
    assert!(lines[0]["at"].as_str().unwrap().ends_with('Z'));
    let output = longhaul(dir.path(), &["export", "facts", "--after", "12"]);
    assert_eq!(text(&output.stdout).lines().count(), 3);
}

// conforms: A18 A19 A66
#[tokio::test]
async fn every_claim_is_exported_as_a_claim_record_that_fits_its_schema() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path()).await;
    claim_every_other_kind(&store).await;
    drop(store);
    let schema =
        serde_json::from_str(include_str!("../../../docs/schemas/claim-record.schema.json")).unwrap();
    let schema = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    let output = longhaul(dir.path(), &["export", "claims"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        assert!(schema.is_valid(line), "{line}");
        assert_eq!(line["owner_id"], "test", "{line}");
    }
    // The claims of the operation and of the run are held too, and are no records of this kind.
    let of_type = |wanted: &str| lines.iter().filter(|line| line["resource_type"] == wanted).count();
    assert_eq!((of_type("WORKORDER"), of_type("EVENT"), lines.len()), (JOBS, 1, JOBS + 1));
    let held = rusqlite::Connection::open(dir.path().join("longhaul.sqlite")).expect("the file opens");
    let held = held.query_row(
        "SELECT COUNT(*) FROM agenda WHERE owner = 'test' AND record_id IN ('op-1', 'run-1')",
        (),
        |row| row.get::<_, i64>(0),
    );
    assert_eq!(held.unwrap(), 2);
    // The schema itself is closed and complete.
    let mut foreign = lines[0].clone();
    foreign["status"] = "held".into();
    assert!(!schema.is_valid(&foreign));
    for field in lines[0].as_object().unwrap().keys() {
        let mut lacking = lines[0].clone();
        lacking.as_object_mut().unwrap().remove(field);
        assert!(!schema.is_valid(&lacking), "{field}");
    }
}

#[test]
fn a_missing_store_is_said_and_nothing_is_made() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in [&["verify"][..], &["rebuild"], &["export", "facts"]] {
        let output = longhaul(dir.path(), arguments);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            text(&output.stderr).starts_with("error[store_missing]: there is no store at"),
            "{}",
            text(&output.stderr)
        );
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn help_teaches_with_examples() {
    let output = Command::new(env!("CARGO_BIN_EXE_longhaul")).arg("--help").output().unwrap();
    assert!(text(&output.stdout).contains("longhaul export facts > facts.jsonl"));
}

#[tokio::test]
async fn what_cannot_be_exported_is_told_with_its_code() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()).await);
    damage(
        dir.path(),
        "DROP TRIGGER facts_are_never_changed; UPDATE facts SET payload = 'no json' WHERE position = 5; \
         UPDATE agenda SET claim_version = -1",
    );
    for what in ["facts", "claims"] {
        let output = longhaul(dir.path(), &["export", what]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).starts_with("error[store_broken]: "), "{}", text(&output.stderr));
    }
}

#[test]
fn wrong_usage_is_told_apart_from_failure() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in [&["verify", "--fast"][..], &["export"], &["export", "facts", "--after", "x"], &["mend"]]
    {
        assert_eq!(longhaul(dir.path(), arguments).status.code(), Some(2), "{arguments:?}");
    }
}
