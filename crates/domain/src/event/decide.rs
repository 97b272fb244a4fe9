//! What may happen to an event: it is written down, settled once, and forgotten.

use super::MAX_ROUTES;
use super::command::{EventCommand, NewEvent, Processed, Route, RouteAnswer, Settler};
use super::fact::{Disposition, EventFact, Routed, Settlement};
use super::state::Event;
use crate::planted::{Bug, planted};
use crate::run::RunCommand;
use crate::{EventId, RecordId, Refusal, Timestamp};

type Decision = crate::Decision<EventFact>;

/// Decides a command on an event that does not exist yet.
pub fn decide_new(id: &EventId, command: &EventCommand, _: Timestamp) -> Decision {
    match command {
        EventCommand::Publish(new) => publish(id, new),
        EventCommand::MoveTimers { .. } => Decision::Nothing,
        EventCommand::Settle { .. } | EventCommand::Process(_) | EventCommand::Retire => {
            Decision::refuse(Refusal::UnknownRecord)
        }
    }
}

/// Decides a command on an event.
pub fn decide(event: &Event, command: &EventCommand, _: Timestamp) -> Decision {
    match command {
        // An id that is made from what emitted it comes again when that is done again.
        EventCommand::Publish(new) if event.said == **new => Decision::Nothing,
        EventCommand::Publish(_) => Decision::refuse(Refusal::AlreadyExists),
        EventCommand::Settle { routes, moves_its_run } => settle(event, routes, *moves_its_run),
        EventCommand::Process(processed) => process(event, processed),
        EventCommand::MoveTimers { by_micros } => {
            Decision::fact(EventFact::TimersMoved { by_micros: *by_micros })
        }
        EventCommand::Retire => match &event.settled {
            Some(_) => Decision::fact(EventFact::Retired),
            None => Decision::refuse(Refusal::EventOpen),
        },
    }
}

fn publish(id: &EventId, new: &NewEvent) -> Decision {
    match RecordId::Event(id.clone()).check().and_then(|()| new.check()) {
        Ok(()) => Decision::fact(EventFact::Published(Box::new(new.clone()))),
        Err(refusal) => refusal.into(),
    }
}

/// What was settled once is settled: doing it again starts nothing.
fn settle(event: &Event, routes: &[Route], moves_its_run: bool) -> Decision {
    if event.settled.is_some() {
        return Decision::Nothing;
    }
    if event.said.settled_by == Settler::Claimants && !planted(Bug::RouterSettlesForClaimants) {
        return Refusal::SettledByClaimants.into();
    }
    if routes.len() > MAX_ROUTES {
        return Refusal::TooLarge { what: "routes of one event", limit: MAX_ROUTES }.into();
    }
    let routed = routes.iter().map(routed).collect();
    let settlement = Settlement { routes: routed, moved_its_run: moves_its_run, processed: None };
    routes.iter().fold(Decision::fact(EventFact::Settled(settlement)), |decision, route| {
        match &route.answer {
            RouteAnswer::Start { .. } if planted(Bug::RunNotStarted) => decision,
            RouteAnswer::Start { run_id, run } => {
                decision.then(run_id.clone(), RunCommand::Start(run.clone()))
            }
            RouteAnswer::Not(_) => decision,
        }
    })
}

/// Whoever holds the claim ends an event once. The same word again changes nothing, another one is too late.
fn process(event: &Event, processed: &Processed) -> Decision {
    if let Some(settled) = &event.settled {
        let same = settled.settlement.processed.as_ref() == Some(processed);
        return if same { Decision::Nothing } else { Refusal::EventSettled.into() };
    }
    match processed.check() {
        Ok(()) => Decision::fact(EventFact::Settled(Settlement {
            processed: Some(processed.clone()),
            ..Settlement::default()
        })),
        Err(refusal) => refusal.into(),
    }
}

fn routed(route: &Route) -> Routed {
    let disposition = match &route.answer {
        RouteAnswer::Start { run_id, .. } => Disposition::Started(run_id.clone()),
        RouteAnswer::Not(disposition) => disposition.clone(),
    };
    Routed { pipeline: route.pipeline.clone(), disposition }
}
