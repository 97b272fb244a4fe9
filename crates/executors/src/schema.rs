//! A JSON Schema that an operator wrote for what goes into an executor or comes out of it.
//!
//! A misfit names the place and never the value: the value may be private. Patterns are matched in linear time, and no schema is
//! fetched from anywhere.

use std::fmt;
use std::sync::Arc;

use engine::{InputSchema, Misfit};
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// A schema that was read.
#[derive(Clone)]
pub struct Schema {
    text: Arc<Value>,
    validator: Arc<Validator>,
}

impl Schema {
    /// Reads a schema, or says why it is none.
    pub fn read(text: &Value) -> Result<Self, String> {
        let options = jsonschema::options().should_validate_formats(true);
        let validator = options.with_pattern_options(PatternOptions::regex()).build(text);
        let validator = validator.map_err(|error| error.to_string())?;
        Ok(Self { text: Arc::new(text.clone()), validator: Arc::new(validator) })
    }
}

impl InputSchema for Schema {
    fn text(&self) -> &Value {
        &self.text
    }

    fn check(&self, document: &[u8]) -> Result<(), Misfit> {
        let document: Value = serde_json::from_slice(document)
            .map_err(|_| Misfit { place: String::new(), rule: String::new() })?;
        self.validator.validate(&document).map_err(|error| Misfit {
            place: error.instance_path().to_string(),
            rule: error.schema_path().to_string(),
        })
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.text).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn misfit_names_the_place_and_never_the_value() {
        let schema = Schema::read(&json!({ "properties": { "pages": { "type": "integer" } } })).unwrap();
        assert_eq!(schema.check(br#"{"pages": 12}"#), Ok(()));
        let misfit = schema.check(br#"{"pages": "sesame"}"#).unwrap_err();
        assert_eq!(misfit.to_string(), "/pages does not fit /properties/pages/type of the schema");
        assert!(schema.check(b"no json").is_err());
    }

    #[test]
    fn what_is_no_schema_or_lies_elsewhere_is_refused() {
        assert!(Schema::read(&json!({ "type": "integr" })).is_err());
        assert!(Schema::read(&json!({ "$ref": "https://example.org/schema.json" })).is_err());
        assert!(Schema::read(&json!({ "pattern": "(?<=a)b" })).is_err(), "it may take for ever");
    }
}
