//! What people and programs that draw are shown.

use super::super::parse;
use super::*;

const TEXT: &str = r#"
pipelines:
- name: p
  on: tide.changed
  if: { path: payload.level, op: gte, value: 3 }
  on_error: { id: tell, uses: mailer }
  steps:
  - { id: a, uses: x, if: { path: payload.kind, op: in, value: ["<b>"] } }
  - id: both
    split:
    - { id: c, uses: x, on_error: continue }
    - id: d
      steps: [{ id: e, uses: x }, { id: f, uses: x, on_error: [{ id: own, uses: z }] }]
  - { id: g, uses: y }
"#;

fn shown(format: Format) -> String {
    graph(&parse(&[("f.yaml", TEXT)]).pipelines[0], format)
}

#[test]
fn tree_shows_what_is_in_what_and_where_failures_go() {
    let expected = r#"p: on tide.changed, if payload.level gte 3
  a: x, if payload.kind in ["<b>"] (on error -> tell)
  both: all together
    c: x (on error: continue)
    d: in order
      e: x (on error -> tell)
      f: x
        on error:
          own: z
  g: y (on error -> tell)
  on error -> tell:
    tell: mailer
"#;
    assert_eq!(shown(Format::Text), expected);
}

#[test]
fn mermaid_joins_all_branches_before_what_follows_and_holds_no_quotes_of_ours() {
    let expected = r#"flowchart TD
  start(["on tide.changed"])
  n0["a: x, if payload.kind in [#quot;#lt;b#gt;#quot;]"]
  n1{{"both: all together"}}
  n2["c: x"]
  n3{{"d: in order"}}
  n4["e: x"]
  n5["f: x"]
  n6["own: z"]
  n7["g: y"]
  n8["tell: mailer"]
  start --> n0
  n0 --> n1
  n0 -. error .-> n8
  n1 --> n2
  n1 --> n3
  n2 --> n7
  n5 --> n7
  n3 --> n4
  n4 --> n5
  n4 -. error .-> n8
  n5 -. error .-> n6
  n7 -. error .-> n8
"#;
    assert_eq!(shown(Format::Mermaid), expected);
}

#[test]
fn dot_has_the_same_nodes_and_arrows() {
    let dot = shown(Format::Dot);
    assert!(dot.starts_with("digraph \"p\" {\n  start [shape=oval, label=\"on tide.changed\"];\n"), "{dot}");
    assert!(dot.contains("  n0 [shape=box, label=\"a: x, if payload.kind in [\\\"<b>\\\"]\"];\n"), "{dot}");
    assert!(dot.contains("  n2 -> n7;\n  n5 -> n7;\n"), "{dot}");
    assert!(dot.ends_with("  n7 -> n8 [style=dashed, label=error];\n}\n"), "{dot}");
    assert_eq!(dot.matches(" -> ").count(), shown(Format::Mermaid).matches("->").count());
}
