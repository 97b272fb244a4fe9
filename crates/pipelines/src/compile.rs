//! From definitions to what a run walks. A called pipeline becomes a group of the caller, and its steps are named after the call.
//!
//! Every node is named by earlier ones alone: a step, then what is inside of it, then its own answer to a failure, then what follows;
//! the pipeline's answer to failures comes last. What starts the called pipeline by itself (its trigger, its `if`) says nothing here.

use std::collections::BTreeMap;

use config_file::{Mistake, hint};
use domain::limits::MAX_LABEL_BYTES;
use domain::run::{MAX_NODES, Node, NodeIndex, NodeKind, OnError, Shape};
use serde_saphyr::Location;

use super::definition::{Answer, Definition, Step, StepKind};
use super::plan::{Detail, FailureTold, MAX_PLAN_BYTES, Plan};
use super::{MAX_NESTING, Pipeline, Written, agentic};

/// What the step is named after that resumes an agent whose tool failed.
const RESUMES_AFTER_FAILURE: &str = "on_error/";

/// What may be called; none if what has this name cannot be used.
pub(super) type Callable<'d> = BTreeMap<&'d str, Option<&'d Definition>>;

/// Compiles a pipeline with everything that it calls.
pub(super) fn compile(definition: &Definition, callable: &Callable<'_>) -> Result<Pipeline, Mistake> {
    let said = &definition.pipeline;
    let mut compiler = Compiler {
        callable,
        calls: vec![&said.name],
        called_at: None,
        nodes: Vec::new(),
        details: Vec::new(),
        places: Vec::new(),
        unanswered: Vec::new(),
    };
    let wrong = |(at, told): Trouble| Mistake::at(&said.written.file, &at, told);
    compiler.pipeline(definition, "", 1).map_err(wrong)?;
    if let Some(step) = agentic::resuming(definition) {
        compiler.resume_after_failure(step).map_err(wrong)?;
    }
    let (shape, plan) = (Shape(compiler.nodes), Plan(compiler.details));
    let written = Written { file: said.written.file.clone(), steps: compiler.places };
    shape.check().map_err(|refusal| wrong((definition.at, refusal.to_string())))?;
    let bytes = plan.to_json().len();
    if bytes > MAX_PLAN_BYTES {
        let told = format!("what its steps say is {bytes} bytes as JSON; the most is {MAX_PLAN_BYTES}");
        return Err(wrong((definition.at, told)));
    }
    let mut pipeline = Pipeline { shape, plan, written, ..said.clone() };
    pipeline.version = pipeline.version_of();
    Ok(pipeline)
}

/// What is wrong, and where in the file of the pipeline that is compiled.
type Trouble = (Location, String);

struct Compiler<'c, 'd> {
    callable: &'c Callable<'d>,
    /// The pipelines that are in each other here, the one that is compiled first.
    calls: Vec<&'c str>,
    /// Where the pipeline that is compiled calls the one that is read now.
    called_at: Option<Location>,
    nodes: Vec<Node>,
    details: Vec<Detail>,
    places: Vec<(u64, u64)>,
    /// Steps whose failure nobody has answered yet.
    unanswered: Vec<NodeIndex>,
}

impl<'c> Compiler<'c, '_> {
    fn pipeline(
        &mut self,
        definition: &'c Definition,
        prefix: &str,
        depth: usize,
    ) -> Result<NodeIndex, Trouble> {
        let before = self.unanswered.len();
        let first = self.sequence(&definition.steps, prefix, depth)?;
        if !definition.on_error.is_empty() {
            let answered = self.unanswered.split_off(before);
            let answer = self.handlers(&definition.on_error, prefix, depth)?;
            for index in answered {
                self.nodes[usize::from(index)].on_error = OnError::Go(answer);
            }
        }
        Ok(first)
    }

    /// The agent whose tool failed goes on by the step that would have resumed it; of its own failure nothing follows.
    fn resume_after_failure(&mut self, step: &Step) -> Result<(), Trouble> {
        let resumes = |node: &Node| node.id == step.id;
        let failed = self.unanswered.split_off(0).into_iter();
        let failed: Vec<_> = failed.filter(|index| !resumes(&self.nodes[usize::from(*index)])).collect();
        if failed.is_empty() {
            return Ok(());
        }
        let answer = self.node(step, RESUMES_AFTER_FAILURE)?;
        let detail = &mut self.details[usize::from(answer)];
        detail.failure_told = FailureTold::AsToolResult;
        // What the file says of an answer is not said of a failure.
        detail.with = None;
        for index in failed {
            self.nodes[usize::from(index)].on_error = OnError::Go(answer);
        }
        Ok(())
    }

    /// Steps after each other; where they begin.
    fn sequence(&mut self, steps: &'c [Step], prefix: &str, depth: usize) -> Result<NodeIndex, Trouble> {
        let mut indices = Vec::new();
        for step in steps {
            let index = self.step(step, prefix, depth)?;
            if let Some(before) = indices.last() {
                let before: &NodeIndex = before;
                self.nodes[usize::from(*before)].next = Some(index);
            }
            indices.push(index);
        }
        Ok(indices.first().copied().unwrap_or_default())
    }

    /// Steps that follow a failure: their own failure is answered by what they say themselves, or by nobody.
    fn handlers(&mut self, steps: &'c [Step], prefix: &str, depth: usize) -> Result<NodeIndex, Trouble> {
        let before = self.unanswered.len();
        let first = self.sequence(steps, prefix, depth)?;
        self.unanswered.truncate(before);
        Ok(first)
    }

    fn step(&mut self, step: &'c Step, prefix: &str, depth: usize) -> Result<NodeIndex, Trouble> {
        if depth > MAX_NESTING {
            let told = format!("steps are nested at most {MAX_NESTING} deep, with everything that is called");
            return Err(self.trouble(step, told));
        }
        let index = self.node(step, prefix)?;
        let before = self.unanswered.len();
        let branches = match &step.kind {
            StepKind::Uses => {
                self.unanswered.push(index);
                None
            }
            StepKind::Steps(steps) => Some(vec![self.sequence(steps, prefix, depth + 1)?]),
            StepKind::Split(steps) => {
                let branches = steps.iter().map(|branch| self.step(branch, prefix, depth + 1));
                Some(branches.collect::<Result<_, _>>()?)
            }
            StepKind::Call(name) => Some(vec![self.call(step, name, prefix, depth)?]),
        };
        if step.on_error.is_some() {
            // The nearest answer is the one that counts: what is inside fails, and its group answers.
            self.unanswered.truncate(before);
        }
        let on_error = match &step.on_error {
            None | Some(Answer::Stop) => OnError::Stop,
            Some(Answer::Continue) => OnError::Continue,
            Some(Answer::Steps(steps)) => OnError::Go(self.handlers(steps, prefix, depth + 1)?),
        };
        let node = &mut self.nodes[usize::from(index)];
        node.on_error = on_error;
        if let Some(branches) = branches {
            node.kind = NodeKind::Group { branches };
        }
        Ok(index)
    }

    fn node(&mut self, step: &Step, prefix: &str) -> Result<NodeIndex, Trouble> {
        let index = NodeIndex::try_from(self.nodes.len()).ok();
        let Some(index) = index.filter(|index| usize::from(*index) < MAX_NODES) else {
            let told = format!("a pipeline has at most {MAX_NODES} steps, with everything that it calls");
            return Err(self.trouble(step, told));
        };
        let id = format!("{prefix}{}", step.id);
        if id.len() > MAX_LABEL_BYTES {
            let told =
                format!("the name of a step has at most {MAX_LABEL_BYTES} bytes with those of its calls");
            return Err(self.trouble(step, told));
        }
        let conditional = step.detail.condition.is_some();
        self.nodes.push(Node { id, kind: NodeKind::Step, next: None, conditional, on_error: OnError::Stop });
        self.details.push(step.detail.clone());
        let at = self.called_at.unwrap_or(step.at);
        self.places.push((at.line(), at.column()));
        Ok(index)
    }

    fn call(&mut self, step: &Step, name: &'c str, prefix: &str, depth: usize) -> Result<NodeIndex, Trouble> {
        let directly = self.calls.get(1).copied().unwrap_or(name);
        let unusable = format!("{directly:?} cannot be called: it has mistakes of its own");
        let called = match self.callable.get(name) {
            Some(Some(called)) if !self.calls.contains(&name) => *called,
            Some(Some(_)) if self.calls[0] == name => {
                let around = [self.calls.join(" -> "), name.to_owned()].join(" -> ");
                return Err(self.trouble(step, format!("this pipeline calls itself: {around}")));
            }
            Some(_) => return Err(self.trouble(step, unusable)),
            None if self.called_at.is_some() => return Err(self.trouble(step, unusable)),
            None => {
                let known: Vec<&str> = self.callable.keys().copied().collect();
                let told = format!("there is no pipeline named {name:?}{}", hint(name, &known));
                return Err(self.trouble(step, told));
            }
        };
        let outermost = self.called_at.is_none();
        self.called_at.get_or_insert(step.at);
        self.calls.push(name);
        let first = self.pipeline(called, &format!("{prefix}{}/", step.id), depth + 1)?;
        self.calls.pop();
        if outermost {
            self.called_at = None;
        }
        Ok(first)
    }

    /// Trouble of a step, told in the file of the pipeline that is compiled.
    fn trouble(&self, step: &Step, told: String) -> Trouble {
        (self.called_at.unwrap_or(step.at), told)
    }
}
