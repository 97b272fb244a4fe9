//! Artifacts where every node reaches them: what an attempt has left, in chunks, as long as its job has its bodies.
//!
//! Only a store that nodes share has them. A chunk is kept by itself, before the result names the artifact; what is too large
//! for it stays on the node that ran the attempt.

use domain::{AttemptId, JobId};

use crate::Reply;

/// What is larger stays where it is.
pub const MAX_SHARED_ARTIFACT_BYTES: u64 = 16 * 1_048_576;
/// Every chunk but the last has this size.
pub const ARTIFACT_CHUNK_BYTES: usize = 262_144;

/// One artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArtifactName<'a> {
    /// Whose.
    pub job_id: &'a JobId,
    /// Of which attempt.
    pub attempt_id: &'a AttemptId,
    /// Which one.
    pub name: &'a str,
}

/// A store that keeps artifacts for all nodes.
pub trait SharedArtifacts: Send + Sync {
    /// Keeps one chunk, counted from 0; one of an earlier try is replaced. A job that is gone keeps nothing.
    fn keep_chunk<'a>(&'a self, artifact: ArtifactName<'a>, number: u64, bytes: &'a [u8]) -> Reply<'a, ()>;

    /// The rest of the chunk in which a byte lies, from that byte on: empty after the end, none if there is no such artifact.
    fn piece<'a>(&'a self, artifact: ArtifactName<'a>, offset: u64) -> Reply<'a, Option<Vec<u8>>>;
}
