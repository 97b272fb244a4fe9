//! A gate in front of an executor: nothing of an attempt happens before an operator has approved its input.
//!
//! The attempt waits, as any work that waits for a person; the question shows what is to be approved. A new attempt is asked about
//! anew. Who may answer is settled where answers come in.

use std::borrow::Cow;
use std::sync::Arc;

use domain::Timestamp;
use domain::job::JobSpec;
use domain::operation::PollError;
use futures::future::BoxFuture;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{
    Admission, Assignment, CancelReply, Deferral, ExecutorTraits, Failure, ForeignWork, Link, Outside,
    Polled, Produced, SignedWebhook, Specialist, Unfit,
};

/// Whether a person has to approve what an executor does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approval {
    /// Nobody has to.
    #[default]
    NotNeeded,
    /// An operator has to, every time.
    Operator,
}

/// An executor behind the gate.
pub struct Gated {
    inner: Arc<dyn Specialist>,
}

impl Gated {
    /// The gate in front of this one.
    pub fn new(inner: Arc<dyn Specialist>) -> Self {
        Self { inner }
    }

    /// The question, with all that is to be approved.
    fn question(&self, assignment: &Assignment) -> Vec<u8> {
        let input: Option<&RawValue> = serde_json::from_slice(&assignment.input).ok();
        let question = serde_json::json!({
            "approve": self.inner.name(),
            "input": input,
            "answer_with": { "approved": true },
        });
        question.to_string().into_bytes()
    }
}

impl Specialist for Gated {
    fn name(&self) -> Cow<'_, str> {
        self.inner.name()
    }

    fn traits(&self) -> ExecutorTraits {
        self.inner.traits()
    }

    fn produce(&self, assignment: Assignment, link: Link) -> BoxFuture<'_, Produced> {
        match assignment.answers.iter().rev().find_map(|answer| verdict(answer)) {
            None => {
                let question = self.question(&assignment);
                Box::pin(async { Produced::AwaitingInput { question } })
            }
            Some(false) => {
                let failure = Failure::permanent("not-approved", "an operator did not approve it");
                Box::pin(async { Produced::Failed(failure) })
            }
            Some(true) => self.inner.produce(Assignment { answers: Vec::new(), ..assignment }, link),
        }
    }

    fn poll(&self, outside: Outside) -> BoxFuture<'_, Result<Polled, PollError>> {
        self.inner.poll(outside)
    }

    fn lane(&self) -> Option<Cow<'_, str>> {
        self.inner.lane()
    }

    fn let_in(&self, now: Timestamp) -> Result<Admission, Timestamp> {
        self.inner.let_in(now)
    }

    fn left_alone_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.inner.left_alone_until(now)
    }

    fn left_out_because(&self) -> Option<&str> {
        self.inner.left_out_because()
    }

    fn missing_program(&self) -> Option<String> {
        self.inner.missing_program()
    }

    fn unfit(&self, spec: &JobSpec) -> Option<Unfit> {
        self.inner.unfit(spec)
    }

    /// Nobody has approved what others began.
    fn adopt(&self, _: &Assignment, _: ForeignWork) -> Result<Deferral, String> {
        Err("an operator approves what this executor does: it does not take over work that others began"
            .to_owned())
    }

    fn read_callback(&self, body: &[u8]) -> Option<Polled> {
        self.inner.read_callback(body)
    }

    fn not_cancelable_because(&self) -> Option<String> {
        self.inner.not_cancelable_because()
    }

    fn admits_callback(&self, callback: SignedWebhook<'_>, now: Timestamp) -> bool {
        self.inner.admits_callback(callback, now)
    }

    fn cancel(&self, outside: Outside) -> BoxFuture<'_, CancelReply> {
        self.inner.cancel(outside)
    }
}

/// `{"approved": true}` or false; what cannot be understood is no verdict, and it is asked again.
fn verdict(answer: &[u8]) -> Option<bool> {
    serde_json::from_slice::<Value>(answer).ok()?.get("approved")?.as_bool()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is called back, and admits nothing.
    struct Strict;

    impl Specialist for Strict {
        fn produce(&self, _: Assignment, _: Link) -> BoxFuture<'_, Produced> {
            Box::pin(async { Produced::Stopped })
        }

        fn traits(&self) -> ExecutorTraits {
            ExecutorTraits { is_called_back: true, ..ExecutorTraits::default() }
        }

        fn admits_callback(&self, _: SignedWebhook<'_>, _: Timestamp) -> bool {
            false
        }
    }

    /// Says yes to whatever it is asked about itself.
    struct Special;

    impl Specialist for Special {
        fn produce(&self, _: Assignment, _: Link) -> BoxFuture<'_, Produced> {
            Box::pin(async { Produced::Stopped })
        }

        fn adopt(&self, _: &Assignment, _: ForeignWork) -> Result<Deferral, String> {
            Err("the executor was asked".to_owned())
        }

        fn traits(&self) -> ExecutorTraits {
            ExecutorTraits {
                takes_events: true,
                needs_its_node: true,
                runs_its_input: true,
                is_backend: true,
                ..ExecutorTraits::default()
            }
        }

        fn unfit(&self, _: &JobSpec) -> Option<Unfit> {
            Some(Unfit { field: "input", code: "unfit", told: "it does nothing".to_owned() })
        }

        fn not_cancelable_because(&self) -> Option<String> {
            Some("it never stops".to_owned())
        }
    }

    #[test]
    fn what_an_executor_says_of_itself_holds_behind_the_gate_too() {
        let gated = Gated::new(Arc::new(Special));
        assert_eq!(gated.traits(), Special.traits());
        assert!(gated.traits().takes_events && gated.traits().is_backend);
        let spec = JobSpec::plain(Some("special"), domain::RetryPolicy::ONCE);
        assert_eq!(gated.unfit(&spec).map(|unfit| unfit.code), Some("unfit"));
        assert_eq!(gated.not_cancelable_because().as_deref(), Some("it never stops"));
        let plain = Gated::new(Arc::new(Strict));
        assert_eq!(plain.traits(), Strict.traits());
        assert!(!plain.traits().takes_events && !plain.traits().is_backend);
        assert_eq!(plain.unfit(&spec), None);
    }

    #[test]
    fn the_gate_admits_no_callback_that_its_executor_does_not_admit() {
        let gated = Gated::new(Arc::new(Strict));
        let unsigned = SignedWebhook { id: "", timestamp: "", signatures: "", body: b"{}" };
        assert!(!gated.admits_callback(unsigned, Timestamp::default()));
        assert!(gated.traits().is_called_back);
    }
}
