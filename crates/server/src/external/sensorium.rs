//! The Sensorium names under `/v1/capabilities`: a directive is a call of an action, an operation is the handle on it. A thin face over
//! the same functions as `/v1/deferred-operations`.
//!
//! An action is an executor whose operator wrote down what its parameters must be; nothing else can be named. Every directive that
//! can be read has one outcome record: its job, and if it was rejected a job that was over from the start. Whoever is sent away for
//! load gets none: the same directive may come again.

mod catalog;
mod directive;
mod invoke;
mod outcome;

use std::sync::Arc;

use api::CancelJob;
use api::deferred::{DeferredOperation, DeferredStatus};
use api::sensorium::{ActionCatalog, Directive, DirectiveResult, OperationNamed};
use serde_json::Value;

use crate::access::authorise::{self, Permission};
use crate::external::deferred;
use crate::openapi::{Schemas, request_limits};
use crate::operations::{Answer, answer, either, request, schema};
use crate::problem::at_field;
use crate::{Reply, RequestContext, Result, Server};

pub(crate) use outcome::{nested_result, read_outcome};

/// A capability that the host itself has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    DirectiveInvoke,
    DirectiveList,
    OperationStatus,
    OperationCancel,
}

/// What the API document says of such a capability.
pub(crate) struct Own {
    name: &'static str,
    /// What it does, in a sentence.
    pub(crate) summary: &'static str,
    /// The schema of its body.
    pub(crate) takes: fn(&mut Schemas) -> Value,
    /// How it answers when it succeeds.
    pub(crate) answers: &'static [Answer],
}

/// In the order of the names.
static OWN: [Own; 4] = [
    Own {
        name: "sensorium.directive.invoke",
        summary: "Invoke an action of the catalog; a rejected directive has its record too",
        takes: request::<Directive>,
        answers: &[
            answer(200, either::<DirectiveResult, DeferredStatus>),
            answer(202, schema::<DeferredOperation>),
        ],
    },
    Own {
        name: "sensorium.directive.list",
        summary: "List the actions that directives may name",
        takes: |_| request_limits::any_value(),
        answers: &[answer(200, schema::<ActionCatalog>)],
    },
    Own {
        name: "sensorium.operation.status",
        summary: "Read the status of a deferred operation that the body names",
        takes: |_| request_limits::only_text("operation/id"),
        answers: &[answer(200, schema::<DeferredStatus>)],
    },
    Own {
        name: "sensorium.operation.cancel",
        summary: "Ask to stop a deferred operation that the body names",
        takes: request::<OperationNamed>,
        answers: &[answer(200, schema::<DeferredStatus>), answer(202, schema::<DeferredStatus>)],
    },
];

/// How the names of the host's own capabilities begin. No executor may have such a name.
pub const OWN_PREFIX: &str = "sensorium.";

impl Name {
    /// All of them.
    pub(crate) const ALL: [Self; 4] =
        [Self::DirectiveInvoke, Self::DirectiveList, Self::OperationStatus, Self::OperationCancel];

    /// What is said of it.
    pub(crate) fn described(self) -> &'static Own {
        &OWN[self as usize]
    }

    /// What a path calls it.
    pub(crate) fn as_str(self) -> &'static str {
        self.described().name
    }

    /// The one that a path names.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|own| own.as_str() == name)
    }
}

/// Carries out what the host itself can.
pub(crate) async fn carry_out(server: &Arc<Server>, name: Name, asked: RequestContext) -> Result<Reply> {
    match name {
        Name::DirectiveInvoke => invoke::invoke(server, asked).await,
        Name::DirectiveList => Ok(catalog::list(server, asked.principal.circle.as_deref())),
        Name::OperationStatus => status(server, asked).await,
        Name::OperationCancel => cancel(server, asked).await,
    }
}

/// Where the operation is that the body names, by what the poller last heard from its connector.
async fn status(server: &Server, asked: RequestContext) -> Result<Reply> {
    let named: OperationNamed = asked.read()?;
    if named.reason.is_some() {
        return Err(at_field("reason", "extra_forbidden", "a status has no reason"));
    }
    deferred::read_status(server, RequestContext { id: named.operation_id, wait: None, ..asked }).await
}

async fn cancel(server: &Server, asked: RequestContext) -> Result<Reply> {
    authorise::check(&asked.principal, asked.operation, Permission::Cancel)?;
    let named: OperationNamed = asked.read()?;
    let body = CancelJob { reason: named.reason, ..CancelJob::default() };
    let body = serde_json::to_string(&body).expect("it has only string keys");
    deferred::cancel(server, RequestContext { id: named.operation_id, body: Some(body), ..asked }).await
}
