//! `PATCH /jobs/{id}`: the doer says where the job is. Strict: an attempt that is not current is refused for every state.

use api::{UnderClaim, UpdateJob};
use domain::job::{Details, JobStateName, ResultRefs, Retryable};
use domain::{BodyName, Fence, Json};
use engine::Order;
use store::NewBody;

use super::list::unknown_state;
use super::order::{Begun, begin, give_order, keep, report};
use super::visible::steerable_job;
use crate::jobs::refused_report::attempt_named;
use crate::problem::of_refusal;
use crate::pulled::claims;
use crate::render::RawObject;
use crate::{Reply, RequestContext, Result, Server};

pub(crate) async fn update(server: &Server, asked: RequestContext) -> Result<Reply> {
    let update: UpdateJob = asked.read()?;
    let state = JobStateName::parse(&update.state).ok_or_else(|| unknown_state(&update.state))?;
    let keyed = match begin(server, &asked).await? {
        Begun::Earlier(response) => return Ok(response),
        Begun::New(keyed) => keyed,
    };
    let visible = steerable_job(server, &asked, None).await?;
    let mut bodies = Vec::new();
    let mut details = details(&update, &mut bodies)?;
    if state.is_terminal() && visible.job().state.name() == state {
        // Said again without a word on them they stay; `null` takes them away.
        let sent = RawObject::parse(asked.body.as_deref().unwrap_or_default()).unwrap_or_default();
        let is_null = |key| sent.get(key).is_some_and(|value| value.get() == "null");
        details.reason = details.reason.or_else(|| is_null("state_reason").then(String::new));
        details.phase = details.phase.or_else(|| is_null("phase").then(String::new));
    }
    let attempt_id = update.attempt_id.as_deref().map(attempt_named).transpose()?;
    let command = report(server, &asked, attempt_id, state, details, Retryable::Yes);
    let mut order = Order::new(visible.id().clone(), command, asked.principal.actor.clone());
    if let Some(UnderClaim { owner_id, claim_version }) = &update.claim {
        let owner = claims::owner("owner_id", owner_id)?;
        order.fence = Some(Fence { owner, claim_version: *claim_version });
    } else if visible.job().last_attempt().is_none() {
        claims::check_unclaimed(visible.claim(), server.now())?;
    }
    give_order(server, &asked, &visible, keyed, order, bodies).await
}

fn details(update: &UpdateJob, bodies: &mut Vec<NewBody>) -> Result<Details> {
    let mut keep = |name: BodyName, text: Option<&str>| text.map(|text| keep(bodies, name, text));
    let result = ResultRefs {
        summary: update.result_summary.clone(),
        data: keep(BodyName::Result, update.result_data.as_ref().map(api::JsonObject::as_str)),
        error: keep(BodyName::Error, update.error.as_ref().map(api::JsonObject::as_str)),
        artifacts: keep(BodyName::Artifacts, update.artifacts.as_ref().map(api::JsonArray::as_str)),
        ..ResultRefs::default()
    };
    let provenance = keep(BodyName::Provenance, update.provenance.as_ref().map(api::JsonObject::as_str));
    let progress = update.progress.as_ref().map(|progress| Json::parse(progress.as_str()));
    Ok(Details {
        reason: update.state_reason.clone(),
        phase: update.phase.clone(),
        progress: progress.transpose().map_err(|refusal| of_refusal(&refusal, ""))?,
        note: update.progress_note.clone().filter(|note| !note.is_empty()),
        result,
        provenance,
        ..Details::default()
    })
}
