//! `artifact-delivery-envelope.v1`, read strictly; what is wrong has a failure class of the contract.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::digest::sha256;

const MAX_STAGES: usize = 16;
const MAX_TARGETS: usize = 64;

/// An envelope that was understood.
#[derive(Clone, Debug)]
pub struct Envelope {
    /// `sha256:` and hex digits.
    pub digest: String,
    /// The artifact, if it came along.
    pub bytes: Option<Vec<u8>>,
    /// Where it is, if it did not.
    pub artifact_ref: Option<String>,
    /// Where to.
    pub plan: Plan,
    /// The caller's key.
    pub key: Option<String>,
}

/// Where an artifact goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// By a route that the service knows.
    Route(String),
    /// By these stages.
    Stages(Vec<Stage>),
}

/// Targets that are served together, and when that is enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Its name.
    pub id: String,
    /// The names of its targets.
    pub targets: Vec<String>,
    /// When it is met.
    pub enough: Enough,
    /// Whether the stages after it are tried although it is not met.
    pub on_failure: OnFailure,
}

/// How many targets must have the artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enough {
    /// Every one.
    All,
    /// One.
    Any,
    /// So many.
    Quorum(usize),
}

/// What follows a stage that is not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// Nothing.
    Stop,
    /// The next stage.
    Continue,
}

/// Why an envelope is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// A failure class of the contract.
    pub class: &'static str,
    /// The field, for people.
    pub message: String,
}

impl Stage {
    /// How many targets must have the artifact.
    pub fn needed(&self) -> usize {
        match self.enough {
            Enough::All => self.targets.len(),
            Enough::Any => 1,
            Enough::Quorum(count) => count,
        }
    }
}

/// Reads the body of a request.
pub fn read_envelope(body: &[u8]) -> Result<Envelope, Fault> {
    let body: Value = serde_json::from_slice(body)
        .map_err(|_| Fault { class: "envelope-malformed", message: "the body is not JSON".to_owned() })?;
    let envelope = body.as_object().ok_or_else(|| invalid("an envelope is an object"))?;
    if envelope.get("schema") != Some(&Value::from("artifact-delivery-envelope.v1")) {
        return Err(invalid("schema must be artifact-delivery-envelope.v1"));
    }
    text(envelope, "component/id")?;
    let artifact = object(envelope, "artifact")?;
    text(artifact, "schema")?;
    text(artifact, "content/type")?;
    let digest = text(artifact, "digest")?.to_owned();
    let size = artifact.get("size/bytes").and_then(Value::as_u64);
    let size = size.ok_or_else(|| invalid("size/bytes must be a whole number"))?;
    let (bytes, artifact_ref) = match (artifact.get("bytes/base64"), artifact.get("artifact/ref")) {
        (Some(Value::String(encoded)), None) => (Some(decoded(encoded, &digest, size)?), None),
        (None, Some(Value::String(reference))) if !reference.is_empty() => (None, Some(reference.clone())),
        _ => return Err(invalid("an artifact has exactly one of bytes/base64 and artifact/ref, as a text")),
    };
    if !is_digest(&digest) {
        return Err(invalid("digest must be sha256: and 64 hex digits"));
    }
    let key = match envelope.get("idempotency/key") {
        None => None,
        Some(_) => Some(text(envelope, "idempotency/key")?.to_owned()),
    };
    Ok(Envelope { digest, bytes, artifact_ref, plan: read_plan(object(envelope, "delivery/plan")?)?, key })
}

/// Reads the stages of a plan, or of a route.
pub fn read_stages(stages: &Value) -> Result<Vec<Stage>, Fault> {
    let stages = stages.as_array().filter(|stages| (1..=MAX_STAGES).contains(&stages.len()));
    let stages = stages.ok_or_else(|| invalid("stages must be a list of 1 to 16"))?;
    stages.iter().map(read_stage).collect()
}

fn read_plan(plan: &Map<String, Value>) -> Result<Plan, Fault> {
    match (plan.get("route/ref"), plan.get("stages")) {
        (Some(_), None) => Ok(Plan::Route(text(plan, "route/ref")?.to_owned())),
        (None, Some(stages)) => Ok(Plan::Stages(read_stages(stages)?)),
        (Some(_), Some(_)) | (None, None) => Err(invalid("a plan has exactly one of route/ref and stages")),
    }
}

fn read_stage(stage: &Value) -> Result<Stage, Fault> {
    let stage = stage.as_object().ok_or_else(|| invalid("a stage is an object"))?;
    let targets: Option<Vec<String>> = stage
        .get("targets")
        .and_then(Value::as_array)
        .and_then(|targets| targets.iter().map(|target| target.as_str().map(str::to_owned)).collect());
    let targets = targets.filter(|targets| (1..=MAX_TARGETS).contains(&targets.len()));
    let targets = targets.ok_or_else(|| invalid("targets must be a list of 1 to 64 names"))?;
    let minimum = stage.get("quorum/min-success");
    let enough = match (text(stage, "success/policy")?, minimum.and_then(Value::as_u64)) {
        ("all", None) if minimum.is_none() => Enough::All,
        ("any", None) if minimum.is_none() => Enough::Any,
        ("quorum", Some(count)) => {
            let count = usize::try_from(count).ok().filter(|count| (1..=targets.len()).contains(count));
            Enough::Quorum(
                count.ok_or_else(|| invalid("quorum/min-success must be 1 to the count of targets"))?,
            )
        }
        _ => return Err(invalid("success/policy is all, any, or quorum with quorum/min-success")),
    };
    let on_failure = match stage.get("on/failure").map(Value::as_str) {
        None | Some(Some("stop")) => OnFailure::Stop,
        Some(Some("continue")) => OnFailure::Continue,
        Some(_) => return Err(invalid("on/failure is stop or continue")),
    };
    Ok(Stage { id: text(stage, "stage/id")?.to_owned(), targets, enough, on_failure })
}

fn decoded(encoded: &str, digest: &str, size: u64) -> Result<Vec<u8>, Fault> {
    let bytes = STANDARD.decode(encoded).map_err(|_| invalid("bytes/base64 is not base64"))?;
    if bytes.len() as u64 != size {
        return Err(invalid("size/bytes is not the size of the artifact"));
    }
    if sha256(&bytes) != digest {
        return Err(invalid("digest is not the digest of the artifact"));
    }
    Ok(bytes)
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:")
        .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn text<'a>(object: &'a Map<String, Value>, field: &str) -> Result<&'a str, Fault> {
    let text = object.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    text.ok_or_else(|| invalid(&format!("{field} must be a text that is not empty")))
}

fn object<'a>(object: &'a Map<String, Value>, field: &str) -> Result<&'a Map<String, Value>, Fault> {
    let inner = object.get(field).and_then(Value::as_object);
    inner.ok_or_else(|| invalid(&format!("{field} must be an object")))
}

fn invalid(message: &str) -> Fault {
    Fault { class: "envelope-invalid", message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn envelope() -> Value {
        json!({
            "schema": "artifact-delivery-envelope.v1",
            "component/id": "press",
            "artifact": {
                "schema": "page.v1",
                "content/type": "text/plain",
                "digest": sha256(b"page"),
                "size/bytes": 4,
                "bytes/base64": "cGFnZQ==",
            },
            "delivery/plan": {"stages": [{"stage/id": "a", "targets": ["x"], "success/policy": "all"}]},
        })
    }

    fn read(envelope: &Value) -> Result<Envelope, Fault> {
        read_envelope(envelope.to_string().as_bytes())
    }

    #[test]
    fn a_whole_envelope_is_understood() {
        let envelope = read(&envelope()).unwrap();
        assert_eq!(envelope.bytes.as_deref(), Some(b"page".as_slice()));
        let Plan::Stages(stages) = envelope.plan else { panic!("it has stages") };
        assert_eq!((stages[0].needed(), stages[0].on_failure), (1, OnFailure::Stop));
    }

    #[test]
    fn every_breach_of_the_contract_is_refused() {
        let breaches: [(&str, Value); 12] = [
            ("/artifact/digest", json!(sha256(b"other"))),
            ("/artifact/size~1bytes", json!(5)),
            ("/artifact/bytes~1base64", json!("!")),
            ("/artifact/bytes~1base64", json!(7)),
            ("/component~1id", json!("")),
            ("/schema", json!("artifact-delivery-envelope.v2")),
            ("/delivery~1plan", json!({})),
            ("/delivery~1plan", json!({"route/ref": "r", "stages": []})),
            ("/delivery~1plan/stages", json!([])),
            ("/delivery~1plan/stages/0/targets", json!([])),
            ("/delivery~1plan/stages/0/success~1policy", json!("quorum")),
            ("/delivery~1plan/stages/0/success~1policy", json!("most")),
        ];
        for (pointer, value) in breaches {
            let mut broken = envelope();
            *broken.pointer_mut(pointer).unwrap() = value;
            assert_eq!(read(&broken).unwrap_err().class, "envelope-invalid", "{pointer}");
        }
        let mut both = envelope();
        both["artifact"]["artifact/ref"] = json!("blob:1");
        assert_eq!(read(&both).unwrap_err().class, "envelope-invalid");
        let mut stray_minimum = envelope();
        stray_minimum["delivery/plan"]["stages"][0]["quorum/min-success"] = json!(1);
        assert_eq!(read(&stray_minimum).unwrap_err().class, "envelope-invalid");
        assert_eq!(read_envelope(b"{").unwrap_err().class, "envelope-malformed");
    }
}
