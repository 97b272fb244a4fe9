//! Follows what the attempts of a job say, beside whoever follows the job itself.
//!
//! The daemon tells nobody that an output has grown: while an attempt runs it is asked a few times a second, from where it was left.
//! A daemon that goes away meanwhile loses nothing of it: the next question begins at the same byte.

use std::borrow::Cow;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::Result;
use api::JobStatus;

use super::{Connection, Stream, follow};
use crate::show::Runner;

/// Between two questions.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// Takes the bytes of a stream as they come.
pub trait Sink: Send {
    fn take(&mut self, stream: Stream, bytes: &[u8]);
    /// Another attempt than the one before speaks from now on.
    fn attempt(&mut self, attempt: &Attempt);
}

/// An attempt whose output is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub id: String,
    /// 1 for the first.
    pub number: u32,
    /// Why the one before it ended.
    pub because: Option<String>,
}

impl Attempt {
    /// The current one of a job, once there is one.
    pub fn of(status: &JobStatus<'_>) -> Option<Self> {
        let runner = Runner::of(status)?;
        Some(Self {
            id: runner.current_attempt_id?,
            number: runner.attempt_count,
            because: runner.last_error.and_then(|error| error.reason).map(Cow::into_owned),
        })
    }
}

/// Follows a job to its end, and what its attempts say. Returns when all of that was taken.
pub fn follow_output(
    connection: &Connection,
    job_id: &str,
    streams: Vec<Stream>,
    sink: impl Sink,
) -> Result<JobStatus<'static>> {
    let places = streams.into_iter().map(|stream| (stream, 0)).collect();
    let mut reading = Reading { connection, job_id, places, sink };
    let (told, attempts) = channel();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || reading.follow(&attempts));
        let followed = follow(connection, job_id, None, &mut |status| {
            // The reader ends only after the sender is gone.
            let _ = Attempt::of(status).map(|attempt| told.send(attempt));
        });
        drop(told);
        let _ = reader.join();
        followed
    })
}

struct Reading<'a, S> {
    connection: &'a Connection,
    job_id: &'a str,
    /// How far each stream of the current attempt was read.
    places: Vec<(Stream, u64)>,
    sink: S,
}

impl<S: Sink> Reading<'_, S> {
    fn follow(&mut self, attempts: &Receiver<Attempt>) {
        let mut current: Option<Attempt> = None;
        loop {
            let told = attempts.recv_timeout(ASK_EVERY);
            if let Some(attempt) = &current {
                // Also before the next one: what it said last.
                self.drain(&attempt.id);
            }
            match told {
                Ok(attempt) if current.as_ref().is_some_and(|current| current.id == attempt.id) => {}
                Ok(attempt) => {
                    self.sink.attempt(&attempt);
                    self.places.iter_mut().for_each(|(_, offset)| *offset = 0);
                    current = Some(attempt);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn drain(&mut self, attempt_id: &str) {
        // Found anew: a daemon that was started again may be somewhere else.
        let Ok(client) = self.connection.client() else { return };
        for (stream, offset) in &mut self.places {
            // What cannot be read now is read next time.
            while let Ok(bytes) = client.output(self.job_id, attempt_id, *stream, *offset)
                && !bytes.is_empty()
            {
                *offset += bytes.len() as u64;
                self.sink.take(*stream, &bytes);
            }
        }
    }
}
