DROP TABLE artifact_chunks;
