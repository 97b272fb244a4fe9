//! Accepting a job: what its creator asks for becomes what is stored. Executor, lane and retries are settled here alone, whichever face the
//! request came through.
//!
//! Nothing is written and no text is read: faces parse what they are sent into a [`NewJobRequest`] first. Who may do what, and which peer a
//! name means, is settled before that.

mod admission;

use std::borrow::Cow;
use std::sync::Arc;

use domain::job::{JobCommand, JobSpec, NewJob};
use domain::retry::RetryRequest;
use domain::{BodyName, JobId, RetryPolicy, Timestamp};
use store::{NewBody, body_ref};

use crate::executors::{Executors, Registered};
use crate::lane_limits::SERIAL;
use crate::order::{Order, OrderBody};
use crate::specialist::Unfit;

pub use admission::{AdmissionControl, AdmissionError, AdmissionPermit};

/// The backends that every host knows by name; a job for one that is not registered waits for a peer.
pub const BACKENDS: [&str; 7] =
    ["claude-code", "opencode", "codex", "gemini", "antigravity", "pi", "mcp-http"];

/// Digits of the digest that names a serial lane.
const LANE_DIGITS: usize = 16;

/// A new job as its creator asks for it.
#[derive(Clone, Debug)]
pub struct NewJobRequest {
    /// What is stored as it is. Its retries are settled when it is accepted, and its lane and executor if it names none.
    pub spec: JobSpec,
    /// Not before this time.
    pub due_at: Option<Timestamp>,
    /// What is said of retries.
    pub retry: Option<RetryRequest>,
    /// Whether it may be begun again; `false` means one attempt.
    pub repeatable: Option<bool>,
    /// The process that is wanted for it, if it names a folder and no peer.
    pub process: Option<ProcessRequest>,
    /// Request, prompt, input, provenance.
    pub bodies: Vec<(BodyName, String)>,
}

/// The process that does a job in its folder.
#[derive(Clone, Debug)]
pub struct ProcessRequest {
    /// What it runs on.
    pub backend: Option<String>,
    /// Named extra arguments for the backend.
    pub profile: Option<String>,
    /// How long it is there.
    pub scope: ProcessScope,
}

/// How long the process is there that does a job in its folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessScope {
    /// For one attempt.
    PerFire,
    /// It outlives the job. Whoever works in the folder already is not doubled.
    Persistent,
}

/// A job whose executor, lane and retries are settled, and the bodies that come with it.
#[derive(Clone, Debug)]
pub struct AcceptedJob {
    /// The job.
    pub new: NewJob,
    /// Its bodies.
    pub bodies: Vec<NewBody>,
    peer_instead: Option<PeerInstead>,
}

/// How the job is left to a peer, instead of a process that would be started for it and stay.
#[derive(Clone, Debug)]
struct PeerInstead {
    backend: String,
    lane: Option<String>,
    retry: RetryPolicy,
}

impl NewJobRequest {
    /// A plain job: nothing is said of retries, time or process.
    pub fn plain(spec: JobSpec, bodies: Vec<(BodyName, String)>) -> Self {
        Self { spec, due_at: None, retry: None, repeatable: None, process: None, bodies }
    }

    /// Settles executor, lane and retries.
    pub fn accept(mut self, executors: &Executors) -> AcceptedJob {
        let circle = self.spec.circle.clone();
        let peer_instead = self.choose_process(executors);
        let executor = self.spec.executor.as_deref();
        let found = executor.and_then(|name| executors.find(circle.as_deref(), name));
        let lane = found.and_then(|found| found.specialist.lane()).map(Cow::into_owned);
        self.spec.retry = self.retry_by(found);
        self.spec.retry_requested = self.says_how_often();
        self.spec.lane = self.spec.lane.or(lane);
        let bodies: Vec<NewBody> = self.bodies.into_iter().map(new_body).collect();
        let refs = bodies.iter().map(|new| new.body).collect();
        AcceptedJob {
            new: NewJob { spec: self.spec, due_at: self.due_at, bodies: refs },
            bodies,
            peer_instead,
        }
    }

    /// Names the backend of this host that does it, if it has one; else the job is left to whoever works in its folder.
    fn choose_process(&mut self, executors: &Executors) -> Option<PeerInstead> {
        let process = self.process.take().filter(|_| self.spec.executor.is_none())?;
        let circle = self.spec.circle.as_deref();
        let backend = process.backend.filter(|name| is_backend(executors, circle, name))?;
        let instead = (process.scope == ProcessScope::Persistent).then(|| PeerInstead {
            backend: backend.clone(),
            lane: self.spec.lane.clone(),
            retry: self.retry_by(None),
        });
        if instead.is_some() && self.spec.lane.is_none() {
            let path = self.spec.path.as_deref();
            self.spec.lane = Some(serial_lane(&backend, [circle, path, process.profile.as_deref()]));
        }
        self.spec.executor = Some(backend);
        instead
    }

    fn retry_by(&self, executor: Option<&Registered>) -> RetryPolicy {
        let usual = match (executor, &self.spec.executor) {
            (Some(executor), _) => executor.retry,
            (None, Some(_)) => Executors::DEFAULT_RETRY,
            (None, None) => RetryPolicy::ONCE,
        };
        let once = self.repeatable == Some(false);
        let usual = if once { RetryPolicy { max_attempts: 1, ..usual } } else { usual };
        self.retry.unwrap_or_default().over(usual)
    }

    /// Whether its creator says how often it is tried. Of work that others pull that is said by the number alone: how long to wait is another
    /// matter.
    fn says_how_often(&self) -> bool {
        let is_said = |retry: RetryRequest| self.spec.executor.is_some() || retry.max_attempts.is_some();
        self.retry.is_some_and(is_said) || self.repeatable == Some(false)
    }
}

impl AcceptedJob {
    /// The backend on which a peer that works in its folder would do it instead of a new process. Who is there now may not be when it is due.
    pub fn peer_backend(&self, now: Timestamp) -> Option<&str> {
        let is_due = self.new.due_at.is_none_or(|due_at| due_at <= now);
        self.peer_instead.as_ref().filter(|_| is_due).map(|instead| &*instead.backend)
    }

    /// Leaves it to whoever works in its folder.
    #[must_use]
    pub fn left_to_peers(mut self) -> Self {
        if let Some(PeerInstead { lane, retry, .. }) = self.peer_instead.take() {
            self.new.spec = JobSpec { executor: None, lane, retry, ..self.new.spec };
        }
        self
    }

    /// Refuses what its executor would not do.
    pub fn check_fit(&self, executors: &Executors) -> Result<(), Unfit> {
        let spec = &self.new.spec;
        let executor = spec.executor.as_deref().and_then(|name| executors.find(spec.circle.as_deref(), name));
        executor.and_then(|executor| executor.specialist.unfit(spec)).map_or(Ok(()), Err)
    }

    /// The order that creates it.
    pub fn order(self, id: JobId, actor: Arc<str>) -> Order {
        let mut order = Order::new(id, JobCommand::Create(Box::new(self.new)), actor);
        let record = order.record.clone();
        order.bodies =
            self.bodies.into_iter().map(|body| OrderBody { record: record.clone(), body }).collect();
        order
    }
}

/// Whether jobs for this backend can be stored: a host without it leaves them to peers.
pub fn knows_backend(executors: &Executors, circle: Option<&str>, name: &str) -> bool {
    BACKENDS.contains(&name) || is_backend(executors, circle, name)
}

fn is_backend(executors: &Executors, circle: Option<&str>, name: &str) -> bool {
    executors.find(circle, name).is_some_and(|executor| executor.specialist.traits().is_backend)
}

/// The lane of jobs that one process does, one after the other. They wait in the queue: no lease, no time limit, nobody's slot.
fn serial_lane(backend: &str, named: [Option<&str>; 3]) -> String {
    let digest = store::sha256(named.map(Option::unwrap_or_default).join("\0").as_bytes()).to_string();
    format!("{SERIAL}{backend}:{}", &digest[..LANE_DIGITS])
}

fn new_body((name, text): (BodyName, String)) -> NewBody {
    let bytes: Arc<[u8]> = text.into_bytes().into();
    NewBody { body: body_ref(name, &bytes), bytes }
}
