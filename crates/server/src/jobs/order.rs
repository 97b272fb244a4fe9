//! An order on a job that is there: given once, answered with the job's status.

use std::sync::Arc;

use api::StatusAnswer;
use domain::job::{Details, JobCommand, JobStateName, Report, Retryable, SubmitWord};
use domain::{AttemptId, BodyName, BodyRef, Record};
use engine::{Order, OrderBody};
use store::limits::MAX_ANSWER_BYTES;
use store::{NewBody, body_ref};

use super::steer::{count_repeat, is_cancel};
use super::visible::{Visible, job_of};
use crate::jobs::refused_report;
use crate::keyed::{self, Keyed};
use crate::render::{Bodies, Extent, status};
use crate::reply::{Given, Reply, render};
use crate::{RequestContext, Result, Server};

/// Whether the request was answered before.
pub(crate) enum Begun {
    /// It was: this is the answer.
    Earlier(Reply),
    /// It is new; under a key, if it has one.
    New(Option<Keyed>),
}

/// Looks for an earlier answer first: it stands, whatever has become of the job since.
pub(crate) async fn begin(server: &Server, asked: &RequestContext) -> Result<Begun> {
    let Some(keyed) = Keyed::of(asked, &asked.id) else { return Ok(Begun::New(None)) };
    Ok(match keyed.earlier(server.store()).await? {
        Some(response) => Begun::Earlier(response),
        None => Begun::New(Some(keyed)),
    })
}

/// Gives the order and answers with the status of the job afterwards.
pub(crate) async fn give(
    server: &Server,
    asked: &RequestContext,
    visible: &Visible,
    keyed: Option<Keyed>,
    command: JobCommand,
    bodies: Vec<NewBody>,
) -> Result<Reply> {
    let order = Order::new(visible.id().clone(), command, asked.principal.actor.clone());
    give_order(server, asked, visible, keyed, order, bodies).await
}

/// The same, for an order that is put together already.
pub(crate) async fn give_order(
    server: &Server,
    asked: &RequestContext,
    visible: &Visible,
    keyed: Option<Keyed>,
    mut order: Order,
    bodies: Vec<NewBody>,
) -> Result<Reply> {
    let texts = Bodies::of_order(&bodies);
    if let Some(keyed) = &keyed {
        order.keys.push(key_for(server, asked, visible, keyed, texts.clone()).await?);
    }
    order.bodies.extend(bodies.into_iter().map(|body| OrderBody { record: visible.id().clone(), body }));
    let attempt_id = refused_report::attempt_of(&order.command);
    let is_cancel = is_cancel(&order.command);
    let (outcome, evidence) = server.daemon.engine().execute_with_evidence(order).await;
    match outcome {
        Ok(outcome) => {
            if is_cancel {
                count_repeat(server, &outcome);
            }
            answer_with(server, asked, visible, keyed, outcome.record(), texts).await
        }
        Err(error) => {
            let about = attempt_id.as_ref().map(|id| (visible.job(), id));
            refused_report::note(server, asked, about, &error, evidence);
            keyed::refused(keyed.as_ref(), &error, &asked.id)
        }
    }
}

/// A report of this caller on a job.
pub(crate) fn report(
    server: &Server,
    asked: &RequestContext,
    attempt_id: Option<AttemptId>,
    state: JobStateName,
    details: Details,
    retryable: Retryable,
) -> JobCommand {
    JobCommand::Report(Box::new(Report {
        attempt_id,
        state,
        details,
        retryable,
        jitter: server.daemon.engine().ids().jitter(),
        submit: SubmitWord::Unsaid,
        by: asked.principal.reporter(),
    }))
}

/// Puts a text to the bodies of an order.
pub(crate) fn keep(bodies: &mut Vec<NewBody>, name: BodyName, text: &str) -> BodyRef {
    let body = body_ref(name, text.as_bytes());
    bodies.push(NewBody { body, bytes: Arc::from(text.as_bytes()) });
    body
}

/// The key of an order, with the answer that will be stored. What the answer shows is read before the order is given.
pub(super) async fn key_for(
    server: &Server,
    asked: &RequestContext,
    visible: &Visible,
    keyed: &Keyed,
    mut texts: Bodies,
) -> Result<engine::OrderKey> {
    texts.complete(server.store(), visible.job()).await?;
    let (claim, daemon) = (visible.claim().cloned(), server.daemon.clone());
    let viewer = asked.principal.reporter();
    Ok(keyed.order_key(server.now(), move |record| {
        let (executors, job) = (daemon.executors(), job_of(record));
        fit_for_store(&texts, |texts, extent| {
            render(&StatusAnswer { status: status(executors, job, claim.as_ref(), texts, extent, &viewer) })
        })
    }))
}

/// The bytes that were stored under the key; else the status as it is now.
pub(super) async fn answer_with(
    server: &Server,
    asked: &RequestContext,
    visible: &Visible,
    keyed: Option<Keyed>,
    record: &Record,
    mut texts: Bodies,
) -> Result<Reply> {
    if let Some(sent) = keyed.and_then(|keyed| keyed.sent()) {
        return Ok(Reply::rendered(sent, Given::Now));
    }
    let job = job_of(record);
    texts.complete(server.store(), job).await?;
    let loaded = server.load(visible.id()).await?;
    let claim = loaded.and_then(|loaded| loaded.claim);
    let (executors, viewer) = (server.daemon.executors(), asked.principal.reporter());
    let status = status(executors, job, claim.as_ref(), &texts, Extent::Whole, &viewer);
    Ok(Reply::json(&StatusAnswer { status }))
}

/// An answer that fits into the store: whole, or else cut.
pub(super) fn fit_for_store(texts: &Bodies, render: impl Fn(&Bodies, Extent) -> Vec<u8>) -> Vec<u8> {
    let whole = render(texts, Extent::Whole);
    if whole.len() <= MAX_ANSWER_BYTES { whole } else { render(&Bodies::default(), Extent::Cut) }
}
