//! The connector over HTTP: invoke, status, cancel, and the work behind them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::contract::{Complaint, read_directive, validate_response};
use super::redact::redact;
use crate::clock::{Clock, micros, rfc3339};
use crate::digest::{sha256_json, short_id_of};
use crate::http::{Answer, Handler, Request, Response, Server};
use crate::service::ServiceError;
use crate::state::{Accepted, Record, State, StateError};
use crate::tasks::Tasks;

const CONNECTOR_ID: &str = "reference-redaction";
const CONNECTOR_KIND: &str = "host-managed";
const MAX_OPEN: usize = 1024;

const PENDING: &str = "pending";
const RUNNING: &str = "running";
const COMPLETED: &str = "completed";
const FAILED: &str = "failed";
const TIMED_OUT: &str = "timed-out";
const CANCELLED: &str = "cancelled";

/// How the connector is set up.
#[derive(Clone, Debug)]
pub struct RedactionOptions {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where it keeps what it accepted.
    pub state: Option<PathBuf>,
    /// By which its work goes on.
    pub clock: Clock,
    /// How long work waits before it begins; so long it can be cancelled.
    pub pending: Duration,
    /// How long it takes then.
    pub running: Duration,
}

/// A running connector.
#[derive(Debug)]
pub struct RedactionService {
    server: Server,
    desk: Arc<Desk>,
}

/// What the requests and the work share.
#[derive(Debug)]
struct Desk {
    clock: Clock,
    pending: Duration,
    running: Duration,
    state: State,
    tasks: Tasks,
}

struct Door(Arc<Desk>);

impl Default for RedactionOptions {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            state: None,
            clock: Clock::real(),
            pending: Duration::from_secs(5),
            running: Duration::from_secs(5),
        }
    }
}

impl RedactionService {
    /// Opens the state, fails what was running when it was closed, goes on with what was pending, and listens.
    pub async fn start(options: RedactionOptions) -> Result<Self, ServiceError> {
        let state = State::open(options.state.as_deref())?;
        let now = options.clock.now_micros();
        for record in state.in_status(RUNNING, usize::MAX)? {
            let body = with_diagnostic(record.body, "interrupted-by-restart", "the connector was restarted");
            state.change(&record.id, RUNNING, FAILED, &body, now)?;
        }
        let pending = state.in_status(PENDING, usize::MAX)?;
        let desk = Arc::new(Desk {
            clock: options.clock,
            pending: options.pending,
            running: options.running,
            state,
            tasks: Tasks::new(),
        });
        for record in pending {
            desk.tasks.spawn(work_on(desk.clone(), record));
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

impl Drop for RedactionService {
    fn drop(&mut self) {
        self.desk.tasks.abort();
    }
}

impl Handler for Door {
    async fn answer(&self, request: Request) -> Answer {
        let Self(desk) = self;
        let answered = match (request.method.as_str(), request.segments().as_slice()) {
            ("POST", ["v1", "host", "capabilities", capability]) => match *capability {
                "sensorium.connector.invoke" => invoke(desk, &request),
                "sensorium.connector.operation.status" => with_id(&request, |id| desk.status(id)),
                "sensorium.connector.operation.cancel" => with_id(&request, |id| desk.cancel(id)),
                _ => Ok(Response::refusal(404, "no_such_capability", "this connector has three")),
            },
            _ => Ok(Response::refusal(404, "no_such_path", "POST to /v1/host/capabilities/")),
        };
        answered.unwrap_or_else(|error| Response::refusal(500, "state_broken", &error.to_string())).into()
    }
}

fn invoke(desk: &Arc<Desk>, request: &Request) -> Result<Response, StateError> {
    let directive = match read_directive(&request.body) {
        Ok(directive) => directive,
        Err(complaint) => return Ok(rejected(422, &complaint)),
    };
    if desk.state.in_status(PENDING, MAX_OPEN)?.len() >= MAX_OPEN {
        let busy = Complaint { code: "overloaded", message: "too much is pending".to_owned() };
        return Ok(rejected(503, &busy).with("Retry-After", "5"));
    }
    let now = desk.clock.now_micros();
    let record = Record {
        id: format!("redaction-{}", short_id_of(&[&directive.key, &now.to_string()])),
        digest: sha256_json(&directive.parameters),
        key: Some(directive.key),
        status: PENDING.to_owned(),
        body: json!({"request": directive.parameters, "timeout_ms": directive.timeout_ms}),
        accepted_at: now,
        updated_at: now,
    };
    Ok(match desk.state.accept(record)? {
        Accepted::New(record) => {
            let acknowledgement = acknowledged(&record);
            desk.tasks.spawn(work_on(desk.clone(), record));
            acknowledgement
        }
        Accepted::Known(record) => acknowledged(&record),
        Accepted::Conflict => {
            let message = "this key belongs to other parameters".to_owned();
            rejected(409, &Complaint { code: "idempotency-conflict", message })
        }
    })
}

impl Desk {
    fn status(&self, id: &str) -> Result<Response, StateError> {
        Ok(match self.state.by_id(id)? {
            Some(record) => Response::json(200, &status_of(&record)),
            None => Response::json(200, &unknown(id)),
        })
    }

    fn cancel(&self, id: &str) -> Result<Response, StateError> {
        let Some(record) = self.state.by_id(id)? else { return Ok(Response::json(200, &unknown(id))) };
        let stopped = self.state.change(id, PENDING, CANCELLED, &record.body, self.clock.now_micros())?;
        let record = if stopped { self.state.by_id(id)?.unwrap_or(record) } else { record };
        if record.status == CANCELLED {
            return Ok(Response::json(200, &status_of(&record)));
        }
        // Read after the change was refused: by now it may have gone further, never back to pending.
        let record = self.state.by_id(id)?.unwrap_or(record);
        let mut body = status_of(&record);
        let reason = if record.status == RUNNING { "redaction-already-running" } else { "redaction-is-over" };
        body["cancel/unavailable-reason"] = json!(reason);
        Ok(Response::json(409, &body))
    }
}

/// Stays with accepted work until it is over; whoever changes the record first has decided.
async fn work_on(desk: Arc<Desk>, record: Record) {
    let budget = record.body["timeout_ms"].as_u64().unwrap_or(1).saturating_mul(1000);
    let budget_ends = record.accepted_at.saturating_add(i64::try_from(budget).unwrap_or(i64::MAX));
    let begins = record.accepted_at.saturating_add(micros(desk.pending));
    desk.clock.sleep_until(begins.min(budget_ends)).await;
    let Ok(true) = desk.state.change(&record.id, PENDING, RUNNING, &record.body, desk.clock.now_micros())
    else {
        return;
    };
    let ends = desk.clock.now_micros().saturating_add(micros(desk.running));
    desk.clock.sleep_until(ends.min(budget_ends)).await;
    let mut body = record.body.clone();
    let end = if budget_ends < ends {
        body = with_diagnostic(body, "action-timeout", "the budget of the directive is used up");
        TIMED_OUT
    } else {
        let response = redact(&body["request"]);
        match validate_response(&response) {
            Ok(()) => {
                body["result"] = response;
                COMPLETED
            }
            Err(complaint) => {
                body = with_diagnostic(body, "result-schema-invalid", &complaint);
                FAILED
            }
        }
    };
    // A state that cannot be written leaves it running, and the next start fails it.
    let _ = desk.state.change(&record.id, RUNNING, end, &body, desk.clock.now_micros());
}

fn with_id(
    request: &Request,
    then: impl FnOnce(&str) -> Result<Response, StateError>,
) -> Result<Response, StateError> {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    match body["connector_operation_id"].as_str() {
        Some(id) => then(id),
        None => Ok(Response::refusal(422, "operation-id-missing", "connector_operation_id must be a text")),
    }
}

fn acknowledged(record: &Record) -> Response {
    let budget_ms = record.body["timeout_ms"].as_u64().unwrap_or(1);
    let body = json!({
        "schema": "sensorium-connector-deferred.v1",
        "schema/v": 1,
        "status": "deferred",
        "connector/id": CONNECTOR_ID,
        "connector/kind": CONNECTOR_KIND,
        "connector_operation_id": record.id,
        "accepted_at": rfc3339(record.accepted_at),
        "retry_after_seconds": 1,
        "fail_after_seconds": budget_ms.div_ceil(1000),
        "cancelable": true,
    });
    Response::json(202, &body)
}

fn status_of(record: &Record) -> Value {
    let mut status = json!({
        "schema": "sensorium-connector-operation-status.v1",
        "connector_operation_id": record.id,
        "status": record.status,
    });
    if record.status == PENDING || record.status == RUNNING {
        status["retry_after_seconds"] = json!(1);
    }
    for field in ["result", "diagnostics"] {
        if let Some(value) = record.body.get(field) {
            status[field] = value.clone();
        }
    }
    status
}

fn unknown(id: &str) -> Value {
    json!({
        "schema": "sensorium-connector-operation-status.v1",
        "connector_operation_id": id,
        "status": "unknown",
    })
}

fn rejected(status: u16, complaint: &Complaint) -> Response {
    let body = json!({
        "schema": "sensorium-connector-result.v1",
        "status": "rejected",
        "connector/id": CONNECTOR_ID,
        "connector/kind": CONNECTOR_KIND,
        "result": null,
        "artifacts": [],
        "observations": [],
        "diagnostics": [{"level": "error", "code": complaint.code, "message": complaint.message}],
    });
    Response::json(status, &body)
}

fn with_diagnostic(mut body: Value, code: &str, message: &str) -> Value {
    body["diagnostics"] = json!([{"level": "error", "code": code, "message": message}]);
    body
}
