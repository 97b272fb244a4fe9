//! Operators: which keys each takes, and what becomes of it when they are wrong. Mistakes are told in the order
//! in which the official implementations find them.

use serde_json::{Map, Value as Json};

use super::{Compiler, parameters};
use crate::error::{Error, Outcome};
use crate::excerpt::excerpt;
use crate::measure::in_key_order;
use crate::node::{Case, Condition, Each, Expression, Node, Operator, Reduction, Variables};
use crate::render::{LET_WITHOUT_IN, TRANSFORMS};

/// The keys of all operators.
pub const OPERATORS: [&str; 16] = [
    "$eval",
    "$find",
    "$flatten",
    "$flattenDeep",
    "$fromNow",
    "$if",
    "$json",
    "$let",
    "$map",
    "$match",
    "$merge",
    "$mergeDeep",
    "$reduce",
    "$reverse",
    "$sort",
    "$switch",
];

impl Compiler {
    pub(super) fn operator(
        &mut self,
        operator: &str,
        operand: &Json,
        entries: &Map<String, Json>,
    ) -> Outcome<Node> {
        if let Some(error) = undefined_properties(operator, entries) {
            return Ok(Node::Fault(self.fault(error)));
        }
        match operator {
            "$eval" => self.eval(operand),
            "$if" => self.condition(operand, entries),
            "$switch" => self.switch(operand),
            "$match" => self.matches(operand),
            "$let" => self.names(operand, entries),
            "$map" => self.map(operand, entries),
            "$reduce" => self.reduce(operand, entries),
            "$find" => self.find(operand, entries),
            "$sort" => self.sort(operand, entries),
            "$fromNow" => self.time(operand, entries),
            _ => match TRANSFORMS.iter().find(|transform| transform.written == operator) {
                Some(transform) => {
                    let operand = self.below(operator, operand)?;
                    Ok(boxed(Operator::Apply(transform, operand)))
                }
                None => Ok(self.faulty("unknown operator")),
            },
        }
    }

    fn eval(&mut self, operand: &Json) -> Outcome<Node> {
        let Json::String(source) = operand else {
            return Ok(self.faulty("$eval must be given a string expression"));
        };
        let expression = self.keyed("$eval", source)?;
        Ok(boxed(Operator::Eval(expression)))
    }

    fn condition(&mut self, operand: &Json, entries: &Map<String, Json>) -> Outcome<Node> {
        let Json::String(source) = operand else {
            return Ok(self.faulty("$if can evaluate string expressions only"));
        };
        let condition = self.keyed("$if", source)?;
        let then = self.optional("then", entries)?;
        let otherwise = self.optional("else", entries)?;
        Ok(boxed(Operator::If { condition, then, otherwise }))
    }

    fn switch(&mut self, operand: &Json) -> Outcome<Node> {
        let Json::Object(branches) = operand else {
            return Ok(self.faulty("$switch can evaluate objects only"));
        };
        self.operand("$switch", |compiler| {
            let default = compiler.optional("$default", branches)?;
            let cases = compiler.cases(branches, |key| key != "$default")?;
            Ok(boxed(Operator::Switch { cases, default }))
        })
    }

    fn matches(&mut self, operand: &Json) -> Outcome<Node> {
        let Json::Object(branches) = operand else {
            return Ok(self.faulty("$match can evaluate objects only"));
        };
        let cases = self.operand("$match", |compiler| compiler.cases(branches, |_| true))?;
        Ok(boxed(Operator::Match(cases)))
    }

    fn cases(&mut self, branches: &Map<String, Json>, wanted: fn(&str) -> bool) -> Outcome<Vec<Case>> {
        let mut cases = Vec::new();
        for (key, value) in in_key_order(branches) {
            if wanted(key) {
                let condition = self.keyed(key, key)?;
                let value = self.below(key, value)?;
                cases.push(Case { written: key.into(), condition, value });
            }
        }
        Ok(cases)
    }

    fn names(&mut self, operand: &Json, entries: &Map<String, Json>) -> Outcome<Node> {
        if !operand.is_object() {
            return Ok(self.faulty("$let value must be an object"));
        }
        let names = self.below("$let", operand)?;
        let body = self.optional("in", entries)?;
        if body.is_none() {
            self.fault(Error::template(LET_WITHOUT_IN));
        }
        Ok(boxed(Operator::Let { names, body }))
    }

    fn map(&mut self, operand: &Json, entries: &Map<String, Json>) -> Outcome<Node> {
        let over = self.below("$map", operand)?;
        let each = match only_each(entries) {
            Some((key, names, body)) => Ok(self.each(key, parameters::variables(&names), body)?),
            None => Err(self.fault(Error::template("$map requires exactly one other property, each(..)"))),
        };
        Ok(boxed(Operator::Map { over, each }))
    }

    fn reduce(&mut self, operand: &Json, entries: &Map<String, Json>) -> Outcome<Node> {
        let over = self.below("$reduce", operand)?;
        let reduction = match (only_each(entries), entries.get("initial")) {
            (Some((key, names, body)), Some(initial)) => {
                let (accumulator, names) = names.split_first().unwrap_or((&"", &[]));
                let each = self.each(key, parameters::variables(names), body)?;
                Ok(Reduction { initial: initial.clone(), accumulator: (*accumulator).into(), each })
            }
            _ => Err(self.fault(Error::template("$reduce must have exactly three properties"))),
        };
        Ok(boxed(Operator::Reduce { over, reduction }))
    }

    fn find(&mut self, operand: &Json, entries: &Map<String, Json>) -> Outcome<Node> {
        let over = self.below("$find", operand)?;
        let each = match only_each(entries) {
            Some((key, names, Json::String(source))) => {
                let variables = parameters::variables(&names);
                Ok(Condition { written: key.into(), variables, expression: self.keyed(key, source)? })
            }
            Some(_) => Err(self.fault(Error::template("each can evaluate string expressions only"))),
            None => Err(self.fault(Error::template("$find requires exactly one other property, each(..)"))),
        };
        Ok(boxed(Operator::Find { over, each }))
    }

    fn sort(&mut self, operand: &Json, entries: &Map<String, Json>) -> Outcome<Node> {
        let over = self.below("$sort", operand)?;
        let keys: Vec<(&String, &Json)> = entries.iter().filter(|(key, _)| key.starts_with("by(")).collect();
        let by = match keys.as_slice() {
            [] => Ok(None),
            [(key, Json::String(source))] => {
                let variables = parameters::variables(&parameters::by(key).into_iter().collect::<Vec<_>>());
                let expression = self.keyed(key, source)?;
                Ok(Some(Condition { written: key.as_str().into(), variables, expression }))
            }
            [_] => Err(self.fault(Error::template("by(..) can evaluate string expressions only"))),
            _ => Err(self.fault(Error::template("only one by(..) is allowed"))),
        };
        Ok(boxed(Operator::Sort { over, by }))
    }

    fn time(&mut self, operand: &Json, entries: &Map<String, Json>) -> Outcome<Node> {
        let offset = self.below("$fromNow", operand)?;
        let from = self.optional("from", entries)?;
        Ok(boxed(Operator::FromNow { offset, from }))
    }

    fn faulty(&mut self, message: &str) -> Node {
        Node::Fault(self.fault(Error::template(message)))
    }

    fn each(&mut self, key: &str, variables: Variables, body: &Json) -> Outcome<Each> {
        Ok(Each { written: key.into(), variables, body: self.below(key, body)? })
    }

    fn keyed(&mut self, key: &str, source: &str) -> Outcome<Expression> {
        self.operand(key, |compiler| compiler.expression(source))
    }

    fn below(&mut self, key: &str, json: &Json) -> Outcome<Node> {
        self.operand(key, |compiler| compiler.node(json))
    }

    fn optional(&mut self, key: &str, entries: &Map<String, Json>) -> Outcome<Option<Node>> {
        entries.get(key).map(|json| self.below(key, json)).transpose()
    }
}

/// Boxed where it is made: an operator is large, and every level of a template would hold one on the stack.
fn boxed(operator: Operator) -> Node {
    Node::Operator(Box::new(operator))
}

/// The one `each(..)`, with the names in it.
fn only_each(entries: &Map<String, Json>) -> Option<(&str, Vec<&str>, &Json)> {
    let mut found = entries.iter().filter(|(key, _)| key.starts_with("each("));
    let (key, value) = found.next()?;
    if found.next().is_some() {
        return None;
    }
    Some((key, parameters::each(key)?, value))
}

fn undefined_properties(operator: &str, entries: &Map<String, Json>) -> Option<Error> {
    let undefined: Vec<&str> = in_key_order(entries)
        .into_iter()
        .map(|(key, _)| key)
        .filter(|key| *key != operator && !takes(operator, key))
        .collect();
    if undefined.is_empty() {
        return None;
    }
    let listed = excerpt(&undefined.join(" "));
    Some(Error::template(format!("{operator} has undefined properties: {listed}")))
}

fn takes(operator: &str, key: &str) -> bool {
    let names = || parameters::each(key).map_or(0, |names| names.len());
    match operator {
        "$if" => matches!(key, "then" | "else"),
        "$let" => key == "in",
        "$map" | "$find" => (1..=2).contains(&names()),
        "$reduce" => key == "initial" || (2..=3).contains(&names()),
        "$sort" => parameters::by(key).is_some(),
        "$fromNow" => key == "from",
        _ => false,
    }
}
