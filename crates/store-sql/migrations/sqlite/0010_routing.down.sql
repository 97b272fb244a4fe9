DROP TRIGGER facts_go_only_when_retired;
CREATE TRIGGER facts_go_only_when_retired BEFORE DELETE ON facts
WHEN (SELECT kind FROM facts WHERE stream = OLD.stream ORDER BY version DESC LIMIT 1)
     NOT IN ('job.retired/1', 'operation.retired/1')
BEGIN
    SELECT RAISE(ABORT, 'facts are append-only');
END;
DROP TABLE routing;
