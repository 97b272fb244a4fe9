-- A stream with a checkpoint cannot be read by the older longhaul: its row is refused here, and nothing is changed. It can once its record has
-- retired.
CREATE TABLE checkpoints_that_the_older_schema_cannot_read (stream TEXT NOT NULL) STRICT;
INSERT INTO checkpoints_that_the_older_schema_cannot_read
SELECT NULL FROM facts WHERE kind GLOB '[a-z]*.checkpointed/1' LIMIT 1;
DROP TABLE checkpoints_that_the_older_schema_cannot_read;

DROP TRIGGER facts_go_only_when_retired;
CREATE TRIGGER facts_go_only_when_retired BEFORE DELETE ON facts
WHEN (SELECT kind FROM facts WHERE stream = OLD.stream ORDER BY version DESC LIMIT 1)
     NOT GLOB '[a-z]*.retired/[1-9]*'
BEGIN
    SELECT RAISE(ABORT, 'facts are append-only');
END;
