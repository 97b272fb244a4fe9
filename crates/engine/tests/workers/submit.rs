//! Work given to a service under an intent: what a crash around it leads to.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use domain::job::{JobCommand, JobStateName, Resubmit};
use domain::operation::{OperationFact, OrphanReason};
use domain::{Digest, Fact};
use engine::{Deferral, Failure, Intent, Output, Produced, Stop};

use crate::given::{Given, in_a_process_that_dies, job, scripted};

fn intent(resubmit: Resubmit) -> Intent {
    Intent { request_sha256: Digest([3; 32]), resubmit }
}

/// The keys that a service was asked under.
#[derive(Clone, Default)]
struct Keys(Arc<Mutex<Vec<(String, bool)>>>);

impl Keys {
    fn asked(&self, key: &str, again: bool) {
        self.0.lock().expect("no holder of the lock panics").push((key.to_owned(), again));
    }

    fn all(&self) -> Vec<(String, bool)> {
        self.0.lock().expect("no holder of the lock panics").clone()
    }
}

#[tokio::test]
async fn an_intent_is_on_the_ledger_before_the_service_is_asked_and_its_key_is_the_operation() {
    let keys = Keys::default();
    let asked = keys.clone();
    let given = Given::new([scripted("press", 1, move |_, link| {
        let keys = asked.clone();
        async move {
            let intended = link.intend(intent(Resubmit::SameKey)).await.unwrap();
            keys.asked(intended.key.as_str(), intended.again);
            Produced::Deferred(Deferral::new(b"press-7".to_vec()))
        }
    })]);
    let id = given.create(job("press")).await;
    let waiting = given.until(&id, JobStateName::AwaitingExternal).await;
    let operation = given.operation_of(&id).await;
    assert_eq!(keys.all(), [(operation.id.as_str().to_owned(), false)]);
    assert_eq!(waiting.intent, None);
}

// conforms: L3
#[tokio::test]
async fn after_a_crash_the_service_is_asked_again_under_the_same_key() {
    let keys = Keys::default();
    let asked = keys.clone();
    let hangs = move |_, link: engine::Link| {
        let keys = asked.clone();
        async move {
            let intended = link.intend(intent(Resubmit::SameKey)).await.unwrap();
            keys.asked(intended.key.as_str(), intended.again);
            std::future::pending().await
        }
    };
    let (id, store, clock) = in_a_process_that_dies(async {
        let given = Given::new([scripted("press", 1, hangs)]);
        let id = given.create(job("press").attempts(2)).await;
        while keys.all().is_empty() {
            given.settle().await;
        }
        (id, given.store, given.clock)
    });
    clock.advance_seconds(61);
    let asked = keys.clone();
    let given = Given::on(
        store,
        clock,
        [scripted("press", 1, move |_, link| {
            let keys = asked.clone();
            async move {
                let intended = link.intend(intent(Resubmit::SameKey)).await.unwrap();
                keys.asked(intended.key.as_str(), intended.again);
                Produced::Deferred(Deferral::new(b"press-7".to_vec()))
            }
        })],
    );
    given.until(&id, JobStateName::Queued).await;
    given.clock.advance_seconds(60);
    given.until(&id, JobStateName::AwaitingExternal).await;
    let keys = keys.all();
    assert_eq!(keys.len(), 2);
    assert_eq!((&keys[0].0, keys[0].1, keys[1].1), (&keys[1].0, false, true));
    assert_eq!(given.operation_of(&id).await.id.as_str(), keys[0].0);
}

// conforms: L29
#[tokio::test]
async fn what_may_not_be_asked_twice_is_not_started_again_and_stands_on_the_orphan_ledger() {
    let started = Arc::new(AtomicUsize::new(0));
    let counted = started.clone();
    let hangs = move |_, link: engine::Link| {
        let counted = counted.clone();
        async move {
            link.intend(intent(Resubmit::Never)).await.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            std::future::pending().await
        }
    };
    let (id, store, clock) = in_a_process_that_dies(async {
        let given = Given::new([scripted("press", 1, hangs.clone())]);
        let id = given.create(job("press").attempts(3)).await;
        while started.load(Ordering::SeqCst) == 0 {
            given.settle().await;
        }
        (id, given.store, given.clock)
    });
    clock.advance_seconds(61);
    let given = Given::on(store, clock, [scripted("press", 1, hangs)]);
    let lost = given.until(&id, JobStateName::Failed).await;
    assert_eq!(lost.state_reason.as_deref(), Some("submit_outcome_unknown"));
    assert_eq!(given.operation_of(&id).await.orphan(), Some(OrphanReason::SubmitOutcomeUnknown));
    given.clock.advance_seconds(3_600);
    given.settle().await;
    assert_eq!(started.load(Ordering::SeqCst), 1);
    let asked = given.facts_of_operation(&id).await.into_iter().filter(|fact| {
        matches!(fact.fact, Fact::Operation(OperationFact::Polled(_) | OperationFact::LatePolled(_)))
    });
    assert_eq!(asked.count(), 0, "without a handle nobody is asked");
}

#[tokio::test]
async fn an_answer_that_never_came_is_asked_for_again_or_given_up() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let given = Given::new([
        scripted("again", 1, move |_, link| {
            let asked = counted.clone();
            async move {
                link.intend(intent(Resubmit::SameKey)).await.unwrap();
                if asked.fetch_add(1, Ordering::SeqCst) == 0 {
                    return Produced::SubmitUnknown(Failure::transient("timed_out", "no answer"));
                }
                Produced::Completed(Output::default())
            }
        }),
        scripted("once", 1, |_, link| async move {
            link.intend(intent(Resubmit::Never)).await.unwrap();
            Produced::SubmitUnknown(Failure::transient("timed_out", "no answer"))
        }),
    ]);
    let again = given.create(job("again").attempts(2)).await;
    given.until(&again, JobStateName::Queued).await;
    given.settle().await;
    given.clock.advance_seconds(60);
    given.until(&again, JobStateName::Completed).await;
    let once = given.create(job("once").attempts(2)).await;
    let failed = given.until(&once, JobStateName::Failed).await;
    assert_eq!(failed.state_reason.as_deref(), Some("submit_outcome_unknown"));
    assert_eq!(given.operation_of(&once).await.orphan(), Some(OrphanReason::SubmitOutcomeUnknown));
}

#[tokio::test]
async fn a_job_that_somebody_stops_is_not_given_to_a_service_any_more() {
    let gate = Arc::new(tokio::sync::Notify::new());
    let told = Arc::new(Mutex::new(None));
    let (opened, heard) = (gate.clone(), told.clone());
    let given = Given::new([scripted("press", 1, move |_, link| {
        let (gate, told) = (opened.clone(), heard.clone());
        async move {
            gate.notified().await;
            *told.lock().expect("no holder of the lock panics") =
                link.intend(intent(Resubmit::SameKey)).await.err();
            Produced::Stopped
        }
    })]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::Dispatching).await;
    given.order(&id, JobCommand::RequestCancel { by: None, reason: "enough".to_owned() }).await;
    gate.notify_one();
    let ended = given.until(&id, JobStateName::Cancelled).await;
    assert_eq!(ended.state_reason.as_deref(), Some("cancelled_before_start"));
    assert_eq!(*told.lock().expect("no holder of the lock panics"), Some(Stop::Cancelled));
}

#[tokio::test]
async fn cancel_that_reaches_the_record_first_still_ends_the_attempt() {
    let gate = Arc::new(tokio::sync::Notify::new());
    let opened = gate.clone();
    let given = Given::new([scripted("press", 1, move |_, link| {
        let gate = opened.clone();
        async move {
            gate.notified().await;
            match link.intend(intent(Resubmit::SameKey)).await {
                Ok(_) => Produced::Completed(Output::default()),
                Err(_) => Produced::Stopped,
            }
        }
    })]);
    let id = given.create(job("press")).await;
    given.until(&id, JobStateName::Dispatching).await;
    // As from another node: the attempt here is told nothing of it.
    given.order_unheard(&id, JobCommand::RequestCancel { by: None, reason: "enough".to_owned() }).await;
    gate.notify_one();
    let ended = given.until(&id, JobStateName::Cancelled).await;
    assert_eq!(ended.state_reason.as_deref(), Some("cancelled_before_start"));
}
