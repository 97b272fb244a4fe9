//! The ledger on the wire: one job's facts, and the whole of it as a stream.

mod place;
mod stream;

use std::borrow::Cow;

use api::{Fact, FactList, Problem, ProblemCode};
use store::{StoredFact, encode_fact, fact_kind};

use crate::access::attempt_alias::{shown_actor, shown_fact};
use crate::access::authenticate::Principal;
use crate::clock_text::text;
use crate::jobs::visible_job;
use crate::problem::{at, of_store};
use crate::render::raw;
use crate::{Reply, RequestContext, Result, Server};

pub(crate) use place::shown as shown_place;
pub(crate) use stream::stream;

/// `GET /jobs/{id}/facts`: a page, oldest first. The cursor is the version of the last fact of the page before.
pub(crate) async fn of_job(server: &Server, asked: RequestContext) -> Result<Reply> {
    let visible = visible_job(server, &asked).await?;
    let limit = asked.limit()?;
    let after = number(&asked, "cursor")?.unwrap_or_default();
    let facts = server.store().facts_of(visible.id(), after, limit).await.map_err(of_store)?;
    let next = facts.last().filter(|_| facts.len() == limit).map(|last| Cow::Owned(last.version.to_string()));
    Ok(Reply::json(&FactList {
        facts: facts.iter().map(|fact| line(server, &asked.principal, fact)).collect(),
        next_cursor: next,
    }))
}

/// One line of the ledger, as this caller may see it.
fn line<'a>(server: &Server, caller: &Principal, fact: &'a StoredFact) -> Fact<'a> {
    let shown = shown_fact(&fact.fact, &caller.reporter());
    Fact {
        position: shown_place(server, caller, fact.position),
        stream: Cow::Borrowed(fact.stream.as_str()),
        version: fact.version,
        fact_id: Cow::Owned(fact.id.to_string()),
        kind: Cow::Borrowed(fact_kind(&fact.fact)),
        at: Cow::Owned(text(fact.at)),
        actor: shown_actor(&fact.actor),
        causation_id: fact.causation_id.as_deref().map(Cow::Borrowed),
        correlation_id: fact.correlation_id.as_deref().map(Cow::Borrowed),
        payload: raw(encode_fact(shown.as_ref().unwrap_or(&fact.fact))),
    }
}

/// A query parameter that is a place in the ledger or in a stream.
pub(crate) fn number(asked: &RequestContext, name: &'static str) -> Result<Option<u64>> {
    let Some(text) = asked.value(name) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| bad_place(&["query", name]))
}

fn bad_place(loc: &[&str]) -> Problem {
    at(ProblemCode::InvalidCursor, "int_type", loc, "a place in the ledger is a whole number")
}
