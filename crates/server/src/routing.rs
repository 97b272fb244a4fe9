//! Events, pipelines and their runs.

pub(crate) mod events;
pub(crate) mod pipelines;
pub(crate) mod runs;

use std::borrow::Cow;
use std::sync::Arc;

use api::ProblemCode;
use domain::{Record, RecordKind};
use store::{RecordCursor, RecordPage, RecordQuery};

use crate::access::authorise;
use crate::cursor;
use crate::problem::{at, of_store};
use crate::{RequestContext, Result, Server};

/// A page of events or runs as the caller sees them, newest first. `name` is the parameter that picks by type or by pipeline.
async fn page(
    server: &Server,
    asked: &RequestContext,
    kind: RecordKind,
    name: &str,
    statuses: &[&str],
) -> Result<(Vec<Arc<Record>>, Option<String>)> {
    let parameter = |name| asked.parameter(name).map(Cow::into_owned);
    let status = parameter("status");
    if let Some(word) = status.as_deref().filter(|word| !statuses.contains(word)) {
        let told = format!("status must be one of: {}; got {word:?}", statuses.join(", "));
        return Err(at(ProblemCode::InvalidValue, "enum", &["query", "status"], told));
    }
    let limit = asked.limit()?;
    let after = cursor::of(asked, kind.id_prefix())?.map(|(began_at, id)| RecordCursor { began_at, id });
    let Some(circle) = authorise::circle_of_list(&asked.principal, parameter("circle")) else {
        return Ok((Vec::new(), None));
    };
    let query = RecordQuery { kind, name: parameter(name), status, circle, after, limit };
    let RecordPage { records, next } = server.store().records(query).await.map_err(of_store)?;
    Ok((records, next.map(|next| cursor::text(next.began_at, &next.id))))
}
