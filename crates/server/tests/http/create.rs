//! Creating jobs.

use serde_json::json;

use crate::given::{START_TEXT, world};

// conforms: R5 R10 R46
#[tokio::test]
async fn created_job_is_queued_under_a_new_id_on_both_routes() {
    let world = world().await;
    for route in ["/jobs", "/work"] {
        let answer = world.post(route, json!({ "title": "print", "source_kind": "chat" })).send().await.ok();
        let id = answer["job_id"].as_str().unwrap();
        // A UUID of version 7 in hex: it sorts by its time.
        assert_eq!((id.len(), &id[..5], &id[17..18]), (5 + 32, "work-", "7"), "{id}");
        assert_eq!(answer["work_id"], id);
        assert_eq!(answer["status"]["state"], "queued");
        assert_eq!(
            (&answer["status"]["runner"], &answer["status"]["owner_peer_id"]),
            (&json!({}), &json!(null))
        );
        assert_eq!(answer["status"], world.status(id).await);
        assert_eq!(answer.as_object().unwrap().len(), 3);
    }
}

// conforms: R23
#[tokio::test]
async fn every_field_that_is_given_comes_back() {
    let world = world().await;
    let given = json!({
        "title": "Print „der Umschlag“", "kind": "print", "created_by_peer_id": "peer-ada",
        "owner_peer_id": "peer-grace", "assigned_peer_id": "repow-press-1", "repowire_session_id": "rw-session-1",
        "correlation_id": "ask-7", "circle": "press", "source_kind": "cli", "source_id": "7", "scope": "books",
        "visibility": "private", "deadline_at": "2026-02-01T00:00:00.000000+00:00",
        "expires_at": "2026-03-01T00:00:00.000000+00:00",
    });
    let id = world.create(given.clone()).await;
    let status = world.status(&id).await;
    for (key, value) in given.as_object().unwrap() {
        assert_eq!(&status[key], value, "{key}");
    }
    world.patch(&id, json!({ "state": "running", "progress_note": "inking" })).send().await.ok();
    let notes = world.status(&id).await["progress_events"].clone();
    assert_eq!((notes.as_array().unwrap().len(), &notes[0]["note"]), (1, &json!("inking")), "{notes}");
}

// conforms: R10 R24
#[tokio::test]
async fn execution_has_prompt_target_schedule_and_delivery() {
    let world = world().await;
    let id = world.create(json!({ "title": "print" })).await;
    assert_eq!(
        world.status(&id).await["execution"],
        json!({
            "prompt": { "body": "print", "source": "title" }, "target": {}, "schedule": {},
            "delivery": { "kind": "ask" },
        })
    );
    let id = world
        .create(json!({
            "prompt": "say \"hello\"\n", "path": "/srv/books", "backend": "codex", "profile": "careful",
            "due_at": "2026-01-02T03:04:05+01:00", "result_surface": "chat",
            "request": { "for": "ada", "execution": { "delivery": { "kind": "notify" }, "target": { "host": "a" }, "note": 1 } },
        }))
        .await;
    let status = world.status(&id).await;
    assert_eq!(
        status["execution"],
        json!({
            "prompt": { "body": "say \"hello\"\n", "source": "inline" },
            "target": { "host": "a", "path": "/srv/books", "backend": "codex", "profile": "careful" },
            "schedule": { "due_at": "2026-01-02T03:04:05+01:00" },
            "delivery": { "kind": "notify", "result_surface": "chat" },
            "process_scope": "per_fire", "continuity": "fresh", "note": 1,
        })
    );
    assert_eq!(status["request"]["execution"], status["execution"]);
    assert_eq!(status["request"]["for"], "ada");
    assert_eq!(status["due_at"], "2026-01-02T03:04:05+01:00");
}

#[tokio::test]
async fn callers_own_prompt_survives_and_an_empty_inline_prompt_counts() {
    let world = world().await;
    let own = json!({ "request": { "execution": { "prompt": { "body": "mine", "source": "book" } } } });
    let id = world.create(own).await;
    assert_eq!(world.status(&id).await["execution"]["prompt"], json!({ "body": "mine", "source": "book" }));
    let id = world.create(json!({ "title": "t", "prompt": "" })).await;
    assert_eq!(world.status(&id).await["execution"]["prompt"], json!({ "body": "", "source": "inline" }));
}

#[tokio::test]
async fn scope_and_continuity_follow_from_what_is_given() {
    let world = world().await;
    let spawned = json!({ "path": "/srv", "backend": "pi" });
    for (more, scope, continuity) in [
        (json!({}), json!("per_fire"), json!("fresh")),
        (json!({ "process_scope": "per-fire" }), json!("per_fire"), json!("fresh")),
        (json!({ "process_scope": "persistent" }), json!("persistent"), json!(null)),
        (
            json!({ "process_scope": "persistent", "continuity": "resume" }),
            json!("persistent"),
            json!("resume"),
        ),
        (json!({ "assigned_peer_id": "repow-a-1" }), json!(null), json!(null)),
    ] {
        let mut body = spawned.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let id = world.create(body).await;
        let execution = world.status(&id).await["execution"].clone();
        assert_eq!((&execution["process_scope"], &execution["continuity"]), (&scope, &continuity), "{more}");
    }
}

#[tokio::test]
async fn resume_without_a_session_that_lasts_is_refused() {
    let world = world().await;
    let resume = json!({ "path": "/srv", "backend": "pi", "continuity": "resume" });
    for body in [
        resume.clone(),
        json!({ "request": { "execution": { "continuity": "resume" } } }),
        json!({ "executor": "echo", "continuity": "resume" }),
    ] {
        let refused = world.post("/jobs", body).send().await.problem(422, "invalid_request");
        assert_eq!(refused["errors"][0]["type"], "continuity_unavailable");
        assert!(refused["detail"].as_str().unwrap().contains("process_scope persistent"), "{refused}");
    }
    for more in [json!({ "process_scope": "persistent" }), json!({ "assigned_peer_id": "repow-a-1" })] {
        let mut body = resume.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let id = world.create(body).await;
        assert_eq!(world.status(&id).await["execution"]["continuity"], "resume", "{more}");
    }
}

#[tokio::test]
async fn fresh_start_of_a_process_that_stays_is_refused() {
    let world = world().await;
    let fresh = json!({ "process_scope": "persistent", "continuity": "fresh" });
    let mut in_folder = fresh.clone();
    in_folder["path"] = json!("/srv");
    in_folder["backend"] = json!("pi");
    for body in [in_folder.clone(), fresh.clone(), json!({ "request": { "execution": fresh } })] {
        let refused = world.post("/jobs", body).send().await.problem(422, "invalid_request");
        assert_eq!(refused["errors"][0]["type"], "continuity_unavailable");
        assert!(refused["detail"].as_str().unwrap().contains("process_scope per_fire"), "{refused}");
    }
    // What a peer makes of it is the peer's own business.
    in_folder["assigned_peer_id"] = json!("repow-a-1");
    world.create(in_folder).await;
}

#[tokio::test]
async fn unknown_backend_in_the_execution_is_refused() {
    let world = world().await;
    let target = json!({ "path": "/srv", "backend": "telepathy" });
    let body = json!({ "request": { "execution": { "target": target } } });
    let refused = world.post("/jobs", body).send().await.problem(422, "invalid_request");
    assert_eq!(refused["errors"][0]["type"], "literal_error");
    assert!(refused["detail"].as_str().unwrap().contains("backend must be one of"), "{refused}");
}

#[tokio::test]
async fn unknown_key_is_refused_by_name() {
    let world = world().await;
    let problem = world.post("/jobs", json!({ "tilte": "x" })).send().await.problem(422, "invalid_request");
    assert_eq!(problem["errors"][0]["type"], "extra_forbidden");
    assert_eq!(problem["errors"][0]["loc"], json!(["body", "tilte"]));
    assert_eq!(world.get("/jobs").send().await.ok()["work"], json!([]));
}

#[tokio::test]
async fn wrong_types_are_refused_by_name() {
    let world = world().await;
    for (body, kind, loc) in [
        (json!({ "title": 5 }), "string_type", json!(["body", "title"])),
        (json!({ "title": null }), "string_type", json!(["body", "title"])),
        (json!({ "request": [] }), "dict_type", json!(["body", "request"])),
        (json!({ "request": { "execution": 1 } }), "dict_type", json!(["body", "request", "execution"])),
        (json!({ "priority": "high" }), "int_type", json!(["body", "priority"])),
        (json!({ "retry": { "max_attempts": -1 } }), "int_type", json!(["body", "retry", "max_attempts"])),
        (json!({ "retry": { "often": 1 } }), "extra_forbidden", json!(["body", "retry", "often"])),
        (json!({ "tags": [1] }), "string_type", json!(["body", "tags", "0"])),
        (json!({ "backend": "emacs" }), "literal_error", json!(["body", "backend"])),
        (json!({ "due_at": "tomorrow" }), "datetime_type", json!(["body", "due_at"])),
        (json!({ "deadline_at": "2026-01-02" }), "datetime_type", json!(["body", "deadline_at"])),
        (json!({ "expires_at": "2026-01-02T00:00:00" }), "datetime_type", json!(["body", "expires_at"])),
        (json!([]), "dict_type", json!(["body"])),
        (json!({ "retry": [3, 1, 1] }), "dict_type", json!(["body", "retry"])),
    ] {
        let problem = world.post("/jobs", body.clone()).send().await.problem(422, "invalid_request");
        let error = &problem["errors"][0];
        assert_eq!((&error["type"], &error["loc"]), (&json!(kind), &loc), "{body}: {problem}");
    }
}

#[tokio::test]
async fn what_upstream_refuses_with_400_is_refused_with_400() {
    let world = world().await;
    let both = json!({ "due_at": "2027-01-01T00:00:00Z", "cron": "@daily" });
    let problem = world.post("/jobs", both).send().await.problem(400, "fields_exclusive");
    assert_eq!(problem["detail"], "provide due_at or cron, not both");
    let problem =
        world.post("/jobs", json!({ "process_scope": "x" })).send().await.problem(400, "invalid_value");
    assert_eq!(problem["detail"], "process_scope must be one of: per_fire, persistent");
    let problem =
        world.post("/jobs", json!({ "continuity": "x" })).send().await.problem(400, "invalid_value");
    assert_eq!(problem["detail"], "continuity must be one of: resume, fresh");
}

#[tokio::test]
async fn calendars_and_prompt_files_are_refused_with_their_reason() {
    let world = world().await;
    world.post("/jobs", json!({ "cron": "@daily" })).send().await.problem(422, "calendars_unavailable");
    let file = json!({ "prompt_file": "/etc/passwd" });
    let problem = world.post("/jobs", file).send().await.problem(422, "prompt_file_refused");
    assert!(problem["detail"].as_str().unwrap().contains("does not read files"));
}

// conforms: R52 R59
#[tokio::test]
async fn deadline_in_the_past_is_refused_and_one_that_passes_expires_the_job() {
    let world = world().await;
    for limit in ["deadline_at", "expires_at"] {
        let past = json!({ limit: "2025-12-31T23:59:59Z" });
        world.post("/jobs", past).send().await.problem(422, "deadline_elapsed");
    }
    let mut limited = Vec::new();
    for limit in ["deadline_at", "expires_at"] {
        // In the queue, and in the hands of somebody.
        for executor in [json!(null), json!("hands_over")] {
            let id = world.create(json!({ limit: "2026-01-01T00:00:50Z", "executor": executor })).await;
            if executor != json!(null) {
                world.call("POST", &format!("/jobs/{id}/run")).send().await.ok();
            }
            assert_eq!(world.status(&id).await[limit], "2026-01-01T00:00:50.000000+00:00");
            limited.push(id);
        }
    }
    world.clock.advance_seconds(50);
    for id in &limited {
        let status = world.until(id, "expired").await;
        assert_eq!(status["state_reason"], "deadline_elapsed");
    }
}

#[tokio::test]
async fn our_own_fields_are_carried_out_and_shown() {
    let world = world().await;
    let id = world
        .create(json!({
            "executor": "echo", "lane": "narrow", "priority": 7, "timeout_seconds": 30, "tags": ["a", "b"],
            "retry": { "max_attempts": 2, "backoff_seconds": 90 }, "input": { "n": 1 },
        }))
        .await;
    let execution = world.status(&id).await["execution"].clone();
    assert_eq!(execution["target"], json!({ "executor": "echo" }));
    assert_eq!(execution["lane"], "narrow");
    assert_eq!(execution["priority"], 7);
    assert_eq!(execution["timeout_seconds"], 30);
    assert_eq!(execution["tags"], json!(["a", "b"]));
    assert_eq!(
        execution["retry"],
        json!({ "max_attempts": 2, "backoff_seconds": 90, "max_backoff_seconds": 90 })
    );
    for (bad, code) in [
        (json!({ "priority": 1_001 }), "invalid_policy"),
        (json!({ "retry": { "max_attempts": 0 } }), "invalid_policy"),
    ] {
        world.post("/jobs", bad).send().await.problem(422, code);
    }
}

// conforms: R26
#[tokio::test]
async fn creating_wakes_the_runner_and_a_due_time_holds_it() {
    let world = crate::given::working_world().await;
    let at_once = world.create(json!({ "executor": "echo" })).await;
    let later = world.create(json!({ "executor": "echo", "due_at": "2026-01-01T01:00:00Z" })).await;
    world.until(&at_once, "completed").await;
    assert_eq!(world.status(&later).await["state"], "queued");
    assert_eq!(world.status(&later).await["created_at"], START_TEXT);
    world.clock.advance_seconds(3_600);
    world.until(&later, "completed").await;
}
