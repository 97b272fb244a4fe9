//! A command that outlives its jobs: each job is one JSON line on its standard input, and is over when the command says so in a line
//! on its standard output, or reports it over HTTP. Under the same supervisor as every command: nothing of it outlives the daemon.
//!
//! Whoever holds it has it alone. Dropping it ends the tree.

use std::sync::Arc;
use std::time::Duration;

use domain::AttemptId;
use domain::limit::{LimitValue, NamedLimit};
use domain::limits::MAX_BODY_BYTES;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, watch};

use super::bounded_lines::{BoundedLines, Line};
use super::capture::{LastWords, listen};
use super::command_line::CommandLine;
use super::follow::{Ending, follow, sleep_optional};
use super::launch::launch;
use super::outcome::limited_by_some;
use super::progress_lines::relay;
use super::report::Exit;
use super::{Limits, ProcessHost, ProcessSettings};
use engine::AttemptControl;
use engine::{Assignment, Failure, Link, Output, Produced, Progress, Stop};

/// The longest line of an answer: a result, and what is around it.
const MAX_ANSWER_BYTES: usize = MAX_BODY_BYTES + 4_096;
/// The same as a limit that a failure names.
pub(crate) fn longest_answer() -> NamedLimit {
    NamedLimit::fixed("line of a backend's answer", LimitValue::Bytes(MAX_ANSWER_BYTES as u64))
}
/// Progress of it that may wait.
const PROGRESS_WAITING: usize = 16;
const CHUNK_BYTES: usize = 65_536;

/// A command at its work, or between two jobs.
pub(crate) struct Resident {
    stdin: pipe::Sender,
    stdout: pipe::Receiver,
    lines: BoundedLines,
    told: mpsc::Receiver<Progress>,
    stderr: LastWords,
    stopper: watch::Sender<Stop>,
    end: watch::Receiver<Option<Ending>>,
    time_limit: Option<Duration>,
    limits: Limits,
    /// How long it may take to end once it hears and says nothing more.
    grace: Duration,
    /// The last job was not read to its end: what is written next would be taken for the rest of it.
    unread: bool,
}

/// What came of one job.
pub(crate) enum Turned {
    /// It has answered.
    Answered(Produced),
    /// The job was told to stop, for this reason.
    Told(Stop),
    /// It had longer than the executor allows.
    TimeOver,
    /// It has said more in one line than is read.
    Unreadable,
    /// The command is over, and the job is not.
    Ended(Failure),
}

/// A line of its standard output that is about a job: there is an error or a result, which may be `null`.
#[derive(Deserialize)]
struct Said<'a> {
    attempt_id: String,
    error: Option<SaidError>,
    // Not an option of its own: `null` is a result.
    #[serde(borrow, default, deserialize_with = "raw")]
    result: Option<&'a RawValue>,
}

fn raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
#[serde(untagged)]
enum SaidError {
    Whole { code: Option<String>, message: Option<String>, retryable: Option<bool> },
    Words(String),
}

impl Resident {
    /// Starts it. Its environment names the attempt that it was started for; each job has its own ids in its line.
    pub(crate) fn start(
        host: &Arc<ProcessHost>,
        settings: ProcessSettings,
        assignment: &Assignment,
    ) -> Result<Self, Failure> {
        let command = CommandLine::of(host, &settings, assignment)?;
        let launched = launch(host, &settings, &command)
            .map_err(|error| Failure::transient("supervisor_not_started", error.to_string()))?;
        let (link, AttemptControl { told, stopper, .. }) = Link::new(PROGRESS_WAITING);
        let (ended, end) = watch::channel(None);
        let (host, attempt_id) = (host.clone(), assignment.attempt_id.clone());
        let (time_limit, grace, limits) = (settings.time_limit, settings.grace, settings.limits);
        let stderr = LastWords::default();
        let heard = stderr.clone();
        let settings = ProcessSettings { time_limit: None, ..settings };
        tokio::spawn(async move {
            let (over, is_over) = watch::channel(false);
            let (ending, (), _) = tokio::join!(
                follow(&host, launched.supervisor, &settings, &attempt_id, link.clone(), over),
                listen(launched.stderr, heard, is_over.clone()),
                relay(launched.progress, link.clone(), is_over),
            );
            ended.send_replace(Some(ending));
        });
        Ok(Self {
            stdin: launched.stdin,
            stdout: launched.stdout,
            lines: BoundedLines::new(MAX_ANSWER_BYTES),
            told,
            stderr,
            stopper,
            end,
            time_limit,
            limits,
            grace,
            unread: false,
        })
    }

    /// Whether it can take another job.
    pub(crate) fn is_fit(&self) -> bool {
        self.end.borrow().is_none() && !self.unread
    }

    /// Ends it with everything that it started, and waits until all of that is gone.
    pub(crate) async fn end(&mut self) {
        self.stopper.send_replace(Stop::Shutdown);
        let _ = self.end.wait_for(Option::is_some).await;
    }

    /// Gives it one job and waits for what comes of it.
    pub(crate) async fn turn(&mut self, line: &[u8], attempt_id: &AttemptId, mut link: Link) -> Turned {
        let time_over = sleep_optional(self.time_limit);
        tokio::pin!(time_over);
        // What it said between two jobs is not about this one.
        while self.told.try_recv().is_ok() {}
        self.stderr.forget();
        self.unread = true;
        let mut left = line;
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            tokio::select! {
                biased;
                stop = link.must_stop() => return Turned::Told(stop),
                () = &mut time_over => return Turned::TimeOver,
                written = self.stdin.write(left), if !left.is_empty() => match written {
                    Ok(count) => {
                        left = &left[count..];
                        self.unread = !left.is_empty();
                    }
                    Err(_) => return self.ended(link).await,
                },
                Some(progress) = self.told.recv() => link.tell(progress),
                // Last: whoever talks without end is stopped all the same.
                read = self.stdout.read(&mut chunk) => {
                    // Closed or broken, its end is all there is to wait for.
                    let Ok(count @ 1..) = read else { return self.ended(link).await };
                    for line in self.lines.take(&chunk[..count]) {
                        match line {
                            Line::Whole(line) => if let Some(produced) = answered(&line, attempt_id) {
                                return Turned::Answered(produced);
                            },
                            Line::TooLong => return Turned::Unreadable,
                        }
                    }
                }
            }
        }
    }

    /// What it ended with. One that only closed its ends is ended.
    async fn ended(&mut self, mut link: Link) -> Turned {
        let by_itself = tokio::time::timeout(self.grace, self.end.wait_for(Option::is_some));
        let is_over = tokio::select! {
            end = by_itself => end.is_ok(),
            stop = link.must_stop() => return Turned::Told(stop),
        };
        if !is_over {
            self.stopper.send_replace(Stop::Shutdown);
            let _ = self.end.wait_for(Option::is_some).await;
        }
        let (how, limit) = match self.end.borrow().as_ref() {
            Some(ending) => (told_of(ending), self.reached_at(ending)),
            None => ("it is gone".to_owned(), None),
        };
        let words = self.stderr.text();
        let words = words.trim();
        let told = if words.is_empty() { how } else { format!("{how}: {words}") };
        let failure =
            Failure::transient("backend_ended", format!("the backend ended during the job; {told}"));
        Turned::Ended(limited_by_some(failure, limit))
    }

    /// The limit of the kernel that ended it, if it tells.
    fn reached_at(&self, ending: &Ending) -> Option<NamedLimit> {
        match ending {
            Ending::Exited(exit) => self.limits.reached_at(*exit),
            Ending::NotStarted { .. } | Ending::Stopped(_) | Ending::TimeOver | Ending::SupervisorLost => {
                None
            }
        }
    }
}

fn told_of(ending: &Ending) -> String {
    match ending {
        Ending::Exited(Exit::Code(code)) => format!("it exited with {code}"),
        Ending::Exited(Exit::Signal(signal)) => format!("signal {signal} ended it"),
        Ending::NotStarted { message, .. } => format!("it could not be started: {message}"),
        Ending::Stopped(_) | Ending::TimeOver => "it closed its ends and was stopped".to_owned(),
        Ending::SupervisorLost => "its supervisor was killed".to_owned(),
    }
}

/// The answer to this attempt, if the line is one. All else is log: also what it says about a job that it no longer has.
fn answered(line: &[u8], attempt_id: &AttemptId) -> Option<Produced> {
    let said: Said<'_> = serde_json::from_slice(line).ok()?;
    if said.attempt_id != attempt_id.as_str() {
        return None;
    }
    if let Some(error) = said.error {
        let (code, message, retryable) = match error {
            SaidError::Whole { code, message, retryable } => (code, message, retryable),
            SaidError::Words(words) => (None, Some(words), None),
        };
        let code = code.unwrap_or_else(|| "backend_failed".to_owned());
        let message = message.unwrap_or_else(|| "the backend gave no reason".to_owned());
        return Some(Produced::Failed(match retryable {
            Some(false) => Failure::permanent(&code, message),
            Some(true) | None => Failure::transient(&code, message),
        }));
    }
    let data = Some(said.result?.get().as_bytes().to_vec());
    Some(Produced::Completed(Output { data, ..Output::default() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_about_the_attempt_with_a_result_or_an_error_is_its_answer_and_nothing_else_is() {
        let attempt_id = AttemptId::new("attempt-1");
        let result = |line: &str| match answered(line.as_bytes(), &attempt_id) {
            Some(Produced::Completed(output)) => String::from_utf8(output.data.unwrap()).unwrap(),
            other => format!("{other:?}").chars().take(6).collect(),
        };
        assert_eq!(
            result(r#"{"attempt_id":"attempt-1","result":{"n": 12345678901234567890}}"#),
            r#"{"n": 12345678901234567890}"#
        );
        assert_eq!(result(r#"{"attempt_id":"attempt-1","result":null}"#), "null");
        assert_eq!(result(r#"{"attempt_id":"attempt-1","error":null,"result":1}"#), "1");
        assert_eq!(result(r#"{"attempt_id":"attempt-1","error":{}}"#), "Some(F");
        assert_eq!(result(r#"{"attempt_id":"attempt-1","error":"no paper"}"#), "Some(F");
        for log in
            [r#"{"attempt_id":"attempt-2","result":1}"#, r#"{"attempt_id":"attempt-1"}"#, "hello", "{}"]
        {
            assert_eq!(result(log), "None", "{log}");
        }
    }
}
