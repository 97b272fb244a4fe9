//! `GET /runs` and `GET /runs/{id}`.

use api::{Problem, RunAnswer, RunList};
use axum::response::Response;
use domain::run::RunState;
use store::{Loaded, RoutedKind};

use super::shown::{Extent, run_of, shown};
use crate::answer;
use crate::asked::Asked;
use crate::routed;
use crate::serve::Server;

pub(crate) async fn list(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let states = RunState::ALL.map(RunState::as_str);
    let (records, next_cursor) = routed::page(server, &asked, RoutedKind::Runs, "pipeline", &states).await?;
    let runs = records.iter().map(|record| shown(run_of(record), Extent::Summary)).collect();
    Ok(answer::json(&RunList { runs, next_cursor }))
}

pub(crate) async fn read(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let loaded = visible_run(server, &asked).await?;
    Ok(answer::json(&RunAnswer { run: shown(run_of(&loaded.record), Extent::Whole) }))
}

/// The run that the path names, if the caller sees it.
pub(super) async fn visible_run(server: &Server, asked: &Asked) -> Result<Loaded, Problem> {
    routed::visible(server, asked, RoutedKind::Runs, &asked.id).await
}
