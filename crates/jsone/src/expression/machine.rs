//! Runs compiled expressions: a loop over instructions with a stack of values, one step each. Expressions call
//! functions but never templates, so the machine is never entered twice at once.

use super::access;
use super::operations;
use super::program::{Instruction, Program};
use crate::error::{Error, Outcome};
use crate::excerpt::excerpt;
use crate::meter::Meter;
use crate::scope::Scope;
use crate::value::{Array, Function, ObjectBuilder, Text, Value};

/// Keeps its stack between runs to save allocations.
#[derive(Default)]
pub(crate) struct Machine<'r> {
    stack: Vec<Value<'r>>,
}

impl<'r> Machine<'r> {
    /// The value of an expression. An error carries the offset of the instruction that failed.
    pub(crate) fn run(
        &mut self,
        program: &'r Program,
        scope: &Scope<'r>,
        meter: &mut Meter,
    ) -> Outcome<Value<'r>> {
        self.stack.clear();
        let instructions = program.instructions();
        let mut next = 0;
        while let Some(instruction) = instructions.get(next) {
            meter
                .step()
                .and_then(|()| self.execute(instruction, next, scope, meter))
                .map(|target| next = target)
                .map_err(|error| error.at(program.offset(next)))?;
        }
        Ok(self.pop())
    }

    /// Does one instruction and tells which one is next.
    fn execute(
        &mut self,
        instruction: &'r Instruction,
        position: usize,
        scope: &Scope<'r>,
        meter: &mut Meter,
    ) -> Outcome<usize> {
        let value = match instruction {
            Instruction::Null => Value::Null,
            Instruction::Bool(bool) => Value::Bool(*bool),
            Instruction::Number(number) => Value::Number(*number),
            Instruction::Text(text) => Value::Text(Text::Given(text)),
            Instruction::Load(name) => load(name, scope, meter)?,
            Instruction::Array(count) => {
                let items = self.stack.split_off(self.stack.len().saturating_sub(*count));
                Value::Array(Array::build(items, meter)?)
            }
            Instruction::Object(keys) => self.object(keys, meter)?,
            Instruction::Unary(operation) => operations::unary(*operation, &self.pop())?,
            Instruction::Binary(operation) => {
                let right = self.pop();
                let left = self.pop();
                operations::binary(*operation, &left, &right, meter)?
            }
            Instruction::SkipUnlessTruthy(target) => {
                if self.pop().is_truthy() {
                    return Ok(position + 1);
                }
                self.stack.push(Value::Bool(false));
                return Ok(*target);
            }
            Instruction::SkipIfTruthy(target) => {
                if !self.pop().is_truthy() {
                    return Ok(position + 1);
                }
                self.stack.push(Value::Bool(true));
                return Ok(*target);
            }
            Instruction::Truth => Value::Bool(self.pop().is_truthy()),
            Instruction::Property(name) => access::property(&self.pop(), name, meter)?,
            Instruction::Index => {
                let index = self.pop();
                access::index(&self.pop(), &index, meter)?
            }
            Instruction::Slice { from, to } => {
                let to = to.then(|| self.pop());
                let from = from.then(|| self.pop());
                access::slice(&self.pop(), from.as_ref(), to.as_ref(), meter)?
            }
            Instruction::Callable => {
                if let Some(value) = self.stack.last() {
                    check_callable(value)?;
                }
                return Ok(position + 1);
            }
            Instruction::Call(count) => self.call(*count, scope, meter)?,
        };
        self.stack.push(value);
        Ok(position + 1)
    }

    fn object(&mut self, keys: &'r [Box<str>], meter: &mut Meter) -> Outcome<Value<'r>> {
        let values = self.stack.split_off(self.stack.len().saturating_sub(keys.len()));
        let mut object = ObjectBuilder::with_capacity(keys.len());
        for (key, value) in keys.iter().zip(values) {
            object.insert(Text::Given(key), value);
        }
        Ok(Value::Object(object.build(meter)?))
    }

    fn call(&mut self, count: usize, scope: &Scope<'r>, meter: &mut Meter) -> Outcome<Value<'r>> {
        let arguments = self.stack.split_off(self.stack.len().saturating_sub(count));
        let callee = self.pop();
        match check_callable(&callee)? {
            Function::Builtin(builtin) => builtin.call(&arguments, scope, meter),
            Function::Host(function) => function.call(&arguments, meter),
        }
    }

    /// The parser writes no program that pops more than was pushed.
    fn pop(&mut self) -> Value<'r> {
        self.stack.pop().unwrap_or(Value::Null)
    }
}

fn load<'r>(name: &str, scope: &Scope<'r>, meter: &mut Meter) -> Outcome<Value<'r>> {
    scope
        .value(name, meter)?
        .ok_or_else(|| Error::interpreter(format!("unknown context value {}", excerpt(name))))
}

fn check_callable<'r>(value: &Value<'r>) -> Outcome<Function<'r>> {
    let shown = match value {
        Value::Function(function) => return Ok(*function),
        Value::Null => "null".to_owned(),
        Value::Bool(bool) => bool.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Text(text) => excerpt(text),
        Value::Array(_) | Value::Object(_) => value.type_name().to_owned(),
    };
    Err(Error::interpreter(format!("{shown} is not callable")))
}
