//! The handle: what later requests need to find the work again. Private, and nothing that they do not need.

use domain::limits::MAX_ID_BYTES;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use url::Url;

use super::call::plain_text;

/// What a connector keeps of work that it left outside.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Handle {
    /// The key that the service was given.
    pub(super) key: String,
    /// Where `submit` went: other requests go to the same origin.
    pub(super) base: Url,
    /// The service's own id.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(super) remote_id: Value,
    /// The `Location` that it answered, made whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) location: Option<String>,
    /// What the file says is to be kept.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) kept: Map<String, Value>,
    /// The input, if a later request reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) input: Option<Value>,
}

impl Handle {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        json!(self).to_string().into_bytes()
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// The service's own id as people read and search it: a text, or a number as it is written.
    pub(super) fn external_job_id(&self) -> Option<String> {
        let id = plain_text(&self.remote_id).filter(|_| !self.remote_id.is_boolean())?;
        (!id.is_empty() && id.len() <= MAX_ID_BYTES && !id.contains('\0')).then_some(id)
    }

    /// As later requests see it.
    pub(super) fn operation(&self) -> Value {
        let mut operation = self.kept.clone();
        operation.insert("id".to_owned(), self.key.clone().into());
        operation.insert("remote_id".to_owned(), self.remote_id.clone());
        operation.insert("location".to_owned(), self.location.clone().into());
        Value::Object(operation)
    }
}
