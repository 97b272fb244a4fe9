//! What attempts have left, in chunks: of the size in which a shared store keeps them too.

use std::io::Read;
use std::path::Path;

use domain::{AttemptId, JobId, RecordId};
use rusqlite::{Connection, params};
use store::{ARTIFACT_CHUNK_BYTES, ArtifactName, MAX_SHARED_ARTIFACT_BYTES, StoreError};

use super::BackupError;
use crate::database::{at_once, unsigned};
use crate::reads;
use crate::rows::signed;

const COUNT: &str = "SELECT count(*) FROM (SELECT 1 FROM backup_artifact_chunks \
                     GROUP BY record_id, attempt_id, name HAVING sum(length(bytes)) > ?1)";
const IS_KEPT: &str = "SELECT EXISTS (SELECT 1 FROM backup_artifact_chunks \
                       WHERE record_id = ?1 AND attempt_id = ?2 AND name = ?3)";
const KEEP: &str = "INSERT INTO backup_artifact_chunks (record_id, attempt_id, name, number, bytes) \
                    VALUES (?1, ?2, ?3, ?4, ?5)";

/// Which artifacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// All of them.
    All,
    /// Those that no shared store takes.
    TooLargeToShare,
}

impl Sizes {
    /// They are larger than this.
    fn limit(self) -> i64 {
        match self {
            Self::All => -1,
            Self::TooLargeToShare => signed(MAX_SHARED_ARTIFACT_BYTES),
        }
    }
}

/// How many there are.
pub(super) fn count(backup: &Connection, sizes: Sizes) -> rusqlite::Result<u64> {
    backup.query_row(COUNT, [sizes.limit()], |row| Ok(unsigned(row, 0)?))
}

/// Keeps one; how many bytes of it.
pub(super) fn keep(
    backup: &Connection,
    draft: &Path,
    artifact: ArtifactName<'_>,
    from: &mut impl Read,
) -> Result<u64, BackupError> {
    let failed = |error| BackupError::of_database(draft, error);
    let ArtifactName { job_id, attempt_id, name } = artifact;
    let named = params![job_id.as_str(), attempt_id.as_str(), name];
    let mut is_kept = backup.prepare_cached(IS_KEPT).map_err(failed)?;
    if is_kept.query_row(named, |row| row.get(0)).map_err(failed)? || !has_bodies(backup, job_id)? {
        return Ok(0);
    }
    let mut keep = backup.prepare_cached(KEEP).map_err(failed)?;
    let mut chunk = Vec::with_capacity(ARTIFACT_CHUNK_BYTES);
    let mut bytes = 0;
    for number in 0_i64.. {
        chunk.clear();
        let read = from.by_ref().take(ARTIFACT_CHUNK_BYTES as u64).read_to_end(&mut chunk);
        read.map_err(|source| BackupError::of_file(Path::new(name), source))?;
        // One that is empty is there all the same.
        if chunk.is_empty() && number > 0 {
            break;
        }
        let values = params![job_id.as_str(), attempt_id.as_str(), name, number, chunk];
        keep.execute(values).map_err(failed)?;
        bytes += chunk.len() as u64;
        if chunk.len() < ARTIFACT_CHUNK_BYTES {
            break;
        }
    }
    Ok(bytes)
}

/// Artifacts live as long as their job has its bodies.
fn has_bodies(backup: &Connection, job_id: &JobId) -> Result<bool, StoreError> {
    let found = at_once(reads::load(backup, &RecordId::from(job_id.clone())))?;
    Ok(found.is_some_and(|loaded| loaded.record.as_job().is_some_and(|job| !job.purged)))
}

/// The pluses keep SQLite from searching: it walks the chunks in their order, and sorts no bytes.
const CHUNKS: &str = "SELECT record_id, attempt_id, name, number, bytes FROM backup_artifact_chunks \
     WHERE (+record_id, +attempt_id, +name) IN (SELECT record_id, attempt_id, name FROM backup_artifact_chunks \
        GROUP BY record_id, attempt_id, name HAVING sum(length(bytes)) > ?1) \
     ORDER BY record_id, attempt_id, name, number";
/// The chunks of those that a shared store takes.
pub(crate) const CHUNKS_TO_SHARE: &str = "SELECT record_id, attempt_id, name, number, bytes FROM backup_artifact_chunks \
     WHERE (record_id, attempt_id, name) NOT IN (SELECT record_id, attempt_id, name FROM backup_artifact_chunks \
        GROUP BY record_id, attempt_id, name HAVING sum(length(bytes)) > ?1) \
     ORDER BY record_id, attempt_id, name, number";

/// Gives every chunk, in order; those of one artifact one after the other, counted from 0.
pub(super) fn each(
    backup: &Connection,
    path: &Path,
    sizes: Sizes,
    mut take: impl FnMut(ArtifactName<'_>, u64, &[u8]) -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    let damaged = |error: &dyn std::fmt::Display| BackupError::Damaged {
        path: path.to_owned(),
        reason: format!("an artifact cannot be read: {error}"),
    };
    let failed = |error: rusqlite::Error| damaged(&error);
    let mut chunks = backup.prepare(CHUNKS).map_err(failed)?;
    let mut rows = chunks.query([sizes.limit()]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let text = |column| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
        let job_id = JobId::new(text(0).map_err(failed)?);
        let attempt_id = AttemptId::new(text(1).map_err(failed)?);
        let artifact =
            ArtifactName { job_id: &job_id, attempt_id: &attempt_id, name: text(2).map_err(failed)? };
        let bytes = row.get_ref(4).map_err(failed)?;
        let bytes = bytes.as_blob().map_err(|error| damaged(&error))?;
        let number: i64 = row.get(3).map_err(failed)?;
        take(artifact, u64::try_from(number).map_err(|error| damaged(&error))?, bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::tables::MAKE_EXTRAS;

    #[test]
    fn chunks_are_read_in_their_order_and_nothing_is_sorted() {
        let backup = Connection::open_in_memory().unwrap();
        backup.execute_batch(MAKE_EXTRAS).unwrap();
        for sql in [CHUNKS, CHUNKS_TO_SHARE] {
            let mut plan = backup.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let steps = plan.query_map([0], |row| row.get::<_, String>("detail")).unwrap();
            let steps: Vec<String> = steps.collect::<Result<_, _>>().unwrap();
            assert!(!steps.iter().any(|step| step.contains("ORDER BY")), "{steps:?}");
        }
    }
}
