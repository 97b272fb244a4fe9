//! Operators that choose or name: `$if`, `$switch`, `$match` and `$let`.

use super::{Renderer, within};
use crate::error::{Error, Outcome};
use crate::identifier::is_identifier;
use crate::node::{Case, Expression, Node};
use crate::value::{Array, Object, Value};

pub(crate) const LET_WITHOUT_IN: &str = "$let operator requires an `in` clause";

impl<'r> Renderer<'r> {
    pub(super) fn condition(
        &mut self,
        condition: &'r Expression,
        then: Option<&'r Node>,
        otherwise: Option<&'r Node>,
    ) -> Outcome<Option<Value<'r>>> {
        let (branch, key) =
            if self.expression(condition, "$if")?.is_truthy() { (then, "then") } else { (otherwise, "else") };
        match branch {
            Some(node) => self.operand(node, key),
            None => Ok(None),
        }
    }

    /// Every condition is evaluated, and every truthy one's branch rendered on the way: what is wrong with a
    /// branch is told before that there were two.
    pub(super) fn switch(
        &mut self,
        cases: &'r [Case],
        default: Option<&'r Node>,
    ) -> Outcome<Option<Value<'r>>> {
        let mut chosen = Vec::new();
        for case in cases {
            if self.truth(case).map_err(|error| within(error, "$switch"))? {
                let value = self.operand(&case.value, &case.written);
                chosen.push(value.map_err(|error| within(error, "$switch"))?);
            }
        }
        if chosen.len() > 1 {
            return Err(Error::template("$switch can only have one truthy condition"));
        }
        match (chosen.pop(), default) {
            (Some(value), _) => Ok(value),
            (None, Some(node)) => self.operand(node, "$default").map_err(|error| within(error, "$switch")),
            (None, None) => Ok(None),
        }
    }

    pub(super) fn matches(&mut self, cases: &'r [Case]) -> Outcome<Value<'r>> {
        let mut values = Vec::new();
        for case in cases {
            let value = self.matched(case).map_err(|error| within(error, "$match"))?;
            values.extend(value);
        }
        Ok(Value::Array(Array::build(values, &mut self.meter)?))
    }

    pub(super) fn with_names(
        &mut self,
        names: &'r Node,
        body: Option<&'r Node>,
    ) -> Outcome<Option<Value<'r>>> {
        let Some(Value::Object(names)) = self.operand(names, "$let")? else {
            return Err(Error::template("$let value must be an object"));
        };
        self.check_names(&names)?;
        let Some(body) = body else { return Err(Error::template(LET_WITHOUT_IN)) };
        let mark = self.scope.mark();
        self.scope.bind_all(names);
        let value = self.operand(body, "in");
        self.scope.leave(mark);
        value
    }

    fn matched(&mut self, case: &'r Case) -> Outcome<Option<Value<'r>>> {
        if self.truth(case)? { self.operand(&case.value, &case.written) } else { Ok(None) }
    }

    fn truth(&mut self, case: &'r Case) -> Outcome<bool> {
        Ok(self.expression(&case.condition, &case.written)?.is_truthy())
    }

    fn check_names(&mut self, names: &Object<'r>) -> Outcome<()> {
        if names.all_keys(is_identifier, &mut self.meter)? {
            return Ok(());
        }
        Err(Error::template("top level keys of $let must follow /[a-zA-Z_][a-zA-Z0-9_]*/"))
    }
}
