//! What a caller sends to create a job. Unknown keys are refused.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::JsonObject as Object;

/// A new job; every field is optional.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateJob {
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// A free label; `general` if left out.
    #[serde(default = "general")]
    pub kind: String,
    /// Who creates it; a token that is bound to a peer says so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by_peer_id: Option<String>,
    /// Who owns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_peer_id: Option<String>,
    /// The peer that shall do it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assigned_peer_id: Option<String>,
    /// The durable workstream that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repowire_session_id: Option<String>,
    /// What joins it to other work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// Who may see it; a token that is bound to a circle says so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circle: Option<String>,
    /// What made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_kind: Option<String>,
    /// Which one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
    /// A free label of the creator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Who may see it: its `circle`, which is the default, or `private`: the peers that it names, whoever does it, and operators.
    #[serde(default = "circle")]
    pub visibility: String,
    /// The creator's request; `request.execution` is merged with the fields below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Object>,
    /// When its result is of no use any more, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<String>,
    /// The end of its lifetime, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Where it came from; `provenance.links` is shown as `links`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Object>,
    /// The prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Refused (`prompt_file_refused`): the daemon reads no files for callers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_file: Option<String>,
    /// The folder that it is done in: at most 1,024 bytes, where every character counts as much as the widest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Named extra arguments for the backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// claude-code, opencode, codex, gemini, antigravity, pi, mcp-http, or a backend of the host; another is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// Not before this time, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<String>,
    /// Refused (`calendars_unavailable`) until there are calendars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// Where the result shall be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_surface: Option<String>,
    /// `per_fire` (also `per-fire`) or `persistent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_scope: Option<String>,
    /// `resume` where a session lasts: with `process_scope` persistent or an assigned peer. `fresh` elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuity: Option<String>,
    /// The executor that shall do it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
    /// The executor's input: any JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<utoipa::openapi::schema::Value>)]
    pub input: Option<Box<RawValue>>,
    /// Higher goes first within a lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// The lane that it queues in; its executor's own if left out. Without an executor it is pulled from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// What whoever pulls it must have; for work without an executor and a lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// How often and how soon it is tried again; as its executor says if left out. A job of the executor `command` that exits with
    /// another code than 0, or by a signal of its own, is tried again only if this is sent, or `final_exit` in its input is `false`; one
    /// that was lost with its daemon is tried again in any case. Work without an executor is handed out up to three times if this is left
    /// out, but only when a worker was lost: what a worker reports is final. With `max_attempts`, failures that are reported count too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// `false`: it is begun once only, whatever becomes of its worker. The same as one attempt in `retry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeatable: Option<bool>,
    /// Lets work outside that its service does not know any more, after a restart for instance, be asked about until it expires.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_restart_recovery: bool,
    /// How long one attempt may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// The name of this write; the header `Idempotency-Key` says the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Labels to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// How often and how soon a job is tried again. What is left out is as the executor says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Retry {
    /// Attempts in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// Wait before the second attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_seconds: Option<u32>,
    /// The longest wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_backoff_seconds: Option<u32>,
}

impl Serialize for Retry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

/// Takes an object only: the derived reader would also take a list of values.
impl<'de> Deserialize<'de> for Retry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Retry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Retry, A::Error> {
                Retry::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

fn general() -> String {
    "general".to_owned()
}

fn circle() -> String {
    "circle".to_owned()
}

impl CreateJob {
    /// A job with this title and nothing else.
    pub fn titled(title: impl Into<String>) -> Self {
        Self { title: title.into(), kind: general(), visibility: circle(), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_filled_in_and_unknown_keys_are_refused() {
        let created: CreateJob = serde_json::from_str("{}").unwrap();
        assert_eq!((created.kind.as_str(), created.visibility.as_str()), ("general", "circle"));
        assert!(
            serde_json::from_str::<CreateJob>(r#"{"tilte":"x"}"#).unwrap_err().to_string().contains("tilte")
        );
    }

    #[test]
    fn integers_of_64_bits_pass_through_a_request_word_for_word() {
        let text = r#"{"title":"t","kind":"general","visibility":"circle","request":{"n":18446744073709551615},"input":[1.10,-9223372036854775808]}"#;
        let created: CreateJob = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&created).unwrap(), text);
    }
}
