//! What answers mean, and which are none.

mod garbage;

use super::*;

fn read(stdout: &str) -> Result<Response, NoAnswer> {
    Response::read(stdout.as_bytes(), Strictness::Lenient, &Mask::default())
}

#[track_caller]
fn ok(stdout: &str) -> Answer {
    match read(stdout) {
        Ok(Response::Ok(answer)) => answer,
        other => panic!("{stdout}: {other:?}"),
    }
}

#[track_caller]
fn refusal(stdout: &str) -> String {
    match read(stdout) {
        Err(NoAnswer::Unreadable(told)) => told,
        Err(NoAnswer::Refused(failure)) => format!("{}: {}", failure.reason, failure.message),
        Ok(response) => panic!("{stdout} was taken: {response:?}"),
    }
}

fn payload(emitted: &Emitted) -> &str {
    std::str::from_utf8(&emitted.payload).unwrap()
}

// conforms: D12 D38
#[test]
fn answer_that_is_ok_has_result_events_and_state() {
    let answer = ok(
        "\n {\"status\":\"ok\",\"result\":\"done\",\"events\":[{\"type\":\"a\",\"payload\":{\"x\":1},\"dedupe_key\":\"k\"}],\
         \"state_updates\":{\"n\":null},\"ductile_stopwatch_subs\":[],\"more\":1} \n\n",
    );
    assert_eq!(answer.result, "done");
    assert_eq!(payload(&answer.events[0]), r#"{"result":"done","x":1}"#);
    assert_eq!(answer.events[0].dedupe_key.as_deref(), Some("k"));
    assert_eq!(answer.state_updates["n"].get(), "null");
    assert_eq!(answer.warnings, [""; 0]);
}

#[test]
fn numbers_stay_as_they_were_written() {
    let answer = ok(
        r#"{"status":"ok","result":"r","events":[{"type":"a","payload":{"n":1763337600123456789,"d":0.1000}}],"state_updates":{"mtime_ns":1763337600123456789,"big":123456789012345678901234567890}}"#,
    );
    assert_eq!(payload(&answer.events[0]), r#"{"d":0.1000,"n":1763337600123456789,"result":"r"}"#);
    assert_eq!(answer.state_updates["mtime_ns"].get(), "1763337600123456789");
    assert_eq!(answer.state_updates["big"].get(), "123456789012345678901234567890");
}

#[test]
fn payload_of_null_becomes_an_object_and_its_own_result_stays() {
    let answer = ok(
        r#"{"status":"ok","result":"r","events":[{"type":"a","payload":null},{"type":"b"},{"type":"c","payload":{"result":7}}]}"#,
    );
    let payloads: Vec<&str> = answer.events.iter().map(payload).collect();
    assert_eq!(payloads, [r#"{"result":"r"}"#, r#"{"result":"r"}"#, r#"{"result":7}"#]);
}

#[test]
fn missing_result_is_a_warning_and_a_refusal_if_the_operator_is_strict() {
    let answer = ok(r#"{"status":"ok","events":[{"type":"a","payload":{}}]}"#);
    assert_eq!((answer.warnings.len(), payload(&answer.events[0])), (1, "{}"));
    let strict = Response::read(br#"{"status":"ok","result":" "}"#, Strictness::Strict, &Mask::default());
    assert!(matches!(strict, Err(NoAnswer::Unreadable(_))));
}

#[test]
fn events_of_an_error_are_discarded_and_it_may_be_tried_again_unless_it_says_otherwise() {
    let Ok(Response::Error { error, retry, warnings }) =
        read(r#"{"status":"error","error":"no paper","events":[{"type":"a"}]}"#)
    else {
        panic!("it is an error")
    };
    assert_eq!((error.as_str(), retry, warnings.len()), ("no paper", true, 1));
    assert!(matches!(
        read(r#"{"status":"error","error":"no","retry":false}"#),
        Ok(Response::Error { retry: false, .. })
    ));
}

// conforms: D12
#[test]
fn what_is_not_one_object_of_the_contract_is_no_answer() {
    for (stdout, told) in [
        ("", "it said nothing"),
        (" \n", "it said nothing"),
        ("Traceback (most recent call last):", "is not one JSON object"),
        (r#"["ok","","r"]"#, "is not one JSON object"),
        (r#"{"status":"ok","result":"a"}{"status":"ok"}"#, "is not one JSON object"),
        (r#"{"status":"ok","result":{"a":1}}"#, "is not one JSON object"),
        (r#"{"status":"ok","state_updates":[1]}"#, "is not one JSON object"),
        (r#"{"status":"done"}"#, "neither ok nor error"),
        (r#"{"result":"a"}"#, "has no status"),
        (r#"{"status":"error"}"#, "does not say which"),
        (r#"{"status":"error","error":" "}"#, "does not say which"),
        (r#"{"status":"ok","result":"a","events":[{"payload":{}}]}"#, "bad_event: event 1: its type"),
        ("{\"status\":\"ok\",\"events\":[{\"type\":\"a\\nb\"}]}", "bad_event: event 1: its type"),
        (r#"{"status":"ok","events":[{"type":"a","payload":[1]}]}"#, "bad_event: event 1: the payload of"),
    ] {
        let refusal = refusal(stdout);
        assert!(refusal.contains(told), "{stdout}: {refusal}");
    }
}

#[test]
fn events_keep_to_their_limits() {
    let events = |event: &str, count: usize| {
        format!(r#"{{"status":"ok","result":"r","events":[{}]}}"#, vec![event; count].join(","))
    };
    assert_eq!(ok(&events(r#"{"type":"a"}"#, MAX_EVENTS)).events.len(), MAX_EVENTS);
    assert!(refusal(&events(r#"{"type":"a"}"#, MAX_EVENTS + 1)).contains("more than 100"));
    let long = |bytes: usize| format!(r#"{{"type":"a","payload":{{"x":"{}"}}}}"#, "y".repeat(bytes));
    assert_eq!(ok(&events(&long(MAX_PAYLOAD_BYTES - 100), 1)).events.len(), 1);
    assert!(refusal(&events(&long(MAX_PAYLOAD_BYTES), 1)).contains("more than 262144 bytes"));
    let key = format!(r#"{{"type":"a","dedupe_key":"{}"}}"#, "k".repeat(MAX_DEDUPE_KEY_BYTES + 1));
    assert!(refusal(&events(&key, 1)).contains("dedupe_key"));
    assert!(refusal(&events(&format!(r#"{{"type":"{}"}}"#, "t".repeat(257)), 1)).contains("its type"));
}

#[test]
fn event_may_say_what_is_carried_from_it_on_in_an_object_within_its_limit() {
    let event = |correlation: &str| {
        format!(r#"{{"status":"ok","result":"r","events":[{{"type":"a","correlation":{correlation}}}]}}"#)
    };
    let carried =
        ok(&event(r#"{ "run_id": "R1", "step": 18446744073709551615 }"#)).events.remove(0).correlation;
    assert_eq!(carried.unwrap().as_str(), r#"{"run_id":"R1","step":18446744073709551615}"#);
    assert_eq!(ok(&event("null")).events[0].correlation, None);
    let large = format!(r#"{{"x":"{}"}}"#, "y".repeat(2_048));
    for wrong in ["[1]", "\"R1\"", r#"{"a":{"b":1,"b":2}}"#, &large] {
        let told = refusal(&event(wrong));
        assert!(told.starts_with("bad_event: event 1: the correlation of \"a\" is not an object"), "{told}");
    }
}

#[test]
fn payload_is_nested_no_deeper_than_what_is_read_later_can_be() {
    let nested = |deep: usize| {
        let payload = format!("{}1{}", "{\"a\":".repeat(deep), "}".repeat(deep));
        format!(r#"{{"status":"ok","result":"r","events":[{{"type":"a","payload":{payload}}}]}}"#)
    };
    ok(&nested(MAX_PAYLOAD_NESTING));
    let told = refusal(&nested(MAX_PAYLOAD_NESTING + 1));
    assert_eq!(told, "bad_event: event 1: the payload of \"a\" is nested deeper than 64");
    let carried = |deep: usize| {
        let object = format!("{}1{}", "{\"a\":".repeat(deep), "}".repeat(deep));
        format!(r#"{{"status":"ok","result":"r","events":[{{"type":"a","correlation":{object}}}]}}"#)
    };
    ok(&carried(MAX_PAYLOAD_NESTING));
    let told = refusal(&carried(MAX_PAYLOAD_NESTING + 1));
    assert_eq!(told, "bad_event: event 1: the correlation of \"a\" is nested deeper than 64");
}

#[test]
fn secrets_are_taken_out_of_everything_that_is_kept() {
    let mask = Mask::of([("token", "s3cr3t-t0ken")]);
    let said = r#"{"status":"ok","result":"s3cr3t-t0ken","events":[{"type":"a","payload":{"x":["s3cr3t-t0ken"]}}],"state_updates":{"t":"s3cr3t-t0ken"},"logs":[{"level":"info","message":"s3cr3t-t0ken"}]}"#;
    let Ok(Response::Ok(answer)) = Response::read(said.as_bytes(), Strictness::Lenient, &mask) else {
        panic!("it is ok")
    };
    assert!(!format!("{answer:?}").contains("s3cr3t"), "{answer:?}");
    assert!(!payload(&answer.events[0]).contains("s3cr3t"));
    assert_eq!(answer.state_updates["t"].get(), "\"[secret token]\"");
}
