-- Work outside as a readable view, one row per operation, under the names of its first users. Times are microseconds since 1970 UTC, as
-- everywhere in the store. There is no column of a state: it is polling while completed_at is null, then completed, or failed if there is
-- a failure_detail.
-- A view that was wiped is told by whoever reads it; it keeps nobody from writing it anew.
CREATE INDEX operations_unresolved ON operations ((
    CASE WHEN view LIKE '{%}' THEN (view::jsonb #>> '{ended,at}')::bigint END
));
CREATE INDEX operations_by_external_job_id ON operations ((
    CASE WHEN view LIKE '{%}' THEN view::jsonb #>> '{external_job_id}' END
)) WHERE (CASE WHEN view LIKE '{%}' THEN view::jsonb #>> '{external_job_id}' END) IS NOT NULL;
CREATE VIEW external_production_records_view AS
SELECT
    id AS object_id,
    view::jsonb #>> '{link,circle}' AS engagement_id,
    job_id AS render_job_id,
    view::jsonb #>> '{link,kind}' AS declared_render_type_ref,
    view::jsonb #>> '{link,specialist}' AS specialist_ref,
    CASE WHEN view LIKE '{%}' THEN view::jsonb #>> '{external_job_id}' END AS external_job_id,
    (view::jsonb #>> '{interval_seconds}')::bigint AS polling_interval_seconds,
    view::jsonb #>> '{progress_hint}' AS progress_hint,
    (view::jsonb #>> '{dispatched_at}')::bigint AS dispatched_at,
    (view::jsonb #>> '{last_polled_at}')::bigint AS last_polled_at,
    CASE WHEN view LIKE '{%}' THEN (view::jsonb #>> '{ended,at}')::bigint END AS completed_at,
    'sha256:' || (view::jsonb #>> '{ended,how,resolved,completed,result,data,sha256}') AS render_event_object_id,
    CASE WHEN status NOT IN ('pending', 'running', 'completed')
        THEN COALESCE(
            view::jsonb #>> '{ended,how,resolved,failed,failure_detail}',
            CASE WHEN view::jsonb #>> '{ended,how,resolved}' = 'nobody_to_ask'
                THEN 'no node has the executor that could ask' END,
            status) END AS failure_detail,
    COALESCE(
        view::jsonb #>> '{ended,how,resolved,failed,error_code}',
        CASE WHEN view::jsonb #>> '{ended,how,resolved}' = 'nobody_to_ask' THEN 'specialist_unregistered' END,
        CASE status WHEN 'timed-out' THEN 'operation_timed_out' WHEN 'expired' THEN 'operation_expired'
            WHEN 'unknown' THEN 'operation_unknown' END) AS error_code,
    CASE WHEN (view::jsonb #>> '{ended,at}')::bigint IS NULL
        THEN (view::jsonb #>> '{next_poll_at}')::bigint END AS next_poll_at
FROM operations;
