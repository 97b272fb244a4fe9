//! The tree: what stands further in is part of what stands above it; steps on one level follow each other.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use domain::run::{NodeIndex, NodeKind, OnError};

use super::{deed, goes_to};
use crate::Pipeline;

pub(super) fn tree(pipeline: &Pipeline) -> String {
    let mut answers = BTreeMap::new();
    for index in pipeline.shape.0.iter().filter_map(goes_to) {
        *answers.entry(index).or_insert(0_usize) += 1;
    }
    let mut tree = Tree { pipeline, answers, text: String::new() };
    let condition = pipeline.condition.as_ref().map(|condition| format!(", if {condition}"));
    tree.line(0, &format!("{}: {}{}", pipeline.name, pipeline.trigger, condition.unwrap_or_default()));
    tree.sequence(Some(0), 1);
    let shared: Vec<NodeIndex> =
        tree.answers.iter().filter(|(_, count)| **count > 1).map(|(index, _)| *index).collect();
    for answer in shared {
        tree.line(1, &format!("on error -> {}:", tree.id(answer)));
        tree.sequence(Some(answer), 2);
    }
    tree.text
}

struct Tree<'p> {
    pipeline: &'p Pipeline,
    /// How many nodes go to each answer: one that several go to is shown once, at the end.
    answers: BTreeMap<NodeIndex, usize>,
    text: String,
}

impl Tree<'_> {
    fn sequence(&mut self, first: Option<NodeIndex>, depth: usize) {
        let mut at = first;
        while let Some((index, node)) = at.and_then(|at| Some((at, self.pipeline.shape.node(at)?))) {
            let answer = match node.on_error {
                OnError::Stop => String::new(),
                OnError::Continue => " (on error: continue)".to_owned(),
                OnError::Go(to) if self.answers.get(&to) == Some(&1) => String::new(),
                OnError::Go(to) => format!(" (on error -> {})", self.id(to)),
            };
            self.line(depth, &format!("{}: {}{answer}", node.id, deed(node, index, &self.pipeline.plan)));
            if let NodeKind::Group { branches } = &node.kind {
                for branch in branches {
                    self.sequence(Some(*branch), depth + 1);
                }
            }
            if let Some(own) = goes_to(node).filter(|to| self.answers.get(to) == Some(&1)) {
                self.line(depth + 1, "on error:");
                self.sequence(Some(own), depth + 2);
            }
            at = node.next;
        }
    }

    fn id(&self, index: NodeIndex) -> &str {
        self.pipeline.shape.node(index).map_or("", |node| &node.id)
    }

    fn line(&mut self, depth: usize, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{:1$}{text}", "", depth * 2);
    }
}
