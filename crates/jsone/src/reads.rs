//! Which context names a template reads, found by walking its nodes with the names that operators bind.
//!
//! The answer may hold a name too many, where only a render could tell that an operator binds it; never one
//! too few.

use std::collections::{BTreeMap, BTreeSet};

use crate::builtins::Builtin;
use crate::expression::{Instruction, Program};
use crate::node::{Case, Condition, Each, Expression, Interpolation, Key, Node, Operator, Piece, Variables};

#[derive(Debug, Default)]
pub(crate) struct Reads {
    pub(crate) names: BTreeSet<String>,
    /// Names and the properties that are taken from them right away: `a.b`, `a["b"]`.
    pub(crate) members: BTreeSet<(String, String)>,
    pub(crate) any_name: bool,
}

pub(crate) fn reads(root: &Node) -> Reads {
    let mut walk = Walk { bound: BTreeMap::new(), reads: Reads::default() };
    walk.node(root);
    walk.reads
}

struct Walk<'n> {
    /// How many of the operators around here bind a name.
    bound: BTreeMap<&'n str, usize>,
    reads: Reads,
}

impl<'n> Walk<'n> {
    fn node(&mut self, node: &'n Node) {
        match node {
            Node::Literal(_) | Node::Fault(_) => {}
            Node::Interpolation(interpolation) => self.interpolation(interpolation),
            Node::Array(items) => items.iter().for_each(|item| self.node(item)),
            Node::Object(entries) => {
                for entry in entries {
                    match &entry.key {
                        Key::Fixed(_) | Key::Fault(_) => {}
                        Key::Interpolation(interpolation) => self.interpolation(interpolation),
                    }
                    self.node(&entry.value);
                }
            }
            Node::Operator(operator) => self.operator(operator),
        }
    }

    fn operator(&mut self, operator: &'n Operator) {
        match operator {
            Operator::Eval(expression) => self.expression(expression),
            Operator::If { condition, then, otherwise } => {
                self.expression(condition);
                self.optional(then.as_ref());
                self.optional(otherwise.as_ref());
            }
            Operator::Switch { cases, default } => {
                self.cases(cases);
                self.optional(default.as_ref());
            }
            Operator::Match(cases) => self.cases(cases),
            Operator::Let { names, body } => {
                self.node(names);
                if let Some(body) = body {
                    let surely = surely_bound(names);
                    self.with(&surely, |walk| walk.node(body));
                }
            }
            Operator::Map { over, each } => {
                self.node(over);
                if let Ok(each) = each {
                    self.each(each, None);
                }
            }
            Operator::Reduce { over, reduction } => {
                self.node(over);
                if let Ok(reduction) = reduction {
                    self.each(&reduction.each, Some(&reduction.accumulator));
                }
            }
            Operator::Find { over, each } => {
                self.node(over);
                if let Ok(each) = each {
                    self.condition(each);
                }
            }
            Operator::Sort { over, by } => {
                self.node(over);
                if let Ok(Some(by)) = by {
                    self.condition(by);
                }
            }
            Operator::FromNow { offset, from } => {
                self.node(offset);
                self.optional(from.as_ref());
            }
            Operator::Apply(_, operand) => self.node(operand),
        }
    }

    fn optional(&mut self, node: Option<&'n Node>) {
        if let Some(node) = node {
            self.node(node);
        }
    }

    fn cases(&mut self, cases: &'n [Case]) {
        for case in cases {
            self.expression(&case.condition);
            self.node(&case.value);
        }
    }

    fn each(&mut self, each: &'n Each, accumulator: Option<&'n str>) {
        let mut names = bound_by(&each.variables);
        names.extend(accumulator);
        self.with(&names, |walk| walk.node(&each.body));
    }

    fn condition(&mut self, condition: &'n Condition) {
        self.with(&bound_by(&condition.variables), |walk| walk.expression(&condition.expression));
    }

    fn interpolation(&mut self, interpolation: &'n Interpolation) {
        for piece in &interpolation.pieces {
            match piece {
                Piece::Expression { program, .. } => self.program(program),
                Piece::Text(_) | Piece::Fault(_) => {}
            }
        }
    }

    fn expression(&mut self, expression: &'n Expression) {
        if let Ok(program) = expression {
            self.program(program);
        }
    }

    fn program(&mut self, program: &'n Program) {
        let instructions = program.instructions();
        for (index, instruction) in instructions.iter().enumerate() {
            let Instruction::Load(name) = instruction else { continue };
            if &**name == "defined" && !self.is_bound("defined") {
                match &instructions[index + 1..] {
                    [Instruction::Callable, Instruction::Text(asked), Instruction::Call(1), ..] => {
                        self.read(asked);
                    }
                    _ => self.reads.any_name = true,
                }
            }
            self.read(name);
            let ([Instruction::Property(member), ..] | [Instruction::Text(member), Instruction::Index, ..]) =
                &instructions[index + 1..]
            else {
                continue;
            };
            if !self.is_bound(name) {
                self.reads.members.insert((name.to_string(), member.to_string()));
            }
        }
    }

    fn read(&mut self, name: &str) {
        if name == "now" || Builtin::named(name).is_some() || self.is_bound(name) {
            return;
        }
        if !self.reads.names.contains(name) {
            self.reads.names.insert(name.to_owned());
        }
    }

    fn with(&mut self, names: &[&'n str], walk: impl FnOnce(&mut Self)) {
        for name in names {
            *self.bound.entry(name).or_default() += 1;
        }
        walk(self);
        for name in names {
            self.bound.entry(name).and_modify(|count| *count -= 1);
        }
    }

    fn is_bound(&self, name: &str) -> bool {
        self.bound.get(name).is_some_and(|count| *count > 0)
    }
}

fn bound_by(variables: &Variables) -> Vec<&str> {
    std::iter::once(&*variables.value).chain(variables.index.as_deref()).collect()
}

/// The names of a `$let` that cannot be missing: written out, and with a value that cannot vanish.
fn surely_bound(names: &Node) -> Vec<&str> {
    match names {
        Node::Literal(serde_json::Value::Object(entries)) => entries.keys().map(String::as_str).collect(),
        Node::Object(entries) => entries
            .iter()
            .filter(|entry| !may_vanish(&entry.value))
            .filter_map(|entry| match &entry.key {
                Key::Fixed(key) => Some(&**key),
                Key::Interpolation(_) | Key::Fault(_) => None,
            })
            .collect(),
        Node::Literal(_) | Node::Interpolation(_) | Node::Array(_) | Node::Operator(_) | Node::Fault(_) => {
            Vec::new()
        }
    }
}

fn may_vanish(node: &Node) -> bool {
    let Node::Operator(operator) = node else { return false };
    match &**operator {
        Operator::If { then, otherwise, .. } => {
            [then, otherwise].iter().any(|branch| branch.as_ref().is_none_or(may_vanish))
        }
        Operator::Switch { cases, default } => {
            default.as_ref().is_none_or(may_vanish) || cases.iter().any(|case| may_vanish(&case.value))
        }
        Operator::Let { body, .. } => body.as_ref().is_none_or(may_vanish),
        Operator::Find { .. } => true,
        Operator::Eval(_)
        | Operator::Match(_)
        | Operator::Map { .. }
        | Operator::Reduce { .. }
        | Operator::Sort { .. }
        | Operator::FromNow { .. }
        | Operator::Apply(..) => false,
    }
}
