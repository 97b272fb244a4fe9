//! A deterministic specialist for the tests of work outside: what it answers is a list, one answer per call.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use domain::job::CancelAnswer;
use domain::operation::{Operation, PollError, PollHints, ReportedStatus};
use domain::policy::Hint;
use domain::{Fact, JobId, OperationId, Record};
use engine::{
    Assignment, CancelReply, Deferral, Executor, Executors, Link, Output, Outside, Polled, Produced,
    Specialist,
};
use futures::future::BoxFuture;
use store::{Store, StoredFact};
use tokio::sync::{Notify, Semaphore};

use crate::given::Given;

/// A deterministic specialist: hands out a handle, then answers its polls from a list, one per call.
pub struct Scripted {
    produces: Mutex<VecDeque<Produced>>,
    polls: Mutex<VecDeque<Answer>>,
    cancels: Mutex<VecDeque<CancelAnswer>>,
    pub asked: Mutex<Vec<String>>,
    pub polled: Notify,
    name: Mutex<&'static str>,
}

pub enum Answer {
    Says(Polled),
    Raises,
    Hangs,
    /// Says this as soon as the door is open.
    SaysOnce(Arc<Semaphore>, Polled),
}

impl Scripted {
    pub fn deferring<const N: usize>(polls: [Answer; N]) -> Arc<Self> {
        Self::producing([Produced::Deferred(handle())], polls)
    }

    pub fn producing<const M: usize, const N: usize>(
        produces: [Produced; M],
        polls: [Answer; N],
    ) -> Arc<Self> {
        Arc::new(Self {
            produces: Mutex::new(VecDeque::from(produces)),
            polls: Mutex::new(VecDeque::from(polls)),
            cancels: Mutex::default(),
            asked: Mutex::default(),
            polled: Notify::new(),
            name: Mutex::new("scripted"),
        })
    }

    pub fn answering_cancels<const N: usize>(self: Arc<Self>, answers: [CancelAnswer; N]) -> Arc<Self> {
        self.cancels.lock().expect("no holder of the lock panics").extend(answers);
        self
    }

    /// What the record says of who it was.
    pub fn called(self: Arc<Self>, name: &'static str) -> Arc<Self> {
        *self.name.lock().expect("no holder of the lock panics") = name;
        self
    }

    pub fn named(self: &Arc<Self>, name: &str) -> (String, Executor) {
        let specialist = self.clone();
        (
            name.to_owned(),
            Executor {
                specialist,
                concurrency: 8,
                retry: Executors::DEFAULT_RETRY,
                modes: engine::Modes::default(),
            },
        )
    }

    pub fn times(&self, what: &str) -> usize {
        self.asked
            .lock()
            .expect("no holder of the lock panics")
            .iter()
            .filter(|asked| asked.starts_with(what))
            .count()
    }
}

impl Specialist for Scripted {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed(*self.name.lock().expect("no holder of the lock panics"))
    }

    fn produce(&self, assignment: Assignment, _: Link) -> BoxFuture<'_, Produced> {
        self.asked.lock().expect("no holder of the lock panics").push(match &assignment.arrived {
            None => format!("produce {}", assignment.attempt_number),
            Some(arrived) => {
                format!("produce {} with {}", assignment.attempt_number, String::from_utf8_lossy(arrived))
            }
        });
        let next = self.produces.lock().expect("no holder of the lock panics").pop_front();
        Box::pin(async { next.unwrap_or(Produced::Deferred(handle())) })
    }

    fn poll(&self, outside: Outside) -> BoxFuture<'_, Result<Polled, PollError>> {
        self.asked
            .lock()
            .expect("no holder of the lock panics")
            .push(format!("poll {}", String::from_utf8_lossy(&outside.handle)));
        let next = self.polls.lock().expect("no holder of the lock panics").pop_front();
        self.polled.notify_one();
        Box::pin(async {
            match next {
                Some(Answer::Says(polled)) => Ok(polled),
                Some(Answer::Raises) => panic!("the service is upside down"),
                Some(Answer::Hangs) => std::future::pending().await,
                Some(Answer::SaysOnce(door, polled)) => {
                    door.acquire().await.expect("it is never closed").forget();
                    Ok(polled)
                }
                None => Ok(running(Hint::Absent, None)),
            }
        })
    }

    fn cancel(&self, outside: Outside) -> BoxFuture<'_, CancelReply> {
        self.asked
            .lock()
            .expect("no holder of the lock panics")
            .push(format!("cancel {}", String::from_utf8_lossy(&outside.handle)));
        let next = self
            .cancels
            .lock()
            .expect("no holder of the lock panics")
            .pop_front()
            .unwrap_or(CancelAnswer::Unreachable);
        Box::pin(async { next.into() })
    }
}

pub fn handle() -> Deferral {
    let progress_hint = Some("queued at the press".to_owned());
    Deferral { retry_after: Hint::Seconds(5), progress_hint, ..Deferral::new(b"press-7".to_vec()) }
}

pub fn running(retry_after: Hint, progress_hint: Option<&str>) -> Polled {
    let progress_hint = progress_hint.map(str::to_owned);
    Polled::Open(ReportedStatus::Running, PollHints { retry_after, progress_hint, ..PollHints::default() })
}

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
        match &*loaded.record {
            Record::Operation(operation) => Operation::clone(operation),
            Record::Job(_) | Record::Event(_) | Record::Run(_) => {
                unreachable!("an operation's id names an operation")
            }
        }
    }

    /// The operation that the job's facts name last.
    pub async fn operation_id_of(&self, id: &JobId) -> OperationId {
        let facts = self.store.inner.facts_of(&id.clone().into(), 0, 1_000).await.expect("it can be read");
        let deferred = facts.iter().rev().find_map(|fact| match &fact.fact {
            Fact::Job(domain::job::JobFact::Deferred { operation_id, .. }) => Some(operation_id.clone()),
            Fact::Job(domain::job::JobFact::SubmitIntended(intent)) => Some(intent.operation_id.clone()),
            Fact::Job(_) | Fact::Operation(_) | Fact::Event(_) | Fact::Run(_) => None,
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
