//! The Sensorium names under `/v1/capabilities`: a directive is a call of an action, an operation is the handle on it. A thin face over
//! the same functions as `/v1/deferred-operations`.
//!
//! An action is an executor whose operator wrote down what its parameters must be; nothing else can be named. Every directive that
//! can be read has one outcome record: its job, and if it was rejected a job that was over from the start. Whoever is sent away for
//! load gets none: the same directive may come again.

mod catalog;
mod directive;
mod invoke;
mod operation;
mod outcome;

use std::sync::Arc;

use api::Problem;

use crate::reply::Reply;
use crate::request_context::RequestContext;
use crate::server::Server;

pub(crate) use outcome::{nested_result, read_outcome};

/// A capability that the host itself has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    DirectiveInvoke,
    DirectiveList,
    OperationStatus,
    OperationCancel,
}

/// How the names of the host's own capabilities begin. No executor may have such a name.
pub const OWN_PREFIX: &str = "sensorium.";

impl Name {
    /// All of them.
    pub(crate) const ALL: [Self; 4] =
        [Self::DirectiveInvoke, Self::DirectiveList, Self::OperationStatus, Self::OperationCancel];

    /// What a path calls it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::DirectiveInvoke => "sensorium.directive.invoke",
            Self::DirectiveList => "sensorium.directive.list",
            Self::OperationStatus => "sensorium.operation.status",
            Self::OperationCancel => "sensorium.operation.cancel",
        }
    }

    /// What it does, in a sentence.
    pub(crate) const fn summary(self) -> &'static str {
        match self {
            Self::DirectiveInvoke => {
                "Invoke an action of the catalog; a rejected directive has its record too"
            }
            Self::DirectiveList => "List the actions that directives may name",
            Self::OperationStatus => "Read the status of a deferred operation that the body names",
            Self::OperationCancel => "Ask to stop a deferred operation that the body names",
        }
    }

    /// The one that a path names.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|own| own.as_str() == name)
    }
}

/// Carries out what the host itself can.
pub(crate) async fn carry_out(
    server: &Arc<Server>,
    name: Name,
    asked: RequestContext,
) -> Result<Reply, Problem> {
    match name {
        Name::DirectiveInvoke => invoke::invoke(server, asked).await,
        Name::DirectiveList => Ok(catalog::list(server, asked.principal.circle.as_deref())),
        Name::OperationStatus => operation::status(server, asked).await,
        Name::OperationCancel => operation::cancel(server, asked).await,
    }
}
