//! For tests of whoever embeds the engine: a specialist that does what a list says, one entry for each call, and writes down what it was
//! asked. Together with `MemoryStore` and `ManualClock` every way in which a service may answer can be walked through, without a service
//! and without waiting (`examples/scripted_service.rs`).

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use domain::job::CancelAnswer;
use domain::operation::{PollError, PollHints, ReportedStatus};
use domain::policy::Hint;
use futures::future::BoxFuture;
use tokio::sync::Semaphore;

use crate::locked::Locked;
use crate::{
    Assignment, CancelReply, Deferral, Executor, Executors, Link, Modes, Outside, Polled, Produced,
    Specialist,
};

/// Jobs of it at the same time.
const CONCURRENCY: usize = 8;

/// A specialist with a script. A call that the script has no entry for leaves the work outside, or says that it goes on.
pub struct Scripted {
    produces: Mutex<VecDeque<Produced>>,
    polls: Mutex<VecDeque<Answer>>,
    cancels: Mutex<VecDeque<CancelAnswer>>,
    asked: Mutex<Vec<String>>,
    name: Mutex<&'static str>,
}

/// What a poll comes to.
pub enum Answer {
    /// This is the answer.
    Says(Polled),
    /// The specialist panics.
    Raises,
    /// There is no answer, however long it is waited for.
    Hangs,
    /// This is the answer, as soon as the door is open.
    SaysOnce(Arc<Semaphore>, Polled),
}

impl Scripted {
    /// One that leaves its work outside, and answers polls so.
    pub fn deferring<const N: usize>(polls: [Answer; N]) -> Arc<Self> {
        Self::producing([Produced::Deferred(deferral())], polls)
    }

    /// One that answers attempts and polls so.
    pub fn producing<const M: usize, const N: usize>(
        produces: [Produced; M],
        polls: [Answer; N],
    ) -> Arc<Self> {
        Arc::new(Self {
            produces: Mutex::new(VecDeque::from(produces)),
            polls: Mutex::new(VecDeque::from(polls)),
            cancels: Mutex::default(),
            asked: Mutex::default(),
            name: Mutex::new("scripted"),
        })
    }

    /// The same, which answers cancels so; after these it cannot be reached.
    pub fn answering_cancels<const N: usize>(self: Arc<Self>, answers: [CancelAnswer; N]) -> Arc<Self> {
        self.cancels.locked().extend(answers);
        self
    }

    /// The same, under this name in the record.
    pub fn called(self: Arc<Self>, name: &'static str) -> Arc<Self> {
        *self.name.locked() = name;
        self
    }

    /// An executor of this name, to be registered.
    pub fn named(self: &Arc<Self>, name: &str) -> (String, Executor) {
        let executor = Executor {
            specialist: self.clone(),
            concurrency: CONCURRENCY,
            retry: Executors::DEFAULT_RETRY,
            modes: Modes::default(),
        };
        (name.to_owned(), executor)
    }

    /// What it was asked so far, in order: `produce` and the number of the attempt, `poll` or `cancel` and the handle.
    pub fn asked(&self) -> Vec<String> {
        self.asked.locked().clone()
    }

    /// How often it was asked something that begins so.
    pub fn times(&self, what: &str) -> usize {
        self.asked.locked().iter().filter(|asked| asked.starts_with(what)).count()
    }
}

impl Specialist for Scripted {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed(*self.name.locked())
    }

    fn produce(&self, assignment: Assignment, _: Link) -> BoxFuture<'_, Produced> {
        let number = assignment.attempt_number;
        self.asked.locked().push(match &assignment.arrived {
            None => format!("produce {number}"),
            Some(arrived) => format!("produce {number} with {}", String::from_utf8_lossy(arrived)),
        });
        let next = self.produces.locked().pop_front();
        Box::pin(async { next.unwrap_or(Produced::Deferred(deferral())) })
    }

    fn poll(&self, outside: Outside) -> BoxFuture<'_, Result<Polled, PollError>> {
        self.asked.locked().push(format!("poll {}", String::from_utf8_lossy(&outside.handle)));
        let next = self.polls.locked().pop_front();
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
        self.asked.locked().push(format!("cancel {}", String::from_utf8_lossy(&outside.handle)));
        let next = self.cancels.locked().pop_front().unwrap_or(CancelAnswer::Unreachable);
        Box::pin(async { next.into() })
    }
}

/// Work that is left outside: its handle is `press-7`, and it is asked about first after five seconds.
pub fn deferral() -> Deferral {
    let progress_hint = Some("queued at the press".to_owned());
    Deferral { retry_after: Hint::Seconds(5), progress_hint, ..Deferral::new(b"press-7".to_vec()) }
}

/// Work that goes on: when to ask again, and a text for people.
pub fn running(retry_after: Hint, progress_hint: Option<&str>) -> Polled {
    let progress_hint = progress_hint.map(str::to_owned);
    Polled::Open(ReportedStatus::Running, PollHints { retry_after, progress_hint, ..PollHints::default() })
}
