//! Jobs: accept, list, read, steer.

use api::limits::{MAX_BATCH_BYTES, MAX_REQUEST_BYTES};
use domain::job::{JobStateName, Trigger};
use serde_json::json;

use super::{
    Answer, Body, Operation, SMALL, Waits, answer, any_text, by, get, needs, patch, post, request, schema,
};
use crate::access::authorise::Permission as May;
use crate::openapi::parameters::{cursor_of, limit, number, text, word};
use crate::{facts, jobs};

/// The rows.
pub(super) static OPERATIONS: &[Operation] = &[
    Operation {
        name: "create_job",
        summary: "Accept a job; it is on stable storage when this answers",
        paths: &[post("/jobs"), post("/work")],
        access: needs(May::Create),
        body: Body::Json(MAX_REQUEST_BYTES),
        keyed: true,
        takes: Some(request::<api::CreateJob>),
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
        answers: &[answer(200, schema::<api::JobCreated<'static>>)],
        also_refused: &[404],
        handler: by!(jobs::create),
        ..Operation::PLAIN
    },
    Operation {
        name: "create_batch",
        summary: "Accept up to 1,000 jobs, each with its own verdict",
        paths: &[post("/jobs/batch")],
        access: needs(May::Create),
        body: Body::Json(MAX_BATCH_BYTES),
        keyed: true,
        takes: Some(request::<api::CreateBatch>),
        request_example: Some(
            || json!({ "jobs": [{ "title": "first" }, { "title": "second", "priority": 5 }] }),
        ),
        answers: &[answer(200, schema::<api::BatchAnswer<'static>>)],
        handler: by!(jobs::create_batch),
        ..Operation::PLAIN
    },
    Operation {
        name: "list_jobs",
        summary: "List jobs, newest change first",
        paths: &[get("/jobs"), get("/work")],
        access: needs(May::Read),
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
        answers: &[answer(200, schema::<api::JobList<'static>>)],
        also_refused: &[400],
        handler: by!(jobs::list),
        ..Operation::PLAIN
    },
    Operation {
        name: "read_status",
        summary: "Where a job is",
        paths: &[get("/jobs/{id}"), get("/work/{id}"), get("/jobs/{id}/status"), get("/work/{id}/status")],
        access: needs(May::Read),
        waits: Waits::IfPreferred { job_id: |request| request.id.clone() },
        prefers_wait: true,
        for_attempts: true,
        answers: &[answer(200, schema::<api::StatusAnswer<'static>>)],
        handler: by!(jobs::read_status),
        ..Operation::PLAIN
    },
    Operation {
        name: "read_result",
        summary: "The result of a job, or the word that there is none yet",
        paths: &[get("/jobs/{id}/result"), get("/work/{id}/result")],
        access: needs(May::Read),
        for_attempts: true,
        answers: &[answer(200, schema::<api::ResultAnswer<'static>>)],
        handler: by!(jobs::read_result),
        ..Operation::PLAIN
    },
    Operation {
        name: "read_artifact",
        summary: "A piece of what an attempt has left, also while it runs",
        paths: &[get("/jobs/{id}/artifacts/{name}")],
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
        paths: &[patch("/jobs/{id}"), patch("/work/{id}")],
        access: needs(May::Report),
        body: Body::Json(MAX_REQUEST_BYTES),
        for_attempts: true,
        keyed: true,
        takes: Some(request::<api::UpdateJob>),
        request_example: Some(|| {
            json!({
                "state": "completed",
                "progress_note": "the last page is out",
                "result_summary": "12 pages",
                "result_data": { "pages": 12 },
            })
        }),
        answers: &[answer(200, schema::<api::StatusAnswer<'static>>)],
        handler: by!(jobs::update),
        ..Operation::PLAIN
    },
    Operation {
        name: "run_job",
        summary: "Run a queued, failed or unavailable job now",
        paths: &[post("/jobs/{id}/run"), post("/work/{id}/run")],
        access: needs(May::Run),
        body: Body::Optional(SMALL),
        waits: Waits::Always,
        keyed: true,
        takes: Some(request::<api::RunJob>),
        request_example: Some(|| json!({})),
        answers: &[answer(200, schema::<api::StatusAnswer<'static>>)],
        handler: |server, request| Box::pin(jobs::run(server, request, Trigger::Run)),
        ..Operation::PLAIN
    },
    Operation {
        name: "retry_job",
        summary: "Try a failed, unavailable or delivered job again",
        paths: &[post("/jobs/{id}/retry"), post("/work/{id}/retry")],
        access: needs(May::Run),
        body: Body::Optional(SMALL),
        waits: Waits::Always,
        keyed: true,
        takes: Some(request::<api::RunJob>),
        request_example: Some(|| json!({})),
        answers: &[answer(200, schema::<api::StatusAnswer<'static>>)],
        handler: |server, request| Box::pin(jobs::run(server, request, Trigger::Retry)),
        ..Operation::PLAIN
    },
    Operation {
        name: "cancel_job",
        summary: "Ask to stop a job",
        paths: &[post("/jobs/{id}/cancel"), post("/work/{id}/cancel")],
        access: needs(May::Cancel),
        body: Body::Json(SMALL),
        keyed: true,
        takes: Some(request::<api::CancelJob>),
        request_example: Some(|| json!({ "reason": "no longer needed" })),
        answers: &[answer(200, schema::<api::StatusAnswer<'static>>)],
        handler: by!(jobs::cancel),
        ..Operation::PLAIN
    },
    Operation {
        name: "answer_job",
        summary: "Answer what a job waits for",
        paths: &[post("/jobs/{id}/answer")],
        access: needs(May::Answer),
        body: Body::Json(MAX_REQUEST_BYTES),
        keyed: true,
        takes: Some(request::<api::AnswerJob>),
        request_example: Some(|| json!({ "answer": { "approved": true } })),
        answers: &[answer(200, schema::<api::StatusAnswer<'static>>)],
        handler: by!(jobs::answer),
        ..Operation::PLAIN
    },
    Operation {
        name: "purge_job",
        summary: "Delete the bodies of a job that is over",
        paths: &[post("/jobs/{id}/purge")],
        access: needs(May::Purge),
        body: Body::Optional(SMALL),
        keyed: true,
        answers: &[answer(200, schema::<api::StatusAnswer<'static>>)],
        handler: by!(jobs::purge),
        ..Operation::PLAIN
    },
    Operation {
        name: "read_facts",
        summary: "What happened to a job, oldest first",
        paths: &[get("/jobs/{id}/facts")],
        access: needs(May::Read),
        reads_query: true,
        parameters: || vec![limit(), number("cursor", "next_cursor of the previous page")],
        answers: &[answer(200, schema::<api::FactList<'static>>)],
        handler: by!(facts::of_job),
        ..Operation::PLAIN
    },
    Operation {
        name: "read_why",
        summary: "Why a job is not moving",
        paths: &[get("/jobs/{id}/why")],
        access: needs(May::Read),
        for_attempts: true,
        answers: &[answer(200, schema::<api::Why>)],
        handler: by!(jobs::why),
        ..Operation::PLAIN
    },
];
