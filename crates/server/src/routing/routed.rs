//! Events and runs as a caller finds them: a page, newest first.

use std::borrow::Cow;
use std::sync::Arc;

use api::{FieldError, Problem, ProblemCode};
use domain::{Record, RecordKind};
use store::{RecordCursor, RecordPage, RecordQuery};

use crate::access::authorise;
use crate::cursor;
use crate::problem::of_store;
use crate::request_context::RequestContext;
use crate::server::Server;

/// A page of what the caller sees. `name` is the parameter that picks by type or by pipeline.
pub(crate) async fn page(
    server: &Server,
    asked: &RequestContext,
    kind: RecordKind,
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
    let after = cursor::of(asked, kind.id_prefix())?.map(|(began_at, id)| RecordCursor { began_at, id });
    let Some(circle) = circle_of(asked, parameter("circle")) else { return Ok((Vec::new(), None)) };
    let query = RecordQuery { kind, name: parameter(name), status, circle, after, limit };
    let page = server.store().records(query).await;
    let RecordPage { records, next } = page.map_err(|error| of_store(&error))?;
    Ok((records, next.map(|next| cursor::text(next.began_at, &next.id))))
}

/// The circle that is asked for within what the caller sees, `Some(None)` for all; none if that is nothing.
#[allow(clippy::option_option, reason = "nothing, all, and one circle are three things")]
pub(crate) fn circle_of(asked: &RequestContext, named: Option<String>) -> Option<Option<String>> {
    let circle = match (&asked.principal.circle, named) {
        (Some(own), Some(named)) if *own != named => return None,
        (Some(own), _) => Some(own.clone()),
        (None, named) => named,
    };
    authorise::sees(&asked.principal, circle.as_deref()).then_some(circle)
}
