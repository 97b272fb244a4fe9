//! What every construct becomes.

use domain::RetryPolicy;
use domain::run::OnError;
use serde_json::json;

use super::*;

fn shape(steps: &str) -> Vec<String> {
    let pipeline = pipeline(&with_steps(steps));
    assert_eq!(pipeline.shape.0.len(), pipeline.plan.0.len());
    nodes(&pipeline)
}

#[test]
fn sequence_is_steps_that_follow_each_other() {
    assert_eq!(
        shape("- { id: a, uses: x }\n- { id: b, uses: y }\n- { uses: z }"),
        ["0 a next 1", "1 b next 2", "2 step_1"]
    );
}

#[test]
fn branches_of_a_split_begin_together_and_what_follows_the_split_follows_the_group() {
    let steps = "
- id: both
  split:
  - { id: mail, uses: mailer }
  - id: keep
    steps:
    - { id: store, uses: files }
    - { id: index, uses: indexer }
- { id: done, uses: x }";
    let expected = ["0 both [1, 2] next 5", "1 mail", "2 keep [3]", "3 store next 4", "4 index", "5 done"];
    assert_eq!(shape(steps), expected);
}

#[test]
fn any_kind_of_step_may_have_a_condition() {
    let condition = "{ path: payload.a, op: exists }";
    let steps = format!(
        "- {{ id: a, uses: x, if: {condition} }}\n- {{ id: b, if: {condition}, split: [{{ id: c, uses: x }}] }}\n- {{ id: d, if: {condition}, steps: [{{ id: e, uses: x }}] }}"
    );
    assert_eq!(shape(&steps), ["0 a if next 1", "1 b [2] if next 3", "2 c", "3 d [4] if", "4 e"]);
    let plan = pipeline(&with_steps(&steps)).plan;
    let conditional: Vec<bool> = plan.0.iter().map(|detail| detail.condition.is_some()).collect();
    assert_eq!(conditional, [true, true, false, true, false]);
}

#[test]
fn step_says_what_follows_its_failure() {
    let steps = "
- { id: a, uses: x, on_error: stop }
- { id: b, uses: x, on_error: continue }
- id: c
  uses: x
  on_error:
  - { id: tell, uses: mailer }
  - { id: clean, uses: x }
- { id: d, uses: x, on_error: { id: one, uses: x } }";
    let expected = [
        "0 a next 1",
        "1 b next 2 or continue",
        "2 c next 5 or go 3",
        "3 tell next 4",
        "4 clean",
        "5 d or go 6",
        "6 one",
    ];
    assert_eq!(shape(steps), expected);
}

#[test]
fn pipeline_answers_the_failures_that_no_step_answers() {
    let text = "
pipelines:
- name: p
  on: e
  on_error:
  - { id: tell, uses: mailer }
  - { id: clean, uses: x }
  steps:
  - { id: a, uses: x }
  - { id: b, uses: x, on_error: stop }
  - id: g
    split:
    - { id: c, uses: x }
    - { id: d, uses: x, on_error: { id: e, uses: x } }
  - id: h
    on_error: continue
    steps:
    - { id: f, uses: x }
";
    let expected = [
        "0 a next 1 or go 8",
        "1 b next 2",
        "2 g [3, 4] next 6",
        "3 c or go 8",
        "4 d or go 5",
        "5 e",
        "6 h [7] or continue",
        "7 f",
        "8 tell next 9",
        "9 clean",
    ];
    assert_eq!(nodes(&pipeline(text)), expected);
}

#[test]
fn unnamed_steps_are_numbered_in_the_order_in_which_they_appear() {
    let steps = "
- uses: x
- split:
  - { id: named, uses: x }
  - uses: x
  on_error: [{ uses: x }]
- uses: x";
    let expected =
        ["0 step_1 next 1", "1 step_2 [2, 3] next 5 or go 4", "2 named", "3 step_3", "4 step_4", "5 step_5"];
    assert_eq!(shape(steps), expected);
}

#[test]
fn what_a_pipeline_says_is_there() {
    let text = "
pipelines:
- name: tide-alert
  on: tide.changed
  from_plugin: tide_gauge
  if: { path: payload.level_mm, op: gte, value: 2000 }
  max_depth: 0
  execution_mode: synchronous
  timeout: 2m
  dedupe_window: 7d
  steps:
  - id: render
    uses: formatter
    baggage: { tide.station: payload.station }
    with: { text: 'level {payload.level_mm} mm' }
    retry: { max_attempts: 5 }
    timeout: 90
";
    let pipeline = pipeline(text);
    assert_eq!(pipeline.trigger, Trigger::On("tide.changed".to_owned()));
    assert_eq!(pipeline.from_plugin.as_deref(), Some("tide_gauge"));
    assert!(pipeline.condition.is_some());
    assert_eq!((pipeline.max_depth, pipeline.mode), (Some(0), Mode::Synchronous));
    assert_eq!((pipeline.timeout_seconds, pipeline.dedupe_window_seconds), (120, 604_800));
    let detail = serde_json::to_value(pipeline.plan.detail(0)).unwrap();
    let expected = json!({
        "executor": "formatter",
        "with": { "text": "level {payload.level_mm} mm" },
        "baggage": { "tide.station": "payload.station" },
        "retry": { "max_attempts": 5 },
        "timeout_seconds": 90,
    });
    assert_eq!(detail, expected);
}

#[test]
fn what_a_pipeline_does_not_say_is_as_documented() {
    let text = "pipelines: [{ name: p, on-hook: operation.failed, steps: [{ uses: x }] }]";
    let pipeline = pipeline(text);
    assert_eq!(pipeline.trigger, Trigger::OnHook(Signal::OperationFailed));
    assert_eq!((pipeline.max_depth, pipeline.mode), (None, Mode::Async));
    assert_eq!((pipeline.timeout_seconds, pipeline.dedupe_window_seconds), (30, 86_400));
}

#[test]
fn retry_of_a_step_goes_over_that_of_its_executor() {
    let usual = RetryPolicy { max_attempts: 3, backoff_seconds: 1, max_backoff_seconds: 60 };
    let policy = |max_attempts, backoff_seconds| Retry { max_attempts, backoff_seconds }.policy(usual);
    assert_eq!(policy(None, None), usual);
    assert_eq!(policy(Some(9), None), RetryPolicy { max_attempts: 9, ..usual });
    let longer = RetryPolicy { backoff_seconds: 90, max_backoff_seconds: 90, ..usual };
    assert_eq!(policy(None, Some(90)), longer);
    assert!(longer.check().is_ok());
}

#[test]
fn plan_that_was_kept_is_the_one_that_was_compiled() {
    let steps = "- { id: a, uses: x, if: { path: payload.n, op: regex, value: 'a+' }, with: { y: '{{{payload.n}}}', z: [1] } }";
    let plan = pipeline(&with_steps(steps)).plan;
    assert_eq!(Plan::parse(&plan.to_json()).unwrap(), plan);
    let told = Plan::parse(b"[{\"with\": {\"x\": \"{\"}}]").unwrap_err().to_string();
    assert!(told.starts_with("what the run keeps is no plan: a brace is opened and never closed"), "{told}");
}

#[test]
fn version_changes_with_what_a_pipeline_says_and_not_with_how_it_is_written() {
    let version = |text: &str| pipeline(text).version;
    let one = "pipelines: [{ name: p, on: e, steps: [{ id: a, uses: x, with: { b: 1, a: 2 } }] }]";
    let same = "# again\npipelines:\n- steps:\n  - with: { a: 2, b: 1 }\n    uses: x\n    id: a\n  on: e\n  name: q\n  timeout: 30s\n";
    let other = one.replace("b: 1", "b: 2");
    assert_eq!(version(one), version(same));
    assert_ne!(version(one), version(&other));
    assert_ne!(version(one), version(&one.replace("on: e", "on: f")));
    assert_ne!(version(one), version(&one.replace("on: e", "on: e, carry: payload")));
    assert_eq!(version(one), version(&one.replace("on: e", "on: e, carry: claimed")));
    assert_eq!(version(one), "71cf69018eba6e97");
}

#[test]
fn file_says_what_its_pipelines_carry_unless_they_say_it_themselves() {
    let text = "
carry: payload
pipelines:
- { name: p, on: e, steps: [{ uses: x }] }
- { name: q, on: e, carry: claimed, steps: [{ uses: x }] }
";
    let loaded =
        parse(&[("f.yaml", text), ("g.yaml", "pipelines: [{ name: r, on: e, steps: [{ uses: x }] }]")]);
    assert!(loaded.mistakes.is_empty(), "{:?}", loaded.mistakes);
    let carried: Vec<Carry> = loaded.pipelines.iter().map(|pipeline| pipeline.carry).collect();
    assert_eq!(carried, [Carry::Payload, Carry::Claimed, Carry::Claimed]);
    let wrong = parse(&[("f.yaml", "carry: playload\npipelines: []\n")]).mistakes;
    let told = wrong.first().map(ToString::to_string);
    let expected = r#"f.yaml:1:8: "playload" is not one of: claimed, payload; did you mean "payload"?"#;
    assert_eq!(told.as_deref(), Some(expected));
}

#[test]
fn request_of_an_agent_carries_its_payload_and_answers_failures() {
    let text = "
pipelines:
- { name: p, on: agentic.tool_request.x, steps: [{ id: a, uses: x }, { id: b, uses: y }, { id: c, uses: z, with: { n: 1 } }] }
- { name: own, on: agentic.tool_request.x, carry: claimed, on_error: [{ id: e, uses: x }], steps: [{ id: a, uses: x }, { id: b, uses: y }] }
- { name: step, on: agentic.tool_request.x, steps: [{ id: a, uses: x, on_error: stop }, { id: b, uses: y }] }
- { name: one, on: agentic.tool_request.x, steps: [{ id: a, uses: x }] }
- { name: result, on: agentic.tool_result, steps: [{ id: a, uses: x }, { id: b, uses: y }] }
- { name: other, on: agentic.start, steps: [{ id: a, uses: x }, { id: b, uses: y }] }
";
    let loaded = parse(&[("f.yaml", text)]);
    assert!(loaded.mistakes.is_empty(), "{:?}", loaded.mistakes);
    let answers = |name: &str| {
        let pipeline = loaded.pipelines.iter().find(|pipeline| pipeline.name == name).expect("it is there");
        let answer = |node: &domain::run::Node| match node.on_error {
            OnError::Go(answer) => Some(pipeline.shape.0[usize::from(answer)].id.clone()),
            OnError::Stop | OnError::Continue => None,
        };
        (pipeline.carry, pipeline.shape.0.iter().map(answer).collect::<Vec<_>>())
    };
    let resumes = |id: &str| Some(format!("on_error/{id}"));
    assert_eq!(answers("p"), (Carry::Payload, vec![resumes("c"), resumes("c"), None, None]));
    assert_eq!(answers("own"), (Carry::Claimed, vec![Some("e".to_owned()), Some("e".to_owned()), None]));
    for alone in ["step", "result"] {
        assert_eq!(answers(alone), (Carry::Payload, vec![None, None]), "{alone}");
    }
    assert_eq!(answers("one"), (Carry::Payload, vec![None]));
    assert_eq!(answers("other"), (Carry::Claimed, vec![None, None]));
    let p = &loaded.pipelines[0];
    let detail = p.plan.0.last().expect("it has steps");
    assert_eq!((detail.failure_told, &detail.with), (FailureTold::AsToolResult, &None));
}
