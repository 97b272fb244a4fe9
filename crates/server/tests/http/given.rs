//! A running server: an SQLite file, the engine's workers, a clock that stands until it is moved, and a listener on a free port.

mod audit_log;
mod client;
mod executors;
mod routed;

use std::sync::Arc;
use std::time::Duration;

use api::Role;
use domain::attention::Retention;
use domain::policy::HostPolicy;
use domain::{Lease, Timestamp};
use engine::{Daemon, DaemonSettings, Dispatching, Executor, Executors, Ids, ManualClock, RandomIds};
use serde_json::{Value, json};
use server::{CallbackKey, Server, ServerLimits, ServerSettings};
use store::Store;
use store_sql::{SqliteOptions, SqliteStore};
use tokio::net::TcpListener;
use tokio::sync::watch;

pub use audit_log::AuditLog;
pub use client::{Answer, Call};
pub use executors::{BEGUN, TAKEN, UNDER_WAY};
pub use routed::HOOK_KEY;

/// 2026-01-01T00:00:00Z.
pub const START: Timestamp = Timestamp::from_seconds(1_767_225_600);
/// As it stands in answers.
pub const START_TEXT: &str = "2026-01-01T00:00:00.000000+00:00";

pub struct World {
    pub address: String,
    pub admin: String,
    pub clock: Arc<ManualClock>,
    pub daemon: Arc<Daemon>,
    pub router: Arc<pipelines::Router>,
    pub store: Arc<SqliteStore>,
    shutdown: watch::Sender<bool>,
    served: tokio::task::JoinHandle<std::io::Result<()>>,
    pub directory: tempfile::TempDir,
}

/// Nothing is taken by itself: what happens is what the test asks for.
pub async fn world() -> World {
    World::start(Dispatching::Off, ServerLimits::default(), 0, HostPolicy::default(), None).await
}

/// The same, whose door has these bounds.
pub async fn world_with(limits: ServerLimits) -> World {
    World::start(Dispatching::Off, limits, 0, HostPolicy::default(), None).await
}

/// Ready jobs are taken by themselves.
pub async fn working_world() -> World {
    World::start(Dispatching::On, ServerLimits::default(), 0, HostPolicy::default(), None).await
}

/// The same, whose door has these bounds.
pub async fn working_world_with(limits: ServerLimits) -> World {
    World::start(Dispatching::On, limits, 0, HostPolicy::default(), None).await
}

/// Ready jobs are taken by themselves; executors and lanes that nobody knows are waited for.
pub async fn world_with_grace(grace_seconds: u64) -> World {
    World::start(Dispatching::On, ServerLimits::default(), grace_seconds, HostPolicy::default(), None).await
}

/// Ready jobs are taken by themselves, and the host grants this to work outside.
pub async fn world_with_policy(policy: HostPolicy) -> World {
    World::start(Dispatching::On, ServerLimits::default(), 0, policy, None).await
}

/// Ready jobs are taken by themselves, and tokens are revoked by other nodes on the same store: they are known for so long.
pub async fn world_of_many(tokens_remembered_for: Duration) -> World {
    let limits = ServerLimits::default();
    World::start(Dispatching::On, limits, 0, HostPolicy::default(), Some(tokens_remembered_for)).await
}

/// Panics unless the document fits the published schema of this name.
#[track_caller]
pub fn assert_fits(schema: &str, document: &Value) {
    let path = format!("{}/../../docs/schemas/{schema}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("the schema is published");
    let schema = serde_json::from_str(&text).expect("the schema is JSON");
    let validator =
        jsonschema::options().should_validate_formats(true).build(&schema).expect("it is a schema");
    if let Err(error) = validator.validate(document) {
        panic!("{}: {error}: {document}", error.instance_path());
    }
}

/// What the service of the executor `signs` signs its callbacks with.
pub const WEBHOOK_KEY: &[u8] = b"a key of both";

/// What callback addresses are signed with.
pub fn callback_key() -> CallbackKey {
    CallbackKey::from_bytes([7; 32])
}

impl World {
    async fn start(
        dispatching: Dispatching,
        limits: ServerLimits,
        grace_seconds: u64,
        policy: HostPolicy,
        tokens_remembered_for: Option<Duration>,
    ) -> Self {
        let directory = tempfile::tempdir().expect("there is room for a directory");
        let options = SqliteOptions::at(directory.path().join("longhaul.sqlite"));
        let store = Arc::new(SqliteStore::open(&options).expect("a new store opens"));
        let clock = Arc::new(ManualClock::at(START));
        let executors = executors();
        let router = Arc::new(pipelines::Router::new(executors.clone(), pipelines::Routes::default()));
        let settings = DaemonSettings {
            preparation: Some(router.clone()),
            owner: RandomIds.owner_id("test"),
            lease: Lease::DEFAULT,
            retention: Retention::DEFAULT,
            lane_limits: [("narrow".to_owned(), 1)].into(),
            policy,
            grace_seconds,
            dispatching,
            standing: engine::Standing::alone(),
        };
        let daemon = Daemon::start(store.clone(), clock.clone(), Arc::new(RandomIds), executors, settings);
        let daemon = Arc::new(daemon);
        let secret = server::first_admin(daemon.engine()).await.expect("the store keeps it");
        let heartbeat = Duration::from_millis(20);
        let settings =
            ServerSettings { heartbeat, limits, tokens_remembered_for, ..ServerSettings::default() };
        let server = Server::new(daemon.clone(), router.clone(), settings)
            .with_callbacks(callback_key())
            .with_plugins(routed::plugins())
            .with_webhooks(routed::webhooks());
        let server = Arc::new(server);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let (shutdown, mut told) = watch::channel(false);
        let until = async move {
            let _ = told.wait_for(|stop| *stop).await;
        };
        let served = tokio::spawn(server::serve(listener, server, until));
        let admin = secret.expect("there was no token").reveal().to_owned();
        Self { address, admin, clock, daemon, router, store, shutdown, served, directory }
    }

    /// From now on these pipelines.
    pub fn pipelines(&self, yaml: &str) {
        let loaded = pipelines::parse(&[("test.yaml", yaml)]);
        assert!(loaded.mistakes.is_empty(), "{:?}", loaded.mistakes);
        self.router.replace(pipelines::Routes::new(loaded.pipelines));
    }

    /// Asks the server to stop and waits until it has.
    pub async fn stop_serving(self) {
        self.shutdown.send_replace(true);
        self.served.await.expect("it does not panic").expect("it ends well");
    }

    pub fn call(&self, method: &str, path: &str) -> Call<'_> {
        Call::new(&self.address, method, path).bearer(&self.admin)
    }

    pub fn get(&self, path: &str) -> Call<'_> {
        self.call("GET", path)
    }

    pub fn post(&self, path: &str, body: Value) -> Call<'_> {
        self.call("POST", path).json(&body)
    }

    pub fn patch(&self, id: &str, body: Value) -> Call<'_> {
        self.call("PATCH", &format!("/jobs/{id}")).json(&body)
    }

    /// Creates a job and gives its id.
    pub async fn create(&self, body: Value) -> String {
        self.post("/jobs", body).send().await.ok()["job_id"].as_str().expect("it has an id").to_owned()
    }

    pub async fn status(&self, id: &str) -> Value {
        self.get(&format!("/jobs/{id}/status")).send().await.ok()["status"].clone()
    }

    /// Waits until a job is in a state, woken by every commit.
    pub async fn until(&self, id: &str, state: &str) -> Value {
        let mut ledger = self.daemon.ledger();
        loop {
            ledger.borrow_and_update();
            let status = self.status(id).await;
            if status["state"] == state {
                return status;
            }
            ledger.changed().await.expect("the daemon lives");
        }
    }

    /// Lets the next question to the service of a job come due, and waits until that many were asked.
    pub async fn polled(&self, job: &str, times: u64) {
        let mut ledger = self.daemon.ledger();
        let outside = self.status(job).await["runner"]["outside"].clone();
        let due_at: jiff::Timestamp =
            outside["next_poll_at"].as_str().expect("it is asked").parse().expect("it is a time");
        self.clock.set(Timestamp::from_micros(due_at.as_microsecond()));
        loop {
            ledger.borrow_and_update();
            let status = self.status(job).await;
            if status["runner"]["outside"]["polls"] == times {
                return;
            }
            let is_over = matches!(status["state"].as_str(), Some("expired" | "failed" | "cancelled"));
            assert!(!is_over, "it ended before poll {times}: {status}");
            ledger.changed().await.expect("the daemon lives");
        }
    }

    /// The id of the newest operation of a job.
    pub async fn store_operation(&self, job: &str) -> String {
        let found = self.store.operations_of(&domain::JobId::new(job), 1).await.expect("the store reads");
        found.first().expect("it left something outside").id().as_str().to_owned()
    }

    /// A token of this role: its secret.
    pub async fn token(&self, role: Role, more: Value) -> String {
        let mut body = json!({ "role": role.as_str() });
        for (key, value) in more.as_object().expect("an object") {
            body[key] = value.clone();
        }
        self.post("/tokens", body).send().await.ok()["secret"].as_str().expect("it has one").to_owned()
    }

    /// The id of a job's newest attempt, from the store: only its holder is shown it.
    pub async fn attempt_of(&self, job: &str) -> String {
        let id = domain::RecordId::parse(job).expect("it is an id");
        let loaded = self.store.load(&id).await.expect("the store reads").expect("it is there");
        let domain::Record::Job(job) = &*loaded.record else { panic!("{id} is no job") };
        job.last_attempt().expect("it was dispatched").id.as_str().to_owned()
    }

    /// Dispatches a job to nobody who answers: it is delivered, under this attempt.
    pub async fn delivered(&self) -> (String, String) {
        let id = self.create(json!({ "executor": "hands_over" })).await;
        let answer = self.post(&format!("/jobs/{id}/run"), json!({})).send().await.ok();
        assert_eq!(answer["status"]["state"], "delivered");
        let attempt = self.attempt_of(&id).await;
        (id, attempt)
    }
}

fn executors() -> Executors {
    let mut all = Executors::default();
    for (name, specialist) in executors::all() {
        let executor = Executor {
            specialist,
            concurrency: 8,
            retry: Executors::DEFAULT_RETRY,
            modes: executors::modes(name),
        };
        if name == "echo" {
            for own in ["folds", "echo"] {
                all.register_for(Some("bindery"), own, executor.clone());
            }
        }
        all.register_under(None, name, executor, executors::contract(name));
    }
    all
}
