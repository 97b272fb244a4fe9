//! Peers: who is registered, who is there, and who is meant by a name.

use api::Role;
use domain::Timestamp;
use domain::peer::{PRESENCE_GRACE_SECONDS, PeerKey};
use serde_json::{Value, json};
use store::Store;

use crate::given::{START, World, world};

impl World {
    pub(crate) async fn register(&self, body: Value) -> Value {
        self.post("/peers", body).send().await.ok()["peer"].clone()
    }

    async fn peer(&self, id: &str) -> Value {
        self.get(&format!("/peers/{id}")).send().await.ok()["peer"].clone()
    }

    /// Waits until the row of a peer is as wanted.
    async fn until_row(&self, id: &str, wanted: impl Fn(Option<&str>) -> bool) {
        loop {
            let peer = self
                .store
                .peer(&PeerKey::new(None, id))
                .await
                .expect("the store reads")
                .expect("it is registered");
            if wanted(peer.present_on.as_deref()) {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn no_jobs(&self) -> bool {
        self.store.facts_after(0, 1).await.expect("the store reads").is_empty()
    }
}

#[tokio::test]
async fn peer_registers_says_anew_what_it_is_and_is_forgotten() {
    let world = world().await;
    let sent = json!({ "peer_id": "joan", "display_name": "Joan of the press", "circle": "press", "labels": ["offset"],
        "capabilities": ["fold"], "path": "/srv/press", "backend": "codex", "metadata": { "pid": u64::MAX } });
    let peer = world.register(sent.clone()).await;
    for (key, value) in sent.as_object().unwrap() {
        assert_eq!(peer[key], *value, "{key}");
    }
    assert_eq!((&peer["presence"], &peer["seen_at"]), (&json!("present"), &peer["registered_at"]));
    assert_eq!(world.peer("joan").await, peer);
    world.clock.advance_seconds(5);
    let again = world.register(json!({ "peer_id": "joan", "circle": "press" })).await;
    assert_eq!((&again["display_name"], &again["labels"]), (&json!("joan"), &json!([])));
    assert_eq!(again["registered_at"], peer["registered_at"]);
    let made_up = world.register(json!({ "circle": "press" })).await["peer_id"].as_str().unwrap().to_owned();
    assert!(made_up.starts_with("peer-press-") && made_up.len() == "peer-press-".len() + 16, "{made_up}");
    assert!(world.register(json!({})).await["peer_id"].as_str().unwrap().starts_with("peer-none-"));
    let list = world.get("/peers?circle=press&limit=1").send().await.ok();
    assert_eq!((&list["peers"][0]["peer_id"], &list["next_cursor"]), (&json!("joan"), &json!("joan")));
    let rest = world.get("/peers?circle=press&cursor=joan").send().await.ok();
    assert_eq!(rest["peers"].as_array().unwrap().len(), 1);
    assert_eq!(rest["peers"][0]["peer_id"], made_up.as_str());
    world.call("DELETE", "/peers/joan").send().await.ok();
    world.get("/peers/joan").send().await.problem(404, "not_found");
    world.call("DELETE", "/peers/joan").send().await.problem(404, "not_found");
}

#[tokio::test]
async fn token_registers_its_own_peer_only_and_the_id_stays_its_own() {
    let world = world().await;
    let bound = world.token(Role::Peer, json!({ "circle": "press", "peer_id": "joan" })).await;
    let other = world.token(Role::Peer, json!({ "circle": "press", "peer_id": "ada" })).await;
    let unbound = world.token(Role::Agent, json!({ "circle": "press" })).await;
    let foreign = world.token(Role::Agent, json!({ "circle": "bindery" })).await;
    let post = async |body: Value, token: &str| world.post("/peers", body).bearer(token).send().await;
    assert_eq!(post(json!({}), &bound).await.ok()["peer"]["peer_id"], "joan");
    post(json!({ "peer_id": "ada" }), &bound).await.problem(403, "forbidden");
    post(json!({ "peer_id": "joan" }), &other).await.problem(403, "forbidden");
    post(json!({ "circle": "bindery" }), &bound).await.problem(403, "circle_forbidden");
    post(json!({ "peer_id": "joan" }), &unbound).await.problem(409, "peer_id_taken");
    post(json!({ "peer_id": "third" }), &unbound).await.ok();
    post(json!({ "peer_id": "third" }), &unbound).await.ok();
    let of_press = json!({ "peer_id": "joan", "circle": "press" });
    world.post("/peers", of_press).send().await.problem(409, "peer_id_taken");
    let forget = async |id: &str, token: &str| {
        world.call("DELETE", &format!("/peers/{id}")).bearer(token).send().await
    };
    forget("joan", &unbound).await.problem(403, "forbidden");
    forget("joan", &foreign).await.problem(404, "not_found");
    forget("joan", &bound).await.ok();
    forget("third", &unbound).await.ok();
}

// conforms: R96 R98
#[tokio::test]
async fn peer_of_another_circle_reads_like_one_that_is_not_there() {
    let world = world().await;
    world.register(json!({ "peer_id": "joan", "display_name": "Joan", "circle": "bindery" })).await;
    world.register(json!({ "peer_id": "nobodys" })).await;
    let token = world.token(Role::Agent, json!({ "circle": "press" })).await;
    let hidden = world.get("/peers/joan").bearer(&token).send().await;
    hidden.problem(404, "not_found");
    let absent = world.get("/peers/nobo").bearer(&token).send().await;
    assert_eq!(hidden.body.replace("joan", "nobo"), absent.body);
    for query in ["", "?circle=bindery", "?display_name=Joan", "?circle=press"] {
        let list = world.get(&format!("/peers{query}")).bearer(&token).send().await.ok();
        assert_eq!(list["peers"], json!([]), "{query}");
    }
    for word in ["joan", "Joan", "nobodys"] {
        let refused = world.post("/jobs", json!({ "assigned_peer_id": word })).bearer(&token).send().await;
        refused.problem(404, "assigned_peer_not_found");
        assert!(!refused.body.contains("bindery"), "{}", refused.body);
    }
    assert!(world.no_jobs().await);
}

// conforms: R31 R32 R96 R98 R99 R101
#[tokio::test]
async fn job_is_assigned_by_exact_id_or_by_a_name_that_only_one_has_and_nothing_is_stored_otherwise() {
    let world = world().await;
    for (id, name, circle) in [
        ("a-1", "joan", "press"),
        ("a-2", "joan", "press"),
        ("ada", "painter", "press"),
        ("b-1", "ada", "press"),
        ("c-1", "solo", "press"),
        ("d-1", "solo", "bindery"),
    ] {
        world.register(json!({ "peer_id": id, "display_name": name, "circle": circle })).await;
    }
    assert_eq!(world.peer("ada").await["display_name"], "painter", "it is not the one that is called so");
    let create = async |word: &str, circle: Value| {
        world.post("/jobs", json!({ "assigned_peer_id": word, "circle": circle })).send().await
    };
    let ambiguous = create("joan", json!("press")).await;
    ambiguous.problem(409, "ambiguous_assigned_peer");
    let candidates: Value = serde_json::from_str(&ambiguous.body).unwrap();
    assert_eq!(
        candidates["candidates"],
        json!([
            { "peer_id": "a-1", "display_name": "joan", "circle": "press" },
            { "peer_id": "a-2", "display_name": "joan", "circle": "press" },
        ])
    );
    for (word, circle) in [
        ("nobody", json!("press")),
        ("joa", json!("press")),
        ("joan", json!(null)),
        ("a-1", json!("bindery")),
        ("a-1", json!(null)),
    ] {
        create(word, circle).await.problem(404, "assigned_peer_not_found");
    }
    assert_eq!(candidates["peer"], "joan");
    let target = json!({ "target": { "assigned_peer_id": "joan" } });
    let in_execution = json!({ "circle": "press", "request": { "execution": target } });
    world.post("/jobs", in_execution).send().await.problem(409, "ambiguous_assigned_peer");
    let batch = json!({ "jobs": [{ "assigned_peer_id": "joan", "circle": "press" }] });
    assert_eq!(world.post("/jobs/batch", batch).send().await.ok()["results"][0]["status"], 409);
    assert!(world.no_jobs().await, "refused before anything is stored");
    for (word, circle, meant) in [
        ("a-2", "press", "a-2"),
        ("ada", "press", "ada"),
        ("painter", "press", "ada"),
        ("solo", "press", "c-1"),
        ("solo", "bindery", "d-1"),
        ("peer-unheard-of", "press", "peer-unheard-of"),
        ("repow-blue-00000000", "press", "repow-blue-00000000"),
    ] {
        let status = create(word, json!(circle)).await.ok()["status"].clone();
        assert_eq!(status["assigned_peer_id"], meant, "{word}");
        assert_eq!(status["execution"]["target"]["assigned_peer_id"], meant, "{word}");
    }
}

// conforms: R32
#[tokio::test]
async fn what_is_stored_is_an_id_so_a_name_that_becomes_ambiguous_changes_nothing_for_a_job_or_its_key() {
    let world = world().await;
    world.register(json!({ "peer_id": "a-1", "display_name": "joan" })).await;
    let body = json!({ "assigned_peer_id": "joan" });
    let first = world.post("/jobs", body.clone()).header("idempotency-key", "k").send().await;
    let id = first.ok()["job_id"].as_str().unwrap().to_owned();
    world.register(json!({ "peer_id": "a-2", "display_name": "joan" })).await;
    let again = world.post("/jobs", body.clone()).header("idempotency-key", "k").send().await;
    assert_eq!(again.body, first.body);
    world.post("/jobs", body).send().await.problem(409, "ambiguous_assigned_peer");
    assert_eq!(world.pull_for("a-2").await, json!(null));
    assert_eq!(world.pull_for("a-1").await["job_id"], id.as_str());
}

#[tokio::test]
async fn peer_is_present_while_it_waits_and_for_a_grace_afterwards_and_only_coming_and_going_is_written() {
    let world = world().await;
    world.register(json!({ "peer_id": "joan" })).await;
    world.clock.advance_seconds(u32::try_from(PRESENCE_GRACE_SECONDS).unwrap());
    world.until_row("joan", |node| node.is_none()).await;
    let peer = world.peer("joan").await;
    assert_eq!((&peer["presence"], &peer["seen_at"]), (&json!("absent"), &peer["registered_at"]));

    let before = world.store.figures().requests();
    let waiting = world.post("/jobs/next", json!({ "peer_id": "joan", "wait_seconds": 60 })).send();
    let meanwhile = async {
        world.until_row("joan", |node| node.is_some()).await;
        // Its coming is written, and its lane is asked once; in which order is nobody's promise.
        let written = before + 2;
        while world.store.figures().requests() < written {
            tokio::task::yield_now().await;
        }
        for _ in 0..10 {
            world.clock.advance_seconds(40);
            assert_eq!(world.peer("joan").await["presence"], "present");
        }
        assert_eq!(world.store.figures().requests(), written, "whoever waits costs no statement");
        world.create(json!({ "assigned_peer_id": "joan" })).await
    };
    let (answer, id) = tokio::join!(waiting, meanwhile);
    assert_eq!(answer.ok()["job"]["job_id"], id);
    let gone = world.peer("joan").await;
    assert_eq!((&gone["presence"], world.daemon.presences().count()), (&json!("present"), 1));
    world.clock.advance_seconds(u32::try_from(PRESENCE_GRACE_SECONDS).unwrap());
    world.until_row("joan", |node| node.is_none()).await;
    assert_eq!(world.peer("joan").await["presence"], "absent");
}

#[tokio::test]
async fn what_a_node_that_is_not_alive_has_heard_is_not_presence() {
    let world = world().await;
    world.register(json!({ "peer_id": "joan" })).await;
    let sighting = domain::peer::Sighting {
        id: "ada".to_owned(),
        circle: None,
        node: "another-node".to_owned(),
        presence: domain::peer::Presence::Present,
        seen_at: START,
    };
    let ada = domain::peer::Peer {
        id: "ada".to_owned(),
        ..world.store.peer(&PeerKey::new(None, "joan")).await.unwrap().unwrap()
    };
    world.store.keep_peer(ada).await.unwrap();
    world.store.note_sightings(vec![sighting]).await.unwrap();
    assert_eq!(world.peer("ada").await["presence"], "absent");
    let node = store::Node {
        id: "another-node".to_owned(),
        name: String::new(),
        url: String::new(),
        version: String::new(),
        schema_version: 1,
        executors: Vec::new(),
        started_at: START,
        heartbeat_at: START,
        attempts: 0,
        polls: 0,
        taking: store::Taking::Takes,
    };
    world.store.keep_node(node, Timestamp::from_seconds(0)).await.unwrap();
    assert_eq!(world.peer("ada").await["presence"], "present");
    world.clock.advance_seconds(31);
    assert_eq!(world.peer("ada").await["presence"], "absent", "the node is silent");
}

// conforms: R70
#[tokio::test]
async fn cancel_is_told_to_nobody_who_only_looks_like_the_assigned_peer() {
    let world = world().await;
    let alike =
        json!({ "peer_id": "peer-2", "display_name": "repow-a-1", "circle": "press", "path": "/srv/press" });
    world.register(alike).await;
    // It lives: it does work of its own in the same folder and circle.
    let own = world.create(json!({ "circle": "press", "path": "/srv/press" })).await;
    let asked = json!({ "peer_id": "peer-2", "circle": "press", "paths": ["/srv/press"], "wait_seconds": 0 });
    let (pulled, attempt) = world.pulled(asked.clone()).await;
    assert_eq!(pulled, own);
    world.beat(&own, &attempt).await;
    let body = json!({ "assigned_peer_id": "repow-a-1", "circle": "press", "path": "/srv/press" });
    let id = world.create(body).await;
    world.patch(&id, json!({ "state": "running" })).send().await.ok();
    let facts = async || world.store.facts_after(0, 99).await.unwrap().len();
    let before = facts().await;
    let status = world.post(&format!("/jobs/{id}/cancel"), json!({})).send().await.ok()["status"].clone();
    assert_eq!((&status["state"], &status["cancel_requested"]), (&json!("running"), &json!(true)));
    assert_eq!(world.beat(&own, &attempt).await["cancel_requested"], false);
    let foreign = world.tell(&id, "heartbeat", json!({ "attempt_id": attempt })).await;
    foreign.problem(409, "stale_attempt");
    assert_eq!(world.status(&id).await["protocol_cancel"], status["protocol_cancel"]);
    assert_eq!(status["protocol_cancel"]["status"], "unavailable");
    assert_eq!(facts().await, before + 1, "the request alone: nothing was started or told for it");
    let asks = world.get("/asks/pending?peer_id=peer-2").send().await.ok();
    assert_eq!(asks["asks"], json!([]));
    assert_eq!(world.pull(asked).await, json!(null));
    assert_eq!(world.status(&own).await["cancel_requested"], false);
}

// conforms: R100
#[tokio::test]
async fn why_says_that_the_peer_is_absent_and_since_when() {
    let world = world().await;
    let peer = world.register(json!({ "peer_id": "joan" })).await;
    let id = world.create(json!({ "assigned_peer_id": "joan" })).await;
    let unknown = world.create(json!({ "assigned_peer_id": "peer-nobody" })).await;
    let reasons = async |id: &str| world.get(&format!("/jobs/{id}/why")).send().await.ok()["reasons"].clone();
    let codes = |reasons: &Value| -> Vec<String> {
        reasons.as_array().unwrap().iter().map(|one| one["code"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(codes(&reasons(&id).await), ["waits_for_peer"]);
    assert_eq!(codes(&reasons(&unknown).await), ["waits_for_peer", "peer_absent"]);
    world.clock.advance_seconds(u32::try_from(PRESENCE_GRACE_SECONDS).unwrap());
    let told = reasons(&id).await;
    assert_eq!(codes(&told), ["waits_for_peer", "peer_absent"]);
    assert_eq!(told[1]["until"], peer["seen_at"]);
    for waiting in [&id, &unknown] {
        assert_eq!(world.status(waiting).await["state"], "queued");
    }
}

#[tokio::test]
async fn words_that_cannot_be_a_peers_are_refused_and_nothing_is_kept() {
    let world = world().await;
    let long = "x".repeat(300);
    for (body, code) in [
        (json!({ "peer_id": "" }), "invalid_request"),
        (json!({ "peer_id": "a b" }), "invalid_request"),
        (json!({ "peer_id": "a/b" }), "invalid_request"),
        (json!({ "peer_id": long }), "too_large"),
        (json!({ "peer_id": "a", "display_name": "" }), "invalid_request"),
        (json!({ "peer_id": "a", "display_name": "two\nlines" }), "invalid_request"),
        (json!({ "peer_id": "a", "display_name": long }), "too_large"),
        (json!({ "peer_id": "a", "circle": "" }), "invalid_request"),
        (json!({ "peer_id": "a", "labels": vec!["gpu"; 65] }), "too_large"),
        (json!({ "peer_id": "a", "labels": [long] }), "too_large"),
        (json!({ "peer_id": "a", "metadata": { "a": "x".repeat(5_000) } }), "too_large"),
        (json!({ "peer_id": "a", "metadata": [1] }), "invalid_request"),
        (json!({ "peer_id": "a", "name": "joan" }), "invalid_request"),
    ] {
        world.post("/peers", body).send().await.problem(422, code);
    }
    assert_eq!(world.get("/peers").send().await.ok()["peers"], json!([]));
    world.get("/peers?cursor=a%20b").send().await.problem(422, "invalid_cursor");
    world.get("/peers?limit=0").send().await.problem(422, "invalid_request");
}

#[tokio::test]
async fn same_id_of_two_circles_is_two_peers_side_by_side() {
    let world = world().await;
    let (mut tokens, mut jobs, mut asks) = (Vec::new(), Vec::new(), Vec::new());
    for circle in ["bindery", "press"] {
        let token = world.token(Role::Peer, json!({ "circle": circle, "peer_id": "joan" })).await;
        let name = format!("Joan of the {circle}");
        let registered =
            world.post("/peers", json!({ "display_name": name })).bearer(&token).send().await.ok();
        assert_eq!(registered["peer"]["circle"], circle);
        tokens.push(token);
        jobs.push(world.create(json!({ "assigned_peer_id": "joan", "circle": circle })).await);
        let ask = json!({ "to_peer": name, "text": circle, "circle": circle });
        asks.push(world.post("/asks", ask).send().await.ok());
    }
    for (one, circle) in ["bindery", "press"].into_iter().enumerate() {
        let other = 1 - one;
        let own = &tokens[one];
        let peer = world.get("/peers/joan").bearer(own).send().await.ok()["peer"].clone();
        assert_eq!(peer["display_name"], format!("Joan of the {circle}"));
        let pending = world.get("/asks/pending").bearer(own).send().await.ok();
        let texts: Vec<&Value> = pending["asks"].as_array().unwrap().iter().map(|ask| &ask["text"]).collect();
        assert_eq!(texts, [circle]);
        let ack = |ask: &Value| format!("/asks/{}/ack", ask["correlation_id"].as_str().unwrap());
        world.post(&ack(&asks[other]), json!({})).bearer(own).send().await.problem(404, "not_found");
        world.post(&ack(&asks[one]), json!({})).bearer(own).send().await.ok();
        let pull = || world.post("/jobs/next", json!({ "wait_seconds": 0 })).bearer(own);
        let job = pull().send().await.ok()["job"].clone();
        assert_eq!(job["job_id"], jobs[one].as_str());
        assert_eq!(pull().send().await.ok()["job"], json!(null));
        let attempt = world.attempt_of(&jobs[one]).await;
        let report = json!({ "attempt_id": attempt });
        let path = format!("/jobs/{}/complete", jobs[one]);
        let foreign = world.post(&path, report.clone()).bearer(&tokens[other]).send().await;
        foreign.problem(404, "not_found");
        world.post(&path, report).bearer(own).send().await.ok();
    }
}

#[tokio::test]
async fn presence_in_one_circle_is_no_presence_in_another() {
    let world = world().await;
    for circle in ["bindery", "press"] {
        world.register(json!({ "peer_id": "joan", "circle": circle })).await;
    }
    world.clock.advance_seconds(u32::try_from(PRESENCE_GRACE_SECONDS).unwrap());
    let presence = async |circle: &str| {
        world.peer(&format!("joan?circle={circle}")).await["presence"].as_str().unwrap().to_owned()
    };
    assert_eq!((presence("bindery").await, presence("press").await), ("absent".into(), "absent".into()));
    world
        .post("/jobs/next", json!({ "peer_id": "joan", "circle": "press", "wait_seconds": 0 }))
        .send()
        .await
        .ok();
    assert_eq!((presence("bindery").await, presence("press").await), ("absent".into(), "present".into()));
    let is_absent = async |circle: &str| {
        let id = world.create(json!({ "assigned_peer_id": "joan", "circle": circle })).await;
        let why = world.get(&format!("/jobs/{id}/why")).send().await.ok();
        why["reasons"].as_array().unwrap().iter().any(|reason| reason["code"] == "peer_absent")
    };
    assert_eq!((is_absent("bindery").await, is_absent("press").await), (true, false));
}

#[tokio::test]
async fn id_of_several_circles_is_ambiguous_until_the_circle_is_named() {
    let world = world().await;
    for circle in [json!(null), json!("bindery"), json!("press")] {
        world.register(json!({ "peer_id": "joan", "circle": circle })).await;
    }
    world.register(json!({ "peer_id": "ada", "circle": "press" })).await;
    assert_eq!(world.peer("ada").await["circle"], "press", "one alone needs no circle");
    for method in ["GET", "DELETE"] {
        let refused = world.call(method, "/peers/joan").send().await;
        refused.problem(409, "ambiguous_peer");
        let problem: Value = serde_json::from_str(&refused.body).unwrap();
        let candidate =
            |circle: Value| json!({ "peer_id": "joan", "display_name": "joan", "circle": circle });
        let circles = [json!(null), json!("bindery"), json!("press")];
        assert_eq!(problem["candidates"], json!(circles.map(candidate)), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("?circle="), "{problem}");
    }
    let to_nobody =
        world.post("/asks", json!({ "to_peer": "joan", "circle": "annex", "text": "?" })).send().await;
    to_nobody.problem(404, "peer_not_found");
    assert!(to_nobody.body.contains(r#"the circles [\"bindery\", \"press\"]"#), "{}", to_nobody.body);
    assert_eq!(world.peer("joan?circle=bindery").await["circle"], "bindery");
    assert_eq!(world.peer("joan?circle=").await["circle"], json!(null));
    world.get("/peers/joan?circle=annex").send().await.problem(404, "not_found");
    world.call("DELETE", "/peers/joan?circle=").send().await.ok();
    world.call("DELETE", "/peers/joan?circle=press").send().await.ok();
    assert_eq!(world.peer("joan").await["circle"], "bindery");
}

#[tokio::test]
async fn list_of_every_circle_goes_on_within_an_id() {
    let world = world().await;
    for circle in [json!(null), json!("bindery"), json!("press/2")] {
        for id in ["ada", "joan"] {
            world.register(json!({ "peer_id": id, "circle": circle })).await;
        }
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = world.get(&format!("/peers?limit=1&cursor={cursor}")).send().await.ok();
        let peers = page["peers"].as_array().unwrap();
        seen.extend(peers.iter().map(|peer| (peer["peer_id"].clone(), peer["circle"].clone())));
        assert!(seen.len() < 9, "{seen:?}");
        match page["next_cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    let circles = [json!(null), json!("bindery"), json!("press/2")];
    let of = |id: &str| circles.clone().map(|circle| (json!(id), circle));
    assert_eq!(seen, [of("ada"), of("joan")].concat());
}
