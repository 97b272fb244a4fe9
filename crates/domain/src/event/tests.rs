//! The rules of events: settled once, with limits, and no chain that gives itself more.

use super::*;
use crate::body::{BodyName, BodyRef, Digest};
use crate::{Decision, EventId, Refusal, Timestamp};

const NOW: Timestamp = Timestamp::from_seconds(11);

fn new(kind: &str) -> NewEvent {
    let payload = BodyRef { name: BodyName::Payload, sha256: Digest([0; 32]), size: 2 };
    NewEvent::new(kind, payload, Origin::Published { by: None })
}

fn published() -> Event {
    Event::new(EventId::new("event-1"), &new("tide.changed"), Timestamp::from_seconds(10))
}

fn not(disposition: Disposition) -> EventCommand {
    let route = Route { pipeline: "tides".to_owned(), answer: RouteAnswer::Not(disposition) };
    EventCommand::Settle { routes: vec![route], moves_its_run: false }
}

#[test]
fn event_is_settled_once_and_doing_it_again_starts_nothing() {
    let mut event = published();
    assert_eq!(event.status(), EventStatus::Waiting);
    let Decision::Facts { facts, .. } = decide(&event, &not(Disposition::PredicateFalse), NOW) else {
        panic!("it waits")
    };
    apply(&mut event, &facts[0], NOW).unwrap();
    assert_eq!(event.status(), EventStatus::Declined);
    assert_eq!(decide(&event, &not(Disposition::OtherSource), NOW), Decision::Nothing);
}

#[test]
fn event_that_nobody_listens_to_says_so() {
    let mut event = published();
    let command = EventCommand::Settle { routes: Vec::new(), moves_its_run: false };
    let Decision::Facts { facts, .. } = decide(&event, &command, NOW) else { panic!("it waits") };
    apply(&mut event, &facts[0], NOW).unwrap();
    assert_eq!(event.status(), EventStatus::NoRoute);
}

#[test]
fn same_event_again_is_the_same_and_another_one_under_its_id_is_refused() {
    let event = published();
    let again = |kind: &str| EventCommand::Publish(Box::new(new(kind)));
    assert_eq!(decide(&event, &again("tide.changed"), NOW), Decision::Nothing);
    assert_eq!(decide(&event, &again("other"), NOW), Decision::refuse(Refusal::AlreadyExists));
}

#[test]
fn event_without_a_type_or_with_too_much_is_refused() {
    let id = EventId::new("event-2");
    let mut large = new("a");
    large.payload.size = MAX_PAYLOAD_BYTES as u64 + 1;
    let mut long_key = new("a");
    long_key.dedupe_key = Some("x".repeat(MAX_DEDUPE_KEY_BYTES + 1));
    for refused in [new(""), new("two\nlines"), new(&"x".repeat(MAX_TYPE_BYTES + 1)), large, long_key] {
        let decision = decide_new(&id, &EventCommand::Publish(Box::new(refused.clone())), NOW);
        assert!(matches!(decision, Decision::Refused { .. }), "{refused:?}");
    }
}

#[test]
fn chain_keeps_the_limit_that_it_began_with() {
    let at = |depth, max_depth| NewEvent { depth, max_depth, ..new("a") };
    for (event, hops, limit) in [
        (at(0, None), None, Some(DEFAULT_MAX_DEPTH)),
        (at(0, None), Some(2), Some(2)),
        (at(0, None), Some(0), None),
        (at(1, Some(2)), Some(2), Some(2)),
        (at(1, Some(9)), Some(2), Some(3)),
        (at(1, Some(2)), Some(0), Some(2)),
        (at(1, Some(2)), None, Some(2)),
        (at(5, None), None, None),
    ] {
        assert_eq!(event.chain_limit(hops), limit, "{event:?} {hops:?}");
    }
}
