//! Connector files: what is taken, what is refused, and whether the refusal says where and what to do.

use domain::policy::Hint;
use serde_json::json;

use super::call::Call;
use super::interpret::{self, Asked, Submission};
use super::template;
use super::{Connector, Secrets};
use engine::ModeSupport;

const WHOLE: &str = r#"
name: press
description: prints things
execution_mode_support: async-only
deferred_profile: { preferred_retry_after_seconds: 15, preferred_max_ttl_seconds: 600 }
secrets:
  token: { env: PRESS_TOKEN }
  key: { file: /run/secrets/press }
allow: ["127.0.0.1:9000", "10.0.0.0/8", "press.internal:443"]
origins: ["https://files.example.com"]
tls: { ca_file: /etc/press.pem }
limits: { response_bytes: 1000, result_bytes: 2000, header_bytes: 3000, redirects: 0 }
policy: { max_ttl_seconds: 86400, status_timeout_ms: 2000, unknown_policy: retry-until-expiry }
concurrency: 2
retry: { max_attempts: 5, backoff_seconds: 2 }
read: { id: answer.body.id, status: answer.body.state }
states: { waiting: pending, inking: running, done: completed, jammed: failed, late: timed-out, stopped: cancelled, lost: unknown }
submit:
  url: https://press.example.com/jobs
  headers: { X-Key: "${secrets.key}" }
  body: { what: { $eval: input }, callback: "${operation.callback_url}" }
  idempotent: true
  idempotency_header: X-Request-Id
  accept: [202]
status: { url: "https://press.example.com/jobs/${operation.remote_id}" }
cancel: { method: DELETE, url: "https://press.example.com/jobs/${operation.remote_id}" }
"#;

fn parse(text: &str) -> Result<Connector, String> {
    Connector::parse("press.yaml", text).map_err(|mistake| mistake.to_string())
}

#[test]
fn everything_that_a_file_may_say_is_taken() {
    let press = parse(WHOLE).unwrap();
    assert_eq!(press.name(), "press");
    assert_eq!(press.modes().support, ModeSupport::AsyncOnly);
    assert_eq!((press.modes().retry_after, press.modes().max_ttl), (Hint::Seconds(15), Hint::Seconds(600)));
    assert_eq!(press.key_header.as_ref().unwrap(), "x-request-id");
    assert_eq!((press.concurrency, press.retry.max_attempts, press.states.len()), (2, 5, 7));
    assert_eq!(press.policy().max_ttl_seconds, Some(86_400));
    let status = press.status.as_ref().unwrap();
    assert_eq!((status.limits.body_bytes, status.limits.redirects), (1_000, 0));
    assert_eq!(status.limits.deadline.as_millis(), 2_000);
    assert!(!press.keeps_input);
}

#[test]
fn every_duration_of_a_file_may_have_a_unit() {
    let file = |written: [&str; 7]| {
        let [hint, hinted_ttl, life, status, backoff, submit, asked] = written;
        let text = WHOLE
            .replace("after_seconds: 15", &format!("after_seconds: {hint}"))
            .replace("ttl_seconds: 600", &format!("ttl_seconds: {hinted_ttl}"))
            .replace("ttl_seconds: 86400", &format!("ttl_seconds: {life}"))
            .replace("timeout_ms: 2000", &format!("timeout_ms: {status}"))
            .replace(
                "backoff_seconds: 2 ",
                &format!("backoff_seconds: {backoff}, max_backoff_seconds: {backoff} "),
            )
            .replace("  accept: [202]", &format!("  accept: [202]\n  timeout_ms: {submit}"))
            .replace("cancel: { ", &format!("cancel: {{ timeout_ms: {asked}, "));
        let press = parse(&text).expect(&text);
        let deadline = |call: &Call| call.limits.deadline.as_millis();
        (
            press.modes(),
            (press.policy().clone(), press.retry),
            [&press.submit, press.status.as_ref().unwrap(), press.cancel.as_ref().unwrap()].map(deadline),
        )
    };
    let with_units = file(["15s", "10m", "24h", "2s", "1m", "90s", "1500ms"]);
    assert_eq!(with_units, file(["15", "600", "86400", "2000", "60", "90000", "1500"]));
    assert_eq!(with_units.2, [90_000, 2_000, 1_500]);
    let told = parse(&WHOLE.replace("timeout_ms: 2000", "timeout_ms: '2000'")).unwrap_err();
    assert!(told.starts_with("press.yaml:13:") && told.contains("such as 500ms, 30s or 2m"), "{told}");
}

// conforms: O15
#[test]
fn the_smallest_file_is_a_name_and_where_to_submit() {
    let small = parse("name: echo\nsubmit: { url: https://echo.example.com/, idempotent: false }\n").unwrap();
    assert_eq!(small.modes().support, ModeSupport::SyncOnly);
    assert_eq!(small.key_header.as_ref().unwrap(), "idempotency-key");
}

#[test]
fn a_mistake_is_told_with_its_place_and_what_was_probably_meant() {
    for (from, to, told) in [
        (
            "concurrency: 2",
            "concurency: 2",
            r#"press.yaml:14:1: unknown key "concurency"; did you mean "concurrency"?"#,
        ),
        ("  accept: [202]", "  acept: [202]", r#"unknown key "acept"; did you mean "accept"?"#),
        ("done: completed", "done: complete", r#""complete" is not one of: "#),
        ("async-only", "async", "is not one of: "),
        ("name: press", "name: the press", "press.yaml:2:7: a name has 1 to 256 letters"),
        ("concurrency: 2", "concurrency: 0", "press.yaml:14:14: must be 1 to 1000"),
        ("${secrets.key}", "${secrets.key", "press.yaml:20:21: SyntaxError"),
        (
            "${secrets.key}",
            "${secret.key}",
            r#"there is nothing named "secret" here; did you mean "secrets"?"#,
        ),
        (
            "${secrets.key}",
            "${secrets.kee}",
            r#"press.yaml:20:21: there is no secrets.kee here; did you mean "key"?; secrets has: key, token"#,
        ),
        (
            "{ $eval: input }",
            "{ $eval: 'secrets[\"tokn\"]' }",
            r#"press.yaml:21:9: there is no secrets.tokn here; did you mean "token"?"#,
        ),
        ("${operation.callback_url}", "${operation.remote_id}", "there is no operation.remote_id here"),
        ("${operation.remote_id}", "${operation.remote}", r#"did you mean "remote_id"?"#),
        ("${operation.remote_id}", "${job.title}", "there is no job.title here; job has: id, attempt_id"),
        ("answer.body.id", "secrets.key", r#"there is nothing named "secrets" here; known: answer"#),
        ("answer.body.id", "answer.body.", "SyntaxError"),
        (
            "answer.body.id",
            "answer.locaton",
            r#"there is no answer.locaton; did you mean "location"?; answer has: status, headers, location, body"#,
        ),
        (
            "https://press.example.com/jobs\n",
            "htp//press.example.com/jobs\n",
            r#"press.yaml:19:8: submit.url: "htp//press.example.com/jobs" does not begin with https:// or http://"#,
        ),
        ("https://press.example.com/jobs\n", "press.example.com/jobs\n", "submit.url: "),
        ("https://press.example.com/jobs\n", "ftp://press.example.com/\n", "does not begin with https://"),
        ("https://press.example.com/jobs\n", "https:///jobs\n", "submit.url: "),
        ("https://press.example.com/jobs\n", "https://me:it@press.example.com/\n", "use a header"),
        ("status: { url: \"https://", "status: { url: \"htps://", "status.url: "),
        ("status: { url: \"https://", "status: { url: \"https//", "status.url: "),
        ("method: DELETE", "method: STOP", r#""STOP" is not one of: GET, POST, PUT, PATCH, DELETE"#),
        ("X-Key:", "Host:", r#"the header "Host" is made by longhaul"#),
        (
            "{ env: PRESS_TOKEN }",
            "{ env: A, file: b }",
            r#"press.yaml:7:10: the secret "token" comes from either env or file"#,
        ),
        ("10.0.0.0/8", "10.0.0.0/99", r#""10.0.0.0/99" is no target"#),
        ("https://files.example.com", "files.example.com", "is no origin: write https://host"),
        (
            "async-only",
            "sync-only",
            "leaves work outside: set execution_mode_support to either or async-only",
        ),
        (
            "status: { url: \"https://press.example.com/jobs/${operation.remote_id}\" }\n",
            "",
            "needs a status request",
        ),
        ("status: answer.body.state", "status: null", "status needs read.status"),
        ("max_ttl_seconds: 86400", "max_ttl_seconds: 0", "press.yaml:13:9: "),
        ("response_bytes: 1000", "response_bytes: 99999999", "limits.response_bytes is 1 to 1048576"),
        ("  idempotent: true\n", "", r#"the key "idempotent" is missing"#),
        ("id: answer.body.id, ", "", "status: operation.remote_id is used, and nothing says where"),
        ("name: press", "name: press\nname: press", r#"the key "name" occurs twice"#),
    ] {
        assert!(WHOLE.contains(from), "{from}");
        let mistake = parse(&WHOLE.replacen(from, to, 1)).unwrap_err();
        assert!(mistake.contains(told), "{to}: {mistake}");
        assert!(mistake.starts_with("press.yaml:"), "{mistake}");
    }
}

#[test]
fn a_request_that_cannot_find_the_work_is_a_mistake_of_the_file() {
    let whole = WHOLE.replacen("id: answer.body.id, ", "", 1);
    let whole = whole.replacen("  idempotency_header: X-Request-Id\n", "", 1);
    for (url, told) in [
        ("/jobs/${operation.remote_id}", "set read.id, or submit.read.id"),
        ("/jobs/${operation.id}", "operation.id is longhaul's own id, and submit does not send it"),
    ] {
        let file = whole.replace("/jobs/${operation.remote_id}", url);
        let mistake = parse(&file).unwrap_err();
        assert!(mistake.starts_with("press.yaml:") && mistake.contains("status: "), "{mistake}");
        assert!(mistake.contains(told), "{url}: {mistake}");
    }
    let file =
        whole.replace("https://press.example.com/jobs/${operation.remote_id}", "${operation.location}");
    assert_eq!(parse(&file).err(), None, "where the service says where it is, no id is needed");
}

#[test]
fn a_password_in_a_url_is_never_shown() {
    for url in
        ["htps://me:sesame@press.example.com/jobs", "me:sesame@press.example.com", "https://me:sesame@[::/"]
    {
        let mistake =
            parse(&WHOLE.replacen("https://press.example.com/jobs\n", &format!("{url}\n"), 1)).unwrap_err();
        assert!(mistake.contains("submit.url: ") && !mistake.contains("sesame"), "{mistake}");
    }
    let origin = WHOLE.replacen("https://files.example.com", "ftp://me:sesame@files.example.com", 1);
    let mistake = parse(&origin).unwrap_err();
    assert!(mistake.contains("is no origin") && !mistake.contains("sesame"), "{mistake}");
}

#[test]
fn what_a_status_means_to_a_submit_and_to_a_poll_is_one_table() {
    let press = parse(WHOLE).unwrap();
    let status = |call: &Call, code| (interpret::submission(call, code), interpret::asked(call, code));
    let submit = &press.submit;
    assert_eq!(interpret::submission(submit, 202), Submission::Accepted);
    for code in [408, 425, 429, 503] {
        assert_eq!(interpret::submission(submit, code), Submission::NotNow, "{code}");
    }
    for code in [400, 401, 403, 404, 409, 410, 422, 451] {
        assert_eq!(interpret::submission(submit, code), Submission::Refused, "{code}");
    }
    for code in [100, 200, 201, 204, 302, 304, 500, 501, 502, 504, 599] {
        assert_eq!(interpret::submission(submit, code), Submission::Unclear, "{code}");
    }
    let ask = press.status.as_ref().unwrap();
    for (code, asked) in [
        (200, Asked::Answered),
        (204, Asked::Answered),
        (404, Asked::Gone),
        (410, Asked::Gone),
        (429, Asked::NotAnswered("service_busy")),
        (503, Asked::NotAnswered("service_busy")),
        (500, Asked::NotAnswered("service_error")),
        (401, Asked::NotAnswered("service_refused")),
        (302, Asked::NotAnswered("status-payload-invalid")),
        (418, Asked::NotAnswered("status-payload-invalid")),
    ] {
        assert_eq!(status(ask, code).1, asked, "{code}");
    }
}

#[test]
fn templates_may_escape_for_urls_and_for_basic_authentication() {
    let now = domain::Timestamp::from_seconds(0);
    let render = |text: &str| {
        let parsed = template::parse(&json!(text), &template::REQUEST_NAMES).unwrap();
        let context = json!({ "input": { "id": "../a?b#c@d e/ü", "n": 7 }, "secrets": { "key": "pass" } });
        template::render(&parsed, &context, now).unwrap()
    };
    assert_eq!(
        render("https://x/${uri(input.id)}/${uri(input.n)}"),
        "https://x/..%2Fa%3Fb%23c%40d%20e%2F%C3%BC/7"
    );
    assert_eq!(render("Basic ${base64('user:' + secrets.key)}"), "Basic dXNlcjpwYXNz");
}

#[test]
fn what_is_missing_in_an_answer_is_absent_whatever_is_in_the_way() {
    let expression = template::parse_expression(&json!("answer.body.a.b[0]")).unwrap();
    for body in
        [json!(null), json!("text"), json!({}), json!({ "a": 1 }), json!({ "a": { "b": [] } }), json!([])]
    {
        let found = template::find(
            &expression,
            &json!({ "answer": { "body": body } }),
            domain::Timestamp::from_seconds(0),
        );
        assert_eq!(found, None, "{body}");
    }
}

#[test]
fn a_secret_comes_from_its_file_or_variable_and_is_refused_when_it_cannot_be_masked() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "from-a-file\n").unwrap();
    let text = WHOLE.replace("/run/secrets/press", file.path().to_str().unwrap());
    let press = parse(&text).unwrap();
    let read = |value: Option<&str>| Secrets::read(press.secrets(), &|_| value.map(str::to_owned));
    let secrets = read(Some("from-a-variable")).unwrap();
    assert_eq!(secrets.lent(), json!({ "key": "from-a-file", "token": "from-a-variable" }));
    assert_eq!(format!("{secrets:?}"), r#"{"key", "token"}"#);
    assert_eq!(
        read(None).unwrap_err().to_string(),
        r#"the secret "token" needs the variable PRESS_TOKEN, which is not set"#
    );
    assert!(read(Some("short")).unwrap_err().to_string().contains("fewer than 8 bytes"));
}

#[test]
fn an_address_that_nobody_allows_is_told_before_it_is_refused() {
    let told = |url: &str, allow: &str| {
        let text = format!("name: echo\nallow: [{allow}]\nsubmit: {{ url: \"{url}\", idempotent: false }}\n");
        let doubts = parse(&text).unwrap().doubts().iter().map(ToString::to_string).collect::<Vec<_>>();
        doubts.join("\n")
    };
    assert_eq!(
        told("http://127.0.0.1:9000/${input.what}", ""),
        "press.yaml:3:16: submit.url: 127.0.0.1 is loopback: the request will be refused when it is made, \
         unless the key allow lists 127.0.0.1:9000"
    );
    assert!(told("http://localhost:9000/", "").contains("localhost is loopback"));
    assert!(told("https://10.1.2.3/", "").contains("10.1.2.3:443"));
    assert!(told("https://[::1]/", "").contains("[::1]:443"));
    for (url, allow) in [
        ("http://127.0.0.1:9000/", "\"127.0.0.1:9000\""),
        ("http://localhost:9000/", "\"127.0.0.1:9000\""),
        ("http://localhost:9000/", "\"localhost:9000\""),
        ("https://10.1.2.3/", "\"10.0.0.0/8\""),
        ("https://echo.example.com/", ""),
        ("${input.url}", ""),
        ("https://${input.host}/", ""),
    ] {
        assert_eq!(told(url, allow), "", "{url}");
    }
}
