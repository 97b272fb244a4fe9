//! A daemon on a memory store with one process executor, and ways to wait for what its commands do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domain::attention::Retention;
use domain::job::{Job, JobCommand, JobSpec, JobStateName, NewJob};
use domain::{BodyName, BodyRef, JobId, Lease, OwnerId, Record, RetryPolicy, Timestamp};
use engine::{
    Daemon, DaemonSettings, Dispatching, Executor, Executors, Ids, ManualClock, Order, OrderBody, RandomIds,
};
use executors::process::{Artifacts, ProcessExecutor, ProcessHost, ProcessSettings, Program};
use serde_json::{Value, json};
use store::{MemoryStore, NewBody, Store, body_ref};
use tempfile::TempDir;

pub const LONGHAUL: &str = env!("CARGO_BIN_EXE_longhaul");
/// How long a test waits before it fails.
pub const PATIENCE: Duration = Duration::from_mins(1);
const EXECUTOR: &str = "command";
const RETENTION_SECONDS: u64 = 1_000;

pub struct Given {
    pub daemon: Daemon,
    pub store: Arc<MemoryStore>,
    pub clock: Arc<ManualClock>,
    pub artifacts: Arc<Artifacts>,
    dir: PathBuf,
    _temporary: Option<TempDir>,
}

/// A job that is over, with what it left.
#[derive(Debug)]
pub struct Ended {
    pub job: Job,
    pub data: Value,
    pub error: Value,
    pub artifacts: Value,
}

/// Where the daemon of a directory has its data.
pub fn data_dir(dir: &Path) -> PathBuf {
    dir.join("data")
}

impl Given {
    /// Runs the command that the job names.
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut ProcessSettings)) -> Self {
        let temporary = tempfile::tempdir().expect("there is room");
        let dir = temporary.path().to_owned();
        Self { _temporary: Some(temporary), ..Self::at(&dir, change) }
    }

    /// In a directory that outlives it. The daemon's own data is in a directory below it.
    pub fn at(dir: &Path, change: impl FnOnce(&mut ProcessSettings)) -> Self {
        let mut settings = ProcessSettings::new(Program::FromJob, dir);
        change(&mut settings);
        let data_dir = data_dir(dir);
        let artifacts = Arc::new(Artifacts::in_dir(data_dir.join("artifacts")).expect("it is made"));
        let host = Arc::new(
            ProcessHost::new(LONGHAUL.into(), data_dir, artifacts.clone()).expect("the directory is there"),
        );
        let specialist = Arc::new(ProcessExecutor::new(host, settings));
        let mut executors = Executors::default();
        let executor = Executor {
            specialist,
            concurrency: 4,
            retry: RetryPolicy::ONCE,
            modes: engine::Modes::default(),
        };
        executors.register(EXECUTOR, executor);
        executors.watched_by(artifacts.clone());
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_700_000_000)));
        let store = Arc::new(MemoryStore::new());
        let settings = DaemonSettings {
            preparation: None,
            owner: OwnerId::new("test"),
            lease: Lease::DEFAULT,
            retention: Retention { completed_seconds: RETENTION_SECONDS, other_seconds: RETENTION_SECONDS },
            lane_limits: BTreeMap::new(),
            policy: domain::policy::HostPolicy::default(),
            grace_seconds: 5,
            dispatching: Dispatching::On,
            standing: engine::Standing::alone(),
        };
        let daemon = Daemon::start(store.clone(), clock.clone(), Arc::new(RandomIds), executors, settings);
        Self { daemon, store, clock, artifacts, dir: dir.to_owned(), _temporary: None }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Creates a job with one attempt.
    pub async fn start(&self, input: &Value) -> JobId {
        self.start_spec(input, JobSpec::plain(Some(EXECUTOR), RetryPolicy::ONCE)).await
    }

    /// Creates a job that runs a shell's script.
    pub async fn start_script(&self, script: &str) -> JobId {
        self.start(&json!({ "argv": ["sh", "-c", script] })).await
    }

    /// Creates a job whose creator asks for so many attempts, a second apart.
    pub async fn start_with_attempts(&self, input: &Value, max_attempts: u32) -> JobId {
        let retry = RetryPolicy { max_attempts, backoff_seconds: 1, max_backoff_seconds: 1 };
        let spec = JobSpec { retry_requested: true, ..JobSpec::plain(Some(EXECUTOR), retry) };
        self.start_spec(input, spec).await
    }

    /// Creates a job that has attempts although its creator asks for none.
    pub async fn start_with_default_attempts(&self, input: &Value) -> JobId {
        self.start_spec(input, JobSpec::plain(Some(EXECUTOR), Executors::DEFAULT_RETRY)).await
    }

    /// Creates a job with a time limit of its own.
    pub async fn start_with_timeout(&self, script: &str, seconds: u64) -> JobId {
        let mut spec = JobSpec::plain(Some(EXECUTOR), RetryPolicy::ONCE);
        spec.timeout_seconds = Some(seconds);
        self.start_spec(&json!({ "argv": ["sh", "-c", script] }), spec).await
    }

    async fn start_spec(&self, input: &Value, spec: JobSpec) -> JobId {
        let id = RandomIds.job_id();
        let bytes = input.to_string().into_bytes();
        let body = body_ref(BodyName::Input, &bytes);
        let new = NewJob { spec, due_at: None, bodies: vec![body] };
        let mut order = Order::new(id.clone(), JobCommand::Create(Box::new(new)), Arc::from("test"));
        let body = NewBody { body, bytes: Arc::from(bytes) };
        order.bodies.push(OrderBody { record: id.clone().into(), body });
        self.daemon.engine().execute(order).await.expect("it is accepted");
        id
    }

    pub async fn order(&self, id: &JobId, command: JobCommand) {
        let order = Order::new(id.clone(), command, Arc::from("test"));
        self.daemon.engine().execute(order).await.expect("it is allowed");
    }

    pub async fn cancel(&self, id: &JobId) {
        self.order(id, JobCommand::RequestCancel { by: None, reason: "enough".to_owned() }).await;
    }

    /// Waits until the job is as wanted, woken by its commits.
    pub async fn until(&self, id: &JobId, wanted: impl Fn(&Job) -> bool) -> Job {
        let mut changes = self.daemon.changes().watch(&id.clone().into());
        let wait = async {
            loop {
                let loaded =
                    self.store.load(&id.clone().into()).await.expect("it can be read").expect("it is there");
                if let Record::Job(job) = &*loaded.record
                    && wanted(job)
                {
                    return (**job).clone();
                }
                changes.next().await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("the job gets there")
    }

    pub async fn ended(&self, id: &JobId) -> Ended {
        let job = self.until(id, |job| job.state.name().is_terminal()).await;
        Ended {
            data: self.body(&job, job.result.data).await,
            error: self.body(&job, job.result.error).await,
            artifacts: self.body(&job, job.result.artifacts).await,
            job,
        }
    }

    async fn body(&self, job: &Job, body: Option<BodyRef>) -> Value {
        let Some(body) = body else { return Value::Null };
        let bytes =
            self.store.body(&job.id.clone().into(), body).await.expect("it can be read").expect("it is kept");
        serde_json::from_slice(&bytes).expect("bodies are JSON")
    }

    /// Runs a command to its end.
    pub async fn run(&self, input: &Value) -> Ended {
        let id = self.start(input).await;
        self.ended(&id).await
    }

    pub async fn run_script(&self, script: &str) -> Ended {
        self.run(&json!({ "argv": ["sh", "-c", script] })).await
    }
}

impl Ended {
    pub fn assert_completed(&self) -> &Self {
        assert_eq!(self.job.state.name(), JobStateName::Completed, "{:?}", self.error);
        self
    }

    pub fn assert_failed(&self, reason: &str) -> &Self {
        let state = (self.job.state.name(), self.job.state_reason.as_deref());
        assert_eq!(state, (JobStateName::Failed, Some(reason)), "{:?}", self.error);
        self
    }

    pub fn message(&self) -> &str {
        self.error["message"].as_str().expect("an error has a message")
    }

    /// The entry of one output.
    pub fn artifact(&self, name: &str) -> &Value {
        let list = self.artifacts.as_array().expect("there are artifacts");
        list.iter().find(|entry| entry["name"] == name).expect("it is among them")
    }
}
