//! A run as it is shown.

use api::{JsonObject, RunCause, RunVisit};
use domain::Record;
use domain::limit::ended_run;
use domain::run::{Cause, Run, RunState, StepEnd, Visit, VisitIndex, VisitState};

use crate::clock_text::text;
use crate::render::limit;

/// The run behind a record that is known to be one.
pub(crate) fn run_of(record: &Record) -> &Run {
    record.as_run().expect("a run's id names a run")
}

/// With every visit.
pub(crate) fn whole(run: &Run) -> api::Run {
    let visits = run.numbered().map(|(at, seen)| visit(run, at, seen)).collect();
    api::Run { visits: Some(visits), ..shown(run) }
}

/// As in a list.
pub(super) fn shown(run: &Run) -> api::Run {
    let begun = &run.begun;
    api::Run {
        run_id: run.id.as_str().to_owned(),
        pipeline: begun.pipeline.clone(),
        version: begun.version.clone(),
        state: run.state().as_str().to_owned(),
        reason: reason(run),
        limits: ended_run(run).into_iter().map(limit::shown).collect(),
        event_id: begun.event_id.as_str().to_owned(),
        circle: begun.circle.clone(),
        depth: begun.depth,
        dedupe_key: begun.dedupe_key.clone(),
        correlation: begun.correlation.as_ref().and_then(|json| JsonObject::parse(json.as_str()).ok()),
        started_at: text(run.started_at),
        updated_at: text(run.updated_at),
        ended_at: run.ended_at.map(text),
        visits: None,
    }
}

/// Why a run is where it is: what is wrong with it as a whole, who stopped it, or the first step that failed for good.
fn reason(run: &Run) -> Option<String> {
    if let Some(condemned) = &run.condemned {
        return Some(condemned.clone());
    }
    match run.state() {
        RunState::Cancelling | RunState::Cancelled => run.cancel.as_ref().map(|cancel| cancel.reason.clone()),
        RunState::Running | RunState::Failed => run
            .numbered()
            .filter(|(at, seen)| !run.is_group(*at) && run.is_unhandled(seen))
            .find_map(|(_, seen)| Some(format!("{}: {}", step(run, seen), failure(seen)?))),
        RunState::Completed => None,
    }
}

fn visit(run: &Run, at: VisitIndex, seen: &Visit) -> RunVisit {
    RunVisit {
        visit: at,
        step: step(run, seen),
        kind: if run.is_group(at) { "group" } else { "step" }.to_owned(),
        state: state(seen).to_owned(),
        reason: failure(seen).map(str::to_owned),
        job_id: seen.job_id().map(|id| id.as_str().to_owned()),
        within: seen.within,
        cause: cause(seen.cause),
    }
}

fn step(run: &Run, seen: &Visit) -> String {
    run.node(seen).map(|node| node.id.clone()).unwrap_or_default()
}

fn state(seen: &Visit) -> &'static str {
    match &seen.state {
        VisitState::Waiting => "waiting",
        VisitState::Open(_) => "open",
        VisitState::Inside => "inside",
        VisitState::Over { end, .. } => match end {
            StepEnd::Completed { .. } => "completed",
            StepEnd::Skipped => "skipped",
            StepEnd::Failed { .. } => "failed",
            StepEnd::Cancelled => "cancelled",
        },
    }
}

fn failure(seen: &Visit) -> Option<&str> {
    match seen.end()? {
        StepEnd::Failed { code } => Some(code),
        StepEnd::Completed { .. } | StepEnd::Skipped | StepEnd::Cancelled => None,
    }
}

fn cause(cause: Cause) -> RunCause {
    let (kind, visit, event) = match cause {
        Cause::Start => ("start", None, None),
        Cause::Entered(group) => ("entered", Some(group), None),
        Cause::After(visit, event) => ("after", Some(visit), Some(event)),
        Cause::Failure(visit) => ("failure", Some(visit), None),
    };
    RunCause { kind: kind.to_owned(), visit, event }
}
