//! Artifacts in the store: any node reads what another kept, chunk by chunk, and they go with the bodies of their job.

use domain::{AttemptId, JobId};
use store::{ARTIFACT_CHUNK_BYTES, ArtifactName, SharedArtifacts, Store};

use super::database::Database;
use crate::given::*;
use crate::retirement::retiring;

#[tokio::test]
async fn artifact_that_one_node_kept_is_read_by_another_and_goes_with_its_job() {
    let database = Database::missing().await;
    let (store, other) = (database.open().await, database.open().await);
    let (job_id, attempt_id) = (JobId::new("work-a"), AttemptId::new("attempt-1"));
    let stdout = ArtifactName { job_id: &job_id, attempt_id: &attempt_id, name: "stdout" };
    let bytes: Vec<u8> = (0..=250).cycle().take(2 * ARTIFACT_CHUNK_BYTES + 7).collect();

    // Nobody's: a job that is not there, or not any more.
    store.keep_chunk(stdout, 0, b"lost").await.unwrap();
    assert_eq!(other.piece(stdout, 0).await, Ok(None));

    write(&store, &job("a"), vec![created(), dispatched(1), completed()], at(0)).await;
    // A chunk of an earlier try is replaced.
    store.keep_chunk(stdout, 0, b"an earlier try").await.unwrap();
    for (number, chunk) in (0..).zip(bytes.chunks(ARTIFACT_CHUNK_BYTES)) {
        store.keep_chunk(stdout, number, chunk).await.unwrap();
    }
    let mut read = Vec::new();
    loop {
        let piece = other.piece(stdout, read.len() as u64).await.unwrap().unwrap();
        if piece.is_empty() {
            break;
        }
        read.extend(piece);
    }
    assert!(read == bytes, "{} bytes were read, {} were kept", read.len(), bytes.len());
    let middle = ARTIFACT_CHUNK_BYTES + 100;
    let piece = other.piece(stdout, middle as u64).await.unwrap().unwrap();
    assert!(piece == bytes[middle..2 * ARTIFACT_CHUNK_BYTES]);
    assert_eq!(other.piece(ArtifactName { name: "stderr", ..stdout }, 0).await, Ok(None));

    store.commit(retiring(&store, &job("a"), 1).await).await.unwrap();
    assert_eq!(other.piece(stdout, 0).await, Ok(None));
    assert_eq!(database.rows("artifact_chunks").await, Vec::<String>::new());
}
