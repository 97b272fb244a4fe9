//! What the daemon checks of the fields of a request, said in their schemas: lengths, ranges, words, patterns. From the constants that it
//! checks with.
//!
//! A limit in bytes of JSON (progress, metadata, a whole body) cannot be said in a schema: it is refused with `too_large`.

use std::collections::BTreeSet;

use api::limits::{MAX_BATCH_JOBS, MAX_KEY_CHARS};
use domain::ask::{MAX_ASK_BYTES, MAX_TTL_SECONDS};
use domain::event::{MAX_DEDUPE_KEY_BYTES, MAX_TYPE_BYTES};
use domain::job::{JobStateName, MAX_PRIORITY, RESERVED_LANES, VISIBLE_TO_CIRCLE, VISIBLE_TO_OWN};
use domain::limits::{
    MAX_ID_BYTES, MAX_LABEL_BYTES, MAX_NOTE_BYTES, MAX_SUMMARY_BYTES, MAX_TAGS, MAX_TITLE_BYTES,
};
use domain::peer::MAX_PEER_LABELS;
use domain::{Lease, MAX_ATTEMPTS, MAX_BACKOFF_SECONDS};
use serde_json::{Map, Value, json};
use store::{MAX_TOKEN_SCOPES, MAX_TOKEN_TEXT_CHARS};

use crate::access::authorise::SCOPES;
use crate::external::deferred::OWN_SOURCES;
use crate::pulled::MAX_NAMES;
use crate::pulled::claims::{MAX_OWNER_CHARS, MAX_TYPES, RESOURCE_TYPES, SETTLED_STATES};

/// Any text that can be stored: everything but U+0000.
pub(super) const TEXT: &str = r"^[^\u0000]*$";
/// Text that people can read: not empty, no control characters.
const PRINTABLE: &str = r"^[^\u0000-\u001F\u007F-\u009F]+$";
/// What can stand in an address.
pub(super) const PEER_ID: &str = "^[A-Za-z0-9._:@-]+$";
/// The names of the components that these rules need.
const JSON_VALUE: &str = "JsonValue";
const CAUSAL_CONTEXT: &str = "CausalContext";

const PROCESS_SCOPES: [&str; 3] = ["per_fire", "per-fire", "persistent"];
const CONTINUITIES: [&str; 2] = ["resume", "fresh"];
const VISIBILITIES: [&str; 2] = [VISIBLE_TO_CIRCLE, VISIBLE_TO_OWN];

/// What is checked of one field.
enum Rule {
    /// A text of so many characters.
    Text { min: usize, max: usize },
    /// A readable text of 1 to so many characters.
    Printable { max: usize },
    /// A text that is part of the key of an index; see `domain::limits::check_indexed`.
    Indexed { min: usize, max: usize, of_width: [&'static str; 4] },
    /// A peer's own id.
    PeerId,
    /// A lane or an executor, which cannot have a name of the daemon's own.
    Lane,
    /// RFC 3339.
    Time,
    /// One of these words.
    Words(Vec<&'static str>),
    /// None of these words.
    NotWords(Vec<&'static str>),
    /// A number in this range.
    Integer { min: i64, max: u64 },
    /// A list of at most so many of these.
    Items { min: usize, max: usize, each: Option<Box<Rule>> },
    /// Any JSON, whatever the type says.
    AnyItems,
    /// Only `null`.
    Null,
    /// This schema, or `null` where that is allowed.
    Schema(Value),
}

fn text(max: usize) -> Rule {
    Rule::Text { min: 0, max }
}

fn items(max: usize, each: Rule) -> Rule {
    Rule::Items { min: 0, max, each: Some(Box::new(each)) }
}

/// Every field of a request that has a limit of its own, by limit. What is not here is any text, number or JSON of its type.
fn rules() -> Vec<(Rule, &'static str)> {
    let (shortest, longest) = Lease::BOUNDS_SECONDS;
    let lease = Rule::Integer { min: i64::from(shortest), max: u64::from(longest) };
    vec![
        (text(MAX_TITLE_BYTES), "CreateJob.title"),
        (
            text(MAX_LABEL_BYTES),
            "CreateJob.kind CreateJob.circle CreateJob.scope CreateJob.label UpdateJob.state_reason \
             UpdateJob.phase CancelJob.requested_by_peer_id PullJob.peer_id HeartbeatJob.phase FailJob.reason \
             CreateAsk.circle PublishEvent.circle StartPipeline.circle",
        ),
        (
            text(MAX_ID_BYTES),
            "CreateJob.created_by_peer_id CreateJob.owner_peer_id CreateJob.assigned_peer_id \
             CreateJob.repowire_session_id CreateJob.correlation_id CreateJob.source_id UpdateJob.attempt_id \
             CompleteJob.attempt_id FailJob.attempt_id AskInput.attempt_id DeferJob.attempt_id \
             SettleClaim.work_order_id CreateAsk.from_peer Invoke.correlation/id",
        ),
        (Rule::NotWords(OWN_SOURCES.to_vec()), "CreateJob.source_kind"),
        (Rule::Words(VISIBILITIES.to_vec()), "CreateJob.visibility"),
        (Rule::Schema(request()), "CreateJob.request"),
        (Rule::Time, "CreateJob.deadline_at CreateJob.expires_at CreateJob.due_at Invoke.deadline_at"),
        (Rule::Null, "CreateJob.prompt_file CreateJob.cron"),
        (Rule::Indexed { min: 0, max: MAX_TITLE_BYTES, of_width: ANY_OF_WIDTH }, "CreateJob.path"),
        (Rule::Words(PROCESS_SCOPES.to_vec()), "CreateJob.process_scope"),
        (Rule::Words(CONTINUITIES.to_vec()), "CreateJob.continuity"),
        (Rule::Lane, "CreateJob.executor CreateJob.lane"),
        (
            Rule::Integer { min: i64::from(-MAX_PRIORITY), max: u64::from(MAX_PRIORITY.unsigned_abs()) },
            "CreateJob.priority",
        ),
        (Rule::Text { min: 1, max: MAX_KEY_CHARS }, "CreateJob.idempotency_key Invoke.idempotency/key"),
        (items(MAX_TAGS, text(MAX_LABEL_BYTES)), "CreateJob.tags"),
        (Rule::Integer { min: 1, max: u64::from(MAX_ATTEMPTS) }, "Retry.max_attempts"),
        (
            Rule::Integer { min: 0, max: u64::from(MAX_BACKOFF_SECONDS) },
            "Retry.backoff_seconds Retry.max_backoff_seconds",
        ),
        (Rule::Items { min: 1, max: MAX_BATCH_JOBS, each: None }, "CreateBatch.jobs"),
        (Rule::Words(JobStateName::ALL.iter().map(|state| state.as_str()).collect()), "UpdateJob.state"),
        (
            text(MAX_NOTE_BYTES),
            "UpdateJob.progress_note CancelJob.reason HeartbeatJob.progress_note DeferJob.progress_hint \
             RetryCancel.reason SettleOrphan.note OperationNamed.reason CancelRun.reason",
        ),
        (text(MAX_SUMMARY_BYTES), "UpdateJob.result_summary CompleteJob.summary"),
        (Rule::AnyItems, "UpdateJob.artifacts CompleteJob.artifacts"),
        (
            Rule::Text { min: 1, max: MAX_OWNER_CHARS },
            "UnderClaim.owner_id PullJob.worker_id AcquireClaim.owner_id SettleClaim.owner_id \
             SwapClaim.owner_id",
        ),
        (items(MAX_NAMES, text(MAX_LABEL_BYTES)), "PullJob.lanes PullJob.labels"),
        (items(MAX_NAMES, text(MAX_TITLE_BYTES)), "PullJob.paths"),
        (Rule::Words(RESOURCE_TYPES.to_vec()), "AcquireClaim.resource_type"),
        (lease, "AcquireClaim.lease_seconds SwapClaim.lease_seconds"),
        (items(MAX_TYPES, text(MAX_TYPE_BYTES)), "AcquireClaim.event_types"),
        (Rule::Text { min: 1, max: MAX_LABEL_BYTES }, "SettleClaim.reason"),
        (Rule::Words(SETTLED_STATES.to_vec()), "SettleClaim.state"),
        (Rule::PeerId, "RegisterPeer.peer_id"),
        (
            Rule::Printable { max: MAX_LABEL_BYTES },
            "RegisterPeer.display_name RegisterPeer.circle RegisterPeer.backend",
        ),
        (
            items(MAX_PEER_LABELS, Rule::Printable { max: MAX_LABEL_BYTES }),
            "RegisterPeer.labels RegisterPeer.capabilities",
        ),
        (Rule::Indexed { min: 1, max: MAX_TITLE_BYTES, of_width: PRINTABLE_OF_WIDTH }, "RegisterPeer.path"),
        (Rule::Text { min: 1, max: MAX_ASK_BYTES }, "CreateAsk.text"),
        (Rule::Integer { min: 1, max: MAX_TTL_SECONDS }, "CreateAsk.ttl_seconds"),
        (text(MAX_ASK_BYTES), "AckAsk.message AckNamed.message"),
        (Rule::Schema(reference(CAUSAL_CONTEXT)), "Invoke.causal/context Directive.causal/context"),
        (Rule::Integer { min: 1, max: u64::from(u32::MAX) }, "Timing.timeout_ms"),
        (text(MAX_TOKEN_TEXT_CHARS), "CreateToken.name"),
        (items(MAX_TOKEN_SCOPES, Rule::Words(SCOPES.to_vec())), "CreateToken.scopes"),
        (Rule::Text { min: 1, max: MAX_TOKEN_TEXT_CHARS }, "CreateToken.circle CreateToken.peer_id"),
        (Rule::Printable { max: MAX_TYPE_BYTES }, "PublishEvent.type"),
        (
            Rule::Indexed { min: 1, max: MAX_DEDUPE_KEY_BYTES, of_width: ANY_OF_WIDTH },
            "PublishEvent.dedupe_key",
        ),
    ]
}

/// The creator's request: what of `execution` is understood has a form, the rest is any JSON.
fn request() -> Value {
    let part = |properties: Value| json!({ "type": "object", "properties": properties });
    // What is no text is kept with the request and not understood.
    let no_text = json!({ "type": ["null", "boolean", "number", "array", "object"], "items": {} });
    let if_text = |schema: Value| json!({ "anyOf": [schema, no_text] });
    let path = json!({ "type": "string", "pattern": indexed(0, MAX_TITLE_BYTES, ANY_OF_WIDTH) });
    json!({
        "type": "object",
        "properties": { "execution": part(json!({
            "target": part(json!({ "path": if_text(path) })),
            "schedule": part(json!({ "due_at": if_text(json!({ "type": "string", "format": "date-time" })) })),
            "delivery": part(json!({})),
            "process_scope": if_text(json!({ "enum": PROCESS_SCOPES })),
            "continuity": if_text(json!({ "enum": CONTINUITIES })),
        })) },
    })
}

/// What is true of a request as a whole, and not of one field. A request may have several of these: all of them hold.
fn together() -> Vec<(&'static str, Value)> {
    let is_text = json!({ "type": "string" });
    let not = |required: [&str; 2], properties: Value| json!({ "not": { "required": required, "properties": properties } });
    let several = json!({
        "type": "object",
        "required": ["max_attempts"],
        "properties": { "max_attempts": { "type": "integer", "minimum": 2 } },
    });
    let not_null = json!({ "not": { "type": "null" } });
    let no_doer = json!({ "role": { "enum": ["admin", "operator", "viewer"] } });
    // A job is pulled from its lane or by its label.
    let pulled = json!({ "lane": is_text, "label": is_text, "executor": { "type": "null" } });
    // A job is done by an executor or by a peer.
    let done = json!({ "executor": is_text, "assigned_peer_id": is_text });
    // A job that is begun once only has one attempt.
    let once = json!({ "repeatable": { "const": false }, "retry": several });
    let known = json!([
        { "required": ["id"], "properties": { "id": not_null } },
        { "required": ["location"], "properties": { "location": is_text } },
    ]);
    // A token for a peer or an agent needs the circle that it works in.
    let bound =
        json!([{ "properties": no_doer }, { "required": ["circle"], "properties": { "circle": is_text } }]);
    vec![
        ("CreateJob", not(["lane", "label"], pulled)),
        ("CreateJob", not(["executor", "assigned_peer_id"], done)),
        ("CreateJob", not(["repeatable", "retry"], once)),
        ("DeferJob", json!({ "anyOf": known })),
        ("CreateToken", json!({ "anyOf": bound })),
    ]
}

/// Puts the limits into the schemas of requests, and adds what they refer to.
pub(super) fn apply(schemas: &mut Map<String, Value>, requests: &BTreeSet<String>) {
    if let Some(directive) = schemas.get_mut("Directive") {
        *directive = published(include_str!("../../../../docs/schemas/sensorium-directive.v1.schema.json"));
    }
    schemas.insert(
        CAUSAL_CONTEXT.to_owned(),
        published(include_str!("../../../../docs/schemas/causal-context.v1.schema.json")),
    );
    // A job of a batch that does not fit is refused by itself, and the batch is accepted.
    schemas["CreateBatch"]["properties"]["jobs"]["items"] =
        json!({ "anyOf": [reference("CreateJob"), reference(JSON_VALUE)] });
    for (rule, fields) in rules() {
        for (schema, field) in fields.split_whitespace().filter_map(|named| named.split_once('.')) {
            let schema = schemas.get_mut(schema);
            if let Some(property) = schema.and_then(|schema| schema["properties"].get_mut(field)) {
                limit(property, &rule);
            }
        }
    }
    for (schema, whole) in together() {
        let schema = schemas.get_mut(schema).and_then(Value::as_object_mut);
        let all = schema.map(|schema| schema.entry("allOf").or_insert_with(|| json!([])));
        if let Some(Value::Array(all)) = all {
            all.push(whole);
        }
    }
    for name in requests.iter().map(String::as_str).chain([CAUSAL_CONTEXT]) {
        if let Some(schema) = schemas.get_mut(name) {
            complete(schema);
        }
    }
    schemas.insert(JSON_VALUE.to_owned(), any_json());
}

/// A schema of `docs/schemas` as a component.
fn published(text: &str) -> Value {
    let mut schema: Value = serde_json::from_str(text).expect("the schema is JSON");
    if let Value::Object(members) = &mut schema {
        members.retain(|name, _| !name.starts_with('$') && name != "title");
    }
    schema
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// JSON that can be stored, by its name.
pub(crate) fn any_value() -> Value {
    reference(JSON_VALUE)
}

/// An object with one text and nothing else.
pub(crate) fn only_text(name: &str) -> Value {
    json!({
        "type": "object",
        "required": [name],
        "properties": { name: { "type": "string", "pattern": TEXT } },
        "additionalProperties": false,
    })
}

/// An object whose names and members are JSON that can be stored.
pub(crate) fn any_object() -> Value {
    json!({ "type": "object", "propertyNames": { "pattern": TEXT }, "additionalProperties": reference(JSON_VALUE) })
}

/// JSON that can be stored. How deep it may be nested, and how large it may be, no schema can say.
fn any_json() -> Value {
    json!({
        "description": format!(
            "Any JSON without U+0000, nested at most {} deep in its body.", api::limits::MAX_NESTING
        ),
        "anyOf": [
            { "type": ["null", "boolean", "number"] },
            { "type": "string", "pattern": TEXT },
            { "type": "array", "items": reference(JSON_VALUE) },
            any_object(),
        ],
    })
}

/// Puts one rule into the schema of a field, which may also be `null`.
fn limit(property: &mut Value, rule: &Rule) {
    let is_nullable = property["type"].as_array().is_some_and(|types| types.contains(&json!("null")));
    match rule {
        Rule::Text { min, max } => length(property, *min, *max, TEXT),
        Rule::Printable { max } => length(property, 1, *max, PRINTABLE),
        Rule::Indexed { min, max, of_width } => {
            length(property, *min, *max, &indexed(*min, *max, *of_width));
        }
        Rule::PeerId => length(property, 1, MAX_ID_BYTES, PEER_ID),
        Rule::Lane => {
            length(property, 0, MAX_LABEL_BYTES, &format!(r"^(?!{})[^\u0000]*$", RESERVED_LANES.join("|")));
        }
        Rule::Time => property["format"] = "date-time".into(),
        Rule::Words(words) => {
            let null = is_nullable.then_some(Value::Null);
            property["enum"] = words.iter().map(|word| json!(word)).chain(null).collect();
        }
        Rule::NotWords(words) => {
            length(property, 0, MAX_LABEL_BYTES, TEXT);
            property["not"] = json!({ "enum": words });
        }
        Rule::Integer { min, max } => {
            property["minimum"] = json!(min);
            property["maximum"] = json!(max);
        }
        Rule::Items { min, max, each } => {
            if *min > 0 {
                property["minItems"] = json!(min);
            }
            property["maxItems"] = json!(max);
            if let Some(each) = each {
                limit(&mut property["items"], each);
            }
        }
        Rule::AnyItems => property["items"] = json!({}),
        Rule::Null => property["type"] = "null".into(),
        Rule::Schema(schema) => {
            let description = property["description"].take();
            *property =
                if is_nullable { json!({ "oneOf": [schema, { "type": "null" }] }) } else { schema.clone() };
            if !description.is_null() {
                property["description"] = description;
            }
        }
    }
}

fn length(property: &mut Value, min: usize, max: usize, pattern: &str) {
    if min > 0 {
        property["minLength"] = json!(min);
    }
    property["maxLength"] = json!(max);
    property["pattern"] = pattern.into();
}

/// Characters of one, two, three and four bytes: all of them but U+0000.
const ANY_OF_WIDTH: [&str; 4] = [r"\u0001-\u007F", r"\u0001-\u07FF", r"\u0001-\uFFFF", r"^\u0000"];
/// The same, of readable text.
const PRINTABLE_OF_WIDTH: [&str; 4] = [
    r"\u0020-\u007E",
    r"\u0020-\u007E\u00A0-\u07FF",
    r"\u0020-\u007E\u00A0-\uFFFF",
    r"^\u0000-\u001F\u007F-\u009F",
];

/// The pattern of a text whose characters count as much as the widest of them.
fn indexed(min: usize, max: usize, of_width: [&str; 4]) -> String {
    let choices =
        of_width.iter().zip(1..).map(|(class, width)| format!("[{class}]{{{min},{}}}", max / width));
    format!("^(?:{})$", choices.collect::<Vec<_>>().join("|"))
}

/// Says what is true of every text, number and JSON of a request.
fn complete(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    let says_what = "type $ref oneOf anyOf allOf enum const not required properties pattern";
    if !says_what.split(' ').any(|keyword| members.contains_key(keyword)) {
        members.insert("$ref".to_owned(), reference(JSON_VALUE)["$ref"].take());
        return;
    }
    let is_a = |kind: &str| match members.get("type") {
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        _ => false,
    };
    let (is_text, is_integer, is_object) = (is_a("string"), is_a("integer"), is_a("object"));
    if is_text && !["enum", "pattern", "format"].iter().any(|keyword| members.contains_key(*keyword)) {
        members.insert("pattern".to_owned(), TEXT.into());
    }
    if is_integer {
        // Formats of integers are signed, and ours are not: the range says it.
        let most = match members.remove("format").as_ref().and_then(Value::as_str) {
            Some("int32") => u64::from(u32::MAX),
            _ => u64::MAX,
        };
        members.entry("maximum").or_insert_with(|| json!(most));
    }
    if is_object && !members.contains_key("additionalProperties") {
        members.insert("propertyNames".to_owned(), json!({ "pattern": TEXT }));
        members.insert("additionalProperties".to_owned(), reference(JSON_VALUE));
    }
    for keyword in ["oneOf", "anyOf", "allOf"] {
        if let Some(Value::Array(choices)) = members.get_mut(keyword) {
            choices.iter_mut().for_each(complete_part);
        }
    }
    if let Some(items) = members.get_mut("items") {
        complete(items);
    }
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        properties.values_mut().for_each(complete);
    }
}

/// A choice within a schema: only one that says its type is completed, the others only narrow what stands around them.
fn complete_part(schema: &mut Value) {
    if schema.get("type").is_some() {
        complete(schema);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_about_a_field_of_a_request() {
        let document = super::super::document();
        for named in rules().iter().flat_map(|(_, fields)| fields.split_whitespace()) {
            let (schema, field) = named.split_once('.').unwrap();
            let property = &document["components"]["schemas"][schema]["properties"][field];
            assert!(property.is_object(), "{named}");
        }
    }

    #[test]
    fn every_rule_for_a_whole_request_is_in_its_schema() {
        let document = super::super::document();
        for (schema, whole) in together() {
            let all = document["components"]["schemas"][schema]["allOf"].as_array();
            assert!(all.is_some_and(|all| all.contains(&whole)), "{schema}: {whole}");
        }
    }

    #[test]
    fn patterns_say_what_the_domain_checks() {
        let is_match = |pattern: &str, text: &str| {
            let schema = json!({ "type": "string", "pattern": pattern });
            jsonschema::is_valid(&schema, &json!(text))
        };
        let path = indexed(0, MAX_TITLE_BYTES, ANY_OF_WIDTH);
        let repeated = |one: &str, count: usize| one.repeat(count);
        for one in ["x", "\u{e9}", "\u{20ac}", "\u{1f600}"] {
            for count in [1, 256, 257, 341, 342, 512, 513, 1_024, 1_025] {
                let text = repeated(one, count);
                let fits = domain::limits::check_indexed("path", Some(&text), MAX_TITLE_BYTES).is_ok();
                assert_eq!(is_match(&path, &text), fits, "{count} times {one}");
            }
        }
        assert!(!is_match(&path, "a\0"));
        assert!(is_match(&indexed(1, 8, PRINTABLE_OF_WIDTH), "caf\u{e9}"));
        for control in ["\u{7}", "\u{85}", "\u{7f}", "a\u{1f}\u{20ac}"] {
            assert!(!is_match(&indexed(1, 64, PRINTABLE_OF_WIDTH), control), "{control:?}");
            assert!(!is_match(PRINTABLE, control), "{control:?}");
        }
    }
}
