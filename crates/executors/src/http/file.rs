//! A connector file as it is written: one YAML file per service, everything that is left out as the host has it.
//!
//! `load.rs` makes a connector of it. `docs` for people are in `examples/connectors/`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use domain::duration::written;
use domain::policy::KindOverride;
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;

use engine::ModeSupport;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConnectorFile {
    /// What jobs call it.
    pub(super) name: Spanned<String>,
    /// For people.
    pub(super) description: Option<String>,
    /// What its input must be: a JSON Schema. With one, it is an action of the catalog.
    pub(super) parameters_schema: Option<Spanned<Value>>,
    /// What its result must be: a JSON Schema.
    pub(super) result_schema: Option<Spanned<Value>>,
    /// Whether it may leave work outside.
    #[serde(default)]
    pub(super) execution_mode_support: ModeSupport,
    /// Whether an operator approves every attempt before anything is sent.
    pub(super) approval: Option<Spanned<ApprovalWord>>,
    /// What it asks of the host; only a hint.
    #[serde(default)]
    pub(super) deferred_profile: DeferredProfile,
    /// What the templates may use and nobody may see.
    #[serde(default)]
    pub(super) secrets: BTreeMap<String, Spanned<SecretSource>>,
    /// Targets that are not public and may be reached all the same.
    #[serde(default)]
    pub(super) allow: Vec<Spanned<String>>,
    /// Origins beside the one of `submit` that its other requests may go to.
    #[serde(default)]
    pub(super) origins: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) tls: TlsFile,
    #[serde(default)]
    pub(super) limits: LimitsFile,
    /// The operator's word for operations of this connector.
    #[serde(default)]
    pub(super) policy: Option<Spanned<KindOverride>>,
    /// Requests to submit at the same time.
    pub(super) concurrency: Option<Spanned<usize>>,
    #[serde(default)]
    pub(super) retry: Option<Spanned<RetryFile>>,
    /// Where things are in every answer, unless a request says otherwise.
    #[serde(default)]
    pub(super) read: ReadFile,
    /// The service's states and what they mean.
    #[serde(default)]
    pub(super) states: BTreeMap<String, State>,
    pub(super) submit: SubmitFile,
    /// Finds work by our key when nobody knows whether it was taken.
    pub(super) lookup: Option<Spanned<AskFile>>,
    pub(super) status: Option<Spanned<AskFile>>,
    pub(super) cancel: Option<CancelFile>,
    /// Why there is no cancel, for people.
    pub(super) not_cancelable_because: Option<String>,
    /// Whether whoever pulled a job may hand work over that it began at the service itself.
    #[serde(default)]
    pub(super) adopts: bool,
    /// What is known of its callbacks.
    #[serde(default)]
    pub(super) callbacks: CallbacksFile,
    /// Fetched when the status says that the work is completed.
    pub(super) result: Option<Spanned<AskFile>>,
}

/// Who approves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ApprovalWord {
    Operator,
}

/// What a service's state means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the words of the contract")]
pub enum State {
    Pending,
    Running,
    Completed,
    Failed,
    TimedOut,
    Cancelled,
    Expired,
    Unknown,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DeferredProfile {
    #[serde(deserialize_with = "written::some_seconds")]
    pub(super) preferred_retry_after_seconds: Option<i64>,
    #[serde(deserialize_with = "written::some_seconds")]
    pub(super) preferred_max_ttl_seconds: Option<i64>,
}

/// Where a secret comes from: exactly one of both.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SecretSource {
    /// A variable of the daemon's environment.
    pub env: Option<String>,
    /// A file, whose last line end does not count.
    pub file: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CallbacksFile {
    /// The secret with which the service signs what it sends, as Standard Webhooks has it; what is not signed so is refused.
    pub(super) signed_with: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TlsFile {
    pub(super) ca_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LimitsFile {
    pub(super) response_bytes: Option<usize>,
    pub(super) result_bytes: Option<usize>,
    pub(super) header_bytes: Option<usize>,
    pub(super) redirects: Option<u8>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RetryFile {
    pub(super) max_attempts: Option<u32>,
    #[serde(deserialize_with = "written::some_seconds")]
    pub(super) backoff_seconds: Option<u32>,
    #[serde(deserialize_with = "written::some_seconds")]
    pub(super) max_backoff_seconds: Option<u32>,
}

/// Where things are in an answer. As a file has them, expressions over `answer`: a text is an expression, anything else a template.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Reads<T> {
    pub(super) id: T,
    pub(super) status: T,
    pub(super) progress: T,
    pub(super) progress_text: T,
    pub(super) retry_after: T,
    pub(super) fail_after: T,
    pub(super) result: T,
    pub(super) summary: T,
    pub(super) artifacts: T,
    pub(super) error: T,
    pub(super) error_code: T,
    pub(super) retryable: T,
    /// In the answer to `submit`: why this work cannot be stopped, if it cannot.
    pub(super) not_cancelable_because: T,
}

pub(super) type ReadFile = Reads<Option<Spanned<Value>>>;

/// What every request has, whatever it is for.
pub(super) struct RequestFile<'f> {
    pub(super) method: Option<&'f Spanned<String>>,
    pub(super) url: &'f Spanned<Value>,
    pub(super) headers: &'f BTreeMap<String, Spanned<Value>>,
    pub(super) body: Option<&'f Spanned<Value>>,
    pub(super) accept: Option<&'f Vec<u16>>,
    pub(super) timeout_ms: Option<u32>,
    pub(super) read: &'f ReadFile,
}

/// A request as it is written: the keys that all of them have, and those of its own, in the order in which people are told of them.
macro_rules! request_file {
    ($name:ident { accept, $($behind_accept:tt)* } { read, $($behind_read:tt)* }) => {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            method: Option<Spanned<String>>,
            pub(super) url: Spanned<Value>,
            #[serde(default)]
            headers: BTreeMap<String, Spanned<Value>>,
            body: Option<Spanned<Value>>,
            accept: Option<Vec<u16>>,
            $($behind_accept)*
            #[serde(default, deserialize_with = "written::some_milliseconds")]
            timeout_ms: Option<u32>,
            #[serde(default)]
            pub(super) read: ReadFile,
            $($behind_read)*
        }

        impl $name {
            pub(super) fn request(&self) -> RequestFile<'_> {
                RequestFile {
                    method: self.method.as_ref(),
                    url: &self.url,
                    headers: &self.headers,
                    body: self.body.as_ref(),
                    accept: self.accept.as_ref(),
                    timeout_ms: self.timeout_ms,
                    read: &self.read,
                }
            }
        }
    };
}

request_file!(SubmitFile { accept, } {
    read,
    /// Whether the service takes a second request under the same key for the same work.
    pub(super) idempotent: bool,
    /// The header that carries our key; none if empty.
    pub(super) idempotency_header: Option<Spanned<String>>,
    /// More of the answer that later requests need, as `operation.<name>`.
    #[serde(default)]
    pub(super) keep: BTreeMap<String, Spanned<Value>>,
});

request_file!(AskFile {
    accept,
    /// Answers that mean that the service does not know it: 404 and 410.
    pub(super) gone: Option<Vec<u16>>,
} { read, });

request_file!(CancelFile {
    accept,
    /// Answers that mean that it has stopped, and not only that it will.
    #[serde(default)]
    pub(super) confirmed: Vec<u16>,
} { read, });
