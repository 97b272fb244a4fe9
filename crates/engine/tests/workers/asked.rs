//! Run and retry: attempts that someone asked for.

use std::sync::Arc;

use domain::job::{JobCommand, JobStateName, Reporter, Trigger};
use domain::{Digest, JobId, Record, Refusal};
use engine::{Clock, EngineError, OrderKey, Output, Produced, RunOrder};
use store::IdempotencyKey;
use tokio::sync::Semaphore;

use crate::given::{Given, job, scripted, unassigned};

fn asked() -> RunOrder {
    RunOrder { actor: Arc::from("token:ada"), keys: Vec::new() }
}

fn state_of(record: &Record) -> JobStateName {
    record.as_job().expect("a job was run").state.name()
}

async fn run(given: &Given, id: &JobId, trigger: Trigger) -> Result<JobStateName, EngineError> {
    given.daemon.run_now(id, trigger, asked()).await.map(|record| state_of(&record))
}

// conforms: R15
#[tokio::test]
async fn run_does_not_wait_for_the_due_time_and_answers_when_the_attempt_has_left_dispatching() {
    let given = Given::new([scripted("echo", 4, |_, _| async { Produced::Completed(Output::default()) })]);
    let id = given.create(job("echo").due_in(3_600)).await;
    assert_eq!(run(&given, &id, Trigger::Run).await, Ok(JobStateName::Completed));
}

// conforms: R15 R16
#[tokio::test]
async fn failed_work_runs_again_and_keeps_its_first_attempt() {
    let given = Given::new([scripted("moody", 4, |assignment, _| async move {
        match assignment.attempt_number {
            1 => Produced::Failed(engine::Failure::permanent("unlucky", "the first time")),
            _ => Produced::Completed(Output::default()),
        }
    })]);
    for trigger in [Trigger::Run, Trigger::Retry] {
        let id = given.create(job("moody")).await;
        given.until(&id, JobStateName::Failed).await;
        assert_eq!(run(&given, &id, trigger).await, Ok(JobStateName::Completed));
        let job = given.load(&id).await;
        let ends: Vec<_> =
            job.attempts.iter().map(|attempt| attempt.end.as_ref().map(|end| end.state)).collect();
        assert_eq!(ends, [Some(JobStateName::Failed), Some(JobStateName::Completed)]);
    }
}

// conforms: R17
#[tokio::test]
async fn retry_of_delivered_work_takes_it_from_whoever_is_silent() {
    let given = Given::new([scripted("courier", 4, |assignment, _| async move {
        match assignment.attempt_number {
            1 => Produced::Delivered,
            _ => Produced::Completed(Output::default()),
        }
    })]);
    let id = given.create(job("courier")).await;
    let first = given.until(&id, JobStateName::Delivered).await.attempts[0].id.clone();
    assert_eq!(run(&given, &id, Trigger::Run).await, Err(refused(JobStateName::Delivered)));
    assert_eq!(run(&given, &id, Trigger::Retry).await, Ok(JobStateName::Completed));
    let late = given.daemon.engine().execute(engine::Order::new(
        id.clone(),
        JobCommand::Heartbeat { attempt_id: first, by: Reporter::Daemon },
        Arc::from("test"),
    ));
    assert_eq!(late.await.unwrap_err().code(), "stale_attempt");
}

fn refused(state: JobStateName) -> EngineError {
    EngineError::Refused(Refusal::NotRunnable { state })
}

#[tokio::test]
async fn run_of_work_that_runs_is_refused_and_disturbs_nobody() {
    let gate = Arc::new(Semaphore::new(0));
    let waiting = gate.clone();
    let given = Given::new([scripted("slow", 4, move |_, _| {
        let gate = waiting.clone();
        async move {
            gate.acquire().await.expect("it stays open").forget();
            Produced::Completed(Output::default())
        }
    })]);
    let id = given.create(job("slow")).await;
    given.until(&id, JobStateName::Dispatching).await;
    assert_eq!(run(&given, &id, Trigger::Run).await, Err(refused(JobStateName::Dispatching)));
    gate.add_permits(1);
    let ended = given.until(&id, JobStateName::Completed).await;
    assert_eq!(ended.attempts.len(), 1);
}

#[tokio::test]
async fn run_answers_after_ten_seconds_although_the_attempt_is_still_dispatching() {
    let given = Given::new([scripted("slow", 4, |_, mut link| async move {
        link.stopped().await;
        Produced::Stopped
    })]);
    let id = given.create(job("slow").due_in(3_600)).await;
    let answered = async { given.daemon.run_now(&id, Trigger::Run, asked()).await };
    let clock = async {
        given.until(&id, JobStateName::Dispatching).await;
        given.settle().await;
        given.clock.advance_seconds(10);
    };
    let (answered, ()) = tokio::join!(answered, clock);
    assert!(!state_of(&answered.expect("it was taken")).is_terminal());
}

#[tokio::test]
async fn run_of_work_that_names_nobody_makes_one_attempt_that_ends_unavailable() {
    let given = Given::new([]);
    let id = given.create(unassigned()).await;
    assert_eq!(run(&given, &id, Trigger::Run).await, Ok(JobStateName::Unavailable));
    let ended = given.load(&id).await;
    assert_eq!(ended.state_reason.as_deref(), Some("missing_target"));
    assert_eq!(ended.attempts.len(), 1);
}

#[tokio::test]
async fn run_under_a_key_that_was_used_gives_the_first_answer_and_no_attempt() {
    let given = Given::new([scripted("echo", 4, |_, _| async { Produced::Completed(Output::default()) })]);
    let id = given.create(job("echo").due_in(3_600)).await;
    let keyed = || RunOrder {
        keys: vec![OrderKey {
            key: IdempotencyKey {
                principal: "token:ada".to_owned(),
                route: "run".to_owned(),
                key: "k".to_owned(),
            },
            request_sha256: Digest([1; 32]),
            keep_until: given.clock.now().plus_seconds(86_400),
            render: Arc::new(|record| state_of(record).as_str().into()),
        }],
        ..asked()
    };
    given.daemon.run_now(&id, Trigger::Run, keyed()).await.expect("it runs");
    let again = given.daemon.run_now(&id, Trigger::Run, keyed()).await.unwrap_err();
    let EngineError::KeyTaken(kept) = again else { panic!("{again}") };
    assert_eq!(&*kept.answer, b"dispatching");
    assert_eq!(given.load(&id).await.attempts.len(), 1);
}
