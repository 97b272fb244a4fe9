//! `sensorium.directive.invoke`: admitted, and then a call like any other; or rejected, and written down all the same.

use std::sync::Arc;

use api::deferred::{Invoke, Mode};
use api::sensorium::Directive;
use domain::job::{
    Details, JobCommand, JobSpec, JobStateName, Report, Reporter, ResultRefs, Retryable, SubmitWord,
};
use domain::{BodyName, Command};
use engine::accept::NewJobRequest;
use engine::{EngineError, OrderBody};
use serde_json::json;
use store::{KeptKey, NewBody, body_ref};

use super::directive::{self, CONFLICT, Known, Names, Rejection};
use super::outcome;
use crate::external::deferred::{
    Call, Came, Capability, DIRECTIVE_ASYNC, DIRECTIVE_REJECTED, DIRECTIVE_SYNC, Document, Source, check,
};
use crate::http::slots::Slot;
use crate::jobs::{job_of, own_job};
use crate::problem::of_engine;
use crate::reply::{Given, Outcome, Reply, render};
use crate::{RequestContext, Result, Server};

pub(super) async fn invoke(server: &Arc<Server>, mut asked: RequestContext) -> Result<Reply> {
    let slot = asked.slot.take();
    let directive = directive::read(&asked)?;
    let names = Names::of(&asked, &directive)?;
    let admitted = match names.known(server).await? {
        Known::Before(kept) if outcome::is_rejection(&kept.answer) => return rejected_before(&kept),
        Known::Before(_) => {
            Ok(Capability::named(server, asked.principal.circle.as_deref(), &directive.action_id)?)
        }
        Known::Nothing => directive::admit(server, asked.principal.circle.as_deref(), &directive),
        Known::Conflict => {
            Err(Rejection::new(CONFLICT, "the work of this name was asked for with other parameters"))
        }
    };
    match admitted {
        Ok(capability) => carry_out(server, &asked, directive, names, &capability, slot).await,
        Err(rejection) => reject(server, &asked, &directive, &names, rejection).await,
    }
}

async fn carry_out(
    server: &Arc<Server>,
    asked: &RequestContext,
    directive: Directive,
    names: Names,
    capability: &Capability,
    slot: Option<Slot>,
) -> Result<Reply> {
    let kind = match directive.timing.mode {
        Mode::Async => DIRECTIVE_ASYNC,
        Mode::Sync => DIRECTIVE_SYNC,
    };
    let tags = outcome::tags(&directive, None);
    let call = Call {
        server,
        asked,
        capability,
        keyed: [names.own].into_iter().chain(names.work).collect(),
        id: Some(names.job),
        source: Source { kind, id: directive.directive_id, tags },
    };
    let sent = Invoke {
        input: serde_json::value::RawValue::from_string(directive.parameters.as_str().to_owned()).ok(),
        timing: directive.timing,
        deadline_at: directive.deadline_at,
        idempotency_key: None,
        allow_restart_recovery: directive.allow_restart_recovery,
        correlation_id: directive.correlation_id,
        causal_context: directive.causal_context,
    };
    match crate::external::deferred::carry_out(&call, sent, slot).await? {
        Came::Waited(settled) => outcome::waited(server, &settled).await,
        Came::Handle(response) => Ok(response),
    }
}

/// Writes down that it was rejected: a job that names no executor and is over in the commit that makes it.
async fn reject(
    server: &Server,
    asked: &RequestContext,
    directive: &Directive,
    names: &Names,
    rejection: Rejection,
) -> Result<Reply> {
    let spec = JobSpec {
        correlation_id: directive.correlation_id.clone(),
        tags: outcome::tags(directive, Some(rejection.code)),
        source_kind: Some(DIRECTIVE_REJECTED.to_owned()),
        source_id: Some(directive.directive_id.clone()),
        ..own_job(&asked.principal, None)?
    };
    let job = NewJobRequest::plain(spec, Vec::new()).accept(server.daemon.executors());
    let error = json!({ "code": rejection.code, "message": rejection.message }).to_string();
    let error =
        NewBody { body: body_ref(BodyName::Error, error.as_bytes()), bytes: error.into_bytes().into() };
    let engine = server.daemon.engine();
    let report = Report {
        attempt_id: None,
        state: JobStateName::Failed,
        details: Details {
            result: ResultRefs { error: Some(error.body), ..ResultRefs::default() },
            ..Details::because(rejection.code)
        },
        retryable: Retryable::No,
        jitter: engine.ids().jitter(),
        submit: SubmitWord::Unsaid,
        by: Reporter::Daemon,
    };
    let mut order = job.order(engine.ids().job_id(), asked.principal.actor.clone());
    let id = order.record.clone();
    order.then.push(Command::Job(JobCommand::Report(Box::new(report))));
    order.bodies.push(OrderBody { record: id.clone(), body: error });
    order.keys.push(
        names
            .own
            .order_key(server.now(), move |record| render(&outcome::rejected(job_of(record), &rejection))),
    );
    match engine.execute(order).await {
        Ok(_) => rejected(names.own.sent().unwrap_or_default(), Given::Now),
        Err(EngineError::KeyTaken(kept)) if outcome::is_rejection(&kept.answer) => rejected_before(&kept),
        Err(error) => Err(of_engine(&error, id.as_str())),
    }
}

fn rejected_before(kept: &KeptKey) -> Result<Reply> {
    rejected(kept.answer.to_vec(), Given::Before)
}

/// The document counts; the status is only a hint.
fn rejected(bytes: Vec<u8>, given: Given) -> Result<Reply> {
    let document = check(Document::DirectiveResult, &bytes)?;
    let conflict = document["diagnostics"][0]["code"] == CONFLICT;
    let outcome = if conflict { Outcome::Conflict } else { Outcome::Invalid };
    Ok(Reply { outcome, ..Reply::rendered(bytes, given) })
}
