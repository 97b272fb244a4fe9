//! Events and runs: listed by name newest first, found by their key, and gone when they are retired.

use std::sync::Arc;

use domain::event::{EventFact, NewEvent, Origin, Settlement};
use domain::run::{NewRun, Node, NodeKind, OnError, RunEnd, RunFact, Shape};
use domain::{BodyName, EventId, Fact, Record, RecordId, RecordKind, RunId};
use store::{RecordQuery, Store};

use crate::given::*;
use crate::retirement::retiring;
use crate::subject::on_every_store;

pub fn event(name: &str) -> RecordId {
    EventId::new(format!("event-{name}")).into()
}

pub fn run(name: &str) -> RecordId {
    RunId::new(format!("run-{name}")).into()
}

pub fn published(kind: &str, circle: Option<&str>) -> Fact {
    let (payload, circle) = (new_body(BodyName::Payload, b"{}").body, circle.map(str::to_owned));
    let new = NewEvent::new(kind, payload, Origin::Published { by: None });
    Fact::Event(EventFact::Published(Box::new(NewEvent { circle, ..new })))
}

fn settled() -> Fact {
    Fact::Event(EventFact::Settled(Settlement::default()))
}

pub fn started(pipeline: &str, dedupe_key: Option<&str>) -> Fact {
    let step = Node {
        id: "a".to_owned(),
        kind: NodeKind::Step,
        next: None,
        conditional: false,
        on_error: OnError::Stop,
    };
    Fact::Run(RunFact::Started(Box::new(NewRun {
        pipeline: pipeline.to_owned(),
        version: "1".to_owned(),
        shape: Shape(vec![step]),
        plan: new_body(BodyName::Plan, b"[]").body,
        input: new_body(BodyName::Input, b"{}").body,
        event_id: EventId::new("event-1"),
        parent: None,
        circle: None,
        depth: 0,
        max_depth: None,
        dedupe_key: dedupe_key.map(str::to_owned),
        correlation: None,
    })))
}

fn all(kind: RecordKind) -> RecordQuery {
    RecordQuery { kind, name: None, status: None, circle: None, after: None, limit: 10 }
}

async fn names(store: &dyn Store, query: RecordQuery) -> Vec<String> {
    let page = store.records(query).await.unwrap();
    page.records.iter().map(|record: &Arc<Record>| record.id().as_str().to_owned()).collect()
}

#[tokio::test]
async fn events_are_listed_newest_first_by_type_state_and_circle_page_by_page() {
    on_every_store(async |store| {
        for (name, kind, circle, when) in [
            ("1", "tide", None, 1),
            ("2", "wind", Some("sea"), 2),
            ("3", "tide", Some("sea"), 2),
            ("4", "tide", None, 3),
        ] {
            write(&*store, &event(name), vec![published(kind, circle)], at(when)).await;
        }
        write(&*store, &run("x"), vec![started("tide", None)], at(9)).await;
        write(&*store, &event("1"), vec![settled()], at(4)).await;
        let events = all(RecordKind::Event);
        assert_eq!(names(&*store, events.clone()).await, ["event-4", "event-3", "event-2", "event-1"]);
        let tide = RecordQuery { name: Some("tide".to_owned()), ..events.clone() };
        assert_eq!(names(&*store, tide.clone()).await, ["event-4", "event-3", "event-1"]);
        let waiting = RecordQuery { status: Some("waiting".to_owned()), ..tide };
        assert_eq!(names(&*store, waiting.clone()).await, ["event-4", "event-3"]);
        let sea = RecordQuery { circle: Some("sea".to_owned()), ..waiting };
        assert_eq!(names(&*store, sea).await, ["event-3"]);
        let mut paged = Vec::new();
        let mut query = RecordQuery { limit: 1, ..events };
        loop {
            let page = store.records(query.clone()).await.unwrap();
            paged.extend(page.records.iter().map(|record| record.id().as_str().to_owned()));
            let Some(next) = page.next else { break };
            query.after = Some(next);
        }
        assert_eq!(paged, ["event-4", "event-3", "event-2", "event-1"]);
    })
    .await;
}

#[tokio::test]
async fn newest_run_under_a_key_is_found_for_its_pipeline_alone() {
    on_every_store(async |store| {
        assert_eq!(store.newest_record(RecordKind::Run, "tides", "k").await, Ok(None));
        for (name, pipeline, key, when) in [
            ("1", "tides", Some("k"), 1),
            ("2", "tides", Some("k"), 3),
            ("3", "winds", Some("k"), 4),
            ("4", "tides", None, 5),
        ] {
            write(&*store, &run(name), vec![started(pipeline, key)], at(when)).await;
        }
        let newest =
            store.newest_record(RecordKind::Run, "tides", "k").await.unwrap().expect("there are two");
        assert_eq!(newest.id(), run("2"));
        assert_eq!(store.newest_record(RecordKind::Run, "tides", "other").await, Ok(None));
    })
    .await;
}

#[tokio::test]
async fn what_is_retired_is_gone_from_the_lists_with_its_facts() {
    on_every_store(async |store| {
        write(&*store, &event("1"), vec![published("tide", None), settled()], at(1)).await;
        write(&*store, &run("1"), vec![started("tides", Some("k"))], at(1)).await;
        write(&*store, &run("1"), vec![Fact::Run(RunFact::Ended(RunEnd::Completed))], at(2)).await;
        for id in [event("1"), run("1")] {
            store.commit(retiring(&*store, &id, 3).await).await.unwrap();
            assert_eq!(store.load(&id).await, Ok(None));
            assert!(store.facts_of(&id, 0, 10).await.unwrap().is_empty());
        }
        for kind in [RecordKind::Event, RecordKind::Run] {
            assert!(names(&*store, all(kind)).await.is_empty());
        }
    })
    .await;
}
