//! One fact of every variant of events and runs, with every field filled, and again with all that may be left out left out.

use domain::event::{Disposition, EventFact, NewEvent, Origin, Processed, Routed, Settlement, Settler};
use domain::run::{Left, NewRun, Node, NodeKind, OnError, RunEnd, RunFact, Shape, StepEnd};
use domain::{AttemptId, BodyName, EventId, JobId, Json, OwnerId, RunId};
use store::body_ref;

use super::samples::BY_MICROS;

pub fn event(kind: &str) -> Vec<EventFact> {
    match kind {
        "event.published/1" => origins()
            .into_iter()
            .zip([true, false].into_iter().cycle())
            .map(|(origin, full)| EventFact::Published(Box::new(new_event(origin, full))))
            .collect(),
        "event.settled/1" => {
            let routes = dispositions()
                .map(|disposition| Routed { pipeline: "tides".to_owned(), disposition })
                .to_vec();
            let processed = [Some("work-1".to_owned()), None].map(|work_order_id| Settlement {
                processed: Some(Processed {
                    reason: "SCHEDULED".to_owned(),
                    owner_id: "scheduler-1".to_owned(),
                    work_order_id,
                }),
                ..Settlement::default()
            });
            let routed = Settlement { routes, moved_its_run: true, processed: None };
            [routed, Settlement::default()].into_iter().chain(processed).map(EventFact::Settled).collect()
        }
        "event.timers_moved/1" => BY_MICROS.map(|by_micros| EventFact::TimersMoved { by_micros }).to_vec(),
        "event.retired/1" => vec![EventFact::Retired],
        other => panic!("no sample of {other}"),
    }
}

pub fn run(kind: &str) -> Vec<RunFact> {
    let (visit, job_id) = (2, JobId::new("work-1"));
    match kind {
        "run.started/1" => [true, false].map(|full| RunFact::Started(Box::new(new_run(full)))).to_vec(),
        "run.step_started/1" => vec![RunFact::StepStarted { visit, job_id }],
        "run.group_entered/1" => vec![RunFact::GroupEntered { visit }],
        "run.step_ended/1" => [
            StepEnd::Completed { emitted: 0, left: None },
            StepEnd::Completed { emitted: 3, left: Some(left()) },
            StepEnd::Skipped,
            StepEnd::Failed { code: "timeout".to_owned() },
            StepEnd::Cancelled,
        ]
        .map(|end| RunFact::StepEnded { visit, end })
        .to_vec(),
        "run.step_reopened/1" => vec![RunFact::StepReopened { visit, job_id }],
        "run.cancel_requested/1" => [Some("ada".to_owned()), None]
            .into_iter()
            .zip([Some(16), None])
            .map(|(by, next)| RunFact::CancelRequested { by, reason: "not needed".to_owned(), next })
            .collect(),
        "run.cancel_continued/1" => [Some(32), None].map(|next| RunFact::CancelContinued { next }).to_vec(),
        "run.condemned/1" => vec![RunFact::Condemned { reason: "depth_exceeded".to_owned() }],
        "run.ended/1" => [RunEnd::Completed, RunEnd::Failed, RunEnd::Cancelled].map(RunFact::Ended).to_vec(),
        "run.timers_moved/1" => BY_MICROS.map(|by_micros| RunFact::TimersMoved { by_micros }).to_vec(),
        "run.retired/1" => vec![RunFact::Retired],
        other => panic!("no sample of {other}"),
    }
}

fn origins() -> [Origin; 6] {
    let by = Some("token-1".to_owned());
    [
        Origin::Published { by: by.clone() },
        Origin::Published { by: None },
        Origin::Asked { pipeline: "tides".to_owned(), by },
        Origin::Webhook { endpoint: "harbour".to_owned() },
        Origin::Emitted { job_id: JobId::new("work-1"), ordinal: 1 },
        Origin::JobEnded { job_id: JobId::new("work-1") },
    ]
}

fn dispositions() -> [Disposition; 7] {
    [
        Disposition::Started(RunId::new("run-1")),
        Disposition::DuplicateOf(RunId::new("run-2")),
        Disposition::OtherSource,
        Disposition::PredicateFalse,
        Disposition::PredicateInvalid("payload.level is a text".to_owned()),
        Disposition::DepthExceeded(9),
        Disposition::Invalid("the payload is too large".to_owned()),
    ]
}

fn new_event(origin: Origin, full: bool) -> NewEvent {
    NewEvent {
        kind: "tide.changed".to_owned(),
        payload: body_ref(BodyName::Payload, b"{}"),
        origin,
        source: full.then(|| "tide_gauge".to_owned()),
        dedupe_key: full.then(|| "tide:7".to_owned()),
        circle: full.then(|| "sea".to_owned()),
        depth: u32::from(full),
        max_depth: full.then_some(8),
        correlation: full.then(|| Json::parse(r#"{"run_id":"7"}"#).unwrap()),
        settled_by: if full { Settler::Claimants } else { Settler::Router },
    }
}

fn new_run(full: bool) -> NewRun {
    let step = |id: &str, on_error| Node {
        id: id.to_owned(),
        kind: NodeKind::Step,
        next: None,
        conditional: full,
        on_error,
    };
    let group = Node {
        kind: NodeKind::Group { branches: vec![1, 2] },
        next: Some(3),
        ..step("all", OnError::Continue)
    };
    let shape = vec![group, step("a", OnError::Go(3)), step("b", OnError::Stop), step("c", OnError::Stop)];
    NewRun {
        pipeline: "tides".to_owned(),
        version: "0123456789abcdef".to_owned(),
        shape: Shape(shape),
        plan: body_ref(BodyName::Plan, b"[]"),
        input: body_ref(BodyName::Input, b"{}"),
        event_id: EventId::new("event-1"),
        parent: full.then(|| RunId::new("run-0")),
        circle: full.then(|| "sea".to_owned()),
        depth: u32::from(full),
        max_depth: full.then_some(8),
        dedupe_key: full.then(|| "tide:7".to_owned()),
        correlation: full.then(|| Json::parse(r#"{"run_id":"7"}"#).unwrap()),
    }
}

fn left() -> Left {
    Left { attempt_id: AttemptId::new("attempt-1"), owner: OwnerId::new("daemon-1") }
}
