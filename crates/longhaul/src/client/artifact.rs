//! A piece of what an attempt has left, as bytes.

use crate::show::plain;

use super::{ANSWER_WITHIN, Call, CallError, Client, MAX_ANSWER_BYTES, job_path, segment};

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

impl Client {
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
        let path = job_path(job_id, &query);
        let request = self.request(&Call::get(&path))?;
        let request = self.agent.configure_request(request).timeout_global(Some(ANSWER_WITHIN)).build();
        let mut response = self.agent.run(request).map_err(|error| self.unreachable(&error))?;
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
