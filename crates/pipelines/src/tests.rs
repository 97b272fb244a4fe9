//! Definitions, good and bad: what they become, and how their mistakes are told.

mod calls;
mod files;
mod mistakes;
mod shapes;

use super::*;

/// The only pipeline of a text.
fn pipeline(text: &str) -> Pipeline {
    let loaded = parse(&[("f.yaml", text)]);
    assert_eq!(told(&loaded), Vec::<String>::new(), "{text}");
    assert_eq!(loaded.pipelines.len(), 1, "{text}");
    loaded.pipelines.into_iter().next().unwrap()
}

/// A pipeline with these lines of steps.
fn with_steps(steps: &str) -> String {
    let steps = steps.trim_matches('\n').replace('\n', "\n    ");
    format!("pipelines:\n- name: p\n  on: e\n  steps:\n    {steps}\n")
}

fn told(loaded: &Loaded) -> Vec<String> {
    loaded.mistakes.iter().map(ToString::to_string).collect()
}

fn names(loaded: &Loaded) -> Vec<&str> {
    loaded.pipelines.iter().map(|pipeline| pipeline.name.as_str()).collect()
}

/// The nodes on one line each: index, name, what is inside, what follows, what follows a failure.
fn nodes(pipeline: &Pipeline) -> Vec<String> {
    use domain::run::{NodeKind, OnError};
    let nodes = pipeline.shape.0.iter().enumerate().map(|(index, node)| {
        let inside = match &node.kind {
            NodeKind::Step => String::new(),
            NodeKind::Group { branches } => format!(" {branches:?}"),
        };
        let condition = if node.conditional { " if" } else { "" };
        let next = node.next.map(|next| format!(" next {next}")).unwrap_or_default();
        let failed = match node.on_error {
            OnError::Stop => String::new(),
            OnError::Continue => " or continue".to_owned(),
            OnError::Go(to) => format!(" or go {to}"),
        };
        format!("{index} {}{inside}{condition}{next}{failed}", node.id)
    });
    nodes.collect()
}
