//! The http executor: a connector is a file that says how a service takes work, tells how it goes, stops it and hands out the result.
//!
//! Submit is made under a recorded intent and with a key of ours, so that a crash around it is never a blind second start. What the
//! service says is interpreted in `http/interpret.rs` and nowhere else; its hints are only hints. No secret leaves a connector: every
//! answer is masked as it comes in, and every text of our own as it goes out.
//!
//! It does not touch the store, keeps nothing between calls, and goes out through [`crate::outbound`] alone.

mod adopt;
mod ask;
mod call;
mod contract;
mod file;
mod handle;
mod hints;
mod interpret;
mod load;
mod mask;
mod members;
mod places;
mod replay;
mod secrets;
mod signature;
mod submit;
mod template;
#[cfg(test)]
mod tests;
mod transport;

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use domain::operation::PollError;
use domain::{OperationId, Timestamp};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::outbound::{Answer, Outbound, OutboundError, OutboundRequest, OutboundRules};
use crate::verify_webhook;
use engine::{
    Approval, Assignment, CancelReply, Clock, Deferral, Executor, ExecutorTraits, ForeignWork, Gated, Link,
    Outside, Polled, Produced, SignedWebhook, Specialist,
};

pub use file::{SecretSource, State};
pub use load::Connector;
pub(super) use load::LIMITS;
pub use replay::{Exchange, Mismatch, Replayed, replay};
pub use secrets::{SecretError, Secrets};
pub use signature::{Signers, SigningKey, signature_path};
pub use transport::Transport;

use call::Call;
pub(super) use mask::Mask;

/// Where services may call back.
pub trait CallbackUrls: Send + Sync {
    /// The URL for this operation; none if this daemon cannot be reached from outside.
    fn url_for(&self, operation: &OperationId) -> Option<String>;
}

/// A connector at work.
pub struct HttpConnector {
    connector: Arc<Connector>,
    secrets: Secrets,
    mask: Mask,
    transport: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
    callbacks: Option<Arc<dyn CallbackUrls>>,
}

/// Why a connector cannot be opened.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenError {
    /// A secret cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// Its certificates cannot be used.
    #[error(transparent)]
    Trust(#[from] OutboundError),
}

impl HttpConnector {
    /// Opens a connector: reads its secrets, and lets it out within the rules of its file. `own` is where this daemon listens.
    pub fn open(
        connector: Connector,
        own: Vec<SocketAddr>,
        clock: Arc<dyn Clock>,
        callbacks: Option<Arc<dyn CallbackUrls>>,
    ) -> Result<Self, OpenError> {
        let secrets = Secrets::read(&connector.secrets, &|name| std::env::var(name).ok())?;
        if let Some(name) = &connector.signed_with {
            secrets.check_webhook_key(name)?;
        }
        let (allow, ca_file) = (connector.allow.clone(), connector.ca_file.clone());
        let outbound = Outbound::new(OutboundRules { allow, own, ca_file })?;
        Ok(Self::over(connector, secrets, Arc::new(outbound), clock, callbacks))
    }

    /// With these secrets and over this transport.
    pub fn over(
        connector: Connector,
        secrets: Secrets,
        transport: Arc<dyn Transport>,
        clock: Arc<dyn Clock>,
        callbacks: Option<Arc<dyn CallbackUrls>>,
    ) -> Self {
        let mask = secrets.mask();
        Self { connector: Arc::new(connector), secrets, mask, transport, clock, callbacks }
    }

    /// As an executor, to be registered under the connector's name.
    pub fn executor(self) -> Executor {
        let Connector { concurrency, retry, modes, approval, .. } = &*self.connector;
        let (concurrency, retry, modes, approval) = (*concurrency, *retry, *modes, *approval);
        let specialist: Arc<dyn Specialist> = match approval {
            Approval::NotNeeded => Arc::new(self),
            Approval::Operator => Arc::new(Gated::new(Arc::new(self))),
        };
        Executor { specialist, concurrency, retry, modes }
    }

    /// Sends a request and masks what comes of it.
    async fn exchange(&self, call: &Call, request: OutboundRequest) -> Result<Answer, OutboundError> {
        let mut answer = self.transport.send(request, call.limits).await?;
        answer.body = self.mask.json(answer.body);
        for (_, value) in &mut answer.headers {
            *value = self.mask.text(std::mem::take(value));
        }
        Ok(answer)
    }

    /// A text of ours that may quote something.
    fn masked(&self, text: impl ToString) -> String {
        self.mask.text(text.to_string())
    }
}

/// The same without codes and texts that repeat the input of the job.
fn without_echo(produced: Produced, input: Option<&Value>, own_reason: &str) -> Produced {
    match produced {
        Produced::Completed(output) => Produced::Completed(output.without_echo(input)),
        Produced::Deferred(deferral) => Produced::Deferred(deferral.without_echo(input, Some(own_reason))),
        Produced::Failed(failure) => Produced::Failed(failure.without_echo(input)),
        Produced::SubmitUnknown(failure) => Produced::SubmitUnknown(failure.without_echo(input)),
        other @ (Produced::Unavailable(_)
        | Produced::Delivered
        | Produced::AwaitingInput { .. }
        | Produced::Stopped
        | Produced::StoppedWith(_)
        | Produced::Unexpected(_)) => other,
    }
}

/// What request templates read.
fn context(input: Option<&Value>, job: Value, operation: Value, secrets: Value) -> Value {
    let mut context = json!({ "job": job, "operation": operation, "secrets": secrets });
    if let (Some(input), Some(names)) = (input, context.as_object_mut()) {
        names.insert("input".to_owned(), input.clone());
    }
    context
}

impl Specialist for HttpConnector {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.connector.name)
    }

    fn produce(&self, assignment: Assignment, link: Link) -> BoxFuture<'_, Produced> {
        Box::pin(async move {
            match self.unfit_input(&assignment) {
                Some(failure) => Produced::Failed(failure),
                None => {
                    let input = serde_json::from_slice(&assignment.input).ok();
                    let own_reason = &self.connector.not_cancelable_because;
                    let produced = self.submit(assignment, link).await;
                    let produced = without_echo(produced, input.as_ref(), own_reason);
                    self.fit_to_keep(produced)
                }
            }
        })
    }

    fn poll(&self, outside: Outside) -> BoxFuture<'_, Result<Polled, PollError>> {
        Box::pin(async move { Ok(self.fit_to_take(self.ask(outside).await?)) })
    }

    fn cancel(&self, outside: Outside) -> BoxFuture<'_, CancelReply> {
        Box::pin(self.ask_to_stop(outside))
    }

    fn adopt(&self, assignment: &Assignment, work: ForeignWork) -> Result<Deferral, String> {
        self.handle_of_foreign(assignment, work)
    }

    fn not_cancelable_because(&self) -> Option<String> {
        let connector = &self.connector;
        connector.cancel.is_none().then(|| connector.not_cancelable_because.clone())
    }

    fn traits(&self) -> ExecutorTraits {
        let gives_callback_url = self.connector.gives_callback_url;
        ExecutorTraits {
            begins_outside: self.connector.status.is_some(),
            is_called_back: self.callbacks.is_some() && gives_callback_url,
            lacks_callback_url: self.callbacks.is_none() && gives_callback_url,
            ..ExecutorTraits::default()
        }
    }

    fn admits_callback(&self, callback: SignedWebhook<'_>, now: Timestamp) -> bool {
        match &self.connector.signed_with {
            None => true,
            Some(name) => {
                self.secrets.value(name).is_some_and(|secret| verify_webhook(secret, callback, now))
            }
        }
    }
}
