//! From a connector file to a connector: everything that can be wrong without asking the service is told here, with its place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use domain::RetryPolicy;
use domain::limits::MAX_LABEL_BYTES;
use domain::policy::{Hint, HostPolicy, KindOverride};
use http::{HeaderName, Method};
use serde_json::Value;
use serde_saphyr::{Location, Spanned};
use url::Url;

use super::call::{Call, Read};
use super::file::{
    ApprovalWord, AskFile, CancelFile, ConnectorFile, LimitsFile, ReadFile, SecretSource, State, SubmitFile,
};
use super::members::{Members, Stage};
use super::places;
use super::template::{self, REQUEST_NAMES};

use crate::outbound::{OutboundLimits, Target};
use crate::{Approval, Mistake, ModeSupport, Modes, Schema, hint};

const MAX_FILE_BYTES: u64 = 262_144;
const MAX_NESTING: usize = 32;
const MAX_NODES: usize = 20_000;
const MAX_CONCURRENCY: usize = 1_000;
const DEFAULT_CONCURRENCY: usize = 4;
/// For a service that is away for minutes: the last of these attempts is made three to seven minutes after the first.
const DEFAULT_RETRY: RetryPolicy =
    RetryPolicy { max_attempts: 8, backoff_seconds: 5, max_backoff_seconds: 120 };
/// No answer may be larger: a body of the store cannot.
const MAX_RESPONSE_BYTES: usize = domain::limits::MAX_BODY_BYTES;
const MAX_TIMEOUT_MS: u32 = 600_000;
const DEFAULT_KEY_HEADER: &str = "Idempotency-Key";
/// Names of `operation` that every connector has.
const OWN_NAMES: [&str; 4] = ["id", "remote_id", "location", "callback_url"];

/// A connector, ready to be opened.
#[derive(Debug)]
pub struct Connector {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) parameters: Option<Schema>,
    pub(super) result_contract: Option<Schema>,
    pub(super) modes: Modes,
    pub(super) approval: Approval,
    pub(super) secrets: BTreeMap<String, SecretSource>,
    pub(super) allow: Vec<Target>,
    pub(super) origins: Vec<url::Origin>,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) policy: KindOverride,
    pub(super) concurrency: usize,
    pub(super) retry: RetryPolicy,
    pub(super) states: BTreeMap<String, State>,
    pub(super) submit: Call,
    pub(super) idempotent: bool,
    pub(super) key_header: Option<HeaderName>,
    pub(super) keep: BTreeMap<String, jsone::Template>,
    pub(super) lookup: Option<Call>,
    pub(super) status: Option<Call>,
    pub(super) cancel: Option<Call>,
    /// Answers to a cancel that mean that the work has stopped.
    pub(super) cancel_confirmed: Vec<u16>,
    pub(super) not_cancelable_because: String,
    pub(super) result: Option<Call>,
    /// Whether the service is given an address to call back.
    pub(super) gives_callback_url: bool,
    /// The secret with which it signs its callbacks.
    pub(super) signed_with: Option<String>,
    /// Whether a later request reads the input: then, and only then, it is kept in the handle.
    pub(super) keeps_input: bool,
    pub(super) doubts: Vec<Mistake>,
}

impl Connector {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, Mistake> {
        let file = path.display().to_string();
        Self::parse(&file, &text_of(path)?)
    }

    /// Reads a text; `file` is what mistakes call it.
    pub fn parse(file: &str, text: &str) -> Result<Self, Mistake> {
        Loader { file }.load(&yaml(file, text)?)
    }

    /// What jobs call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it may leave work outside, and what it hints of that.
    pub fn modes(&self) -> Modes {
        self.modes
    }

    /// The operator's word for its operations: goes into the host's `kind_overrides` under its name.
    pub fn policy(&self) -> &KindOverride {
        &self.policy
    }

    /// Targets that are not public and may be reached all the same.
    pub fn allowed(&self) -> &[Target] {
        &self.allow
    }

    /// What will not work although the file can be read.
    pub fn doubts(&self) -> &[Mistake] {
        &self.doubts
    }

    /// Where its secrets come from.
    pub fn secrets(&self) -> &BTreeMap<String, SecretSource> {
        &self.secrets
    }
}

/// Reads a YAML text of people: one document, no anchors, nothing twice.
pub(super) fn yaml<T: serde::de::DeserializeOwned>(file: &str, text: &str) -> Result<T, Mistake> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_documents: 1,
            max_depth: MAX_NESTING,
            max_nodes: MAX_NODES,
            max_aliases: 0,
            max_anchors: 0,
        },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| Mistake::of_yaml(file, &error))
}

/// The text of a file that is not too large.
pub(super) fn text_of(path: &Path) -> Result<String, Mistake> {
    let file = path.display().to_string();
    let unreadable = |error: std::io::Error| Mistake::somewhere(&file, format!("cannot be read: {error}"));
    if std::fs::metadata(path).map_err(unreadable)?.len() > MAX_FILE_BYTES {
        return Err(Mistake::somewhere(&file, format!("has more than {MAX_FILE_BYTES} bytes")));
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

struct Loader<'f> {
    file: &'f str,
}

/// The parts that every request has.
struct Parts<'p> {
    method: Option<&'p Spanned<String>>,
    usual_method: Method,
    url: &'p Spanned<Value>,
    headers: &'p BTreeMap<String, Spanned<Value>>,
    body: Option<&'p Spanned<Value>>,
    accept: Option<&'p Vec<u16>>,
    gone: Option<&'p Vec<u16>>,
    timeout_ms: u32,
    body_bytes: usize,
    read: &'p ReadFile,
    stage: Stage,
}

impl Loader<'_> {
    fn load(&self, file: &ConnectorFile) -> Result<Connector, Mistake> {
        self.check_name(&file.name)?;
        let policy = file.policy.as_ref().map(|policy| policy.value.clone()).unwrap_or_default();
        let granted = {
            let mut host = HostPolicy::default();
            host.kind_overrides.insert(file.name.value.clone(), policy.clone());
            host.for_kind(&file.name.value)
        };
        if let (Err(refusal), Some(written)) = (granted.check(), &file.policy) {
            return Err(self.at(&written.defined, refusal.to_string()));
        }
        self.check_limits(&file.limits)?;
        let response_bytes = file
            .limits
            .response_bytes
            .unwrap_or(usize::try_from(granted.max_response_bytes).unwrap_or(usize::MAX));
        let usual = |timeout_ms: Option<u32>, usual: u32| timeout_ms.unwrap_or(usual);
        let ask = |ask: &Spanned<AskFile>, body_bytes: usize, stage: Stage| {
            let timeout_ms = usual(ask.value.timeout_ms, granted.status_timeout_ms);
            self.call(Parts { stage, ..Parts::of_ask(&ask.value, timeout_ms, body_bytes) }, file)
        };
        let submit_timeout = usual(file.submit.timeout_ms, granted.invoke_timeout_ms);
        let submit = self.call(Parts::of_submit(&file.submit, submit_timeout, response_bytes), file)?;
        let result_bytes = file.limits.result_bytes.unwrap_or(MAX_RESPONSE_BYTES);
        let lookup = file.lookup.as_ref().map(|one| ask(one, response_bytes, Stage::Giving)).transpose()?;
        let status = file.status.as_ref().map(|one| ask(one, response_bytes, Stage::Asking)).transpose()?;
        let result = file.result.as_ref().map(|one| ask(one, result_bytes, Stage::Asking)).transpose()?;
        let cancel = file.cancel.as_ref().map(|cancel| {
            let timeout_ms = usual(cancel.timeout_ms, granted.status_timeout_ms);
            self.call(Parts::of_cancel(cancel, timeout_ms, response_bytes), file)
        });
        let cancel = cancel.transpose()?;
        self.check_mode(file)?;
        let hint = |seconds: Option<i64>| seconds.map_or(Hint::Absent, Hint::Seconds);
        let later = [&status, &result, &cancel];
        let gives_callback_url = submit.takes("operation", "callback_url");
        let allow = self.targets(&file.allow)?;
        let doubts = places::doubts(self.file, file, &allow)?;
        let keeps_input = later.into_iter().flatten().any(|call| call.reads("input"));
        Ok(Connector {
            name: file.name.value.clone(),
            description: file.description.clone(),
            parameters: self.schema(file.parameters_schema.as_ref())?,
            result_contract: self.schema(file.result_schema.as_ref())?,
            modes: Modes {
                support: file.execution_mode_support,
                retry_after: hint(file.deferred_profile.preferred_retry_after_seconds),
                max_ttl: hint(file.deferred_profile.preferred_max_ttl_seconds),
            },
            approval: self.approval(file)?,
            secrets: self.secrets(file)?,
            allow,
            origins: self.origins(&file.origins)?,
            ca_file: file.tls.ca_file.clone(),
            policy,
            concurrency: self.concurrency(file.concurrency.as_ref())?,
            retry: self.retry(file)?,
            states: file.states.clone(),
            submit,
            idempotent: file.submit.idempotent,
            key_header: self.key_header(&file.submit)?,
            keep: self.keep(&file.submit)?,
            lookup,
            status,
            cancel_confirmed: file.cancel.as_ref().map(|cancel| cancel.confirmed.clone()).unwrap_or_default(),
            cancel,
            not_cancelable_because: file
                .not_cancelable_because
                .clone()
                .unwrap_or_else(|| "its connector has no cancel".to_owned()),
            result,
            keeps_input,
            gives_callback_url,
            signed_with: self.signed_with(file)?,
            doubts,
        })
    }

    fn call(&self, parts: Parts<'_>, file: &ConnectorFile) -> Result<Call, Mistake> {
        let members = Members::of(file, parts.stage);
        let request = |written: &Spanned<Value>| {
            let parsed = template::parse(&written.value, &REQUEST_NAMES);
            let checked = parsed.and_then(|parsed| members.check(&parsed).map(|()| parsed));
            checked.map_err(|told| self.at(&written.defined, told))
        };
        let method = match parts.method {
            None => parts.usual_method,
            Some(written) => match written.value.as_str() {
                "GET" => Method::GET,
                "POST" => Method::POST,
                "PUT" => Method::PUT,
                "PATCH" => Method::PATCH,
                "DELETE" => Method::DELETE,
                other => {
                    let known = "GET, POST, PUT, PATCH, DELETE";
                    return Err(self.at(&written.defined, format!("{other:?} is not one of: {known}")));
                }
            },
        };
        let mut headers = Vec::new();
        for (name, value) in parts.headers {
            let wrong = || self.at(&value.defined, format!("{name:?} cannot be the name of a header"));
            let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
            if ["host", "content-length", "transfer-encoding", "connection"].contains(&parsed.as_str()) {
                return Err(self.at(&value.defined, format!("the header {name:?} is made by longhaul")));
            }
            headers.push((parsed, request(value)?));
        }
        if parts.timeout_ms == 0 || parts.timeout_ms > MAX_TIMEOUT_MS {
            let told = format!("timeout_ms is 1 to {MAX_TIMEOUT_MS}, and is {}", parts.timeout_ms);
            return Err(self.at(&parts.url.defined, told));
        }
        let limits = OutboundLimits {
            deadline: Duration::from_millis(u64::from(parts.timeout_ms)),
            body_bytes: parts.body_bytes,
            header_bytes: file.limits.header_bytes.unwrap_or(OutboundLimits::default().header_bytes),
            redirects: file.limits.redirects.unwrap_or(OutboundLimits::default().redirects),
        };
        Ok(Call {
            method,
            url: request(parts.url)?,
            headers,
            body: parts.body.map(request).transpose()?,
            accept: parts.accept.cloned(),
            gone: parts.gone.cloned().unwrap_or_else(|| vec![404, 410]),
            limits,
            read: self.reading(parts.read, &file.read)?,
        })
    }

    fn reading(&self, own: &ReadFile, common: &ReadFile) -> Result<Read, Mistake> {
        let either = |own: &Option<Spanned<Value>>, common: &Option<Spanned<Value>>| {
            let Some(written) = own.as_ref().or(common.as_ref()) else { return Ok(None) };
            let parsed = template::parse_expression(&written.value);
            parsed.map(Some).map_err(|told| self.at(&written.defined, told))
        };
        Ok(Read {
            id: either(&own.id, &common.id)?,
            status: either(&own.status, &common.status)?,
            progress: either(&own.progress, &common.progress)?,
            progress_text: either(&own.progress_text, &common.progress_text)?,
            retry_after: either(&own.retry_after, &common.retry_after)?,
            fail_after: either(&own.fail_after, &common.fail_after)?,
            result: either(&own.result, &common.result)?,
            summary: either(&own.summary, &common.summary)?,
            artifacts: either(&own.artifacts, &common.artifacts)?,
            error: either(&own.error, &common.error)?,
            error_code: either(&own.error_code, &common.error_code)?,
            retryable: either(&own.retryable, &common.retryable)?,
            not_cancelable_because: either(&own.not_cancelable_because, &common.not_cancelable_because)?,
        })
    }

    fn check_name(&self, name: &Spanned<String>) -> Result<(), Mistake> {
        let fits = (1..=MAX_LABEL_BYTES).contains(&name.value.len())
            && name.value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if fits {
            return Ok(());
        }
        let told = format!("a name has 1 to {MAX_LABEL_BYTES} letters, digits, dashes, dots or underscores");
        Err(self.at(&name.defined, told))
    }

    /// Whether it can do what it says that it does.
    fn check_mode(&self, file: &ConnectorFile) -> Result<(), Mistake> {
        let at = &file.name.defined;
        match (file.execution_mode_support, &file.status) {
            (ModeSupport::SyncOnly, Some(status)) => Err(self.at(
                &status.defined,
                "a connector with a status request leaves work outside: set execution_mode_support to either or async-only",
            )),
            (ModeSupport::AsyncOnly | ModeSupport::Either, None) => {
                Err(self.at(at, "a connector that leaves work outside needs a status request"))
            }
            (ModeSupport::AsyncOnly | ModeSupport::Either, Some(status)) => {
                let reads = file.read.status.is_some() || status.value.read.status.is_some();
                if reads && !file.states.is_empty() {
                    return Ok(());
                }
                let told = "status needs read.status (where the state is) and states (what it means)";
                Err(self.at(&status.defined, told))
            }
            (ModeSupport::SyncOnly, None) => Ok(()),
        }
    }

    fn check_limits(&self, limits: &LimitsFile) -> Result<(), Mistake> {
        for (what, bytes) in [
            ("response_bytes", limits.response_bytes),
            ("result_bytes", limits.result_bytes),
            ("header_bytes", limits.header_bytes),
        ] {
            if bytes.is_some_and(|bytes| !(1..=MAX_RESPONSE_BYTES).contains(&bytes)) {
                let told = format!("limits.{what} is 1 to {MAX_RESPONSE_BYTES}");
                return Err(Mistake::somewhere(self.file, told));
            }
        }
        Ok(())
    }

    fn secrets(&self, file: &ConnectorFile) -> Result<BTreeMap<String, SecretSource>, Mistake> {
        for (name, source) in &file.secrets {
            if source.value.env.is_some() == source.value.file.is_some() {
                let told = format!("the secret {name:?} comes from either env or file");
                return Err(self.at(&source.defined, told));
            }
        }
        Ok(file.secrets.iter().map(|(name, source)| (name.clone(), source.value.clone())).collect())
    }

    fn signed_with(&self, file: &ConnectorFile) -> Result<Option<String>, Mistake> {
        let Some(written) = &file.callbacks.signed_with else { return Ok(None) };
        if file.secrets.contains_key(&written.value) {
            return Ok(Some(written.value.clone()));
        }
        let known: Vec<&str> = file.secrets.keys().map(String::as_str).collect();
        let told = format!("there is no secret named {:?}{}", written.value, hint(&written.value, &known));
        Err(self.at(&written.defined, told))
    }

    fn targets(&self, allow: &[Spanned<String>]) -> Result<Vec<Target>, Mistake> {
        let target = |written: &Spanned<String>| {
            let parsed = written.value.parse::<Target>();
            parsed.map_err(|error| self.at(&written.defined, error.to_string()))
        };
        allow.iter().map(target).collect()
    }

    fn origins(&self, origins: &[Spanned<String>]) -> Result<Vec<url::Origin>, Mistake> {
        let origin = |written: &Spanned<String>| match Url::parse(&written.value) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.path() == "/" => Ok(url.origin()),
            Ok(_) | Err(_) => {
                let told =
                    format!("{:?} is no origin: write https://host or https://host:port", written.value);
                Err(self.at(&written.defined, told))
            }
        };
        origins.iter().map(origin).collect()
    }

    /// Nobody waits at a door for a person: what needs an approval gives handles only.
    fn approval(&self, file: &ConnectorFile) -> Result<Approval, Mistake> {
        match &file.approval {
            None => Ok(Approval::NotNeeded),
            Some(Spanned { value: ApprovalWord::Operator, .. })
                if file.execution_mode_support == ModeSupport::AsyncOnly =>
            {
                Ok(Approval::Operator)
            }
            Some(written) => Err(self.at(
                &written.defined,
                "work that waits for an approval needs execution_mode_support: async-only",
            )),
        }
    }

    fn schema(&self, written: Option<&Spanned<Value>>) -> Result<Option<Schema>, Mistake> {
        let read = |written: &Spanned<Value>| {
            Schema::read(&written.value)
                .map_err(|told| self.at(&written.defined, format!("no schema: {told}")))
        };
        written.map(read).transpose()
    }

    fn concurrency(&self, written: Option<&Spanned<usize>>) -> Result<usize, Mistake> {
        match written {
            None => Ok(DEFAULT_CONCURRENCY),
            Some(written) if (1..=MAX_CONCURRENCY).contains(&written.value) => Ok(written.value),
            Some(written) => Err(self.at(&written.defined, format!("must be 1 to {MAX_CONCURRENCY}"))),
        }
    }

    fn retry(&self, file: &ConnectorFile) -> Result<RetryPolicy, Mistake> {
        let default = DEFAULT_RETRY;
        let Some(written) = &file.retry else { return Ok(default) };
        let backoff_seconds = written.value.backoff_seconds.unwrap_or(default.backoff_seconds);
        let usual_most = default.max_backoff_seconds.max(backoff_seconds);
        let retry = RetryPolicy {
            max_attempts: written.value.max_attempts.unwrap_or(default.max_attempts),
            backoff_seconds,
            max_backoff_seconds: written.value.max_backoff_seconds.unwrap_or(usual_most),
        };
        retry.check().map_err(|refusal| self.at(&written.defined, refusal.to_string()))?;
        Ok(retry)
    }

    fn key_header(&self, submit: &SubmitFile) -> Result<Option<HeaderName>, Mistake> {
        let Some(written) = &submit.idempotency_header else {
            return Ok(DEFAULT_KEY_HEADER.parse().ok());
        };
        if written.value.is_empty() {
            return Ok(None);
        }
        let name = HeaderName::from_bytes(written.value.as_bytes());
        name.map(Some).map_err(|_| self.at(&written.defined, "cannot be the name of a header"))
    }

    fn keep(&self, submit: &SubmitFile) -> Result<BTreeMap<String, jsone::Template>, Mistake> {
        let mut keep = BTreeMap::new();
        for (name, written) in &submit.keep {
            if OWN_NAMES.contains(&name.as_str()) {
                return Err(self.at(&written.defined, format!("operation.{name} is set by longhaul")));
            }
            let parsed = template::parse_expression(&written.value);
            keep.insert(name.clone(), parsed.map_err(|told| self.at(&written.defined, told))?);
        }
        Ok(keep)
    }

    fn at(&self, location: &Location, told: impl Into<String>) -> Mistake {
        Mistake::at(self.file, location, told)
    }
}

impl<'p> Parts<'p> {
    fn of_submit(submit: &'p SubmitFile, timeout_ms: u32, body_bytes: usize) -> Self {
        Self {
            method: submit.method.as_ref(),
            usual_method: Method::POST,
            url: &submit.url,
            headers: &submit.headers,
            body: submit.body.as_ref(),
            accept: submit.accept.as_ref(),
            gone: None,
            timeout_ms,
            body_bytes,
            read: &submit.read,
            stage: Stage::Giving,
        }
    }

    fn of_ask(ask: &'p AskFile, timeout_ms: u32, body_bytes: usize) -> Self {
        Self {
            method: ask.method.as_ref(),
            usual_method: Method::GET,
            url: &ask.url,
            headers: &ask.headers,
            body: ask.body.as_ref(),
            accept: ask.accept.as_ref(),
            gone: ask.gone.as_ref(),
            timeout_ms,
            body_bytes,
            read: &ask.read,
            stage: Stage::Asking,
        }
    }

    fn of_cancel(cancel: &'p CancelFile, timeout_ms: u32, body_bytes: usize) -> Self {
        Self {
            method: cancel.method.as_ref(),
            usual_method: Method::POST,
            url: &cancel.url,
            headers: &cancel.headers,
            body: cancel.body.as_ref(),
            accept: cancel.accept.as_ref(),
            gone: None,
            timeout_ms,
            body_bytes,
            read: &cancel.read,
            stage: Stage::Asking,
        }
    }
}
