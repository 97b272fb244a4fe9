//! From a connector file to a connector: everything that can be wrong without asking the service is told here, with its place.
//!
//! `load/requests.rs` has the requests, `load/settings.rs` what the file says beside them, `load/checks.rs` what it must have to be of use.

mod checks;
mod requests;
mod settings;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use domain::policy::{Hint, HostPolicy, KindOverride};
use domain::{Digest, RetryPolicy};
use http::{HeaderName, Method};
use serde_saphyr::{Location, Spanned};

use super::call::Call;
use super::file::{AskFile, ConnectorFile, SecretSource, State};
use super::members::Stage;
use super::places;
use super::signature::Signers;
use crate::Schema;
use crate::outbound::Target;
use checks::Later;
use config_file::{FileLimits, Mistake};
use engine::{Approval, Modes};
use requests::Usual;

/// What a file of a connector, a plugin or an exchange may hold.
pub(crate) const LIMITS: FileLimits = FileLimits { bytes: 262_144, nesting: 32, nodes: 20_000 };
/// No answer may be larger: a body of the store cannot.
const MAX_RESPONSE_BYTES: usize = domain::limits::MAX_BODY_BYTES;

/// A connector, ready to be opened.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a key of the file, and they do not exclude each other"
)]
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
    /// Whether work that others began there is asked about.
    pub(super) adopts: bool,
    /// Whether a later request reads the input: then, and only then, it is kept in the handle.
    pub(super) keeps_input: bool,
    /// The digest of its file, byte for byte.
    pub(super) digest: Digest,
    pub(super) doubts: Vec<Mistake>,
}

impl Connector {
    /// Reads a file, whoever wrote it.
    pub fn read(path: &Path) -> Result<Self, Mistake> {
        Self::read_signed(path, &Signers::default())
    }

    /// Reads a file that one of these has signed, if there are any.
    pub fn read_signed(path: &Path, signers: &Signers) -> Result<Self, Mistake> {
        let text = LIMITS.text_of(path)?;
        signers.check(path, &text)?;
        Self::parse(&path.display().to_string(), &text)
    }

    /// Reads a text; `file` is what mistakes call it.
    pub fn parse(file: &str, text: &str) -> Result<Self, Mistake> {
        Loader { file, digest: store::sha256(text.as_bytes()) }.load(&LIMITS.parse(file, text)?)
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

    /// Whether its service is given an address to call back.
    pub fn gives_callback_url(&self) -> bool {
        self.gives_callback_url
    }

    /// The digest of its file.
    pub fn digest(&self) -> Digest {
        self.digest
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

struct Loader<'f> {
    file: &'f str,
    digest: Digest,
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
        let ask = |written: &Spanned<AskFile>, body_bytes: usize, stage: Stage| {
            let (method, timeout_ms) = (Method::GET, granted.status_timeout_ms);
            let usual = Usual { method, timeout_ms, body_bytes, stage };
            let mut call = self.call(written.value.request(), usual, file)?;
            if let Some(gone) = &written.value.gone {
                call.gone.clone_from(gone);
            }
            Ok(call)
        };
        let to_submit = Usual {
            method: Method::POST,
            timeout_ms: granted.invoke_timeout_ms,
            body_bytes: response_bytes,
            stage: Stage::Giving,
        };
        let to_cancel =
            Usual { timeout_ms: granted.status_timeout_ms, stage: Stage::Asking, ..to_submit.clone() };
        let submit = self.call(file.submit.request(), to_submit, file)?;
        let result_bytes = file.limits.result_bytes.unwrap_or(MAX_RESPONSE_BYTES);
        let lookup = file.lookup.as_ref().map(|one| ask(one, response_bytes, Stage::Giving)).transpose()?;
        let status = file.status.as_ref().map(|one| ask(one, response_bytes, Stage::Asking)).transpose()?;
        let result = file.result.as_ref().map(|one| ask(one, result_bytes, Stage::Asking)).transpose()?;
        let cancel = file.cancel.as_ref().map(|cancel| self.call(cancel.request(), to_cancel, file));
        let cancel = cancel.transpose()?;
        self.check_mode(file)?;
        let mut asked = Vec::new();
        for (name, ask, call) in [("status", &file.status, &status), ("result", &file.result, &result)] {
            if let (Some(ask), Some(call)) = (ask, call) {
                asked.push(Later { name, call, at: &ask.defined });
            }
        }
        if let (Some(written), Some(call)) = (&file.cancel, &cancel) {
            asked.push(Later { name: "cancel", call, at: &written.url.defined });
        }
        self.check_finds_work(file, &submit, &asked)?;
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
            adopts: file.adopts,
            keeps_input,
            gives_callback_url,
            signed_with: self.signed_with(file)?,
            digest: self.digest,
            doubts,
        })
    }

    fn at(&self, location: &Location, told: impl Into<String>) -> Mistake {
        Mistake::at(self.file, location, told)
    }
}
