//! The work of an attempt: what its executor does, in a task of its own, and what was seen to become of the executor.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use domain::job::Release;
use futures::FutureExt;
use futures::future::{AbortHandle, abortable};
use tokio::sync::oneshot;

use super::run::Attempt;
use super::tenure::Work;
use crate::{Assignment, Failure, Link, Produced, Registered};

/// What came of the work, and what became of whoever did it.
pub(super) struct Worked {
    pub(super) produced: Produced,
    pub(super) release: Option<Release>,
}

impl Attempt {
    /// The work itself, in a task of its own: whatever it does, the lease is renewed.
    pub(super) fn produce(
        &self,
        executor: Registered,
        assignment: Assignment,
        link: Link,
    ) -> (oneshot::Receiver<Worked>, AbortHandle) {
        let (told, produced) = oneshot::channel();
        let slots = executor.slots.clone();
        let own_link = link.clone();
        let work = async move {
            // Jobs of one executor may come from several lanes: here they wait for each other, under their leases.
            let mut waiting = link.clone();
            let _slot = tokio::select! {
                biased;
                slot = slots.acquire_owned() => slot,
                _ = waiting.must_stop() => return Produced::Stopped,
            };
            executor.specialist.produce(assignment, link).await
        };
        let (work, abort) = abortable(AssertUnwindSafe(work).catch_unwind());
        let (ended, over) = oneshot::channel();
        self.tenure.begun(Work { abort: abort.clone(), over });
        self.attempts.spawn.spawn(Box::pin(async move {
            if let Ok(produced) = work.await {
                // Nobody listens once the lease was lost.
                let _ = told.send(match produced {
                    // It has returned, and its service may have the work.
                    Ok(produced @ Produced::SubmitUnknown(_)) => Worked { produced, release: None },
                    Ok(produced) => Worked { produced, release: own_link.release() },
                    Err(panic) => Worked { produced: panicked(&*panic), release: None },
                });
            }
            drop(ended);
        }));
        (produced, abort)
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Produced {
    let told = format!("specialist raised: {}", message_of(panic));
    Produced::SubmitUnknown(Failure::transient("executor_panicked", told))
}

/// What a panic said.
pub(crate) fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".to_owned())
}
