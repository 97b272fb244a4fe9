//! What carries requests: the one way out, or a recorded exchange.

use futures::future::BoxFuture;

use crate::outbound::{Answer, Outbound, OutboundError, OutboundLimits, OutboundRequest};

/// Carries requests and brings answers.
pub trait Transport: Send + Sync {
    /// Sends one and takes its whole answer, within the limits.
    fn send(
        &self,
        request: OutboundRequest,
        limits: OutboundLimits,
    ) -> BoxFuture<'_, Result<Answer, OutboundError>>;
}

impl Transport for Outbound {
    fn send(
        &self,
        request: OutboundRequest,
        limits: OutboundLimits,
    ) -> BoxFuture<'_, Result<Answer, OutboundError>> {
        Box::pin(async move { Outbound::send(self, request, &limits).await })
    }
}
