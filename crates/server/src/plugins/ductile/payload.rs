//! The body of a trigger: `{"payload": {...}}`, and nothing that would be dropped in silence.

use api::Problem;
use api::ductile::DuctileTrigger;
use serde_json::value::RawValue;

use crate::problem::at_field;
use crate::request_context::RequestContext;

/// The payload that was sent, word for word.
pub(super) fn payload_of(asked: &RequestContext) -> Result<Box<RawValue>, Problem> {
    let body = asked.body.as_deref().unwrap_or_default();
    let sent: DuctileTrigger = serde_json::from_str(body).map_err(|error| {
        let told = error.to_string();
        let told = told.rsplit_once(" at line ").map_or(told.as_str(), |(told, _)| told);
        let told = format!(
            "the body must be {{\"payload\": {{...}}}}: {told}; put what the plugin shall be given into \"payload\""
        );
        at_field("payload", "value_error", told)
    })?;
    let text = sent.payload.as_str().to_owned();
    RawValue::from_string(text).map_err(|error| at_field("payload", "value_error", error.to_string()))
}
