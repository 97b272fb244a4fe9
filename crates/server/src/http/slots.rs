//! How much is served at once, and how long a client may take. What is over a bound is sent away with 503 and may come back;
//! nothing waits in memory for its turn.
//!
//! A large answer to a read takes room until its client has taken it in, of which there is so much for all: whoever asks for much and reads slowly
//! fills that, and no more memory.
//! What was asked to change something is never sent away for its answer: it has happened.
//!
//! A slot is taken only once a request is here as a whole: a client that sends slowly holds its own connection and nothing else.
//! Streams are counted apart from requests, and there are always more connections than streams.

use std::sync::Arc;
use std::time::Duration;

use api::ProblemCode;
use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Result;
use crate::operations::SlotClass;

/// An answer of so many bytes needs no room of its own.
const SMALL_ANSWER_BYTES: u64 = 65_536;

/// The bounds of the door.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// Connections at the same time, streams included.
    pub connections: usize,
    /// Requests that are carried out at the same time.
    pub requests: usize,
    /// Streams at the same time.
    pub streams: usize,
    /// Bytes of all bodies that are held at the same time.
    pub body_bytes: usize,
    /// Bytes of all large answers to reads that wait for their clients at the same time.
    pub answer_bytes: usize,
    /// For the head of a request, and for the next one on a connection that is kept open.
    pub head_within: Duration,
    /// The same, when half of the connections are taken.
    pub head_within_when_crowded: Duration,
    /// For a whole body.
    pub body_within: Duration,
    /// For the client to take in any part of an answer.
    pub write_within: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 768,
            requests: 256,
            streams: 256,
            body_bytes: 64 * 1_048_576,
            answer_bytes: 128 * 1_048_576,
            head_within: Duration::from_secs(20),
            head_within_when_crowded: Duration::from_secs(2),
            body_within: Duration::from_secs(30),
            write_within: Duration::from_secs(30),
        }
    }
}

/// What is free.
pub(crate) struct Slots {
    requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    body_bytes: Arc<Semaphore>,
    answer_bytes: Arc<Semaphore>,
    /// Requests that wait for a job.
    waits: Arc<Semaphore>,
}

/// What a request holds until it is answered, or a stream until it ends.
pub(crate) type Slot = OwnedSemaphorePermit;

impl Slots {
    pub(crate) fn new(limits: &ServerLimits) -> Self {
        let of = |slots: usize| Arc::new(Semaphore::new(slots));
        Self {
            requests: of(limits.requests),
            streams: of(limits.streams),
            body_bytes: of(limits.body_bytes),
            answer_bytes: of(limits.answer_bytes),
            waits: of(limits.requests),
        }
    }

    /// A slot of this class; probes need none.
    pub(crate) fn take(&self, class: SlotClass) -> Result<Option<Slot>> {
        let (slots, code, told) = match class {
            SlotClass::None => return Ok(None),
            SlotClass::Stream => {
                (&self.streams, ProblemCode::TooManyStreams, "too many streams are open; come back later")
            }
            SlotClass::Request => {
                (&self.requests, ProblemCode::Overloaded, "too many requests at once; come back later")
            }
        };
        slots.clone().try_acquire_owned().map(Some).map_err(|_| code.because(told))
    }

    /// A place for a request that waits for a job: it is not in the way of those that do not.
    pub(crate) fn wait(&self) -> Result<Slot> {
        let full = |_| ProblemCode::Overloaded.because("too many requests wait at once; come back later");
        self.waits.clone().try_acquire_owned().map_err(full)
    }

    /// The answer to a read, which has its room until the last of it is sent. What is small has room in the connection; what is as long
    /// as it takes, a stream, has its own bounds.
    pub(crate) async fn until_sent(&self, answer: Response) -> Result<Response> {
        let Some(bytes) = answer.body().size_hint().exact().filter(|bytes| *bytes > SMALL_ANSWER_BYTES)
        else {
            return Ok(answer);
        };
        let full =
            || ProblemCode::Overloaded.because("too many large answers wait to be read; come back later");
        let permits = u32::try_from(bytes).map_err(|_| full())?;
        let room = self.answer_bytes.clone().try_acquire_many_owned(permits).map_err(|_| full())?;
        let (head, body) = answer.into_parts();
        // It is all here: nothing is waited for.
        let Ok(bytes) = axum::body::to_bytes(body, usize::MAX).await else {
            return Err(ProblemCode::Internal.because("the answer could not be put together"));
        };
        Ok(Response::from_parts(head, Body::from(Bytes::from_owner(Held { bytes, _room: room }))))
    }

    /// Room for a body that is empty so far.
    pub(crate) fn room(&self) -> Room {
        Room { of: self.body_bytes.clone(), taken: None }
    }
}

/// The bytes of an answer. The connection lets go of them when they are sent, or when it is cut.
struct Held {
    bytes: Bytes,
    _room: Slot,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The room that a body takes, as it grows.
pub(crate) struct Room {
    of: Arc<Semaphore>,
    taken: Option<Slot>,
}

impl Room {
    /// More of the body has come.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<()> {
        let full = || ProblemCode::Overloaded.because("too many large bodies at once; come back later");
        let bytes = u32::try_from(bytes).map_err(|_| full())?;
        let more = self.of.clone().try_acquire_many_owned(bytes).map_err(|_| full())?;
        match &mut self.taken {
            Some(taken) => taken.merge(more),
            None => self.taken = Some(more),
        }
        Ok(())
    }
}
