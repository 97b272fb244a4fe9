//! What a job has left: its result, as it is read and what it says, and the output of its attempts, as bytes.

use api::{JobEnd, JobResult, ResultNotReady};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Call, CallError, Client, MAX_ANSWER_BYTES, job_path, segment};
use crate::exit::Failed;
use crate::show::plain;

/// Standard output or standard error of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// Of a long stream the last lines are looked for in so many bytes of its beginning.
const MAX_LOOKED_THROUGH: u64 = 1_048_576;

#[derive(Deserialize)]
struct Answer {
    result: Box<RawValue>,
}

/// Only what is not ready says so.
#[derive(Deserialize)]
struct State {
    result_state: Option<String>,
}

impl Client {
    /// The result of a job, as it came and as it is understood.
    pub fn result(&self, id: &str) -> Result<(Box<RawValue>, JobResult<'static>), Failed> {
        let path = job_path(id, "/result");
        let answer: Answer = self.ask_of_job("read the result of", id, Call::get(&path))?;
        let result = understood(answer.result.get())
            .map_err(|error| Failed::because(format!("the result cannot be read: {error}")))?;
        Ok((answer.result, result))
    }

    /// The last lines of a stream of an attempt; none if it has said nothing.
    pub fn last_lines(
        &self,
        job_id: &str,
        attempt_id: &str,
        stream: Stream,
        most: usize,
    ) -> Result<Vec<String>, CallError> {
        let mut said = Vec::new();
        while (said.len() as u64) < MAX_LOOKED_THROUGH {
            let bytes = self.output(job_id, attempt_id, stream, said.len() as u64)?;
            if bytes.is_empty() {
                break;
            }
            said.extend(bytes);
        }
        let text = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines.iter().skip(lines.len().saturating_sub(most));
        Ok(last.map(|line| plain(line)).collect())
    }

    /// What a stream of an attempt holds from an offset on, in bounded pieces; nothing is the end as of now.
    pub fn output(
        &self,
        job_id: &str,
        attempt_id: &str,
        stream: Stream,
        offset: u64,
    ) -> Result<Vec<u8>, CallError> {
        let query =
            format!("/artifacts/{}?attempt_id={}&offset={offset}", stream.name(), segment(attempt_id));
        let mut response = self.send(&Call::get(&job_path(job_id, &query)))?;
        if response.status().is_success() {
            let body = response.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_to_vec();
            return body.map_err(|error| self.unreachable(&error));
        }
        match self.read(response) {
            // It has said nothing yet, or never will.
            Err(CallError::NotFound(_)) | Ok(_) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

/// Users' JSON is raw text, which a reader that tries one form after the other cannot keep: the form is looked at first.
fn understood(text: &str) -> Result<JobResult<'static>, serde_json::Error> {
    if serde_json::from_str::<State>(text)?.result_state.is_some() {
        return Ok(JobResult::NotReady(Box::new(serde_json::from_str::<ResultNotReady<'static>>(text)?)));
    }
    Ok(JobResult::End(Box::new(serde_json::from_str::<JobEnd<'static>>(text)?)))
}
