//! A directive as it was sent: read, named, and either admitted or rejected with a stable code.
//!
//! What cannot be read as a directive is a bad request and leaves nothing: there is nothing that a record could be about.

use std::sync::LazyLock;

use api::ProblemCode;
use api::deferred::Mode;
use api::sensorium::Directive;
use domain::JobId;
use engine::InputSchema;
use executors::Schema;
use serde_json::json;
use store::KeptKey;

use super::catalog;
use crate::external::deferred::{Capability, DIRECTIVE_KIND, job_id_under};
use crate::jobs::{key_of, time};
use crate::keyed::Keyed;
use crate::problem::at;
use crate::{RequestContext, Result, Server};

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let text = include_str!("../../../../../docs/schemas/sensorium-directive.v1.schema.json");
    let text = serde_json::from_str(text).expect("the schema is JSON");
    Schema::read(&text).expect("the schema is a schema")
});

/// Why a directive is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rejection {
    /// Stable.
    pub(super) code: &'static str,
    /// For people; names places, never values.
    pub(super) message: String,
}

impl Rejection {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// The code of a directive whose work has another name already.
pub(super) const CONFLICT: &str = "idempotency-conflict";

pub(super) fn read(asked: &RequestContext) -> Result<Directive> {
    let body = asked.body.as_deref().unwrap_or_default();
    SCHEMA.check(body.as_bytes()).map_err(|misfit| {
        let told = format!("no sensorium-directive.v1: {misfit}");
        at(ProblemCode::InvalidRequest, "schema", &["body", &misfit.place], told)
    })?;
    let directive: Directive = asked.read()?;
    time(&["body", "deadline_at"], directive.deadline_at.as_deref())?;
    Ok(directive)
}

/// The capability, if the catalog, the modes, the parameters and the time allow it. Nothing was dispatched, nothing is written.
pub(super) fn admit(
    server: &Server,
    circle: Option<&str>,
    directive: &Directive,
) -> Result<Capability, Rejection> {
    let (capability, schema) = catalog::action(server, circle, &directive.action_id)?;
    catalog::check_mode(&capability, directive.timing.mode)?;
    schema
        .check(directive.parameters.as_str().as_bytes())
        .map_err(|misfit| Rejection::new("parameters-schema-invalid", format!("parameters: {misfit}")))?;
    let deadline_at = time(&[], directive.deadline_at.as_deref()).unwrap_or_default();
    capability
        .life(deadline_at, server.now())
        .map_err(|problem| Rejection::new("deadline-elapsed", problem.detail.into_string()))?;
    Ok(capability)
}

/// The names of a directive: its own, and that of its work if its issuer gave one.
pub(super) struct Names {
    pub(super) own: Keyed,
    pub(super) work: Option<Keyed>,
    /// The id of its job, if it is admitted.
    pub(super) job: JobId,
}

/// What is known of a directive before it is looked at.
pub(super) enum Known {
    /// Nothing.
    Nothing,
    /// It was answered before, or its work was.
    Before(KeptKey),
    /// Its work has the name of other work.
    Conflict,
}

impl Names {
    pub(super) fn of(asked: &RequestContext, directive: &Directive) -> Result<Self> {
        let work = key_of(asked.key.as_deref(), directive.idempotency_key.as_deref())?;
        let (issuer, action) = (&directive.issuer, &directive.action_id);
        let own = digest(&json!(["directive", issuer, directive.directive_id]));
        let work = work.map(|key| digest(&json!(["work", issuer, action, key])));
        let job = job_id_under(&asked.principal, DIRECTIVE_KIND, work.as_ref().unwrap_or(&own));
        let mode = match directive.timing.mode {
            Mode::Async => "async",
            Mode::Sync => "sync",
        };
        let request = format!("{mode}\n{}", directive.parameters.as_str());
        let keyed = |name| Keyed::new(&asked.principal, asked.operation.name, name, action, &request);
        Ok(Self { own: keyed(own), work: work.map(keyed), job })
    }

    /// A directive that says something else than before is a conflict, and has its record already.
    pub(super) async fn known(&self, server: &Server) -> Result<Known> {
        if let Some(kept) = self.own.kept(server.store()).await? {
            return Ok(Known::Before(kept));
        }
        let Some(work) = &self.work else { return Ok(Known::Nothing) };
        match work.kept(server.store()).await {
            Ok(Some(kept)) => Ok(Known::Before(kept)),
            Ok(None) => Ok(Known::Nothing),
            Err(problem) if problem.code == ProblemCode::IdempotencyKeyReused.as_str() => Ok(Known::Conflict),
            Err(problem) => Err(problem),
        }
    }
}

fn digest(parts: &serde_json::Value) -> String {
    store::sha256(parts.to_string().as_bytes()).to_string()
}
