//! Asking how it goes: honest services, rude ones, and what none of them can do.

use std::sync::atomic::{AtomicUsize, Ordering};

use domain::job::JobStateName;
use domain::operation::{Operation, OperationStatus};
use serde_json::json;

use crate::service::{Reply, Service, reply};
use crate::submits::connector;
use crate::world::World;

/// A service that takes the work and then answers every poll like this.
fn service(status: impl Fn() -> Reply + Send + Sync + 'static) -> Service {
    Service::start(move |asked| match asked.method.as_str() {
        "POST" => reply(202, json!({ "id": "r-1", "state": "queued" })),
        _ => status(),
    })
}

async fn polled(service: &Service) -> (World, Operation, domain::JobId) {
    let world = World::new(&connector(service, "  idempotent: true"));
    let id = world.create(r#"{"scene":"forest"}"#, 1).await;
    world.until_state(&id, JobStateName::AwaitingExternal).await;
    let operation = world.next_poll(&id).await;
    (world, operation, id)
}

#[tokio::test]
async fn an_answer_that_is_not_understood_is_an_error_of_the_poll_and_never_of_the_work() {
    let deep = "[".repeat(5_000);
    for (status, body) in [
        (200, "<html>busy</html>".to_owned()),
        (200, String::new()),
        (200, "null".to_owned()),
        (200, r#"{"state":"dreaming"}"#.to_owned()),
        (200, r#"{"state":["done"]}"#.to_owned()),
        (200, r#"{"state":null}"#.to_owned()),
        (200, r#"{"state":true}"#.to_owned()),
        (200, r#"{"state":"Done"}"#.to_owned()),
        (200, r#"{"state":"done"#.to_owned()),
        (200, deep[..4_000].to_owned()),
        (302, String::new()),
        (418, "teapot".to_owned()),
    ] {
        let (told, shown) = (body.clone(), body.chars().take(40).collect::<String>());
        let service = service(move || reply(status, &told));
        let (_, operation, _) = polled(&service).await;
        assert_eq!(operation.last_error.as_ref().unwrap().code, "status-payload-invalid", "{shown}");
        assert_eq!(operation.status(), OperationStatus::Pending, "{shown}");
    }
}

#[tokio::test]
async fn status_of_other_work_ends_nothing_of_ours() {
    for state in ["done", "failed", "queued"] {
        for id in [json!("r-2"), json!(7)] {
            let body = json!({ "id": id, "state": state, "result": "not ours" });
            let service = service(move || reply(200, body.clone()));
            let (world, operation, job) = polled(&service).await;
            let error = operation.last_error.as_ref().expect("the poll failed");
            assert_eq!(error.code, "status_of_other_work", "{state}");
            assert!(operation.ended.is_none(), "{state}: it is asked again");
            assert_eq!(world.job(&job).state.name(), JobStateName::AwaitingExternal);
        }
    }
}

#[tokio::test]
async fn status_that_names_our_work_or_none_is_an_answer() {
    for body in [json!({ "id": "r-1", "state": "queued" }), json!({ "state": "queued" })] {
        let service = service(move || reply(200, body.clone()));
        let (_, operation, _) = polled(&service).await;
        assert_eq!(operation.last_error, None);
    }
}

#[tokio::test]
async fn a_service_in_trouble_is_asked_again_and_the_work_is_as_it_was() {
    for (status, code) in [
        (500, "service_error"),
        (502, "service_error"),
        (429, "service_busy"),
        (503, "service_busy"),
        (401, "service_refused"),
    ] {
        let service = service(move || reply(status, "no"));
        let (_, operation, _) = polled(&service).await;
        assert_eq!(operation.last_error.as_ref().unwrap().code, code);
        assert!(operation.ended.is_none());
    }
}

#[tokio::test]
async fn a_service_without_time_is_left_alone_as_long_as_it_asks_and_the_host_goes_along() {
    for (header, at_least, at_most) in
        [("100", 100, 110), ("99999999999", 300, 300), ("-7", 1, 60), ("0", 1, 60), ("soon", 1, 60)]
    {
        for status in [429, 503] {
            let service = service(move || reply(status, "later").with("Retry-After", header));
            let (world, operation, _) = polled(&service).await;
            let wait = (operation.next_poll_at.micros() - world.now().micros()) / 1_000_000;
            assert!((at_least..=at_most).contains(&wait), "{status} {header}: {wait}");
            assert_eq!(operation.last_error.unwrap().code, "service_busy");
        }
    }
}

#[tokio::test]
async fn what_is_too_large_too_slow_or_silent_is_cut_off() {
    type Manner = fn() -> Reply;
    let bytes = "limits.response_bytes = 4096; change limits.response_bytes in the connector file, or \
                 policy.max_response_bytes there";
    let time = "status.timeout_ms = 500; change status.timeout_ms in the connector file, or policy.status_timeout_ms there";
    let redirects = "limits.redirects = 3; change limits.redirects in the connector file";
    let headers = "limits.header_bytes = 16384; change limits.header_bytes in the connector file";
    let manners: [(Manner, &str, &str); 5] = [
        (
            || reply(200, format!(r#"{{"state":"rendering","pad":"{}"}}"#, "x".repeat(5_000))),
            "too_large",
            bytes,
        ),
        (|| Reply::Drip, "timed_out", time),
        (|| Reply::Hang, "timed_out", time),
        (|| reply(302, "").with("Location", "/again"), "too_many_redirects", redirects),
        (|| reply(200, "{}").with("X-Long", "x".repeat(20_000)), "too_large", headers),
    ];
    for (manner, code, told) in manners {
        let service = service(manner);
        let (world, operation, job) = polled(&service).await;
        let error = operation.last_error.as_ref().unwrap();
        assert_eq!(error.code, code);
        let said = world.text_of(&job, error.said.expect("it says why"));
        assert!(said.contains(told), "{said}");
    }
}

// conforms: O35
#[tokio::test]
async fn a_service_that_does_not_know_the_work_any_more_ends_it_as_unknown() {
    for status in [404, 410] {
        let service = service(move || reply(status, "who?"));
        let (world, operation, id) = polled(&service).await;
        assert_eq!(operation.status(), OperationStatus::Unknown);
        let failed = world.until_state(&id, JobStateName::Failed).await;
        assert_eq!(failed.state_reason.as_deref(), Some("operation_unknown"));
    }
}

// conforms: O33 O93
#[tokio::test]
async fn ends_are_told_as_the_service_tells_them() {
    for (state, status) in [
        ("done", OperationStatus::Completed),
        ("broken", OperationStatus::Failed),
        ("slow", OperationStatus::TimedOut),
        ("stopped", OperationStatus::Cancelled),
    ] {
        let service =
            service(move || reply(200, json!({ "state": state, "output": 1, "message": "out of paint" })));
        let (world, operation, id) = polled(&service).await;
        assert_eq!(operation.status(), status);
        world.until(|world| world.job(&id).completed_at.is_some()).await;
        if state == "broken" {
            let told = operation.failure_detail().unwrap();
            assert!(told.starts_with("service_failed: ") && !told.contains("paint"), "{told}");
        }
    }
}

#[tokio::test]
async fn completed_without_a_result_where_it_should_be_is_a_breach_of_contract() {
    let service = service(|| reply(200, json!({ "state": "done" })));
    let (world, _, id) = polled(&service).await;
    let failed = world.until_state(&id, JobStateName::Failed).await;
    assert_eq!(world.error(&failed)["code"], "result-contract-error");
}

#[tokio::test]
async fn a_poll_is_not_led_inside_by_a_redirect() {
    let inside = Service::start(|_| reply(200, json!({ "state": "done", "output": "metadata" })));
    let target = inside.url("/latest/meta-data");
    let service = service(move || reply(302, "").with("Location", &target));
    let (_, operation, _) = polled(&service).await;
    assert_eq!(operation.last_error.as_ref().unwrap().code, "refused_address");
    assert!(inside.asked().is_empty());
}

#[tokio::test]
async fn a_status_url_of_another_origin_is_not_asked_and_sees_no_credentials() {
    let other = Service::start(|_| reply(200, json!({ "state": "done", "output": 1 })));
    let location = other.url("/steal");
    let service = Service::start(move |_| reply(202, json!({ "id": "r" })).with("Location", &location));
    let allow = format!("allow: [\"{}\", \"{}\"]", service.address, other.address);
    let yaml = connector(&service, "  idempotent: true")
        .replace(&format!("allow: [\"{}\"]", service.address), &allow)
        .replace(
            &format!("  url: http://{}/renders/${{operation.remote_id}}", service.address),
            "  url: ${operation.location}",
        );
    let world = World::new(&yaml);
    let id = world.create(r#"{"scene":"forest"}"#, 1).await;
    world.until_state(&id, JobStateName::AwaitingExternal).await;
    let operation = world.next_poll(&id).await;
    assert_eq!(operation.last_error.as_ref().unwrap().code, "foreign_origin");
    assert!(other.asked().is_empty());
    // The operator may say that it is theirs as well.
    let world = World::new(&(yaml + &format!("origins: [\"{}\"]\n", other.url(""))));
    let id = world.create(r#"{"scene":"forest"}"#, 1).await;
    world.until_state(&id, JobStateName::AwaitingExternal).await;
    world.next_poll(&id).await;
    world.until_state(&id, JobStateName::Completed).await;
}

// conforms: O36
#[tokio::test]
async fn no_word_about_time_parks_the_work_or_hurries_it() {
    for header in [
        "99999999999",
        "-5",
        "0",
        "garbage",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "1e308",
        "99999999999999999999999999",
        "NaN",
        "",
        "12, 15",
    ] {
        let service =
            service(move || reply(200, json!({ "state": "rendering" })).with("Retry-After", header));
        let (world, operation, _) = polled(&service).await;
        let wait = operation.next_poll_at.micros() - world.now().micros();
        assert!((1_000_000..=300_000_000).contains(&wait), "{header}: {wait}");
    }
}

// conforms: L26
#[tokio::test]
async fn a_result_is_fetched_where_the_file_says_and_the_input_is_kept_only_for_that() {
    let asked = AtomicUsize::new(0);
    let service = Service::start(move |request| match (request.method.as_str(), request.path.as_str()) {
        ("POST", _) => reply(202, json!({ "id": "r-1", "state": "queued" })),
        (_, "/files/forest") if asked.fetch_add(1, Ordering::SeqCst) == 0 => reply(503, "not yet"),
        (_, "/files/forest") => reply(200, "a text, not JSON"),
        _ => reply(200, json!({ "state": "done" })),
    });
    let without = connector(&service, "  idempotent: true");
    let with = without.clone().replace("  result: answer.body.output\n", "")
        + &format!("result: {{ url: \"http://{}/files/${{input.scene}}\" }}\n", service.address);
    let world = World::new(&with);
    let id = world.create(r#"{"scene":"forest"}"#, 1).await;
    world.until_state(&id, JobStateName::AwaitingExternal).await;
    let operation = world.next_poll(&id).await;
    assert_eq!(operation.last_error.unwrap().code, "result_not_fetched");
    world.next_poll(&id).await;
    let done = world.until_state(&id, JobStateName::Completed).await;
    assert_eq!(world.result(&done), json!("a text, not JSON"));
    let (submits, fetches) =
        (service.asked_for("POST", "/renders"), service.asked_for("GET", "/files/forest"));
    assert_eq!((submits.len(), fetches.len()), (1, 2), "fetched again, and not made again");
    assert!(service.asked().iter().skip(1).all(|asked| asked.method == "GET"), "a poll only asks");
    let handle_of = |world: &World| {
        world.store.inspect(|tables| {
            let handle = tables.bodies.iter().find(|((_, name, _), _)| *name == "handle");
            String::from_utf8(handle.unwrap().1.to_vec()).unwrap()
        })
    };
    assert!(handle_of(&world).contains("forest"));
    let (world, _, _) = polled(&service).await;
    let handle = handle_of(&world);
    assert!(!handle.contains("forest") && handle.contains("r-1"), "{handle}");
}
