-- The facts of a stream go as a whole after the fact that says so, or those before one of its checkpoints. The newest of them is looked for from
-- the end, where it stands when they go.
DROP TRIGGER facts_go_only_when_retired;
CREATE TRIGGER facts_go_only_when_retired BEFORE DELETE ON facts
WHEN (SELECT kind FROM facts WHERE stream = OLD.stream ORDER BY version DESC LIMIT 1)
     NOT GLOB '[a-z]*.retired/[1-9]*'
 AND OLD.version >= coalesce((SELECT version FROM facts WHERE stream = OLD.stream
     AND kind GLOB '[a-z]*.checkpointed/1' ORDER BY version DESC LIMIT 1), 0)
BEGIN
    SELECT RAISE(ABORT, 'facts are append-only');
END;
