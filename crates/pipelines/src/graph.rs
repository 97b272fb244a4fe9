//! Pipelines to look at: a tree for people, Mermaid and DOT for what draws.

mod drawn;
#[cfg(test)]
mod tests;
mod tree;

use domain::run::{Node, NodeIndex, NodeKind, OnError};

use super::{Pipeline, Plan};

/// How a pipeline is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An indented tree.
    Text,
    /// A flowchart of Mermaid.
    Mermaid,
    /// A digraph of Graphviz.
    Dot,
}

/// Shows a pipeline; the last line ends too.
pub fn graph(pipeline: &Pipeline, format: Format) -> String {
    match format {
        Format::Text => tree::tree(pipeline),
        Format::Mermaid => drawn::mermaid(pipeline),
        Format::Dot => drawn::dot(pipeline),
    }
}

/// What a node does, in a few words.
fn deed(node: &Node, index: NodeIndex, plan: &Plan) -> String {
    let detail = plan.detail(index);
    let deed = match &node.kind {
        NodeKind::Step => detail.and_then(|detail| detail.executor.clone()).unwrap_or_default(),
        NodeKind::Group { branches } if branches.len() == 1 => "in order".to_owned(),
        NodeKind::Group { .. } => "all together".to_owned(),
    };
    match detail.and_then(|detail| detail.condition.as_ref()) {
        Some(condition) => format!("{deed}, if {condition}"),
        None => deed,
    }
}

/// Where a failure of this node goes, if it goes somewhere.
fn goes_to(node: &Node) -> Option<NodeIndex> {
    match node.on_error {
        OnError::Go(index) => Some(index),
        OnError::Stop | OnError::Continue => None,
    }
}
