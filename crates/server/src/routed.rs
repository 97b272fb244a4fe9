//! Events and runs as a caller finds them: one by its id, or a page, newest first. "Not yours" and "not there" are one answer.

use std::borrow::Cow;
use std::sync::Arc;

use api::{FieldError, Problem, ProblemCode};
use domain::{Record, RecordId};
use store::{Loaded, RoutedKind, RoutingCursor, RoutingPage, RoutingQuery, routing_columns};

use crate::asked::Asked;
use crate::audit::Verdict;
use crate::authorise;
use crate::cursor;
use crate::problem::{no_such, of_store};
use crate::serve::Server;

/// The event or the run with this id, if the caller sees it.
pub(crate) async fn visible(
    server: &Server,
    asked: &Asked,
    kind: RoutedKind,
    id: &str,
) -> Result<Loaded, Problem> {
    let turned_away = |verdict| {
        server.audit.note(&asked.principal.actor, asked.operation.name(), id, verdict);
        no_such(word(kind), id)
    };
    let Some(id) = RecordId::parse(id).ok().filter(|id| id.kind() == kind.record_kind()) else {
        return Err(turned_away(Verdict::Absent));
    };
    let Some(loaded) = server.store().load(&id).await.map_err(|error| of_store(&error))? else {
        return Err(turned_away(Verdict::Absent));
    };
    let circle = routing_columns(&loaded.record).and_then(|columns| columns.circle);
    if authorise::sees(&asked.principal, circle) { Ok(loaded) } else { Err(turned_away(Verdict::NotVisible)) }
}

/// A page of what the caller sees. `name` is the parameter that picks by type or by pipeline.
pub(crate) async fn page(
    server: &Server,
    asked: &Asked,
    kind: RoutedKind,
    name: &str,
    statuses: &[&str],
) -> Result<(Vec<Arc<Record>>, Option<String>), Problem> {
    let parameter = |name| asked.parameter(name).map(Cow::into_owned);
    let status = parameter("status");
    if let Some(word) = status.as_deref().filter(|word| !statuses.contains(word)) {
        let told = format!("status must be one of: {}; got {word:?}", statuses.join(", "));
        let error = FieldError::new("enum", &["query", "status"], told.clone());
        return Err(ProblemCode::InvalidValue.because(told).at(error));
    }
    let limit = asked.limit()?;
    let after = parameter("cursor").map(|text| cursor(kind, &text)).transpose()?;
    let Some(circle) = circle_of(asked, parameter("circle")) else { return Ok((Vec::new(), None)) };
    let query = RoutingQuery { kind, name: parameter(name), status, circle, after, limit };
    let page = server.store().routing(query).await;
    let RoutingPage { records, next } = page.map_err(|error| of_store(&error))?;
    Ok((records, next.map(|next| cursor::text(next.begun_at, &next.id))))
}

/// The circle that is asked for within what the caller sees, `Some(None)` for all; none if that is nothing.
#[allow(clippy::option_option, reason = "nothing, all, and one circle are three things")]
pub(crate) fn circle_of(asked: &Asked, named: Option<String>) -> Option<Option<String>> {
    let circle = match (&asked.principal.circle, named) {
        (Some(own), Some(named)) if *own != named => return None,
        (Some(own), _) => Some(own.clone()),
        (None, named) => named,
    };
    authorise::sees(&asked.principal, circle.as_deref()).then_some(circle)
}

fn cursor(kind: RoutedKind, text: &str) -> Result<RoutingCursor, Problem> {
    let (begun_at, id) = cursor::parse(text, &format!("{}-", word(kind)))?;
    Ok(RoutingCursor { begun_at, id })
}

fn word(kind: RoutedKind) -> &'static str {
    match kind {
        RoutedKind::Events => "event",
        RoutedKind::Runs => "run",
    }
}
