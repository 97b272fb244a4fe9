//! Requests made up from the API document: fields that are known with values that hardly fit, ids, queries and headers out of the air.
//! No route answers with an error of the server, every refusal has its form and code, and the server goes on.
//!
//! `LONGHAUL_REQUESTS` says how many are made for each route.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use server::{Dialect, Route, Verb, routes};

use crate::given::{World, working_world};

const REQUESTS: u64 = 30;
/// Whoever waits for something to happen is given up.
const WAITS: Duration = Duration::from_millis(200);
/// How deep a schema is followed.
const DEEPEST: usize = 3;

/// Numbers from a seed (`SplitMix64`).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("it is below a usize")
    }

    fn of<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

fn method(route: &Route) -> &'static str {
    match route.verb {
        Verb::Get => "GET",
        Verb::Post => "POST",
        Verb::Patch => "PATCH",
        Verb::Delete => "DELETE",
    }
}

const WORDS: [&str; 16] = [
    "",
    "x",
    "completed",
    "running",
    "noop",
    "echo",
    "a b",
    "work-1",
    "\u{202e}abc",
    "1",
    "-1",
    "true",
    "2026-01-01T00:00:00Z",
    "9999-99-99T99:99:99Z",
    "../../etc/passwd",
    "'; DROP TABLE jobs; --",
];

/// Of a schema: something like it, or nothing like it.
fn made(document: &Value, schema: &Value, chance: &mut Chance, depth: usize) -> Value {
    let schema = match schema["$ref"].as_str() {
        Some(reference) => {
            &document["components"]["schemas"][reference.trim_start_matches("#/components/schemas/")]
        }
        None => schema,
    };
    if depth > DEEPEST || chance.below(5) == 0 {
        return anything(chance);
    }
    for choice in ["anyOf", "oneOf", "allOf"] {
        if let Some(choices) = schema[choice].as_array() {
            return made(document, &chance.of(choices), chance, depth);
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        return chance.of(values);
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => chance.of(kinds),
        kind @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
            kind.clone()
        }
    };
    match kind.as_str().unwrap_or_default() {
        "object" => {
            let mut fields = Map::new();
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                if chance.below(3) > 0 {
                    fields.insert(name.clone(), made(document, field, chance, depth + 1));
                }
            }
            fields.into()
        }
        "array" => {
            (0..chance.below(4)).map(|_| made(document, &schema["items"], chance, depth + 1)).collect()
        }
        "string" => chance.of(&WORDS).into(),
        "integer" | "number" => {
            chance.of(&[json!(0), json!(1), json!(-1), json!(u64::MAX), json!(1e308), json!(30)])
        }
        "boolean" => (chance.below(2) == 0).into(),
        "null" => Value::Null,
        _ => anything(chance),
    }
}

fn anything(chance: &mut Chance) -> Value {
    match chance.below(9) {
        0 => Value::Null,
        1 => false.into(),
        2 => i64::MIN.into(),
        3 => 0.5.into(),
        4 => "y".repeat(chance.below(5_000)).into(),
        5 => json!([]),
        6 => json!({ "a": { "b": [1, { "c": null }] } }),
        7 => "\u{7f}\u{85}\u{2028}\u{fffd}".into(),
        _ => chance.of(&WORDS).into(),
    }
}

/// A path of this route, with a job that is there now and then.
fn path(route: &Route, job: &str, chance: &mut Chance) -> String {
    let mut path = String::new();
    for part in route.path.split_inclusive(['{', '}']) {
        match part.strip_suffix('}') {
            Some(_) => {
                let strange =
                    ["%00", "%ff", "..%2f..", "a%20b", "work-", "%F0%9F%98%80", "0", "~"].map(str::to_owned);
                path += &if chance.below(2) == 0 { job.to_owned() } else { chance.of(&strange) };
            }
            None => path += part.trim_end_matches('{'),
        }
    }
    let names = [
        "limit", "state", "after", "cursor", "wait", "circle", "peer", "job", "timeout", "since", "format",
        "include", "no_such",
    ];
    let values = [
        "0",
        "-1",
        "1",
        "999999999999999999999",
        "%00",
        "x",
        "completed",
        "",
        "true",
        "%F0%9F",
        "1.5",
        "a,b",
    ];
    let mut mark = '?';
    for _ in 0..chance.below(3) {
        path.push(mark);
        path.extend([chance.of(&names), "=", chance.of(&values)]);
        mark = '&';
    }
    path
}

/// One request of a route; says how it was answered, or nothing if it waits.
async fn one(world: &World, document: &Value, route: &Route, job: &str, chance: &mut Chance) -> Option<u16> {
    let path = path(route, job, chance);
    let operation = &document["paths"][route.path][method(route).to_lowercase()];
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let mut call = world.call(method(route), &path);
    let mut told = format!("{} {path}", method(route));
    if route.verb != Verb::Get || chance.below(8) == 0 {
        let body = made(document, schema, chance, 0).to_string();
        told.push(' ');
        told.extend(body.chars().take(400));
        call = call.text(&body);
    }
    for (name, value) in [
        ("idempotency-key", "k"),
        ("idempotency-key", "\"\""),
        ("if-match", "\"x\""),
        ("accept", "text/html"),
        ("last-event-id", "-1"),
        ("range", "bytes=9-1"),
        ("x-request-id", "\u{e9}"),
        ("prefer", "wait=99999999999"),
    ] {
        if chance.below(12) == 0 {
            call = call.header(name, value);
        }
    }
    let answer = tokio::time::timeout(WAITS, call.send()).await.ok()?;
    // What is full, or not there on this host, is told as such.
    let is_told = matches!(answer.status, 501 | 503) && answer.body.contains(r#""code":""#);
    assert!(answer.status < 500 || is_told, "{told}: {} {}", answer.status, answer.body);
    // Ductile's own clients are told in Ductile's own form.
    if answer.status >= 400 && route.operation.dialect == Dialect::Own {
        assert_eq!(answer.headers["content-type"], "application/problem+json", "{told}: {}", answer.body);
        let code = &answer.value()["code"];
        assert!(code.as_str().is_some_and(|code| !code.is_empty()), "{told}: {}", answer.body);
    }
    Some(answer.status)
}

#[tokio::test]
async fn requests_made_up_from_the_document_are_answered_in_form_and_never_with_an_error_of_the_server() {
    let requests = std::env::var("LONGHAUL_REQUESTS").map_or(REQUESTS, |requests| requests.parse().unwrap());
    let world = working_world().await;
    let document = world.get("/openapi.json").anonymous().send().await.ok();
    let (mut statuses, mut waited, mut made) = (BTreeMap::<u16, u64>::new(), 0_u64, 0_u64);
    for (number, route) in (0_u64..).zip(routes()) {
        let job = world.create(json!({ "title": "there" })).await;
        for seed in 0..requests {
            let mut chance = Chance(number << 32 | seed);
            made += 1;
            match one(&world, &document, route, &job, &mut chance).await {
                Some(status) => *statuses.entry(status).or_default() += 1,
                None => waited += 1,
            }
        }
    }
    println!("{made} requests on {} routes: {statuses:?}, {waited} waited", routes().len());
    let (taken, refused) =
        (statuses.get(&200).copied().unwrap_or_default(), statuses.get(&422).copied().unwrap_or_default());
    assert!(taken > made / 50 && refused > made / 20, "too few of one kind to prove anything: {statuses:?}");
    world.get("/healthz").send().await.ok();
    world.create(json!({ "title": "as ever" })).await;
}
