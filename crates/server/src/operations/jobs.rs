//! Jobs: accept, list, read, steer.

use api::limits::MAX_BATCH_BYTES;
use domain::job::{JobCommand, JobStateName, Trigger};
use serde_json::json;

use super::{Answer, Body, Get, LARGE, Operation, Patch, Post, SMALL, Waits, any_text, by, needs};
use crate::access::authorise::Permission as May;
use crate::openapi::parameters::{cursor_of, limit, number, text, word};
use crate::{facts, jobs};

/// The rows.
pub(super) static OPERATIONS: &[Operation] = &[
    Operation {
        name: "create_job",
        summary: "Accept a job; it is on stable storage when this answers",
        paths: &[(Post, "/jobs"), (Post, "/work")],
        keyed: true,
        request_example: Some(|| {
            json!({
                "title": "Render the cover",
                "kind": "render",
                "executor": "echo",
                "input": { "pages": 12 },
                "retry": { "max_attempts": 3, "backoff_seconds": 2, "max_backoff_seconds": 60 },
                "timeout_seconds": 600,
                "tags": ["cover"],
            })
        }),
        also_refused: &[404],
        handler: by!(jobs::create),
        ..Operation::taking::<api::CreateJob, api::JobCreated>(May::Create, Body::Json(LARGE))
    },
    Operation {
        name: "create_batch",
        summary: "Accept up to 1,000 jobs, each with its own verdict",
        paths: &[(Post, "/jobs/batch")],
        keyed: true,
        request_example: Some(
            || json!({ "jobs": [{ "title": "first" }, { "title": "second", "priority": 5 }] }),
        ),
        handler: by!(jobs::create_batch),
        ..Operation::taking::<api::CreateBatch, api::BatchAnswer>(May::Create, Body::Json(MAX_BATCH_BYTES))
    },
    Operation {
        name: "list_jobs",
        summary: "List jobs, newest change first",
        paths: &[(Get, "/jobs"), (Get, "/work")],
        reads_query: true,
        parameters: || {
            let mut parameters =
                vec![word("state", "only jobs in this state", &JobStateName::ALL.map(JobStateName::as_str))];
            for name in ["owner_peer_id", "created_by_peer_id", "repowire_session_id", "circle"] {
                parameters.push(text(name, "only jobs with this value"));
            }
            let tag = "only jobs with this tag; a page may be short or empty before the last";
            let external = "only jobs whose work a service knows by this id; a page may be short";
            parameters.extend([
                text("tag", tag),
                text("external_job_id", external),
                word("view", "full if left out", &["full", "summary"]),
                limit(),
                cursor_of("work-"),
            ]);
            parameters
        },
        also_refused: &[400],
        handler: by!(jobs::list),
        ..Operation::reading::<api::JobList>()
    },
    Operation {
        name: "read_status",
        summary: "Where a job is",
        paths: &[
            (Get, "/jobs/{id}"),
            (Get, "/work/{id}"),
            (Get, "/jobs/{id}/status"),
            (Get, "/work/{id}/status"),
        ],
        waits: Waits::IfPreferred { job_id: |request| request.id.clone() },
        prefers_wait: true,
        for_attempts: true,
        handler: by!(jobs::read_status),
        ..Operation::reading::<api::StatusAnswer>()
    },
    Operation {
        name: "read_result",
        summary: "The result of a job, or the word that there is none yet",
        paths: &[(Get, "/jobs/{id}/result"), (Get, "/work/{id}/result")],
        for_attempts: true,
        handler: by!(jobs::read_result),
        ..Operation::reading::<api::ResultAnswer>()
    },
    Operation {
        name: "read_artifact",
        summary: "A piece of what an attempt has left, also while it runs",
        paths: &[(Get, "/jobs/{id}/artifacts/{name}")],
        access: needs(May::Read),
        reads_query: true,
        for_attempts: true,
        parameters: || {
            vec![
                text("attempt_id", "of this attempt; of the last if left out"),
                number("offset", "from this byte on; an empty answer is the end as of now"),
            ]
        },
        answers: &[Answer { status: 200, media_type: "application/octet-stream", schema: any_text }],
        answer_example: Some(|| json!("page 1 of 12\n")),
        handler: by!(jobs::read_artifact),
        ..Operation::PLAIN
    },
    Operation {
        name: "update_job",
        summary: "Report where a job is",
        paths: &[(Patch, "/jobs/{id}"), (Patch, "/work/{id}")],
        for_attempts: true,
        keyed: true,
        request_example: Some(|| {
            json!({
                "state": "completed",
                "progress_note": "the last page is out",
                "result_summary": "12 pages",
                "result_data": { "pages": 12 },
            })
        }),
        handler: by!(jobs::update),
        ..Operation::taking::<api::UpdateJob, api::StatusAnswer>(May::Report, Body::Json(LARGE))
    },
    Operation {
        name: "run_job",
        summary: "Run a queued, failed or unavailable job now",
        paths: &[(Post, "/jobs/{id}/run"), (Post, "/work/{id}/run")],
        waits: Waits::Always,
        keyed: true,
        request_example: Some(|| json!({})),
        handler: |server, request| Box::pin(jobs::run(server, request, Trigger::Run)),
        ..Operation::taking::<api::RunJob, api::StatusAnswer>(May::Run, Body::Optional(SMALL))
    },
    Operation {
        name: "retry_job",
        summary: "Try a failed, unavailable or delivered job again",
        paths: &[(Post, "/jobs/{id}/retry"), (Post, "/work/{id}/retry")],
        waits: Waits::Always,
        keyed: true,
        request_example: Some(|| json!({})),
        handler: |server, request| Box::pin(jobs::run(server, request, Trigger::Retry)),
        ..Operation::taking::<api::RunJob, api::StatusAnswer>(May::Run, Body::Optional(SMALL))
    },
    Operation {
        name: "pause_job",
        summary: "Hold a queued job: nothing begins it until it is resumed",
        paths: &[(Post, "/jobs/{id}/pause"), (Post, "/work/{id}/pause")],
        keyed: true,
        request_example: Some(|| json!({ "reason": "the press is being cleaned" })),
        handler: |server, request| {
            let to_pause =
                |by: Option<String>, actor, reason| JobCommand::Pause { by: by.or(Some(actor)), reason };
            Box::pin(jobs::order_by(server, request, to_pause))
        },
        ..Operation::taking::<api::CancelJob, api::StatusAnswer>(May::Run, Body::Json(SMALL))
    },
    Operation {
        name: "resume_job",
        summary: "Let a paused job go on",
        paths: &[(Post, "/jobs/{id}/resume"), (Post, "/work/{id}/resume")],
        keyed: true,
        request_example: Some(|| json!({})),
        handler: |server, request| {
            let to_resume =
                |by: Option<String>, actor, reason| JobCommand::Unpause { by: by.or(Some(actor)), reason };
            Box::pin(jobs::order_by(server, request, to_resume))
        },
        ..Operation::taking::<api::CancelJob, api::StatusAnswer>(May::Run, Body::Json(SMALL))
    },
    Operation {
        name: "cancel_job",
        summary: "Ask to stop a job",
        paths: &[(Post, "/jobs/{id}/cancel"), (Post, "/work/{id}/cancel")],
        keyed: true,
        request_example: Some(|| json!({ "reason": "no longer needed" })),
        handler: by!(jobs::cancel),
        ..Operation::taking::<api::CancelJob, api::StatusAnswer>(May::Cancel, Body::Json(SMALL))
    },
    Operation {
        name: "answer_job",
        summary: "Answer what a job waits for",
        paths: &[(Post, "/jobs/{id}/answer")],
        keyed: true,
        request_example: Some(|| json!({ "answer": { "approved": true } })),
        handler: by!(jobs::answer),
        ..Operation::taking::<api::AnswerJob, api::StatusAnswer>(May::Answer, Body::Json(LARGE))
    },
    Operation {
        name: "purge_job",
        summary: "Delete the bodies of a job that is over",
        paths: &[(Post, "/jobs/{id}/purge")],
        keyed: true,
        handler: by!(jobs::purge),
        ..Operation::order::<api::StatusAnswer>(May::Purge)
    },
    Operation {
        name: "read_facts",
        summary: "What happened to a job, oldest first",
        paths: &[(Get, "/jobs/{id}/facts")],
        reads_query: true,
        parameters: || vec![limit(), number("cursor", "next_cursor of the previous page")],
        handler: by!(facts::of_job),
        ..Operation::reading::<api::FactList>()
    },
    Operation {
        name: "read_why",
        summary: "Why a job is not moving",
        paths: &[(Get, "/jobs/{id}/why")],
        for_attempts: true,
        handler: by!(jobs::why),
        ..Operation::reading::<api::Why>()
    },
];
