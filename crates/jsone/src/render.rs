//! Renders nodes into values. Recurses once per level of the template, whose depth was checked when it was
//! parsed; expressions and collections add no recursion of their own beyond the depth of values.
//!
//! `None` is the deletion marker: the value vanishes from whatever would have held it.

mod branches;
mod loops;
mod transforms;

use serde_json::Value as Json;

use crate::error::{Error, Outcome};
use crate::excerpt::excerpt;
use crate::expression::{Machine, Program};
use crate::from_now::from_now;
use crate::location::Segment;
use crate::meter::Meter;
use crate::node::{Entry, Expression, Interpolation, Key, Node, Operator, Piece};
use crate::scope::Scope;
use crate::value::{Array, ObjectBuilder, Purpose, Text, Value, to_json};

pub(crate) use branches::LET_WITHOUT_IN;
pub(crate) use transforms::{TRANSFORMS, Transform};

pub(crate) struct Renderer<'r> {
    scope: Scope<'r>,
    machine: Machine<'r>,
    meter: Meter,
}

impl<'r> Renderer<'r> {
    pub(crate) fn new(scope: Scope<'r>, meter: Meter) -> Renderer<'r> {
        Renderer { scope, machine: Machine::default(), meter }
    }

    /// The rendered template as JSON. Call once; the meter keeps what it used.
    pub(crate) fn result(&mut self, root: &'r Node) -> Outcome<Json> {
        let value = self.node(root)?.unwrap_or(Value::Null);
        to_json(&value, Purpose::Result, &mut self.meter)
    }

    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    fn node(&mut self, node: &'r Node) -> Outcome<Option<Value<'r>>> {
        self.meter.step()?;
        match node {
            Node::Literal(json) => Ok(Some(Value::given(json))),
            Node::Interpolation(interpolation) => {
                self.interpolation(interpolation).map(|text| Some(Value::Text(text)))
            }
            Node::Array(items) => self.array(items).map(Some),
            Node::Object(entries) => self.object(entries).map(Some),
            Node::Operator(operator) => self.operator(operator),
            Node::Fault(error) => Err(error.clone()),
        }
    }

    fn array(&mut self, items: &'r [Node]) -> Outcome<Value<'r>> {
        let mut values = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let value = self.node(item).map_err(|error| error.within(Segment::Index(index)))?;
            values.extend(value);
        }
        Ok(Value::Array(Array::build(values, &mut self.meter)?))
    }

    fn object(&mut self, entries: &'r [Entry]) -> Outcome<Value<'r>> {
        let mut object = ObjectBuilder::with_capacity(entries.len());
        for entry in entries {
            let key = self.key(&entry.key).map_err(|error| within(error, &entry.written))?;
            match self.node(&entry.value) {
                Ok(Some(value)) => object.insert(key, value),
                Ok(None) => {}
                Err(error) => {
                    return Err(error.within(Segment::entry(&entry.written, &key)));
                }
            }
        }
        Ok(Value::Object(object.build(&mut self.meter)?))
    }

    fn key(&mut self, key: &'r Key) -> Outcome<Text<'r>> {
        match key {
            Key::Fixed(key) => Ok(Text::Given(key)),
            Key::Interpolation(interpolation) => self.interpolation(interpolation),
            Key::Fault(error) => Err(error.clone()),
        }
    }

    fn interpolation(&mut self, interpolation: &'r Interpolation) -> Outcome<Text<'r>> {
        let mut text = String::new();
        for piece in &interpolation.pieces {
            match piece {
                Piece::Text(plain) => self.append(&mut text, plain)?,
                Piece::Expression { program, source } => {
                    let value = self.run(program)?;
                    self.append_value(&mut text, &value, source)?;
                }
                Piece::Fault(error) => return Err(error.clone()),
            }
        }
        Ok(Text::Built(text.into()))
    }

    fn append_value(&mut self, text: &mut String, value: &Value<'r>, source: &str) -> Outcome<()> {
        match value {
            Value::Null => Ok(()),
            Value::Bool(bool) => self.append(text, if *bool { "true" } else { "false" }),
            Value::Number(number) => self.append(text, &number.to_string()),
            Value::Text(inner) => self.append(text, inner),
            Value::Array(_) | Value::Object(_) => {
                let source = excerpt(source);
                Err(Error::template(format!("interpolation of '{source}' produced an array or object")))
            }
            Value::Function(_) => Err(Error::template("evaluated template contained uncalled functions")),
        }
    }

    fn append(&mut self, text: &mut String, more: &str) -> Outcome<()> {
        self.meter.longer_string(text.len(), more.len())?;
        text.push_str(more);
        Ok(())
    }

    fn operator(&mut self, operator: &'r Operator) -> Outcome<Option<Value<'r>>> {
        match operator {
            Operator::Eval(expression) => self.expression(expression, "$eval").map(Some),
            Operator::If { condition, then, otherwise } => {
                self.condition(condition, then.as_ref(), otherwise.as_ref())
            }
            Operator::Switch { cases, default } => self.switch(cases, default.as_ref()),
            Operator::Match(cases) => self.matches(cases).map(Some),
            Operator::Let { names, body } => self.with_names(names, body.as_ref()),
            Operator::Map { over, each } => self.map(over, each).map(Some),
            Operator::Reduce { over, reduction } => self.reduce(over, reduction).map(Some),
            Operator::Find { over, each } => self.find(over, each),
            Operator::Sort { over, by } => self.sort(over, by).map(Some),
            Operator::FromNow { offset, from } => self.time(offset, from.as_ref()).map(Some),
            Operator::Apply(transform, operand) => {
                let value = self.operand(operand, transform.written)?;
                (transform.apply)(value.as_ref(), &mut self.meter).map(Some)
            }
        }
    }

    fn time(&mut self, offset: &'r Node, from: Option<&'r Node>) -> Outcome<Value<'r>> {
        let offset = self.operand(offset, "$fromNow")?;
        let reference = match from {
            Some(from) => self.operand(from, "from")?,
            None => self.scope.now(&mut self.meter)?.map(Value::Text),
        };
        let Some(Value::Text(offset)) = offset else {
            return Err(Error::template("$fromNow expects a string"));
        };
        let Some(Value::Text(reference)) = reference else {
            return Err(Error::template("$fromNow expects its reference time to be a string"));
        };
        self.meter.text(offset.len() + reference.len())?;
        Ok(Value::Text(Text::build(&from_now(&offset, &reference)?, &mut self.meter)?))
    }

    /// A node under a key of an operator.
    fn operand(&mut self, node: &'r Node, key: &str) -> Outcome<Option<Value<'r>>> {
        self.node(node).map_err(|error| within(error, key))
    }

    /// An expression under a key of an operator, or in the key itself.
    fn expression(&mut self, expression: &'r Expression, key: &str) -> Outcome<Value<'r>> {
        match expression {
            Ok(program) => self.run(program).map_err(|error| within(error, key)),
            Err(error) => Err(within(error.clone(), key)),
        }
    }

    fn run(&mut self, program: &'r Program) -> Outcome<Value<'r>> {
        self.machine.run(program, &self.scope, &mut self.meter)
    }
}

fn within(error: Error, key: &str) -> Error {
    error.within(Segment::operand(key))
}
