//! Renders per second beside the published crate, on a template of the size of a connector, and the time to parse
//! nested parentheses. One run prints both sides, so that the ratios hold on any machine.

#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use jsone::{Context, Functions, Limits, Now, Template};
use serde_json::{Value as Json, json};

/// How long each side is measured, several times over; the best time counts.
const ROUND: Duration = Duration::from_millis(400);
const ROUNDS: usize = 5;
/// More parentheses take the published crate seconds.
const PUBLISHED_PARENTHESES: u16 = 16;
const PUBLISHED_ROUND: u32 = 3;

fn main() {
    renders();
    parentheses();
    lengths();
}

fn renders() {
    let (template, values) = connector();
    println!("template {} bytes, context {} bytes", template.to_string().len(), values.to_string().len());
    let limits = Limits::default();
    let now = Now::from_rfc3339("2017-01-19T16:27:20.974Z").expect("a time");
    let functions = Functions::none();
    json_e::use_test_now();

    let parsed = Template::parse(&template, limits).expect("it parses");
    let ours = || {
        let context = Context::new(black_box(&values), &limits).expect("a context");
        parsed.render(&context, &functions, &now).expect("it renders")
    };
    let afresh = || {
        let parsed = Template::parse(black_box(&template), limits).expect("it parses");
        let context = Context::new(&values, &limits).expect("a context");
        parsed.render(&context, &functions, &now).expect("it renders")
    };
    let theirs = || json_e::render(black_box(&template), &values).expect("it renders");
    assert_eq!(ours(), theirs(), "both give the same");

    let published = per_second(theirs);
    println!("{:<34}{published:>12.0} renders/s", "published crate");
    for (name, rate) in
        [("jsone, parsed once", per_second(ours)), ("jsone, parsed each time", per_second(afresh))]
    {
        println!("{name:<34}{rate:>12.0} renders/s {:>8.1} times", rate / published);
    }
}

fn parentheses() {
    println!("\nnested parentheses: time to parse");
    for levels in [8_u16, 16, 32, 64] {
        let count = usize::from(levels);
        let expression = format!("{}1{}", "(".repeat(count), ")".repeat(count));
        let template = json!({ "$eval": expression });
        let rate =
            per_second(|| Template::parse(black_box(&template), Limits::default()).expect("it parses"));
        let nanos = 1e9 / rate;
        print!("{levels:>4} levels {nanos:>9.0} ns, {:>5.1} ns per level", nanos / f64::from(levels));
        if levels > PUBLISHED_PARENTHESES {
            println!("    published crate: not tried");
            continue;
        }
        let start = Instant::now();
        for _ in 0..PUBLISHED_ROUND {
            let _ = black_box(json_e::render(black_box(&template), &json!({})));
        }
        println!(
            "    published crate: {:.3} ms",
            start.elapsed().as_secs_f64() * 1e3 / f64::from(PUBLISHED_ROUND)
        );
    }
}

fn lengths() {
    println!("\nlong expressions: time to parse");
    for terms in [1_000_u16, 2_000, 4_000, 8_000, 16_000] {
        let template = json!({"$eval": format!("a{}", " + (a * 2)".repeat(terms.into()))});
        let rate =
            per_second(|| Template::parse(black_box(&template), Limits::default()).expect("it parses"));
        println!(
            "{terms:>6} terms {:>9.1} us, {:>5.1} ns per term",
            1e6 / rate,
            1e9 / rate / f64::from(terms)
        );
    }
}

/// The best of some rounds.
fn per_second<T>(run: impl Fn() -> T) -> f64 {
    let round = || {
        let start = Instant::now();
        let mut count = 0_u32;
        while start.elapsed() < ROUND {
            for _ in 0..8 {
                black_box(run());
            }
            count += 8;
        }
        f64::from(count) / start.elapsed().as_secs_f64()
    };
    (0..ROUNDS).map(|_| round()).fold(0.0, f64::max)
}

/// What a connector does: builds a request from a job, with headers, a body, a loop and a few decisions.
fn connector() -> (Json, Json) {
    let template = json!({
        "$let": {
            "base": "${connector.endpoint}/v${connector.version}",
            "urgent": {"$eval": "job.priority >= 8 || 'urgent' in job.labels"}
        },
        "in": {
            "request": {
                "method": {"$if": "job.attempt == 1", "then": "POST", "else": "PUT"},
                "url": "${base}/jobs/${job.id}",
                "headers": {
                    "content-type": "application/json",
                    "accept": "application/json",
                    "idempotency-key": "${job.id}-${job.attempt}",
                    "x-priority": {"$if": "urgent", "then": "high", "else": "normal"},
                    "authorization": "Bearer ${connector.token}"
                },
                "body": {
                    "name": "${job.kind}: ${job.title}",
                    "labels": {"$sort": {"$eval": "job.labels"}},
                    "inputs": {
                        "$map": {"$eval": "job.inputs"},
                        "each(input,i)": {
                            "position": {"$eval": "i + 1"},
                            "name": "${lowercase(input.name)}",
                            "bytes": {"$eval": "input.kilobytes * 1024"},
                            "large": {"$eval": "input.kilobytes > 512"}
                        }
                    },
                    "total": {
                        "$reduce": {"$eval": "job.inputs"},
                        "initial": 0,
                        "each(sum,input)": {"$eval": "sum + input.kilobytes"}
                    },
                    "limits": {"$merge": [{"cpu": 1, "memory": 512}, {"$eval": "job.limits"}]},
                    "notify": {"$if": "defined('notify')", "then": {"$eval": "notify"}},
                    "not_before": {"$fromNow": "${job.delay_minutes} minutes"},
                    "expires": {"$fromNow": "1 day"}
                }
            },
            "poll": {
                "interval_seconds": {"$switch": {"urgent": 5, "!urgent && job.attempt > 3": 120, "$default": 30}},
                "path": "/v${connector.version}/jobs/${job.id}/status",
                "done_when": ["completed", "failed", "cancelled"]
            }
        }
    });
    let inputs: Vec<Json> = (0..8)
        .map(|i| json!({"name": format!("Input-{i}.bin"), "kilobytes": 100 * i, "digest": "0".repeat(64)}))
        .collect();
    let values = json!({
        "connector": {"endpoint": "https://render.example.com/api", "version": 2, "token": "not-a-secret"},
        "job": {
            "id": "job-0190a7c2", "kind": "render", "title": "Nightly build", "priority": 5, "attempt": 2,
            "labels": ["nightly", "gpu", "batch"], "inputs": inputs, "delay_minutes": 15,
            "limits": {"memory": 2048, "gpu": 1}
        }
    });
    (template, values)
}
