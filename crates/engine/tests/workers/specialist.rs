//! The scripted specialist of the library, and ways to look at the operations that it leaves.

use domain::operation::Operation;
use domain::policy::Hint;
use domain::{JobId, OperationId};
use engine::{Output, Polled};
use store::{Store, StoredFact};

pub use engine::testing::{Answer, Scripted, deferral as handle, running};

use crate::given::Given;

pub fn goes_on(seconds: i64, hint: &str) -> Answer {
    Answer::Says(running(Hint::Seconds(seconds), Some(hint)))
}

pub fn done() -> Answer {
    Answer::Says(Polled::Completed(Output { data: Some(b"12".to_vec()), ..Output::default() }))
}

impl Given {
    pub async fn operation_of(&self, id: &JobId) -> Operation {
        let operation = self.operation_id_of(id).await;
        let loaded =
            self.store.inner.load(&operation.into()).await.expect("it can be read").expect("it is there");
        loaded.record.as_operation().expect("an operation's id names an operation").clone()
    }

    /// The operation that the job's facts name last.
    pub async fn operation_id_of(&self, id: &JobId) -> OperationId {
        let facts = self.store.inner.facts_of(&id.clone().into(), 0, 1_000).await.expect("it can be read");
        let deferred = facts.iter().rev().find_map(|fact| match fact.fact.as_job() {
            Some(domain::job::JobFact::Deferred { operation_id, .. }) => Some(operation_id.clone()),
            Some(domain::job::JobFact::SubmitIntended(intent)) => Some(intent.operation_id.clone()),
            _ => None,
        });
        deferred.expect("it was deferred")
    }

    pub async fn facts_of_operation(&self, id: &JobId) -> Vec<StoredFact> {
        let operation = self.operation_id_of(id).await;
        self.store.inner.facts_of(&operation.into(), 0, 1_000).await.expect("it can be read")
    }

    /// Moves the clock to the next poll, and lets it happen.
    pub async fn next_poll(&self, id: &JobId) {
        let operation = self.operation_of(id).await;
        self.clock.set(operation.next_poll_at);
        self.settle().await;
    }
}
