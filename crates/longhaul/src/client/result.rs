//! A result as it is read: the text that came, and what it says.

use api::{JobEnd, JobResult, ResultNotReady};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Call, CallError, Client, job_path};

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
    pub fn result(&self, id: &str) -> Result<(Box<RawValue>, JobResult<'static>), CallError> {
        let answer: Answer = self.call(Call::get(&job_path(id, "/result")))?;
        let result = understood(answer.result.get())
            .map_err(|error| CallError::Unintelligible(format!("the result cannot be read: {error}")))?;
        Ok((answer.result, result))
    }
}

/// Users' JSON is raw text, which a reader that tries one form after the other cannot keep: the form is looked at first.
fn understood(text: &str) -> Result<JobResult<'static>, serde_json::Error> {
    if serde_json::from_str::<State>(text)?.result_state.is_some() {
        return Ok(JobResult::NotReady(Box::new(serde_json::from_str::<ResultNotReady<'static>>(text)?)));
    }
    Ok(JobResult::End(Box::new(serde_json::from_str::<JobEnd<'static>>(text)?)))
}
