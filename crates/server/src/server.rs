//! The server: one daemon, and what its faces share: who may enter, how much is served at once, what is counted.

use std::sync::Arc;
use std::time::Duration;

use ::pipelines::{Loaded, Router};
use api::ProblemCode;
use domain::job::Job;
use domain::{BodyRef, Record, RecordId};
use engine::Daemon;
use engine::accept::AdmissionControl;
use executors::plugin::Plugins;
use executors::process::Artifacts;
use serde_json::value::RawValue;
use store::Store;
use tokio::sync::{Mutex, Semaphore, watch};

use crate::Result;
use crate::access::attempt_token;
use crate::access::audit::Audit;
use crate::access::authenticate::{Freshness, Gate, Principal};
use crate::daemon::metrics::Metrics;
use crate::external::callback::{CallbackKey, MAX_WAITING};
use crate::http::slots::{ServerLimits, Slots};
use crate::plugins::webhooks::Webhooks;
use crate::problem::of_store;
use crate::routing::pipelines;

/// How a server is set up.
#[derive(Clone, Copy, Debug)]
pub struct ServerSettings {
    /// Whether callers must show a token.
    pub auth: Auth,
    /// How often a quiet stream shows that it lives.
    pub heartbeat: Duration,
    /// How long a token is known without a look at the store; for good where nobody else can revoke it.
    pub tokens_remembered_for: Option<Duration>,
    /// How much is served at once, and how long clients may take.
    pub limits: ServerLimits,
}

/// Whether callers must show a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Auth {
    /// They must.
    #[default]
    Required,
    /// Everybody who reaches the port is an administrator. An explicit choice.
    Off,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            auth: Auth::Required,
            heartbeat: Duration::from_secs(15),
            tokens_remembered_for: None,
            limits: ServerLimits::default(),
        }
    }
}

/// The HTTP face of one daemon.
pub struct Server {
    pub(crate) daemon: Arc<Daemon>,
    pub(crate) pipelines: Arc<Router>,
    pub(crate) settings: ServerSettings,
    pub(crate) gate: Gate,
    pub(crate) audit: Audit,
    pub(crate) slots: Slots,
    pub(crate) admissions: AdmissionControl,
    pub(crate) callbacks: Option<CallbackKey>,
    /// The places of callbacks that wait.
    pub(crate) waiting_callbacks: Arc<Semaphore>,
    pub(crate) metrics: Metrics,
    pub(crate) closing: watch::Sender<bool>,
    pub(crate) artifacts: Option<Arc<Artifacts>>,
    pub(crate) reload: Option<pipelines::Reload>,
    pub(crate) plugins: Arc<Plugins>,
    pub(crate) webhooks: Webhooks,
    pub(crate) host_warning: Option<HostWarning>,
}

/// What an operator should know of the host, if anything: a sentence.
pub type HostWarning = Arc<dyn Fn() -> Option<String> + Send + Sync>;

impl Server {
    /// The face of this daemon and of the pipelines that it was given.
    pub fn new(daemon: Arc<Daemon>, pipelines: Arc<Router>, settings: ServerSettings) -> Self {
        Self {
            daemon,
            pipelines,
            settings,
            gate: Gate::remembering(settings.tokens_remembered_for),
            audit: Audit::default(),
            slots: Slots::new(&settings.limits),
            admissions: AdmissionControl::default(),
            callbacks: None,
            waiting_callbacks: Arc::new(Semaphore::new(MAX_WAITING)),
            metrics: Metrics::default(),
            closing: watch::Sender::new(false),
            artifacts: None,
            reload: None,
            plugins: Arc::default(),
            webhooks: Webhooks::default(),
            host_warning: None,
        }
    }

    /// Also says at `/readyz` what is wrong with the host.
    pub fn with_host_warning(self, warning: HostWarning) -> Self {
        Self { host_warning: Some(warning), ..self }
    }

    /// Also gives out what attempts have left in these.
    pub fn with_artifacts(self, artifacts: Arc<Artifacts>) -> Self {
        Self { artifacts: Some(artifacts), ..self }
    }

    /// Also reads the files of pipelines anew when it is told to, so.
    pub fn with_pipelines(self, load: impl Fn() -> Loaded + Send + Sync + 'static) -> Self {
        Self { reload: Some(pipelines::Reload { load: Arc::new(load), turn: Mutex::default() }), ..self }
    }

    /// Also lets Ductile's clients ask these plugins.
    pub fn with_plugins(self, plugins: Arc<Plugins>) -> Self {
        Self { plugins, ..self }
    }

    /// Also takes in webhooks at these endpoints.
    pub fn with_webhooks(self, webhooks: Webhooks) -> Self {
        Self { webhooks, ..self }
    }

    /// Also lets services call back whose addresses were signed with this key.
    pub fn with_callbacks(self, key: CallbackKey) -> Self {
        Self { callbacks: Some(key), ..self }
    }

    /// Who shows this token: that of one attempt, or one that is stored.
    pub(crate) async fn principal(&self, token: &str) -> Result<Arc<Principal>> {
        if token.starts_with(attempt_token::PREFIX) {
            return attempt_token::holder(self, token).await.map(Arc::new);
        }
        self.gate.principal(self.store(), token).await
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.daemon.engine().store()
    }

    /// The record with this id, as it is stored.
    pub(crate) async fn load(&self, id: &RecordId) -> Result<Option<store::Loaded>> {
        self.store().load(id).await.map_err(of_store)
    }

    /// A body of a record.
    pub(crate) async fn body(&self, id: &RecordId, body: BodyRef) -> Result<Option<Vec<u8>>> {
        self.store().body(id, body).await.map_err(of_store)
    }

    /// A body of a job.
    pub(crate) async fn body_of(&self, job: &Job, body: BodyRef) -> Result<Option<Vec<u8>>> {
        self.body(&RecordId::from(job.id.clone()), body).await
    }

    /// A body of a job that is JSON, as raw text.
    pub(crate) async fn json_of(&self, job: &Job, body: BodyRef) -> Result<Option<Box<RawValue>>> {
        let bytes = self.body_of(job, body).await?;
        let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(text.and_then(|text| RawValue::from_string(text).ok()))
    }

    /// The newest operation of a job.
    pub(crate) async fn newest_operation(&self, job: &Job) -> Result<Option<Arc<Record>>> {
        let newest = self.store().operations_of(&job.id, 1).await.map_err(of_store)?;
        Ok(newest.into_iter().next())
    }

    pub(crate) fn now(&self) -> domain::Timestamp {
        self.daemon.engine().clock().now()
    }

    /// Whether whoever was let in would be let in again; a problem if the store cannot tell.
    pub(crate) async fn still_admits(&self, principal: &Principal, freshness: Freshness) -> Result<bool> {
        match (self.settings.auth, &principal.only) {
            (Auth::Off, _) => Ok(true),
            (Auth::Required, Some(job_id)) => {
                attempt_token::is_current(self, job_id, &principal.token_id).await
            }
            (Auth::Required, None) => self.gate.still_admits(self.store(), principal, freshness).await,
        }
    }

    /// Refuses whoever was let in, has waited, and would not be let in again.
    pub(crate) async fn check_still_admits(&self, principal: &Principal) -> Result<()> {
        if self.still_admits(principal, Freshness::Now).await? {
            return Ok(());
        }
        Err(ProblemCode::Unauthenticated.because("the token was revoked while it waited"))
    }
}
