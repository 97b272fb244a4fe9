//! From a predicate as it is written to one that can be asked. Everything that can be wrong without a payload is told here.

use config_file::hint;
use serde_json::Value;

use super::super::path::{Path, Root};
use super::super::written::{Keys, What, Written, Wrong};
use super::pattern::Pattern;
use super::{Op, Part, Predicate, Test, Than};

/// Predicates in each other; one alone counts.
const MAX_DEPTH: usize = 3;
/// Predicates in one, with itself.
const MAX_PARTS: usize = 20;

const KEYS: [&str; 6] = ["path", "op", "value", "all", "any", "not"];
const OPS: [&str; 12] =
    ["exists", "eq", "neq", "in", "gt", "gte", "lt", "lte", "contains", "startswith", "endswith", "regex"];

impl Predicate {
    /// Reads what was written.
    pub(in super::super) fn read(written: &Written) -> Result<Self, Wrong> {
        read(written, 1, &mut 0)
    }
}

impl TryFrom<Value> for Predicate {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        Self::read(&Written::of_json(value)).map_err(|wrong| wrong.to_string())
    }
}

fn read(written: &Written, depth: usize, parts: &mut usize) -> Result<Predicate, Wrong> {
    *parts += 1;
    if depth > MAX_DEPTH {
        return Err(written.wrong(format!("predicates are nested at most {MAX_DEPTH} deep")));
    }
    if *parts > MAX_PARTS {
        return Err(written.wrong(format!("a predicate has at most {MAX_PARTS} parts")));
    }
    let keys = written.keys(&KEYS)?;
    let forms = ["path", "all", "any", "not"].map(|form| keys.find(form));
    let tested = keys.find("op").or(keys.find("value")).is_some();
    let mut all_of = |list: &Written| -> Result<Vec<Predicate>, Wrong> {
        list.list()?.iter().map(|part| read(part, depth + 1, parts)).collect()
    };
    match forms {
        [Some(path), None, None, None] => test(written, path, keys).map(Predicate::Test),
        [None, Some(list), None, None] if !tested => all_of(list).map(Predicate::All),
        [None, None, Some(list), None] if !tested => all_of(list).map(Predicate::Any),
        [None, None, None, Some(part)] if !tested => {
            Ok(Predicate::Not(Box::new(read(part, depth + 1, parts)?)))
        }
        _ => Err(written.wrong("a predicate is either path, op and value, or all, or any, or not")),
    }
}

fn test(written: &Written, path: &Written, keys: Keys<'_>) -> Result<Test, Wrong> {
    let Some(op) = keys.find("op") else {
        return Err(written.wrong(format!("the key \"op\" is missing; it is one of: {}", OPS.join(", "))));
    };
    let name = op.text()?;
    let path = Path::parse(path.text()?, &Root::ALL).map_err(|told| path.wrong(told))?;
    let value = match (name, keys.find("value")) {
        ("exists", None) => return Ok(Test { path, op: Op::Exists }),
        ("exists", Some(value)) => return Err(value.wrong("exists has no value")),
        (_, Some(value)) => value,
        (name, None) if OPS.contains(&name) => {
            return Err(op.wrong(format!("{name} compares with a value, and the key \"value\" is missing")));
        }
        (_, None) => op,
    };
    let op = match name {
        "eq" => Op::Eq(value.json()),
        "neq" => Op::Neq(value.json()),
        "in" => Op::In(value.list()?.iter().map(Written::json).collect()),
        "gt" => than(Than::Gt, value)?,
        "gte" => than(Than::Gte, value)?,
        "lt" => than(Than::Lt, value)?,
        "lte" => than(Than::Lte, value)?,
        "contains" => Op::Text(Part::Contains, value.text()?.to_owned()),
        "startswith" => Op::Text(Part::StartsWith, value.text()?.to_owned()),
        "endswith" => Op::Text(Part::EndsWith, value.text()?.to_owned()),
        "regex" => Op::Regex(Pattern::parse(value.text()?).map_err(|told| value.wrong(told))?),
        unknown => {
            let told = format!("{unknown:?} is not one of: {}{}", OPS.join(", "), hint(unknown, &OPS));
            return Err(op.wrong(told));
        }
    };
    Ok(Test { path, op })
}

fn than(than: Than, value: &Written) -> Result<Op, Wrong> {
    let What::Number(number) = &value.what else { return Err(value.wrong("a number is expected here")) };
    Ok(Op::Than(than, number.clone()))
}
