-- Work outside as a readable view, one row per operation, under the names of its first users. Times are microseconds since 1970 UTC, as
-- everywhere in the store. There is no column of a state: it is polling while completed_at is null, then completed, or failed if there is
-- a failure_detail.
-- A damaged view is told by whoever reads it; it keeps nobody from writing it anew.
CREATE INDEX operations_unresolved ON operations (
    (CASE WHEN json_valid(view) THEN json_extract(view, '$.ended.at') END)
);
CREATE INDEX operations_by_external_job_id ON operations (
    (CASE WHEN json_valid(view) THEN json_extract(view, '$.external_job_id') END)
) WHERE (CASE WHEN json_valid(view) THEN json_extract(view, '$.external_job_id') END) IS NOT NULL;
CREATE VIEW external_production_records_view AS
SELECT
    id AS object_id,
    json_extract(view, '$.link.circle') AS engagement_id,
    job_id AS render_job_id,
    json_extract(view, '$.link.kind') AS declared_render_type_ref,
    json_extract(view, '$.link.specialist') AS specialist_ref,
    CASE WHEN json_valid(view) THEN json_extract(view, '$.external_job_id') END AS external_job_id,
    json_extract(view, '$.interval_seconds') AS polling_interval_seconds,
    json_extract(view, '$.progress_hint') AS progress_hint,
    json_extract(view, '$.dispatched_at') AS dispatched_at,
    json_extract(view, '$.last_polled_at') AS last_polled_at,
    CASE WHEN json_valid(view) THEN json_extract(view, '$.ended.at') END AS completed_at,
    'sha256:' || json_extract(view, '$.ended.how.resolved.completed.result.data.sha256') AS render_event_object_id,
    CASE WHEN status NOT IN ('pending', 'running', 'completed')
        THEN COALESCE(
            json_extract(view, '$.ended.how.resolved.failed.failure_detail'),
            CASE WHEN json_extract(view, '$.ended.how.resolved') = 'nobody_to_ask'
                THEN 'no node has the executor that could ask' END,
            status) END AS failure_detail,
    COALESCE(
        json_extract(view, '$.ended.how.resolved.failed.error_code'),
        CASE WHEN json_extract(view, '$.ended.how.resolved') = 'nobody_to_ask' THEN 'specialist_unregistered' END,
        CASE status WHEN 'timed-out' THEN 'operation_timed_out' WHEN 'expired' THEN 'operation_expired'
            WHEN 'unknown' THEN 'operation_unknown' END) AS error_code,
    CASE WHEN json_extract(view, '$.ended.at') IS NULL THEN json_extract(view, '$.next_poll_at') END AS next_poll_at
FROM operations;
