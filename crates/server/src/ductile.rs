//! Ductile's own face of plugins, pipelines and jobs: its routes, its statuses, its errors. The jobs behind it are like all others.

mod breaker;
mod job;
mod memory;
mod payload;
mod pipeline;
mod plugin;
mod skills;
mod status;
mod tree;
mod waited;

use api::Problem;
use api::ductile::DuctileError;
use axum::http::StatusCode;
use axum::response::Response;

pub(crate) use breaker::reset_breaker;
pub(crate) use job::read_job;
pub(crate) use memory::read_memory;
pub(crate) use pipeline::trigger_pipeline;
pub(crate) use plugin::{list_plugins, read_plugin, trigger_plugin};
pub(crate) use skills::{list_skills, read_plugin_document};
pub(crate) use tree::read_tree;

use crate::{answer, problem};

/// A problem in Ductile's form. It knows no 422: what is wrong with a request is 400, what is too much of it 413.
pub(crate) fn respond(problem: &Problem) -> Response {
    let status = match (problem.status, &*problem.code) {
        (422, "too_large") => 413,
        (422, _) => 400,
        (status, _) => status,
    };
    let mut response = answer::json(&DuctileError { error: problem.detail.clone() });
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // When to come back, and how to show who one is, is said as everywhere.
    for (name, value) in problem::respond(problem).headers() {
        response.headers_mut().entry(name).or_insert_with(|| value.clone());
    }
    response
}

fn accepted(mut response: Response) -> Response {
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}
