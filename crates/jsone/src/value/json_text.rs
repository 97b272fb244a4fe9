//! A value as compact JSON text with sorted keys, for `$json`. Stops as soon as the text is longer than a string
//! may be.

use super::{Text, Value};
use crate::error::{Error, Outcome};
use crate::json_length;
use crate::meter::Meter;

/// The JSON text. Recurses as deep as the value, which the depth budget bounds.
pub(crate) fn json_text<'r>(value: &Value<'r>, meter: &mut Meter) -> Outcome<Text<'r>> {
    let mut writer = Writer { text: String::new(), meter };
    writer.value(value)?;
    Ok(Text::Built(writer.text.into()))
}

struct Writer<'m> {
    text: String,
    meter: &'m mut Meter,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value<'_>) -> Outcome<()> {
        self.meter.step()?;
        match value {
            Value::Null => self.push("null"),
            Value::Bool(true) => self.push("true"),
            Value::Bool(false) => self.push("false"),
            Value::Number(number) => self.push(&number.to_string()),
            Value::Text(text) => self.quoted(text),
            Value::Array(array) => {
                self.push("[")?;
                for (index, item) in array.iter().enumerate() {
                    if index > 0 {
                        self.push(",")?;
                    }
                    self.value(&item)?;
                }
                self.push("]")
            }
            Value::Object(object) => {
                self.push("{")?;
                for (index, (key, value)) in object.entries(self.meter)?.iter().enumerate() {
                    if index > 0 {
                        self.push(",")?;
                    }
                    self.quoted(key)?;
                    self.push(":")?;
                    self.value(value)?;
                }
                self.push("}")
            }
            Value::Function(_) => Err(Error::template("evaluated template contained uncalled functions")),
        }
    }

    fn quoted(&mut self, text: &str) -> Outcome<()> {
        self.allow(json_length::string(text))?;
        push_quoted(&mut self.text, text);
        Ok(())
    }

    fn push(&mut self, text: &str) -> Outcome<()> {
        self.allow(text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    fn allow(&mut self, more: usize) -> Outcome<()> {
        self.meter.longer_string(self.text.len(), more)
    }
}

/// Writes a JSON string, escaping no more than JSON demands.
pub(crate) fn push_quoted(out: &mut String, text: &str) {
    // A text can always be written.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}
