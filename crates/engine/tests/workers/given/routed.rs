//! Pipelines over the memory store: executors that write down what they are given, and ways to look at events and runs.

use std::sync::{Arc, Mutex};

use domain::event::{Disposition, Event, NewEvent, Origin};
use domain::job::Job;
use domain::run::{Run, RunState};
use domain::{BodyName, EventId, Record, RecordId, RunId};
use engine::{Emitted, Executor, Failure, Ids, Output, Produced, RandomIds};
use pipelines::Router;
use pipelines::{Routes, parse};
use serde_json::{Value, json};
use store::{Store, body_ref};

use super::{Given, scripted};

/// What each executor was given, in order.
pub type Seen = Arc<Mutex<Vec<(String, Value)>>>;

/// An executor that writes down what it is given and answers with this.
pub fn noting(
    name: &'static str,
    seen: &Seen,
    answer: impl Fn(&Value) -> Produced + Send + Sync + 'static,
) -> (String, Executor) {
    let seen = seen.clone();
    let answer = Arc::new(answer);
    scripted(name, 8, move |assignment, _| {
        let (seen, answer) = (seen.clone(), answer.clone());
        async move {
            let input: Value = serde_json::from_slice(&assignment.input).expect("the input is JSON");
            let produced = answer(&input);
            seen.lock().expect("no holder of the lock panics").push((name.to_owned(), input));
            produced
        }
    })
}

/// A result with these events, as a plugin's.
pub fn emitting(events: &[(&str, Value)]) -> Produced {
    let listed: Vec<Value> =
        events.iter().map(|(kind, payload)| json!({ "type": kind, "payload": payload })).collect();
    let emitted = events.iter().map(|(kind, payload)| Emitted {
        kind: (*kind).to_owned(),
        payload: payload.to_string().into_bytes(),
        dedupe_key: payload.get("key").and_then(Value::as_str).map(str::to_owned),
        correlation: None,
    });
    Produced::Completed(Output {
        data: Some(json!({ "result": "ok", "events": listed }).to_string().into_bytes()),
        emitted: emitted.collect(),
        ..Output::default()
    })
}

pub fn done() -> Produced {
    Produced::Completed(Output { data: Some(b"{\"done\":true}".to_vec()), ..Output::default() })
}

pub fn failed() -> Produced {
    Produced::Failed(Failure::permanent("boom", "it does not work"))
}

pub struct World {
    pub given: Given,
    pub seen: Seen,
}

impl World {
    pub fn new<const N: usize>(yaml: &str, executors: impl FnOnce(&Seen) -> [(String, Executor); N]) -> Self {
        let seen = Seen::default();
        let given = Given::new(executors(&seen));
        Self { seen, ..Self::with(yaml, given) }
    }

    /// With these pipelines.
    pub fn with(yaml: &str, given: Given) -> Self {
        let seen = Seen::default();
        let loaded = parse(&[("test.yaml", yaml)]);
        assert!(loaded.mistakes.is_empty(), "{:?}", loaded.mistakes);
        given.pipelines.replace(Routes::new(loaded.pipelines));
        Self { given, seen }
    }

    pub async fn publish(&self, kind: &str, payload: Value, dedupe_key: Option<&str>) -> EventId {
        self.publish_with(kind, payload, |new| new.dedupe_key = dedupe_key.map(str::to_owned)).await
    }

    pub async fn publish_with(
        &self,
        kind: &str,
        payload: Value,
        change: impl FnOnce(&mut NewEvent),
    ) -> EventId {
        let id = EventId::new(format!("event-{:032x}", RandomIds.next()));
        let payload = payload.to_string().into_bytes();
        let (body, origin) = (body_ref(BodyName::Payload, &payload), Origin::Published { by: None });
        let mut new = NewEvent::new(kind, body, origin);
        change(&mut new);
        let order = Router::publishing(&id, new, payload, Arc::from("test"));
        self.given.daemon.engine().execute(order).await.expect("it is accepted");
        id
    }

    pub async fn load(&self, id: impl Into<RecordId>) -> Option<Arc<Record>> {
        self.given.store.inner.load(&id.into()).await.expect("it can be read").map(|loaded| loaded.record)
    }

    pub async fn settled(&self, id: &EventId) -> Event {
        loop {
            let written = self.given.store.written.notified();
            if let Some(record) = self.load(id.clone()).await
                && let Record::Event(event) = &*record
                && event.settled.is_some()
            {
                return (**event).clone();
            }
            written.await;
        }
    }

    /// The run that an event started in a pipeline.
    pub async fn started(&self, id: &EventId) -> RunId {
        let event = self.settled(id).await;
        let routes = event.settled.expect("it is settled").settlement.routes;
        match routes.first().map(|routed| &routed.disposition) {
            Some(Disposition::Started(run_id)) => run_id.clone(),
            other => panic!("it started nothing: {other:?}"),
        }
    }

    pub async fn run(&self, id: &RunId) -> Run {
        let record = self.load(id.clone()).await.expect("it is there");
        let Record::Run(run) = &*record else { panic!("{record:?} is no run") };
        (**run).clone()
    }

    pub async fn until(&self, id: &RunId, state: RunState) -> Run {
        loop {
            let written = self.given.store.written.notified();
            let run = self.run(id).await;
            if run.state() == state {
                return run;
            }
            written.await;
        }
    }

    pub fn jobs(&self) -> Vec<Job> {
        let tables = self.given.store.inner.inspect(|tables| tables.views.clone());
        tables.values().filter_map(|record| record.as_job().cloned()).collect()
    }

    pub fn events(&self, kind: &str) -> Vec<Event> {
        let views = self.given.store.inner.inspect(|tables| tables.views.clone());
        let events = views.values().filter_map(|record| record.as_event());
        events.filter(|event| event.said.kind == kind).cloned().collect()
    }

    pub fn seen(&self) -> Vec<(String, Value)> {
        self.seen.lock().expect("no holder of the lock panics").clone()
    }

    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.seen().into_iter().map(|(name, _)| name).collect();
        names.sort();
        names
    }
}
