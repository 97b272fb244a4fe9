//! An order on a job that is there: given once, answered with the job's status.

use std::sync::Arc;

use api::{Problem, StatusAnswer};
use axum::response::Response;
use domain::job::{Job, JobCommand, Reporter};
use domain::{BodyName, BodyRef, Claim, Record};
use engine::{Executors, Order, OrderBody};
use store::limits::MAX_ANSWER_BYTES;
use store::{NewBody, body_ref};

use super::visible::{Visible, job_of};
use crate::answer::{self, Given};
use crate::asked::Asked;
use crate::keyed::{self, Keyed};
use crate::problem::of_store;
use crate::refused_report;
use crate::render::{Bodies, Extent, status};
use crate::serve::Server;

/// Whether the request was answered before.
pub(crate) enum Begun {
    /// It was: this is the answer.
    Earlier(Response),
    /// It is new; under a key, if it has one.
    New(Option<Keyed>),
}

/// Looks for an earlier answer first: it stands, whatever has become of the job since.
pub(crate) async fn begin(server: &Server, asked: &Asked) -> Result<Begun, Problem> {
    let Some(key) = asked.key.clone() else { return Ok(Begun::New(None)) };
    let body = asked.body.as_deref().unwrap_or_default();
    let keyed = Keyed::new(&asked.principal, asked.operation, key, &asked.id, body);
    Ok(match keyed.earlier(server.store()).await? {
        Some(response) => Begun::Earlier(response),
        None => Begun::New(Some(keyed)),
    })
}

/// Gives the order and answers with the status of the job afterwards.
pub(crate) async fn give(
    server: &Server,
    asked: &Asked,
    visible: &Visible,
    keyed: Option<Keyed>,
    command: JobCommand,
    bodies: Vec<NewBody>,
) -> Result<Response, Problem> {
    let order = Order::new(visible.id().clone(), command, asked.principal.actor.clone());
    give_order(server, asked, visible, keyed, order, bodies).await
}

/// The same, for an order that is put together already.
pub(crate) async fn give_order(
    server: &Server,
    asked: &Asked,
    visible: &Visible,
    keyed: Option<Keyed>,
    mut order: Order,
    bodies: Vec<NewBody>,
) -> Result<Response, Problem> {
    let mut texts = Bodies::default();
    for new in &bodies {
        texts.keep(new.body, Arc::from(String::from_utf8_lossy(&new.bytes)));
    }
    if let Some(keyed) = &keyed {
        order.keys.push(key_for(server, asked, visible, keyed, texts.clone()).await?);
    }
    order.bodies.extend(bodies.into_iter().map(|body| OrderBody { record: visible.id().clone(), body }));
    let attempt_id = refused_report::attempt_of(&order.command);
    match server.daemon.engine().execute(order).await {
        Ok(outcome) => answer_with(server, asked, visible, keyed, outcome.record(), texts).await,
        Err(error) => {
            refused_report::note(server, asked, attempt_id.as_ref().map(|id| (visible.job(), id)), &error);
            keyed::refused(keyed.as_ref(), &error, &asked.id)
        }
    }
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
    asked: &Asked,
    visible: &Visible,
    keyed: &Keyed,
    mut texts: Bodies,
) -> Result<engine::OrderKey, Problem> {
    texts.complete(server.store(), visible.job()).await?;
    let (claim, daemon) = (visible.claim().cloned(), server.daemon.clone());
    let viewer = asked.principal.reporter();
    Ok(keyed.order_key(server.now(), move |record| {
        stored_answer(daemon.executors(), job_of(record), claim.as_ref(), &texts, &viewer)
    }))
}

/// The bytes that were stored under the key; else the status as it is now.
pub(super) async fn answer_with(
    server: &Server,
    asked: &Asked,
    visible: &Visible,
    keyed: Option<Keyed>,
    record: &Record,
    mut texts: Bodies,
) -> Result<Response, Problem> {
    if let Some(sent) = keyed.and_then(|keyed| keyed.sent()) {
        return Ok(answer::bytes(sent, Given::Now));
    }
    let job = job_of(record);
    texts.complete(server.store(), job).await?;
    let loaded = server.store().load(visible.id()).await.map_err(|error| of_store(&error))?;
    let claim = loaded.and_then(|loaded| loaded.claim);
    let (executors, viewer) = (server.daemon.executors(), asked.principal.reporter());
    let status = status(executors, job, claim.as_ref(), &texts, Extent::Whole, &viewer);
    Ok(answer::json(&StatusAnswer { status }))
}

/// An answer that fits into the store.
fn stored_answer(
    executors: &Executors,
    job: &Job,
    claim: Option<&Claim>,
    texts: &Bodies,
    viewer: &Reporter,
) -> Vec<u8> {
    let answer = |texts, extent| {
        answer::render(&StatusAnswer { status: status(executors, job, claim, texts, extent, viewer) })
    };
    let whole = answer(texts, Extent::Whole);
    if whole.len() <= MAX_ANSWER_BYTES {
        return whole;
    }
    answer(&Bodies::default(), Extent::Cut)
}
