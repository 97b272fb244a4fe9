//! Artifacts for all nodes: chunks that are kept one by one, and read one by one. They go in the commit that removes their job's bodies.

use std::sync::Arc;

use store::{ARTIFACT_CHUNK_BYTES, ArtifactName, Reply, SharedArtifacts, StoreError};

use super::PostgresStore;
use super::session::Session;
use crate::database::{Database, Given, integer, one};
use crate::dialect::Sql;
use crate::rows::signed;

// Safe to repeat. Who was fenced out may come when the job is gone: then nothing is left behind.
static KEEP: Sql = Sql::new(
    "INSERT INTO artifact_chunks (record_id, attempt_id, name, number, bytes) \
     SELECT record_id, $2, $3, $4, $5 FROM agenda WHERE record_id = $1 FOR KEY SHARE \
     ON CONFLICT (record_id, attempt_id, name, number) DO UPDATE SET bytes = excluded.bytes",
);
static PIECE: Sql = Sql::new(
    "SELECT EXISTS (SELECT 1 FROM artifact_chunks WHERE record_id = $1 AND attempt_id = $2 AND name = $3), \
            (SELECT bytes FROM artifact_chunks WHERE record_id = $1 AND attempt_id = $2 AND name = $3 AND number = $4)",
);

impl SharedArtifacts for PostgresStore {
    fn keep_chunk<'a>(&'a self, artifact: ArtifactName<'a>, number: u64, bytes: &'a [u8]) -> Reply<'a, ()> {
        Box::pin(self.pool.read(move |session| keep(session, artifact, number, bytes)))
    }

    fn piece<'a>(&'a self, artifact: ArtifactName<'a>, offset: u64) -> Reply<'a, Option<Vec<u8>>> {
        Box::pin(self.pool.read(move |session| piece(session, artifact, offset)))
    }
}

fn names<'a>(artifact: &ArtifactName<'a>) -> [Given<'a>; 3] {
    [artifact.job_id.as_str().into(), artifact.attempt_id.as_str().into(), artifact.name.into()]
}

async fn keep(
    session: Arc<Session>,
    artifact: ArtifactName<'_>,
    number: u64,
    bytes: &[u8],
) -> Result<(), StoreError> {
    let [job, attempt, name] = names(&artifact);
    let given = [job, attempt, name, signed(number).into(), bytes.into()];
    Database::execute(&*session, &KEEP, &given).await.map(|_| ()).map_err(Session::read_failed)
}

async fn piece(
    session: Arc<Session>,
    artifact: ArtifactName<'_>,
    offset: u64,
) -> Result<Option<Vec<u8>>, StoreError> {
    let size = ARTIFACT_CHUNK_BYTES as u64;
    let [job, attempt, name] = names(&artifact);
    let given = [job, attempt, name, signed(offset / size).into()];
    let found = one(&*session, &PIECE, &given, |row| {
        Ok((integer(row, 0)? != 0, row.bytes(1)?.unwrap_or_default().to_vec()))
    });
    let Some((true, mut chunk)) = found.await.map_err(Session::read_failed)? else { return Ok(None) };
    let before = usize::try_from(offset % size).unwrap_or(usize::MAX);
    chunk.drain(..before.min(chunk.len()));
    Ok(Some(chunk))
}
