//! `GET /jobs/{id}/artifacts/{name}`: a bounded piece of what an attempt has left, from an offset on. Whoever sees the job sees it.
//!
//! The file may still grow: an empty answer is the end as of now. What the record says of an artifact that is done is its result's.
//! What an attempt on another node has left is there when that is over, if it is not too large to be shared.

use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use api::{Problem, ProblemCode};
use domain::AttemptId;
use executors::process::Artifacts;
use store::ArtifactName;

use super::visible::visible_job;
use crate::access::attempt_alias::{is_named, shown_id};
use crate::problem::at;
use crate::reply::{Content, Reply};
use crate::{RequestContext, Result, Server};

/// The most bytes of one answer.
const MAX_PIECE_BYTES: u64 = 1_048_576;

pub(crate) async fn read_artifact(server: &Server, asked: RequestContext) -> Result<Reply> {
    let visible = visible_job(server, &asked).await?;
    let job = visible.job();
    let offset = match asked.value("offset") {
        None => 0,
        Some(text) => text.parse().map_err(|_| bad_offset())?,
    };
    let none = || ProblemCode::NotFound.because(format!("the attempt has left no {:?}", asked.name));
    let attempt = match asked.parameter("attempt_id") {
        Some(name) => job.attempts.iter().find(|attempt| is_named(attempt, &name)),
        None => job.last_attempt(),
    };
    let attempt = attempt.ok_or_else(none)?;
    let (attempt_id, shown) = (attempt.id.clone(), shown_id(attempt, &asked.principal.reporter()));
    let artifacts = server.artifacts.clone().ok_or_else(none)?;
    let (job_id, of_attempt, name) = (job.id.clone(), attempt_id.clone(), asked.name.clone());
    let here = artifacts.clone();
    let read = move || piece(&here, &job_id, &of_attempt, &name, offset);
    let read = tokio::task::spawn_blocking(read).await.map_err(std::io::Error::other);
    let failed = |error: &dyn std::error::Error| {
        tracing::warn!(job = %job.id, "an artifact cannot be read: {error}");
        ProblemCode::StoreUnavailable.because("the artifact cannot be read now")
    };
    let mut bytes = read.flatten().map_err(|error| failed(&error))?;
    if bytes.is_none() {
        let artifact = ArtifactName { job_id: &job.id, attempt_id: &attempt_id, name: &asked.name };
        bytes = artifacts.shared_piece(artifact, offset).await.map_err(|error| failed(&error))?;
    }
    let content = Content::Bytes { media_type: "application/octet-stream", bytes: bytes.ok_or_else(none)? };
    Ok(Reply { attempt_id: Some(shown.into_owned()), ..Reply::of(content) })
}

fn piece(
    artifacts: &Arc<Artifacts>,
    job_id: &domain::JobId,
    attempt_id: &AttemptId,
    name: &str,
    offset: u64,
) -> std::io::Result<Option<Vec<u8>>> {
    let Some(mut file) = artifacts.open(job_id, attempt_id, name)? else { return Ok(None) };
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(MAX_PIECE_BYTES).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

fn bad_offset() -> Problem {
    let told = "offset must be a number of bytes";
    at(ProblemCode::InvalidRequest, "int_range", &["query", "offset"], told)
}
