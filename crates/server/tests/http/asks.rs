//! Asks: a thread of their own beside the work. Acknowledging one never touches a job.

use api::Role;
use domain::ask::{DEFAULT_TTL_SECONDS, MAX_TTL_SECONDS};
use serde_json::{Value, json};
use store::Store;

use crate::given::{Answer, World, world};

impl World {
    async fn ask(&self, body: Value) -> String {
        let opened = self.post("/asks", body).send().await.ok();
        opened["correlation_id"].as_str().expect("it has one").to_owned()
    }

    async fn ack(&self, id: &str, body: Value) -> Answer {
        self.post(&format!("/asks/{id}/ack"), body).send().await
    }

    async fn read_ask(&self, id: &str) -> Value {
        self.get(&format!("/asks/{id}")).send().await.ok()["ask"].clone()
    }

    async fn pending(&self, query: &str) -> Vec<String> {
        let list = self.get(&format!("/asks/pending?{query}")).send().await.ok()["asks"].clone();
        list.as_array()
            .expect("it is a list")
            .iter()
            .map(|ask| ask["correlation_id"].as_str().expect("it has one").to_owned())
            .collect()
    }

    /// What a peer is handed now.
    pub(crate) async fn pull_for(&self, peer: &str) -> Value {
        let asked = json!({ "peer_id": peer, "wait_seconds": 0 });
        self.post("/jobs/next", asked).send().await.ok()["job"].clone()
    }
}

// conforms: R3 R4
#[tokio::test]
async fn ask_opens_a_thread_with_a_correlation_id_and_an_ack_closes_it() {
    let world = world().await;
    world.register(json!({ "peer_id": "b-1", "display_name": "joan" })).await;
    let sent = json!({ "to_peer": "joan", "from_peer": "peer-a", "text": "gloss or matt?" });
    let id = world.ask(sent).await;
    assert!(id.starts_with("ask-") && id.len() == "ask-".len() + 32, "{id}");
    let ask = world.read_ask(&id).await;
    assert_eq!((&ask["to_peer"], &ask["from_peer"]), (&json!("b-1"), &json!("peer-a")));
    assert_eq!((&ask["status"], &ask["text"]), (&json!("open"), &json!("gloss or matt?")));
    assert_eq!(world.pending("peer_id=b-1").await, [id.as_str()]);
    assert_eq!(world.pending("peer_id=peer-a").await, Vec::<String>::new());
    assert_eq!(world.pending("peer_id=peer-a&direction=outbound").await, [id.as_str()]);
    assert_eq!(world.pending("peer_id=b-1&direction=both").await, [id.as_str()]);
    let acked = world.ack(&id, json!({ "message": "matt" })).await.ok()["ask"].clone();
    assert_eq!((&acked["close_reason"], &acked["message"]), (&json!("ack_with_msg"), &json!("matt")));
    assert_eq!(world.read_ask(&id).await, acked);
    assert_eq!(world.pending("peer_id=b-1").await, Vec::<String>::new());
    assert_eq!(world.ack(&id, json!({})).await.ok()["ask"], acked, "a bare ack may be repeated");
    world.ack(&id, json!({ "message": "gloss" })).await.problem(410, "ask_closed");
    assert_eq!(world.read_ask(&id).await, acked);
    world.ack("ask-0", json!({})).await.problem(404, "not_found");
    let bare = world.ask(json!({ "to_peer": "b-1", "text": "again?" })).await;
    assert_eq!(world.ack(&bare, json!({})).await.ok()["ask"]["close_reason"], "ack");
    assert!(world.store.facts_after(0, 1).await.unwrap().is_empty(), "an ask is no work, and makes none");
}

// conforms: R115
#[tokio::test]
async fn ack_names_its_ask_in_the_body() {
    let world = world().await;
    let ask = async |text: &str| world.ask(json!({ "to_peer": "repow-b-1", "text": text })).await;
    let ack = async |body: Value| world.post("/ack", body).send().await;
    let (with, bare) = (ask("gloss or matt?").await, ask("again?").await);
    let acked = ack(json!({ "correlation_id": with, "message": "matt" })).await.ok();
    assert_eq!(
        (&acked["ask"]["close_reason"], &acked["ask"]["message"]),
        (&json!("ack_with_msg"), &json!("matt"))
    );
    for _ in 0..2 {
        assert_eq!(ack(json!({ "correlation_id": bare })).await.ok()["ask"]["close_reason"], "ack");
    }
    ack(json!({ "correlation_id": with, "message": "gloss" })).await.problem(410, "ask_closed");
    ack(json!({ "correlation_id": "ask-0" })).await.problem(404, "not_found");
    ack(json!({ "message": "matt" })).await.problem(422, "invalid_request");
}

// conforms: R1 R3 R5 R6 R7 R37 R38 R58 R108
#[tokio::test]
async fn job_is_delivered_with_an_ask_whose_ack_confirms_receipt_and_never_touches_the_job() {
    let world = world().await;
    world.register(json!({ "peer_id": "joan" })).await;
    let id = world.create(json!({ "assigned_peer_id": "joan", "title": "a secret title" })).await;
    assert_eq!(world.pending("peer_id=joan").await, Vec::<String>::new());
    assert_eq!(world.status(&id).await["owner_peer_id"], json!(null), "nobody has it yet");
    let job = world.pull_for("joan").await;
    let (correlation, attempt) =
        (job["correlation_id"].as_str().unwrap(), job["attempt_id"].as_str().unwrap());
    assert!(correlation.starts_with("ask-") && !correlation.contains(&attempt["attempt-".len()..]));
    assert_eq!(world.pending("peer_id=joan").await, [correlation]);
    let ask = world.read_ask(correlation).await;
    assert_eq!((&ask["job_id"], &ask["to_peer"]), (&json!(id), &json!("joan")));
    for hidden in ["secret", attempt] {
        assert!(!ask["text"].as_str().unwrap().contains(hidden), "{ask}");
    }
    let facts = async || world.get(&format!("/jobs/{id}/facts")).send().await.ok();
    let (status, before) = (world.status(&id).await, facts().await);
    assert_eq!(status["runner"]["attempts"][0]["correlation_id"], correlation);
    assert_eq!(status["correlation_id"], correlation, "the daemon fills it itself");
    assert_eq!(
        (&status["links"], &status["owner_peer_id"]),
        (&json!({ "asks": [correlation] }), &json!("joan"))
    );
    let owned = world.get("/jobs?owner_peer_id=joan").send().await.ok();
    assert_eq!(owned["work"][0]["job_id"], json!(id), "it is found by the peer that has it");
    assert_eq!(status["state"], "delivered");
    world.ack(correlation, json!({ "message": "done, I swear" })).await.ok();
    world.ack(correlation, json!({})).await.ok();
    // Nor does any other word of its peer or about the job.
    let about = world.ask(json!({ "to_peer": "joan", "text": "cancel it", "job_id": id })).await;
    let reply = json!({ "to_peer": "repow-a-1", "from_peer": "joan", "text": "done", "reply_to": about, "job_id": id });
    let reply = world.ask(reply).await;
    world.ack(&reply, json!({ "message": "completed" })).await.ok();
    world.call("DELETE", "/peers/joan").send().await.ok();
    assert_eq!((world.status(&id).await, facts().await), (status, before), "only a report moves the job");
    let listed = world.get(&format!("/asks?job_id={id}")).send().await.ok();
    assert_eq!(listed["asks"][0]["close_reason"], "ack_with_msg");
    let done = json!({ "attempt_id": attempt });
    let ended = world.post(&format!("/jobs/{id}/complete"), done).send().await.ok();
    assert_eq!(ended["status"]["state"], "completed", "its own word alone completes it");
    assert_eq!(ended["status"]["owner_peer_id"], "joan", "who had it last");
}

// conforms: R7 R37
#[tokio::test]
async fn ask_of_an_attempt_that_is_over_is_not_pending_and_the_next_attempt_has_its_own() {
    let world = world().await;
    let retry = json!({ "max_attempts": 2, "backoff_seconds": 0 });
    let id = world.create(json!({ "assigned_peer_id": "peer-joan", "retry": retry })).await;
    let first = world.pull_for("peer-joan").await;
    let failed = json!({ "attempt_id": first["attempt_id"], "error": { "message": "no paper" } });
    world.post(&format!("/jobs/{id}/fail"), failed).send().await.ok();
    assert_eq!(world.pending("peer_id=peer-joan").await, Vec::<String>::new());
    let ask = world.read_ask(first["correlation_id"].as_str().unwrap()).await;
    assert_eq!(ask["close_reason"], "fire_completed");
    assert_eq!(world.status(&id).await["state"], "queued");
    let second = world.pull_for("peer-joan").await;
    assert_ne!(second["correlation_id"], first["correlation_id"]);
    let status = world.status(&id).await;
    assert_eq!(status["correlation_id"], second["correlation_id"], "the newest");
    let both = json!([first["correlation_id"], second["correlation_id"]]);
    assert_eq!(status["links"]["asks"], both);
    let attempts = status["runner"]["attempts"].as_array().unwrap();
    assert_eq!(json!([attempts[0]["correlation_id"], attempts[1]["correlation_id"]]), both);
    assert_eq!(world.pending("peer_id=peer-joan").await, [second["correlation_id"].as_str().unwrap()]);
    let unassigned = world.create(json!({})).await;
    let job = world.post("/jobs/next", json!({ "wait_seconds": 0 })).send().await.ok()["job"].clone();
    assert_eq!((&job["job_id"], &job["correlation_id"]), (&json!(unassigned), &json!(null)));
    assert_eq!(world.get(&format!("/asks?job_id={unassigned}")).send().await.ok()["asks"], json!([]));
}

#[tokio::test]
async fn ask_closes_by_itself_when_its_time_is_over() {
    let world = world().await;
    let usual = world.ask(json!({ "to_peer": "peer-b", "text": "a day" })).await;
    let short = world.ask(json!({ "to_peer": "peer-b", "text": "a minute", "ttl_seconds": 60 })).await;
    world.clock.advance_seconds(59);
    assert_eq!(world.pending("peer_id=peer-b").await.len(), 2);
    world.clock.advance_seconds(1);
    assert_eq!(world.pending("peer_id=peer-b").await, [usual.as_str()]);
    let ask = world.read_ask(&short).await;
    assert_eq!((&ask["status"], &ask["close_reason"]), (&json!("closed"), &json!("expired")));
    world.ack(&short, json!({})).await.ok();
    world.ack(&short, json!({ "message": "too late" })).await.problem(410, "ask_closed");
    world.clock.advance_seconds(u32::try_from(DEFAULT_TTL_SECONDS).unwrap());
    assert_eq!(world.pending("peer_id=peer-b").await, Vec::<String>::new());
    for ttl_seconds in [0, MAX_TTL_SECONDS + 1] {
        let body = json!({ "to_peer": "peer-b", "text": "x", "ttl_seconds": ttl_seconds });
        world.post("/asks", body).send().await.problem(422, "invalid_request");
    }
}

#[tokio::test]
async fn same_key_gets_the_same_ask_byte_for_byte_and_another_request_under_it_is_refused() {
    let world = world().await;
    world.register(json!({ "peer_id": "b-1", "display_name": "joan" })).await;
    let body = json!({ "to_peer": "joan", "text": "gloss?" });
    let first = world.post("/asks", body.clone()).key("k").send().await;
    let id = first.ok()["correlation_id"].as_str().unwrap().to_owned();
    world.register(json!({ "peer_id": "b-2", "display_name": "joan" })).await;
    world.ack(&id, json!({})).await.ok();
    world.clock.advance_seconds(5);
    let again = world.post("/asks", body.clone()).key("k").send().await;
    assert_eq!((&again.body, again.headers["idempotent-replayed"].as_str()), (&first.body, "true"));
    let other = json!({ "to_peer": "b-1", "text": "matt?" });
    world.post("/asks", other).key("k").send().await.problem(409, "idempotency_key_reused");
    let ambiguous = world.post("/asks", body).key("l").send().await.problem(409, "ambiguous_peer");
    assert_eq!(ambiguous["candidates"].as_array().unwrap().len(), 2);
    let nobody = json!({ "to_peer": "ada", "text": "x" });
    world.post("/asks", nobody).send().await.problem(404, "peer_not_found");
    assert_eq!(world.get("/asks/pending?peer_id=b-1").send().await.ok()["asks"], json!([]));
}

#[tokio::test]
async fn whoever_asked_waits_for_the_answer_and_whoever_is_asked_for_the_ask() {
    let world = world().await;
    let a = world.token(Role::Peer, json!({ "circle": "press", "peer_id": "peer-a" })).await;
    let b = world.token(Role::Peer, json!({ "circle": "press", "peer_id": "peer-b" })).await;
    let waiting = world.get("/asks/pending?wait_seconds=60").bearer(&b).send();
    let comes = async {
        while world.daemon.presences().count() == 0 {
            tokio::task::yield_now().await;
        }
        let body = json!({ "to_peer": "peer-b", "text": "gloss?" });
        world.post("/asks", body).bearer(&a).send().await.ok()["correlation_id"].as_str().unwrap().to_owned()
    };
    let (pending, id) = tokio::join!(waiting, comes);
    assert_eq!(pending.ok()["asks"][0]["correlation_id"], id);
    assert_eq!(pending.ok()["asks"][0]["from_peer"], "peer-a");
    let wait = async |token: &str, seconds: u64| {
        let body = json!({ "timeout_seconds": seconds });
        world.post(&format!("/asks/{id}/wait"), body).bearer(token).send().await
    };
    assert_eq!(wait(&a, 0).await.ok()["status"], "pending");
    wait(&b, 0).await.problem(403, "forbidden");
    let ack = async |token: &str, body: Value| {
        world.post(&format!("/asks/{id}/ack"), body).bearer(token).send().await
    };
    ack(&a, json!({})).await.problem(403, "forbidden");
    let (waited, acked) = tokio::join!(wait(&a, 50), ack(&b, json!({ "message": "matt" })));
    acked.ok();
    let waited = waited.ok();
    assert_eq!((&waited["status"], &waited["reply"]), (&json!("resolved"), &json!("matt")));
    assert_eq!((&waited["responder"], &waited["close_reason"]), (&json!("peer-b"), &json!("ack_with_msg")));
    let reply = json!({ "to_peer": "peer-b", "text": "gloss after all?" });
    let second = world.post("/asks", reply).bearer(&a).send().await.ok()["correlation_id"].clone();
    let answer = json!({ "to_peer": "peer-a", "text": "yes", "reply_to": second });
    world.post("/asks", answer).bearer(&b).send().await.ok();
    let path = format!("/asks/{}", second.as_str().unwrap());
    let replied = world.get(&path).bearer(&a).send().await.ok()["ask"].clone();
    assert_eq!((&replied["close_reason"], &replied["message"]), (&json!("reply_to"), &json!("yes")));
}

// conforms: R96 R98
#[tokio::test]
async fn ask_of_others_reads_like_one_that_is_not_there() {
    let world = world().await;
    let of = async |circle: &str, peer: &str| {
        world.token(Role::Peer, json!({ "circle": circle, "peer_id": peer })).await
    };
    let (a, third) = (of("press", "peer-a").await, of("press", "peer-c").await);
    let foreign = of("bindery", "peer-b").await;
    let operator = world.token(Role::Operator, json!({ "circle": "bindery" })).await;
    let viewer = world.token(Role::Viewer, json!({ "circle": "press" })).await;
    let body = json!({ "to_peer": "peer-b", "text": "between us" });
    let id =
        world.post("/asks", body).bearer(&a).send().await.ok()["correlation_id"].as_str().unwrap().to_owned();
    let absent = format!("ask-{}", "0".repeat(32));
    for token in [&third, &foreign, &operator] {
        for (method, path) in [("GET", "/asks/ID"), ("POST", "/asks/ID/ack"), ("POST", "/asks/ID/wait")] {
            let send = async |id: &str| {
                let call = world.call(method, &path.replace("ID", id)).bearer(token);
                if method == "GET" { call.send().await } else { call.json(&json!({})).send().await }
            };
            let hidden = send(&id).await;
            hidden.problem(404, "not_found");
            assert_eq!(hidden.body.replace(&id, &absent), send(&absent).await.body, "{method} {path}");
        }
    }
    let pending = world.get("/asks/pending?peer_id=peer-b");
    pending.bearer(&third).send().await.problem(403, "forbidden");
    assert_eq!(
        world.get("/asks/pending?peer_id=peer-b").bearer(&foreign).send().await.ok()["asks"],
        json!([])
    );
    assert_eq!(world.get(&format!("/asks/{id}")).bearer(&viewer).send().await.ok()["ask"]["status"], "open");
    let for_another = json!({ "to_peer": "peer-b", "from_peer": "peer-c", "text": "x" });
    world.post("/asks", for_another).bearer(&a).send().await.problem(403, "forbidden");
}

// conforms: R104
#[tokio::test]
async fn ask_may_be_about_a_job_that_its_sender_sees() {
    let world = world().await;
    let token = world.token(Role::Agent, json!({ "circle": "press", "peer_id": "peer-a" })).await;
    let job = world.create(json!({ "circle": "press" })).await;
    let hidden = world.create(json!({ "circle": "bindery" })).await;
    let about = |job: &str| json!({ "to_peer": "peer-b", "text": "how is it?", "job_id": job });
    let opened = world.post("/asks", about(&job)).bearer(&token).send().await.ok();
    let listed = world.get(&format!("/asks?job_id={job}")).bearer(&token).send().await.ok();
    assert_eq!(listed["asks"][0]["correlation_id"], opened["correlation_id"]);
    world.post("/asks", about(&hidden)).bearer(&token).send().await.problem(404, "not_found");
    world.get(&format!("/asks?job_id={hidden}")).bearer(&token).send().await.problem(404, "not_found");
    world.get("/asks").bearer(&token).send().await.problem(422, "invalid_request");
}
