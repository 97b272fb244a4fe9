//! `/events`: what is published, what came of it, and who sees it.

use api::Role;
use serde_json::{Value, json};

use crate::given::{Answer, World, working_world, world};

const TIDES: &str = "
pipelines:
- { name: high, on: tide, if: { path: payload.level, op: gte, value: 2000 }, steps: [{ id: tell, uses: echo }] }
- { name: low, on: tide, if: { path: payload.level, op: lt, value: 2000 }, steps: [{ uses: echo }] }
- { name: odd, on: tide, if: { path: payload.station, op: gt, value: 1 }, steps: [{ uses: echo }] }
- { name: of_gauge, on: tide, from_plugin: gauge, steps: [{ uses: echo }] }
";

impl World {
    /// Publishes an event and gives its id.
    pub async fn publish(&self, event: Value) -> String {
        id_of(&self.post("/events", event).send().await)
    }

    pub async fn event(&self, id: &str) -> Value {
        self.get(&format!("/events/{id}")).send().await.ok()["event"].clone()
    }

    /// The event once it is decided what it starts, woken by every commit.
    pub async fn settled(&self, id: &str) -> Value {
        let mut ledger = self.daemon.ledger();
        loop {
            ledger.borrow_and_update();
            let event = self.event(id).await;
            if event["status"] != "waiting" {
                return event;
            }
            ledger.changed().await.expect("the daemon lives");
        }
    }
}

fn id_of(answer: &Answer) -> String {
    assert_eq!(answer.status, 202, "{}", answer.body);
    answer.value()["event_id"].as_str().expect("it has an id").to_owned()
}

#[tokio::test]
async fn event_says_for_every_pipeline_that_listens_what_came_of_it() {
    let world = working_world().await;
    world.pipelines(TIDES);
    let sent = json!({ "type": "tide", "payload": { "level": 18_446_744_073_709_551_615_u64, "station": "north" },
        "dedupe_key": "k", "correlation": { "order": 7 } });
    let published = world.post("/events", sent.clone()).send().await;
    assert_eq!(published.value()["status"], "waiting");
    let event = world.settled(&id_of(&published)).await;
    let said: Vec<(&str, &str)> = event["routes"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|route| {
            (route["pipeline"].as_str().expect("text"), route["disposition"].as_str().expect("text"))
        })
        .collect();
    let expected = [
        ("high", "started"),
        ("low", "predicate_false"),
        ("odd", "predicate_invalid"),
        ("of_gauge", "other_source"),
    ];
    assert_eq!(said, expected);
    assert!(event["routes"][0]["run_id"].as_str().expect("text").starts_with("run-"), "{event}");
    assert!(event["routes"][2]["reason"].is_string(), "{event}");
    assert_eq!((&event["status"], &event["moved_its_run"]), (&json!("routed"), &json!(false)));
    assert_eq!((&event["payload"], &event["correlation"]), (&sent["payload"], &sent["correlation"]));
    let again = world.settled(&world.publish(sent).await).await;
    assert_eq!(again["routes"][0]["disposition"], "duplicate");
    assert_eq!(again["routes"][0]["run_id"], event["routes"][0]["run_id"]);
    let nobody = world.settled(&world.publish(json!({ "type": "wind" })).await).await;
    assert_eq!((&nobody["status"], &nobody["payload"]), (&json!("no_route"), &json!({})));
}

#[tokio::test]
async fn payload_with_a_number_that_nobody_can_read_is_kept_word_for_word_and_every_pipeline_says_why_not() {
    let world = working_world().await;
    world.pipelines(TIDES);
    let sent = r#"{"type":"tide","payload":{"level":1e999}}"#;
    let published = world.post("/events", json!({})).text(sent).send().await;
    let id = id_of(&published);
    let shown = world.get(&format!("/events/{id}")).send().await;
    assert!(shown.body.contains(r#""level":1e999"#), "{}", shown.body);
    let mut ledger = world.daemon.ledger();
    loop {
        ledger.borrow_and_update();
        let shown = world.get(&format!("/events/{id}")).send().await;
        if !shown.body.contains(r#""status":"waiting""#) {
            assert_eq!(shown.body.matches("the payload cannot be read: number out of range").count(), 4);
            break;
        }
        ledger.changed().await.expect("the daemon lives");
    }
}

#[tokio::test]
async fn event_under_a_key_is_one_event_and_is_answered_byte_for_byte() {
    let world = working_world().await;
    world.pipelines(TIDES);
    let sent = json!({ "type": "tide", "payload": { "level": 2000 } });
    let first = world.post("/events", sent.clone()).key("k").send().await;
    world.settled(&id_of(&first)).await;
    let second = world.post("/events", sent).key("k").send().await;
    assert_eq!((second.status, &second.body), (202, &first.body));
    assert_eq!(second.headers["idempotent-replayed"], "true");
    let other = json!({ "type": "tide", "payload": { "level": 1 } });
    world.post("/events", other).key("k").send().await.problem(409, "idempotency_key_reused");
    assert_eq!(world.get("/events").send().await.ok()["events"].as_array().expect("a list").len(), 1);
}

#[tokio::test]
async fn event_that_is_over_a_limit_is_refused_with_its_field() {
    let world = world().await;
    let large = json!({ "text": "x".repeat(262_144) });
    for (event, field) in [
        (json!({ "type": "" }), "type"),
        (json!({ "type": "x".repeat(257) }), "type"),
        (json!({ "type": "a\nb" }), "type"),
        (json!({}), "type"),
        (json!({ "type": "t", "payload": [] }), "payload"),
        (json!({ "type": "t", "payload": large }), "payload"),
        (json!({ "type": "t", "correlation": { "x": "x".repeat(2_048) } }), "correlation"),
        (json!({ "type": "t", "dedupe_key": "" }), "dedupe_key"),
        (json!({ "type": "t", "dedupe_key": "x".repeat(513) }), "dedupe_key"),
        (json!({ "type": "t", "source": "gauge" }), "source"),
    ] {
        let answer = world.post("/events", event).send().await;
        assert_eq!(
            (answer.status, &answer.value()["errors"][0]["loc"]),
            (422, &json!(["body", field])),
            "{}",
            answer.body
        );
    }
    world.publish(json!({ "type": "x".repeat(256) })).await;
}

#[tokio::test]
async fn list_is_newest_first_page_by_page_and_picks_by_type_and_status() {
    let world = working_world().await;
    let mut ids = Vec::new();
    for kind in ["a", "b", "a"] {
        ids.push(world.publish(json!({ "type": kind })).await);
        world.clock.advance_seconds(1);
    }
    for id in &ids {
        world.settled(id).await;
    }
    let listed = async |query: &str| {
        let page = world.get(&format!("/events?{query}")).send().await.ok();
        let ids = page["events"].as_array().expect("a list").iter();
        let ids: Vec<String> =
            ids.map(|event| event["event_id"].as_str().expect("text").to_owned()).collect();
        (ids, page["next_cursor"].as_str().map(str::to_owned))
    };
    let (first, next) = listed("limit=2").await;
    assert_eq!(first, [ids[2].clone(), ids[1].clone()]);
    let (second, _) = listed(&format!("limit=2&cursor={}", next.expect("there is more"))).await;
    assert_eq!(second, [ids[0].clone()]);
    assert_eq!(listed("type=a&status=no_route").await.0, [ids[2].clone(), ids[0].clone()]);
    assert!(listed("type=a&status=waiting").await.0.is_empty());
    world.get("/events?status=gone").send().await.problem(400, "invalid_value");
    world.get("/events?cursor=1.run-1").send().await.problem(422, "invalid_cursor");
}

#[tokio::test]
async fn event_of_another_circle_reads_like_none() {
    let world = world().await;
    let press = world.token(Role::Peer, json!({ "circle": "press" })).await;
    let kitchen = world.token(Role::Peer, json!({ "circle": "kitchen" })).await;
    let viewer = world.token(Role::Viewer, json!({})).await;
    let id = id_of(&world.post("/events", json!({ "type": "t" })).bearer(&press).send().await);
    let path = format!("/events/{id}");
    assert_eq!(world.get(&path).bearer(&press).send().await.ok()["event"]["circle"], "press");
    let hidden = world.get(&path).bearer(&kitchen).send().await.problem(404, "not_found");
    let absent = world.get("/events/event-0").bearer(&kitchen).send().await.problem(404, "not_found");
    assert_eq!(hidden["detail"].as_str().expect("text").replace(&id, "event-0"), absent["detail"]);
    for query in ["", "?circle=press"] {
        let page = world.get(&format!("/events{query}")).bearer(&kitchen).send().await.ok();
        assert_eq!(page["events"], json!([]), "{query}");
    }
    let page = world.get("/events?circle=press").bearer(&viewer).send().await.ok();
    assert_eq!(page["events"][0]["event_id"], json!(id));
    let elsewhere = json!({ "type": "t", "circle": "kitchen" });
    world.post("/events", elsewhere).bearer(&press).send().await.problem(403, "circle_forbidden");
    world.get("/events/work-0").send().await.problem(404, "not_found");
}
