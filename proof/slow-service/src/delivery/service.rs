//! The delivery service over HTTP: send, status, recover.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::adapter::Adapter;
use super::envelope::{Envelope, Fault, Plan, read_envelope, read_stages};
use super::runner::{ACCEPTED, FAILED_RETRYABLE, Retry, Runner, retry_at};
use super::wire::{acknowledged, delivery, operation_status, recovery, status_href};
use crate::clock::{Clock, micros};
use crate::digest::{sha256_json, short_id_of};
use crate::http::{Answer, Handler, Request, Response, Server};
use crate::service::ServiceError;
use crate::state::{Accepted, Record, State, StateError};
use crate::tasks::Tasks;

const MAX_OPEN: usize = 1024;
const RECOVERY_BATCH: usize = 32;
const RECOVERY_LIMIT: usize = 1000;
const RECOVERY_DEADLINE: Duration = Duration::from_secs(4);

/// How the service is set up.
#[derive(Clone, Debug)]
pub struct DeliveryOptions {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where its ledger is.
    pub state: Option<PathBuf>,
    /// By which deliveries expire and are tried again.
    pub clock: Clock,
    /// The targets that it may reach, by name.
    pub adapters: BTreeMap<String, Arc<dyn Adapter>>,
    /// Stages by the name of a route, in the form of the envelope.
    pub routes: BTreeMap<String, Value>,
    /// How often and when it tries again.
    pub retry: Retry,
    /// For one target in one attempt.
    pub stage_timeout: Duration,
    /// How long a delivery lives.
    pub time_to_live: Duration,
    /// How often it recovers by itself; none leaves that to whoever asks for it.
    pub recovery_interval: Option<Duration>,
}

/// A running delivery service.
#[derive(Debug)]
pub struct DeliveryService {
    server: Server,
    desk: Arc<Desk>,
}

#[derive(Debug)]
struct Desk {
    runner: Arc<Runner>,
    routes: BTreeMap<String, Value>,
    time_to_live: Duration,
    tasks: Tasks,
}

struct Door(Arc<Desk>);

impl Default for DeliveryOptions {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            state: None,
            clock: Clock::real(),
            adapters: BTreeMap::new(),
            routes: BTreeMap::new(),
            retry: Retry::default(),
            stage_timeout: Duration::from_secs(10),
            time_to_live: Duration::from_mins(15),
            recovery_interval: Some(Duration::from_secs(5)),
        }
    }
}

impl DeliveryService {
    /// Opens the ledger, makes what was interrupted retryable, and listens.
    pub async fn start(options: DeliveryOptions) -> Result<Self, ServiceError> {
        let runner = Arc::new(Runner {
            state: State::open(options.state.as_deref())?,
            clock: options.clock,
            adapters: options.adapters,
            retry: options.retry,
            stage_timeout: options.stage_timeout,
        });
        runner.reopen()?;
        let desk = Arc::new(Desk {
            runner,
            routes: options.routes,
            time_to_live: options.time_to_live,
            tasks: Tasks::new(),
        });
        if let Some(interval) = options.recovery_interval {
            desk.tasks.spawn(recover_by_itself(desk.runner.clone(), interval));
        }
        let server = Server::start(options.listen, Arc::new(Door(desk.clone()))).await?;
        Ok(Self { server, desk })
    }

    /// Where it is reached, without a slash at the end.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Ends it in the middle of whatever it does.
    pub async fn stop(mut self) {
        self.server.stop().await;
        self.desk.tasks.stop().await;
    }
}

impl Drop for DeliveryService {
    fn drop(&mut self) {
        self.desk.tasks.abort();
    }
}

impl Handler for Door {
    async fn answer(&self, request: Request) -> Answer {
        let Self(desk) = self;
        let answered = match (request.method.as_str(), request.segments().as_slice()) {
            ("POST", ["v1", "host", "capabilities", "artifact.delivery.send"]) => desk.send(&request),
            ("GET", ["v1", "artifact-delivery", "deliveries", id]) => {
                desk.show(id, |record| Ok(delivery(record, &desk.runner.state.history(&record.id)?)))
            }
            ("GET", ["v1", "artifact-delivery", "deliveries", id, "operation-status"]) => {
                desk.show(id, |record| Ok(operation_status(record)))
            }
            ("POST", ["v1", "artifact-delivery", "recover"]) => desk.recover(&request).await,
            _ => Ok(Response::refusal(404, "no_such_path", "there is nothing here")),
        };
        answered.unwrap_or_else(|error| Response::refusal(500, "ledger-error", &error.to_string())).into()
    }
}

impl Desk {
    fn send(&self, request: &Request) -> Result<Response, StateError> {
        if request.query.as_slice() != [("mode".to_owned(), "deferred".to_owned())] {
            let message = "this service defers every delivery: ask with ?mode=deferred and nothing else";
            return Ok(Response::refusal(400, "mode-not-supported", message));
        }
        let (envelope, stages) = match self.admitted(&request.body) {
            Ok(admitted) => admitted,
            Err((status, fault)) => return Ok(Response::refusal(status, fault.class, &fault.message)),
        };
        let state = &self.runner.state;
        if state.in_status(ACCEPTED, MAX_OPEN)?.len() >= MAX_OPEN {
            let busy = Response::refusal(503, "runtime-limit", "too many deliveries wait");
            return Ok(busy.with("Retry-After", "5"));
        }
        Ok(match state.accept(self.record(&request.body, envelope, stages))? {
            Accepted::New(record) => {
                self.tasks.spawn(self.runner.clone().pursue(record.id.clone()));
                accepted(&record)
            }
            Accepted::Known(record) => accepted(&record),
            Accepted::Conflict => {
                Response::refusal(409, "admission-conflict", "this key belongs to another delivery")
            }
        })
    }

    fn admitted(&self, body: &[u8]) -> Result<(Envelope, Value), (u16, Fault)> {
        let envelope = read_envelope(body).map_err(|fault| match fault.class {
            "envelope-malformed" => (400, fault),
            _ => (422, fault),
        })?;
        let stages = match &envelope.plan {
            Plan::Stages(_) => {
                let body: Value = serde_json::from_slice(body).unwrap_or_default();
                body["delivery/plan"]["stages"].clone()
            }
            Plan::Route(route) => self.routes.get(route).cloned().ok_or_else(|| {
                (422, Fault { class: "route-unresolved", message: "no such route is known".to_owned() })
            })?,
        };
        let resolved = read_stages(&stages).map_err(|fault| (422, fault))?;
        let stranger = resolved
            .iter()
            .flat_map(|stage| &stage.targets)
            .find(|target| !self.runner.adapters.contains_key(*target));
        if stranger.is_some() {
            let message = "the plan names a target that this service may not reach".to_owned();
            return Err((403, Fault { class: "outbound-denied", message }));
        }
        Ok((envelope, stages))
    }

    fn record(&self, body: &[u8], envelope: Envelope, stages: Value) -> Record {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let now = self.runner.clock.now_micros();
        let digest = sha256_json(&body);
        let key = envelope.key.unwrap_or_else(|| digest.clone());
        Record {
            id: format!("delivery-{}", short_id_of(&[&key])),
            key: Some(key),
            digest,
            status: ACCEPTED.to_owned(),
            body: json!({
                "envelope": body,
                "stages": stages,
                "attempts": 0,
                "delivered": [],
                "refused": [],
                "retry/history": [],
                "failure/class": null,
                "expires_at": now.saturating_add(micros(self.time_to_live)),
            }),
            accepted_at: now,
            updated_at: now,
        }
    }

    fn show(
        &self,
        id: &str,
        form: impl FnOnce(&Record) -> Result<Value, StateError>,
    ) -> Result<Response, StateError> {
        Ok(match self.runner.current(id)? {
            Some(record) => Response::json(200, &form(&record)?),
            None => Response::refusal(404, "unknown-delivery", "no such delivery is known here"),
        })
    }

    async fn recover(&self, request: &Request) -> Result<Response, StateError> {
        let limit = match request.query_value("limit") {
            None => Some(RECOVERY_BATCH),
            Some(text) => text.parse().ok().filter(|limit| (1..=RECOVERY_LIMIT).contains(limit)),
        };
        let Some(limit) = limit else {
            return Ok(Response::refusal(400, "limit-invalid", "limit must be between 1 and 1000"));
        };
        Ok(Response::json(200, &recovery(&recover(&self.runner, limit, Waiting::All).await?)))
    }
}

/// Which of those that wait for an attempt a pass takes up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// Those whose pause is over.
    Due,
    /// All: somebody asked for it.
    All,
}

/// One pass: an attempt for each that waits for one, the oldest first, within the deadline of a pass.
async fn recover(runner: &Runner, limit: usize, which: Waiting) -> Result<Vec<Record>, StateError> {
    let began = Instant::now();
    let now = runner.clock.now_micros();
    let mut waiting = runner.state.in_status(ACCEPTED, limit)?;
    let mut tried = runner.state.in_status(FAILED_RETRYABLE, MAX_OPEN)?;
    tried.retain(|record| which == Waiting::All || retry_at(record) <= now);
    waiting.extend(tried);
    let mut recovered = Vec::new();
    for record in waiting.into_iter().take(limit) {
        if began.elapsed() >= RECOVERY_DEADLINE {
            break;
        }
        recovered.extend(runner.attempt(&record.id).await?);
    }
    Ok(recovered)
}

async fn recover_by_itself(runner: Arc<Runner>, interval: Duration) {
    loop {
        let next = runner.clock.now_micros().saturating_add(micros(interval));
        runner.clock.sleep_until(next).await;
        // A ledger that cannot be read now is read at the next pass.
        let _ = recover(&runner, RECOVERY_BATCH, Waiting::Due).await;
    }
}

fn accepted(record: &Record) -> Response {
    Response::json(202, &acknowledged(record)).with("Location", status_href(record)).with("Retry-After", "5")
}
