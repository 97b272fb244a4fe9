//! What a step is given: `with` maps names to templates over payload and context.
//!
//! A template that is one reference and nothing else keeps the kind of the value; anything else is text. `{{` and `}}` are braces.
//! Everything reads what was there before: no entry sees another one.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use domain::limits::{MAX_BODY_BYTES, MAX_LABEL_BYTES};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::path::{Path, Root, Roots};
use super::written::{What, Written, Wrong};

/// What a step is given, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct With(BTreeMap<String, Given>);

/// A text with references.
#[derive(Clone, Debug, PartialEq)]
struct Template {
    written: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
enum Given {
    Template(Template),
    /// A number, true, false or null, as it is.
    Plain(Value),
    List(Vec<Given>),
    Object(BTreeMap<String, Given>),
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Reference(Path),
}

/// What a template asks for is not there, or is too much.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// Nothing is there.
    #[error("with.{name}: there is no {path}")]
    Missing {
        /// The name that would be given.
        name: String,
        /// Where nothing is.
        path: String,
    },
    /// It becomes larger than a job's input may be.
    #[error("with.{name}: what the step would be given is over {MAX_BODY_BYTES} bytes")]
    TooLarge {
        /// The name that would be given.
        name: String,
    },
}

impl With {
    /// Reads what was written.
    pub(super) fn read(written: &Written) -> Result<Self, Wrong> {
        let mut given = BTreeMap::new();
        for (key, value) in written.entries()? {
            if key.name.is_empty() || key.name.len() > MAX_LABEL_BYTES {
                let told = format!("a name has 1 to {MAX_LABEL_BYTES} bytes");
                return Err(Wrong { at: key.at, told });
            }
            given.insert(key.name.clone(), Given::read(value)?);
        }
        Ok(Self(given))
    }

    /// What the step is given; whoever prepares it puts that over the payload.
    pub fn render(&self, roots: &Roots<'_>) -> Result<Map<String, Value>, TemplateError> {
        let mut rendered = Map::new();
        let mut left = MAX_BODY_BYTES;
        for (name, given) in &self.0 {
            let value = given.render(roots, &mut left).map_err(|trouble| match trouble {
                Trouble::Missing(path) => {
                    TemplateError::Missing { name: name.clone(), path: path.to_string() }
                }
                Trouble::TooLarge => TemplateError::TooLarge { name: name.clone() },
            })?;
            rendered.insert(name.clone(), value);
        }
        Ok(rendered)
    }
}

enum Trouble<'t> {
    Missing(&'t Path),
    TooLarge,
}

impl Given {
    fn read(written: &Written) -> Result<Self, Wrong> {
        match &written.what {
            What::Text(text) => Template::parse(text).map(Self::Template).map_err(|told| written.wrong(told)),
            What::Nothing | What::Flag(_) | What::Number(_) => Ok(Self::Plain(written.json())),
            What::List(items) => items.iter().map(Self::read).collect::<Result<_, _>>().map(Self::List),
            What::Keys(entries) => {
                let read = entries.iter().map(|(key, value)| Ok((key.name.clone(), Self::read(value)?)));
                read.collect::<Result<_, _>>().map(Self::Object)
            }
        }
    }

    fn render(&self, roots: &Roots<'_>, left: &mut usize) -> Result<Value, Trouble<'_>> {
        match self {
            Self::Template(template) => template.render(roots, left),
            Self::Plain(value) => Ok(value.clone()),
            Self::List(items) => {
                let items = items.iter().map(|item| item.render(roots, left));
                items.collect::<Result<_, _>>().map(Value::Array)
            }
            Self::Object(entries) => {
                let entries =
                    entries.iter().map(|(name, given)| Ok((name.clone(), given.render(roots, left)?)));
                entries.collect::<Result<_, _>>().map(Value::Object)
            }
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Template(template) => Value::String(template.written.clone()),
            Self::Plain(value) => value.clone(),
            Self::List(items) => Value::Array(items.iter().map(Self::json).collect()),
            Self::Object(entries) => {
                Value::Object(entries.iter().map(|(name, given)| (name.clone(), given.json())).collect())
            }
        }
    }
}

impl Template {
    /// Reads a template, or says what is wrong with its braces or paths.
    fn parse(written: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut rest = written;
        while let Some(at) = rest.find(['{', '}']) {
            text.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(behind) = rest.strip_prefix(brace) {
                text.push_str(brace);
                rest = behind;
                continue;
            }
            if brace == "}" {
                return Err("a brace is closed that was never opened; write }} for a brace".to_owned());
            }
            let (reference, behind) = reference(rest)?;
            if !text.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut text)));
            }
            parts.push(Part::Reference(reference));
            rest = behind;
        }
        text.push_str(rest);
        if !text.is_empty() {
            parts.push(Part::Text(text));
        }
        Ok(Self { written: written.to_owned(), parts })
    }

    fn render(&self, roots: &Roots<'_>, left: &mut usize) -> Result<Value, Trouble<'_>> {
        if let [Part::Reference(path)] = self.parts.as_slice() {
            let value = path.find(roots).ok_or(Trouble::Missing(path))?;
            take(left, value.to_string().len())?;
            return Ok(value.clone());
        }
        let mut text = String::new();
        for part in &self.parts {
            let before = text.len();
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Reference(path) => {
                    add_text(&mut text, path.find(roots).ok_or(Trouble::Missing(path))?);
                }
            }
            // Part by part: many references to one large value must not be put together first.
            take(left, text.len() - before)?;
        }
        Ok(Value::String(text))
    }
}

/// What stands between braces, and what stands behind them.
fn reference(rest: &str) -> Result<(Path, &str), String> {
    let Some(end) = rest.find(['{', '}']) else {
        return Err("a brace is opened and never closed; write {{ for a brace".to_owned());
    };
    let (inside, behind) = (&rest[..end], &rest[end + 1..]);
    if rest[end..].starts_with('{') {
        return Err("braces cannot stand in each other; write {{ for a brace".to_owned());
    }
    if inside.trim().is_empty() {
        return Err("there is nothing between the braces; write {{}} for braces".to_owned());
    }
    Ok((Path::parse(inside.trim(), &Root::CARRIED)?, behind))
}

fn take<'t>(left: &mut usize, bytes: usize) -> Result<(), Trouble<'t>> {
    *left = left.checked_sub(bytes).ok_or(Trouble::TooLarge)?;
    Ok(())
}

/// A text as it is, null as nothing, anything else as JSON.
fn add_text(text: &mut String, value: &Value) {
    match value {
        Value::Null => {}
        Value::String(value) => text.push_str(value),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            // Writing to a string cannot fail.
            let _ = write!(text, "{value}");
        }
    }
}

impl TryFrom<Value> for With {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        Self::read(&Written::of_json(value)).map_err(|wrong| wrong.to_string())
    }
}

impl From<With> for Value {
    fn from(with: With) -> Self {
        Given::Object(with.0).json()
    }
}
