//! Operators that go through a collection: `$map`, `$reduce`, `$find` and `$sort`. The variables of one element
//! are forgotten before the next.

use std::cmp::Ordering;

use super::Renderer;
use crate::error::{Error, Outcome};
use crate::excerpt::excerpt;
use crate::node::{Condition, Each, Node, Reduction, Variables};
use crate::number::Number;
use crate::value::{Array, Object, ObjectBuilder, Text, Value};

const NOT_SORTABLE: &str = "$sorted values to be sorted must have the same type";

impl<'r> Renderer<'r> {
    pub(super) fn map(&mut self, over: &'r Node, each: &'r Result<Each, Error>) -> Outcome<Value<'r>> {
        match self.operand(over, "$map")? {
            Some(Value::Array(array)) => self.map_array(&array, each.as_ref().map_err(Error::clone)?),
            Some(Value::Object(object)) => self.map_object(&object, each.as_ref().map_err(Error::clone)?),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Function(_))
            | None => Err(Error::template("$map value must evaluate to an array or object")),
        }
    }

    fn map_array(&mut self, array: &Array<'r>, each: &'r Each) -> Outcome<Value<'r>> {
        let mut values = Vec::new();
        for (index, item) in array.iter().enumerate() {
            let index = Value::Number(Number::from_size(index));
            values.extend(self.each(each, item, index)?);
        }
        Ok(Value::Array(Array::build(values, &mut self.meter)?))
    }

    fn map_object(&mut self, object: &Object<'r>, each: &'r Each) -> Outcome<Value<'r>> {
        let mut merged = ObjectBuilder::default();
        for (key, value) in object.entries(&mut self.meter)? {
            let item = if each.variables.index.is_some() { value } else { self.pair(key.clone(), value)? };
            let Some(value) = self.each(each, item, Value::Text(key))? else { continue };
            let Value::Object(object) = value else {
                let each = excerpt(&each.written);
                let told = format!("$map on objects expects {each} to evaluate to an object");
                return Err(Error::template(told));
            };
            merged.insert_all(&object, &mut self.meter)?;
        }
        Ok(Value::Object(merged.build(&mut self.meter)?))
    }

    /// What a single variable stands for when mapping an object.
    fn pair(&mut self, key: Text<'r>, value: Value<'r>) -> Outcome<Value<'r>> {
        let mut pair = ObjectBuilder::with_capacity(2);
        pair.insert(Text::Given("key"), Value::Text(key));
        pair.insert(Text::Given("val"), value);
        Ok(Value::Object(pair.build(&mut self.meter)?))
    }

    pub(super) fn reduce(
        &mut self,
        over: &'r Node,
        reduction: &'r Result<Reduction, Error>,
    ) -> Outcome<Value<'r>> {
        let Some(Value::Array(array)) = self.operand(over, "$reduce")? else {
            return Err(Error::template("$reduce value must evaluate to an array"));
        };
        let Reduction { initial, accumulator, each } = reduction.as_ref().map_err(Error::clone)?;
        let mut reduced = Value::given(initial);
        for (index, item) in array.iter().enumerate() {
            let mark = self.scope.mark();
            self.scope.bind(accumulator, reduced.clone());
            let next = self.each(each, item, Value::Number(Number::from_size(index)));
            self.scope.leave(mark);
            if let Some(next) = next? {
                reduced = next;
            }
        }
        Ok(reduced)
    }

    /// The element itself, as it is: text that happens to look like a template stays text.
    pub(super) fn find(
        &mut self,
        over: &'r Node,
        each: &'r Result<Condition, Error>,
    ) -> Outcome<Option<Value<'r>>> {
        let Some(Value::Array(array)) = self.operand(over, "$find")? else {
            return Err(Error::template("$find value must evaluate to an array"));
        };
        let each = each.as_ref().map_err(Error::clone)?;
        for (index, item) in array.iter().enumerate() {
            if self.test(each, item.clone(), Value::Number(Number::from_size(index)))?.is_truthy() {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    pub(super) fn sort(
        &mut self,
        over: &'r Node,
        by: &'r Result<Option<Condition>, Error>,
    ) -> Outcome<Value<'r>> {
        let Some(Value::Array(array)) = self.operand(over, "$sort")? else {
            return Err(Error::template(NOT_SORTABLE));
        };
        let by = by.as_ref().map_err(Error::clone)?;
        let mut keyed = Vec::new();
        for item in array.iter() {
            self.meter.step()?;
            let key = match by {
                Some(by) => self.test(by, item.clone(), Value::Null)?,
                None => item.clone(),
            };
            keyed.push((key, item));
        }
        self.check_sortable(&keyed)?;
        keyed.sort_by(|(left, _), (right, _)| compare(left, right));
        let sorted = keyed.into_iter().map(|(_, item)| item).collect();
        Ok(Value::Array(Array::build(sorted, &mut self.meter)?))
    }

    /// All numbers or all strings; and pays for comparing them before it is done.
    fn check_sortable(&mut self, keyed: &[(Value<'r>, Value<'r>)]) -> Outcome<()> {
        let numbers = keyed.iter().all(|(key, _)| matches!(key, Value::Number(_)));
        let texts = keyed.iter().all(|(key, _)| matches!(key, Value::Text(_)));
        if !numbers && !texts {
            return Err(Error::template(NOT_SORTABLE));
        }
        self.meter
            .ordering(keyed.iter().map(|(key, _)| if let Value::Text(text) = key { text.len() } else { 0 }))
    }

    fn each(&mut self, each: &'r Each, item: Value<'r>, index: Value<'r>) -> Outcome<Option<Value<'r>>> {
        let mark = self.scope.mark();
        self.bind(&each.variables, item, index);
        let value = self.operand(&each.body, &each.written);
        self.scope.leave(mark);
        value
    }

    fn test(&mut self, condition: &'r Condition, item: Value<'r>, index: Value<'r>) -> Outcome<Value<'r>> {
        let mark = self.scope.mark();
        self.bind(&condition.variables, item, index);
        let value = self.expression(&condition.expression, &condition.written);
        self.scope.leave(mark);
        value
    }

    fn bind(&mut self, variables: &'r Variables, item: Value<'r>, index: Value<'r>) {
        self.scope.bind(&variables.value, item);
        if let Some(name) = &variables.index {
            self.scope.bind(name, index);
        }
    }
}

fn compare(left: &Value<'_>, right: &Value<'_>) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.compare(*right),
        (Value::Text(left), Value::Text(right)) => (**left).cmp(&**right),
        _ => Ordering::Equal,
    }
}
