//! Nodes and arrows. What follows a group is drawn from the ends of all of its branches: it waits for them.

use std::fmt::Write as _;

use domain::run::{NodeIndex, NodeKind};

use super::{deed, goes_to};
use crate::Pipeline;

#[derive(Clone, Copy)]
enum Arrow {
    Next,
    Error,
}

pub(super) fn mermaid(pipeline: &Pipeline) -> String {
    let mut text =
        format!("flowchart TD\n  start([\"{}\"])\n", quoted_mermaid(&pipeline.trigger.to_string()));
    for (index, node) in indexed(pipeline) {
        let label = format!("{}: {}", node.id, deed(node, index, &pipeline.plan));
        let label = quoted_mermaid(&label);
        // Writing to a string cannot fail.
        let _ = match node.kind {
            NodeKind::Step => writeln!(text, "  n{index}[\"{label}\"]"),
            NodeKind::Group { .. } => writeln!(text, "  n{index}{{{{\"{label}\"}}}}"),
        };
    }
    text.push_str("  start --> n0\n");
    for (from, to, arrow) in arrows(pipeline) {
        let line = match arrow {
            Arrow::Next => "-->",
            Arrow::Error => "-. error .->",
        };
        let _ = writeln!(text, "  n{from} {line} n{to}");
    }
    text
}

pub(super) fn dot(pipeline: &Pipeline) -> String {
    let mut text = format!("digraph {} {{\n", quoted_dot(&pipeline.name));
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  start [shape=oval, label={}];", quoted_dot(&pipeline.trigger.to_string()));
    for (index, node) in indexed(pipeline) {
        let shape = match node.kind {
            NodeKind::Step => "box",
            NodeKind::Group { .. } => "hexagon",
        };
        let label = quoted_dot(&format!("{}: {}", node.id, deed(node, index, &pipeline.plan)));
        let _ = writeln!(text, "  n{index} [shape={shape}, label={label}];");
    }
    text.push_str("  start -> n0;\n");
    for (from, to, arrow) in arrows(pipeline) {
        let style = match arrow {
            Arrow::Next => "",
            Arrow::Error => " [style=dashed, label=error]",
        };
        let _ = writeln!(text, "  n{from} -> n{to}{style};");
    }
    text.push_str("}\n");
    text
}

fn indexed(pipeline: &Pipeline) -> impl Iterator<Item = (NodeIndex, &domain::run::Node)> {
    (0..).zip(&pipeline.shape.0)
}

fn arrows(pipeline: &Pipeline) -> Vec<(NodeIndex, NodeIndex, Arrow)> {
    let mut arrows = Vec::new();
    for (index, node) in indexed(pipeline) {
        if let NodeKind::Group { branches } = &node.kind {
            arrows.extend(branches.iter().map(|branch| (index, *branch, Arrow::Next)));
        }
        if let Some(next) = node.next {
            arrows.extend(ends_of(pipeline, index).into_iter().map(|end| (end, next, Arrow::Next)));
        }
        arrows.extend(goes_to(node).map(|to| (index, to, Arrow::Error)));
    }
    arrows
}

/// Where the work of a node ends: itself, or the last steps of its branches.
fn ends_of(pipeline: &Pipeline, index: NodeIndex) -> Vec<NodeIndex> {
    let node = pipeline.shape.node(index);
    let Some(NodeKind::Group { branches }) = node.map(|node| &node.kind) else { return vec![index] };
    let last_of = |first: NodeIndex| {
        let next_of = |index: &NodeIndex| pipeline.shape.node(*index).and_then(|node| node.next);
        std::iter::successors(Some(first), next_of).last().unwrap_or(first)
    };
    branches.iter().flat_map(|branch| ends_of(pipeline, last_of(*branch))).collect()
}

fn quoted_mermaid(text: &str) -> String {
    text.replace('#', "#35;").replace('"', "#quot;").replace('<', "#lt;").replace('>', "#gt;")
}

fn quoted_dot(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
