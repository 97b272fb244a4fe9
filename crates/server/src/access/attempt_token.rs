//! Tokens for one attempt of one job: signed, never stored, of no use once another attempt is current.

use api::ProblemCode;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::job::Job;
use domain::{AttemptId, JobId, RecordId};
use executors::backend::AttemptTokens;
use executors::mac::same;

use crate::access::authenticate::Principal;
use crate::external::callback::CallbackKey;
use crate::jobs::job_of;
use crate::{Result, Server};

/// How such a token begins.
pub(crate) const PREFIX: &str = "attempt.";
/// What the signature is for: one for another purpose is none.
const PURPOSE: &[u8] = b"longhaul attempt 1";
/// Bytes of the signature in a token.
const MAC_BYTES: usize = 32;
/// Stands between the ids; in none of them.
const BETWEEN: char = '\x1f';

impl AttemptTokens for CallbackKey {
    fn token_for(&self, job: &Job, attempt_id: &AttemptId) -> String {
        let named = format!("{}{BETWEEN}{attempt_id}", job.id);
        let mut bytes = self.attempt_mac(&named).to_vec();
        bytes.extend(named.as_bytes());
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl CallbackKey {
    /// The attempt that a token is for, if it is one of ours.
    fn read_attempt(&self, token: &str) -> Option<(JobId, AttemptId)> {
        let bytes = URL_SAFE_NO_PAD.decode(token.strip_prefix(PREFIX)?).ok()?;
        let (mac, named) = bytes.split_first_chunk::<MAC_BYTES>()?;
        let named = std::str::from_utf8(named).ok()?;
        if !same(mac, &self.attempt_mac(named)) {
            return None;
        }
        let (job, attempt) = named.split_once(BETWEEN)?;
        Some((JobId::new(job), AttemptId::new(attempt)))
    }

    fn attempt_mac(&self, named: &str) -> [u8; MAC_BYTES] {
        self.mac_of(&[PURPOSE, b"\x1f", named.as_bytes()].concat())
    }
}

/// Who shows such a token: the doer of the attempt, as long as it is the newest of its job.
pub(crate) async fn holder(server: &Server, token: &str) -> Result<Principal> {
    let unknown = || ProblemCode::Unauthenticated.because("the token is for no attempt that is current");
    let read = server.callbacks.as_ref().and_then(|key| key.read_attempt(token));
    let (job_id, attempt_id) = read.ok_or_else(unknown)?;
    let loaded = server.load(&RecordId::from(job_id.clone())).await?;
    let loaded = loaded.ok_or_else(unknown)?;
    let job = job_of(&loaded.record);
    if !is_newest(job, attempt_id.as_str()) {
        return Err(unknown());
    }
    Ok(Principal::of_attempt(job_id, &attempt_id, job.spec.circle.clone()))
}

/// Whether the token of an attempt would still be taken.
pub(crate) async fn is_current(server: &Server, job_id: &JobId, attempt_id: &str) -> Result<bool> {
    let id = RecordId::from(job_id.clone());
    let loaded = server.load(&id).await?;
    Ok(loaded.is_some_and(|loaded| is_newest(job_of(&loaded.record), attempt_id)))
}

fn is_newest(job: &Job, attempt_id: &str) -> bool {
    job.last_attempt().is_some_and(|attempt| attempt.id.as_str() == attempt_id && !attempt.was_sent_back())
}
