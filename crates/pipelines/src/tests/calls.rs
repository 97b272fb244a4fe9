//! Pipelines that call each other.

use super::*;

fn load_one(text: &str) -> Loaded {
    parse(&[("f.yaml", text)])
}

fn find<'l>(loaded: &'l Loaded, name: &str) -> &'l Pipeline {
    loaded.pipelines.iter().find(|pipeline| pipeline.name == name).unwrap()
}

#[test]
fn called_pipeline_is_a_group_whose_steps_are_named_after_the_call() {
    let text = "
pipelines:
- name: outer
  on: e
  steps:
  - { id: first, uses: x }
  - { id: sub, call: inner, if: { path: payload.a, op: exists } }
  - { id: last, uses: x }
- name: inner
  on: f
  if: { path: payload.never, op: exists }
  steps:
  - { id: a, uses: x }
  - { id: deep, call: innermost }
- { name: innermost, on: g, steps: [{ id: a, uses: y }] }
";
    let loaded = load_one(text);
    assert_eq!(told(&loaded), Vec::<String>::new());
    let outer = find(&loaded, "outer");
    let expected = [
        "0 first next 1",
        "1 sub [2] if next 5",
        "2 sub/a next 3",
        "3 sub/deep [4]",
        "4 sub/deep/a",
        "5 last",
    ];
    assert_eq!(nodes(outer), expected);
    assert_eq!(outer.plan.detail(4).unwrap().executor.as_deref(), Some("y"));
    assert_eq!(outer.plan.detail(3).unwrap().executor, None);
    assert_eq!(nodes(find(&loaded, "innermost")), ["0 a"]);
}

#[test]
fn called_pipeline_answers_its_own_failures_and_the_caller_the_others() {
    let text = "
pipelines:
- name: outer
  on: e
  on_error: [{ id: tell, uses: x }]
  steps: [{ id: one, call: answers }, { id: two, call: silent }]
- { name: answers, on: f, on_error: [{ id: own, uses: x }], steps: [{ id: a, uses: x }] }
- { name: silent, on: g, steps: [{ id: a, uses: x }] }
";
    let loaded = load_one(text);
    let expected =
        ["0 one [1] next 3", "1 one/a or go 2", "2 one/own", "3 two [4]", "4 two/a or go 5", "5 tell"];
    assert_eq!(nodes(find(&loaded, "outer")), expected);
}

#[test]
fn version_of_a_caller_changes_with_what_it_calls() {
    let text = |executor: &str| {
        format!(
            "pipelines:\n- {{ name: a, on: e, steps: [{{ call: b }}] }}\n- {{ name: b, on: f, steps: [{{ uses: {executor} }}] }}\n"
        )
    };
    let version = |executor: &str| find(&load_one(&text(executor)), "a").version.clone();
    assert_ne!(version("x"), version("y"));
}

#[test]
fn unknown_target_is_told_where_it_is_called_and_whoever_calls_that_pipeline_is_told_too() {
    let text = "
pipelines:
- { name: outer, on: e, steps: [{ call: middle }] }
- name: middle
  on: e
  steps:
  - call: inne
- { name: inner, on: e, steps: [{ uses: x }] }
";
    let loaded = load_one(text);
    let expected = [
        r#"f.yaml:3:33: "middle" cannot be called: it has mistakes of its own"#,
        r#"f.yaml:7:5: there is no pipeline named "inne"; did you mean "inner"?"#,
    ];
    assert_eq!(told(&loaded), expected);
    assert_eq!(names(&loaded), ["inner"]);
}

#[test]
fn cycle_is_told_at_each_of_its_calls_with_the_way_around() {
    let a = "pipelines:\n- { name: a, on: e, steps: [{ call: b }] }\n";
    let b = "pipelines:\n- { name: b, on: e, steps: [{ uses: x }, { steps: [{ call: c }] }] }\n";
    let rest = "pipelines:\n- { name: c, on: e, steps: [{ call: a }] }\n- { name: self, on: e, steps: [{ call: self }] }\n- { name: outside, on: e, steps: [{ call: a }] }\n- { name: good, on: e, steps: [{ uses: x }] }\n";
    let loaded = parse(&[("a.yaml", a), ("b.yaml", b), ("rest.yaml", rest)]);
    let expected = [
        "a.yaml:2:29: this pipeline calls itself: a -> b -> c -> a",
        "b.yaml:2:52: this pipeline calls itself: b -> c -> a -> b",
        "rest.yaml:2:29: this pipeline calls itself: c -> a -> b -> c",
        "rest.yaml:3:32: this pipeline calls itself: self -> self",
        "rest.yaml:4:35: \"a\" cannot be called: it has mistakes of its own",
    ];
    assert_eq!(told(&loaded), expected);
    assert_eq!(names(&loaded), ["good"]);
}

#[test]
fn pipeline_that_cannot_be_read_cannot_be_called() {
    let text =
        "pipelines:\n- { name: a, on: e, steps: [{ call: b }] }\n- { name: b, on: e, steps: [{ use: x }] }\n";
    let loaded = load_one(text);
    let expected = [
        r#"f.yaml:2:29: "b" cannot be called: it has mistakes of its own"#,
        "f.yaml:3:29: a step has exactly one of uses, call, steps and split",
        r#"f.yaml:3:31: unknown key "use"; did you mean "uses"?"#,
    ];
    assert_eq!(told(&loaded), expected);
}

#[test]
fn calls_that_double_with_every_pipeline_end_at_the_limit_of_steps() {
    let pipelines = (0..15).map(|n| {
        let call = format!("{{ call: p{} }}", n + 1);
        format!("- {{ name: p{n}, on: e, steps: [{call}, {call}] }}\n")
    });
    let text = format!(
        "pipelines:\n{}- {{ name: p15, on: e, steps: [{{ uses: x }}] }}\n",
        pipelines.collect::<String>()
    );
    let loaded = load_one(&text);
    let first = &told(&loaded)[0];
    assert!(
        first.starts_with("f.yaml:2:")
            && first.ends_with(": a pipeline has at most 256 steps, with everything that it calls"),
        "{first}"
    );
    assert_eq!(names(&loaded), ["p9", "p10", "p11", "p12", "p13", "p14", "p15"]);
}

#[test]
fn calls_are_nested_no_deeper_than_steps_are() {
    let pipelines = (0..20).map(|n| format!("- {{ name: p{n}, on: e, steps: [{{ call: p{} }}] }}\n", n + 1));
    let text = format!(
        "pipelines:\n{}- {{ name: p20, on: e, steps: [{{ uses: x }}] }}\n",
        pipelines.collect::<String>()
    );
    let loaded = load_one(&text);
    assert_eq!(told(&loaded).len(), 5);
    let told = &told(&loaded)[0];
    assert!(told.ends_with("steps are nested at most 16 deep, with everything that is called"), "{told}");
}
