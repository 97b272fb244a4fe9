//! From JSON to nodes. The template's depth was checked before, so recursion here is bounded.
//!
//! Only a budget stops compiling. A mistake becomes a fault in the node where a render would meet it, and is
//! also listed with its path, for those who want every mistake at once.

mod interpolation;
mod operator;
mod parameters;

use serde_json::{Map, Value as Json};

use crate::error::{Error, Outcome};
use crate::expression::parse_all;
use crate::identifier::is_identifier;
use crate::limits::Limits;
use crate::location::Segment;
use crate::measure::in_key_order;
use crate::node::{Entry, Expression, Key, Node};

pub use operator::OPERATORS;

/// More mistakes than this are not listed: each carries its path, and a template can be all mistakes.
const FAULTS_LISTED: usize = 100;
/// Nor is any more after so much text of messages and paths.
const FAULT_BYTES_LISTED: usize = 64 * 1024;

/// A template and what is wrong with it.
pub(crate) fn compile(json: &Json, limits: &Limits) -> Outcome<(Node, Vec<Error>)> {
    let mut compiler =
        Compiler { levels: limits.levels(), path: Vec::new(), faults: Vec::new(), fault_bytes: 0 };
    let root = compiler.node(json).map_err(|error| error.within_all(&compiler.path))?;
    Ok((root, compiler.faults))
}

struct Compiler {
    levels: usize,
    path: Vec<Segment>,
    faults: Vec<Error>,
    fault_bytes: usize,
}

impl Compiler {
    fn node(&mut self, json: &Json) -> Outcome<Node> {
        match json {
            Json::Null | Json::Bool(_) | Json::Number(_) => Ok(Node::Literal(json.clone())),
            Json::String(text) => self.text(text),
            Json::Array(items) => self.array(items),
            Json::Object(entries) => self.object(entries),
        }
    }

    fn array(&mut self, items: &[Json]) -> Outcome<Node> {
        let mut nodes = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            nodes.push(self.inside(Segment::Index(index), |compiler| compiler.node(item))?);
        }
        if !nodes.iter().all(|node| matches!(node, Node::Literal(_))) {
            return Ok(Node::Array(nodes));
        }
        Ok(Node::Literal(Json::Array(nodes.into_iter().filter_map(literal).collect())))
    }

    fn object(&mut self, entries: &Map<String, Json>) -> Outcome<Node> {
        let sorted = in_key_order(entries);
        let mut operators = sorted.iter().filter(|(key, _)| OPERATORS.contains(key));
        if let Some((operator, operand)) = operators.next() {
            if operators.next().is_some() {
                return Ok(Node::Fault(self.fault(Error::template("only one operator allowed"))));
            }
            return self.operator(operator, operand, entries);
        }
        let mut nodes = Vec::with_capacity(sorted.len());
        for (written, value) in sorted {
            nodes.push(self.entry(written, value)?);
        }
        if !nodes
            .iter()
            .all(|entry| matches!(entry, Entry { key: Key::Fixed(_), value: Node::Literal(_), .. }))
        {
            return Ok(Node::Object(nodes));
        }
        let literals = nodes.into_iter().filter_map(|entry| match entry.key {
            Key::Fixed(key) => literal(entry.value).map(|value| (String::from(key), value)),
            Key::Interpolation(_) | Key::Fault(_) => None,
        });
        Ok(Node::Literal(Json::Object(literals.collect())))
    }

    fn entry(&mut self, written: &str, value: &Json) -> Outcome<Entry> {
        let key = if let Some(escaped) = written.strip_prefix("$$") {
            Key::Fixed(format!("${escaped}").into())
        } else if written.strip_prefix('$').is_some_and(is_identifier) {
            self.operand(written, |compiler| {
                let reserved = Error::template("$<identifier> is reserved; use $$<identifier>");
                Ok(Key::Fault(compiler.fault(reserved)))
            })?
        } else {
            self.operand(written, |compiler| compiler.key(written))?
        };
        let value = self.inside(Segment::entry(written, written), |compiler| compiler.node(value))?;
        Ok(Entry { written: written.into(), key, value })
    }

    /// Compiles a text that is an expression as a whole.
    fn expression(&mut self, source: &str) -> Outcome<Expression> {
        match parse_all(source, self.levels) {
            Ok(program) => Ok(Ok(program)),
            Err(error) => self.deferred(error).map(Err),
        }
    }

    /// Compiles below a key that the official path leaves out.
    fn operand<T>(&mut self, key: &str, compile: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.inside(Segment::operand(key), compile)
    }

    fn inside<T>(&mut self, segment: Segment, compile: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.path.push(segment);
        let compiled = compile(self)?;
        // On an error the path stays as it is: it tells where.
        self.path.pop();
        Ok(compiled)
    }

    /// A budget ends compiling; a fault waits for a render to meet it.
    fn deferred(&mut self, error: Error) -> Outcome<Error> {
        match error {
            Error::Budget(_) => Err(error),
            Error::Fault(_) => Ok(self.fault(error)),
        }
    }

    fn fault(&mut self, error: Error) -> Error {
        if self.faults.len() < FAULTS_LISTED && self.fault_bytes < FAULT_BYTES_LISTED {
            let placed = error.clone().within_all(&self.path);
            self.fault_bytes += placed.bytes();
            self.faults.push(placed);
        }
        error
    }
}

fn literal(node: Node) -> Option<Json> {
    match node {
        Node::Literal(json) => Some(json),
        Node::Interpolation(_) | Node::Array(_) | Node::Object(_) | Node::Operator(_) | Node::Fault(_) => {
            None
        }
    }
}
