//! Follows what the attempts of a job say, beside whoever follows the job itself.
//!
//! The daemon tells nobody that an output has grown: while an attempt runs it is asked a few times a second, from where it was left.
//! A daemon that goes away meanwhile loses nothing of it: the next question begins at the same byte.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{CallError, Client, Connection, Stream};

/// Between two questions.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// Takes the bytes of a stream as they come.
pub trait Sink: Send + 'static {
    fn take(&mut self, stream: Stream, bytes: &[u8]);
    /// Another attempt than the one before speaks from now on.
    fn attempt(&mut self, attempt: &Attempt);
}

/// A thread that follows the output; dropped, it reads what is left and ends.
pub struct OutputFollower {
    told: Option<Sender<Attempt>>,
    thread: Option<JoinHandle<()>>,
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

impl OutputFollower {
    pub fn start(connection: Connection, job_id: String, streams: Vec<Stream>, sink: impl Sink) -> Self {
        let (told, attempts) = channel();
        let mut reading =
            Reading { connection, job_id, places: streams.into_iter().map(|s| (s, 0)).collect(), sink };
        let thread = std::thread::spawn(move || reading.follow(&attempts));
        Self { told: Some(told), thread: Some(thread) }
    }

    /// Says which attempt is current.
    pub fn attempt(&self, attempt: Attempt) {
        if let Some(told) = &self.told {
            // The thread ends only after the sender is gone.
            let _ = told.send(attempt);
        }
    }

    /// Reads what is left, and returns when all of it was taken.
    pub fn finish(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.told = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for OutputFollower {
    fn drop(&mut self) {
        self.end();
    }
}

struct Reading<S> {
    connection: Connection,
    job_id: String,
    /// How far each stream of the current attempt was read.
    places: Vec<(Stream, u64)>,
    sink: S,
}

impl<S: Sink> Reading<S> {
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
        for place in 0..self.places.len() {
            // What cannot be read now is read next time.
            let _ = self.drain_stream(&client, attempt_id, place);
        }
    }

    fn drain_stream(&mut self, client: &Client, attempt_id: &str, place: usize) -> Result<(), CallError> {
        loop {
            let (stream, offset) = self.places[place];
            let bytes = client.output(&self.job_id, attempt_id, stream, offset)?;
            if bytes.is_empty() {
                return Ok(());
            }
            self.places[place].1 += bytes.len() as u64;
            self.sink.take(stream, &bytes);
        }
    }
}
