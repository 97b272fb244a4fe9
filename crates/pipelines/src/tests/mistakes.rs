//! Every mistake of one pipeline, with its place.

use super::*;

fn mistakes(text: &str) -> Vec<String> {
    let loaded = parse(&[("f.yaml", text)]);
    assert!(loaded.pipelines.is_empty(), "{text} was taken");
    told(&loaded).into_iter().map(|told| told.strip_prefix("f.yaml:").unwrap().to_owned()).collect()
}

#[test]
fn mistakes_of_a_pipeline_are_told_with_their_place() {
    for (keys, told) in [
        ("on: e\nsteps: [{ uses: x }]", "2:3: the key \"name\" is missing"),
        (
            "name: 'a b'\non: e\nsteps: [{ uses: x }]",
            "2:9: a name has 1 to 256 bytes: letters, digits, dashes, dots, underscores",
        ),
        ("name: 7\non: e\nsteps: [{ uses: x }]", "2:9: a text is expected here; write '7'"),
        ("name: p\nsteps: [{ uses: x }]", "2:3: a pipeline needs on or on-hook: what starts it"),
        (
            "name: p\non: e\non-hook: job.failed\nsteps: [{ uses: x }]",
            "4:12: a pipeline has either on or on-hook",
        ),
        ("name: p\non: ''\nsteps: [{ uses: x }]", "3:7: the type of an event has 1 to 256 bytes on one line"),
        (
            "name: p\non-hook: job.fail\nsteps: [{ uses: x }]",
            "3:12: \"job.fail\" is not one of: job.completed, job.failed, job.timed_out, job.cancelled, job.expired, job.unavailable, operation.completed, operation.failed; did you mean \"job.failed\"?",
        ),
        ("name: p\non: e", "2:3: the key \"steps\" is missing"),
        ("name: p\non: e\nsteps: []", "4:10: this list is empty"),
        ("name: p\non: e\nsteps: { uses: x }", "4:10: a list is expected here, as [one, two]"),
        (
            "name: p\non: e\nstep: [{ uses: x }]\nsteps: [{ uses: x }]",
            "4:3: unknown key \"step\"; did you mean \"steps\"?",
        ),
        (
            "name: p\non: e\non_hook: x\nsteps: [{ uses: x }]",
            "4:3: unknown key \"on_hook\"; did you mean \"on-hook\"?",
        ),
        (
            "name: p\non: e\nschedule: x\nsteps: [{ uses: x }]",
            "4:3: unknown key \"schedule\"; known here: name, on, on-hook, from_plugin, if, max_depth, execution_mode, timeout, dedupe_window, carry, on_error, steps",
        ),
        (
            "name: p\non: e\nmax_depth: -1\nsteps: [{ uses: x }]",
            "4:14: a whole number from 0 to 4294967295 is expected here",
        ),
        (
            "name: p\non: e\nexecution_mode: sync\nsteps: [{ uses: x }]",
            "4:19: \"sync\" is not one of: async, synchronous; did you mean \"synchronous\"?",
        ),
        (
            "name: p\non: e\ntimeout: soon\nsteps: [{ uses: x }]",
            "4:12: a number of seconds or a time such as 30s, 5m or 24h is expected here",
        ),
        ("name: p\non: e\ntimeout: 0\nsteps: [{ uses: x }]", "4:12: must be 1 to 31536000 seconds, and is 0"),
        (
            "name: p\non: e\ndedupe_window: 8d\nsteps: [{ uses: x }]",
            "4:18: must be 0 to 604800 seconds, and is 691200",
        ),
        (
            "name: p\non: e\nif: { path: payload.a }\nsteps: [{ uses: x }]",
            "4:7: the key \"op\" is missing; it is one of: exists, eq, neq, in, gt, gte, lt, lte, contains, startswith, endswith, regex",
        ),
        (
            "name: p\non: e\non_error: continue\nsteps: [{ uses: x }]",
            "4:13: a list is expected here, as [one, two]",
        ),
        ("name: p\non: e\nfrom_plugin: [a]\nsteps: [{ uses: x }]", "4:16: a text is expected here"),
    ] {
        let text = format!("pipelines:\n- {}\n", keys.replace('\n', "\n  "));
        assert_eq!(mistakes(&text), [told], "{text}");
    }
}

#[test]
fn mistakes_of_a_step_are_told_with_their_place() {
    let one_of = "5:7: a step has exactly one of uses, call, steps and split";
    for (keys, told) in [
        ("id: a", one_of),
        ("uses: x\ncall: y", one_of),
        ("steps: [{ uses: x }]\nsplit: [{ uses: x }]", one_of),
        (
            "relay: x\nid: a",
            "5:7: relay is not known here: events go to other hosts by an executor, named with uses",
        ),
        ("uses: x\nwhit: {}", "6:7: unknown key \"whit\"; did you mean \"with\"?"),
        (
            "id: a/b\nuses: x",
            "5:11: the id of a step has 1 to 256 bytes: letters, digits, dashes, dots, underscores",
        ),
        ("uses: \"a\\nb\"", "5:13: the name of an executor has 1 to 256 bytes on one line"),
        ("uses: x\nwith: { a: '{' }", "6:18: a brace is opened and never closed; write {{ for a brace"),
        ("uses: x\nwith: [a]", "6:13: keys with values are expected here, as { key: value }"),
        ("uses: x\nbaggage: { a: x }", "6:21: \"x\": a path begins with payload or context"),
        (
            "uses: x\nretry: { attempts: 3 }",
            "6:16: unknown key \"attempts\"; known here: max_attempts, backoff_seconds",
        ),
        ("uses: x\nretry: { max_attempts: 0 }", "6:30: a whole number from 1 to 1000 is expected here"),
        ("uses: x\ntimeout: 0s", "6:16: must be 1 to 31536000 seconds, and is 0"),
        (
            "uses: x\non_error: contine",
            "6:17: \"contine\" is not one of: stop, continue, or steps; did you mean \"continue\"?",
        ),
        ("uses: x\non_error: []", "6:17: this list is empty"),
        ("uses: x\non_error: { use: y, uses: x }", "6:19: unknown key \"use\"; did you mean \"uses\"?"),
        ("split: [{ uses: x }]\nwith: { a: b }", "6:7: only a step with uses has with"),
        ("call: q\nbaggage: { a: payload.a }", "6:7: only a step with uses has baggage"),
        ("steps: [{ uses: x }]\nretry: {}", "6:7: only a step with uses has retry"),
        ("steps: [{ uses: x }]\ntimeout: 3", "6:7: only a step with uses has timeout"),
        ("steps: []", "5:14: this list is empty"),
        (
            "id: a\nsteps:\n- { id: a, uses: x }",
            "7:15: two steps are named \"a\"; the other one stands in line 5",
        ),
        (
            "id: step_1\nsteps:\n- { uses: x }",
            "7:9: two steps are named \"step_1\"; the other one stands in line 5",
        ),
        ("uses: x\nif: true", "6:11: keys with values are expected here, as { key: value }"),
    ] {
        let text = with_steps(&format!("- {}", keys.replace('\n', "\n  ")));
        assert_eq!(mistakes(&text), [told], "{text}");
    }
}

#[test]
fn all_mistakes_of_a_pipeline_are_told_at_once_in_the_order_of_their_lines() {
    let text = "
pipelines:
- name: p
  on_error: [{ uses: 3 }]
  tiemout: 3
  steps:
  - { uses: x, with: { a: '}' } }
  - { call: x, split: [] }
";
    let told: Vec<String> =
        mistakes(text).iter().map(|told| told.split(": ").next().unwrap().to_owned()).collect();
    assert_eq!(told, ["3:3", "4:22", "5:3", "7:27", "8:5"]);
}

#[test]
fn steps_are_nested_no_deeper_than_the_limit() {
    let nested = |levels: usize| {
        with_steps(&format!("- {}{{ uses: x }}{}", "{ steps: [".repeat(levels), "] }".repeat(levels)))
    };
    assert_eq!(nodes(&pipeline(&nested(15))).len(), 16);
    assert_eq!(mistakes(&nested(16)), ["5:166: steps are nested at most 16 deep"]);
    let answers = |levels: usize| {
        with_steps(&format!(
            "- {}{{ uses: x }}{}",
            "{ uses: x, on_error: ".repeat(levels),
            " }".repeat(levels)
        ))
    };
    assert_eq!(nodes(&pipeline(&answers(15))).len(), 16);
    assert!(mistakes(&answers(16))[0].ends_with("steps are nested at most 16 deep"));
    let deepest = mistakes(&nested(100));
    assert_eq!(deepest.len(), 1, "{deepest:?}");
}

#[test]
fn pipeline_has_no_more_steps_than_the_limit() {
    let steps = |count: usize| with_steps(&"- uses: x\n".repeat(count));
    assert_eq!(pipeline(&steps(256)).shape.0.len(), 256);
    assert_eq!(
        mistakes(&steps(257)),
        ["261:7: a pipeline has at most 256 steps, with everything that it calls"]
    );
}

#[test]
fn plan_is_no_larger_than_the_limit() {
    let steps = |bytes: usize| with_steps(&format!("- {{ uses: x, with: {{ a: {} }} }}", "y".repeat(bytes)));
    let around = pipeline(&steps(0).replace("a: ", "a: ''")).plan.to_json().len();
    assert_eq!(pipeline(&steps(MAX_PLAN_BYTES - around)).plan.to_json().len(), MAX_PLAN_BYTES);
    let told = mistakes(&steps(MAX_PLAN_BYTES - around + 1));
    assert_eq!(told, ["2:9: what its steps say is 49153 bytes as JSON; the most is 49152"]);
}
