//! What a file says beside its requests: secrets, targets, approval, schemas, how much at once and how often again.

use std::collections::BTreeMap;

use domain::RetryPolicy;
use http::HeaderName;
use serde_json::Value;
use serde_saphyr::Spanned;
use url::Url;

use super::Loader;
use crate::Schema;
use crate::http::file::{ApprovalWord, ConnectorFile, SecretSource, SubmitFile};
use crate::http::places;
use crate::http::template;
use crate::outbound::Target;
use config_file::{Mistake, hint};
use engine::{Approval, ModeSupport};

const MAX_CONCURRENCY: usize = 1_000;
const DEFAULT_CONCURRENCY: usize = 4;
/// For a service that is away for minutes: the last of these attempts is made three to seven minutes after the first.
const DEFAULT_RETRY: RetryPolicy =
    RetryPolicy { max_attempts: 8, backoff_seconds: 5, max_backoff_seconds: 120 };
const DEFAULT_KEY_HEADER: &str = "Idempotency-Key";
/// Names of `operation` that every connector has.
const OWN_NAMES: [&str; 4] = ["id", "remote_id", "location", "callback_url"];

impl Loader<'_> {
    pub(super) fn secrets(&self, file: &ConnectorFile) -> Result<BTreeMap<String, SecretSource>, Mistake> {
        for (name, source) in &file.secrets {
            if source.value.env.is_some() == source.value.file.is_some() {
                let told = format!("the secret {name:?} comes from either env or file");
                return Err(self.at(&source.defined, told));
            }
        }
        Ok(file.secrets.iter().map(|(name, source)| (name.clone(), source.value.clone())).collect())
    }

    pub(super) fn signed_with(&self, file: &ConnectorFile) -> Result<Option<String>, Mistake> {
        let Some(written) = &file.callbacks.signed_with else { return Ok(None) };
        if file.secrets.contains_key(&written.value) {
            return Ok(Some(written.value.clone()));
        }
        let known: Vec<&str> = file.secrets.keys().map(String::as_str).collect();
        let told = format!("there is no secret named {:?}{}", written.value, hint(&written.value, &known));
        Err(self.at(&written.defined, told))
    }

    pub(super) fn targets(&self, allow: &[Spanned<String>]) -> Result<Vec<Target>, Mistake> {
        let target = |written: &Spanned<String>| {
            let parsed = written.value.parse::<Target>();
            parsed.map_err(|error| self.at(&written.defined, error.to_string()))
        };
        allow.iter().map(target).collect()
    }

    pub(super) fn origins(&self, origins: &[Spanned<String>]) -> Result<Vec<url::Origin>, Mistake> {
        let origin = |written: &Spanned<String>| match Url::parse(&written.value) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.path() == "/" => Ok(url.origin()),
            Ok(_) | Err(_) => {
                let shown = places::without_user(&written.value);
                let told = format!("{shown:?} is no origin: write https://host or https://host:port");
                Err(self.at(&written.defined, told))
            }
        };
        origins.iter().map(origin).collect()
    }

    /// Nobody waits at a door for a person: what needs an approval gives handles only.
    pub(super) fn approval(&self, file: &ConnectorFile) -> Result<Approval, Mistake> {
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

    pub(super) fn schema(&self, written: Option<&Spanned<Value>>) -> Result<Option<Schema>, Mistake> {
        let read = |written: &Spanned<Value>| {
            Schema::read(&written.value)
                .map_err(|told| self.at(&written.defined, format!("no schema: {told}")))
        };
        written.map(read).transpose()
    }

    pub(super) fn concurrency(&self, written: Option<&Spanned<usize>>) -> Result<usize, Mistake> {
        match written {
            None => Ok(DEFAULT_CONCURRENCY),
            Some(written) if (1..=MAX_CONCURRENCY).contains(&written.value) => Ok(written.value),
            Some(written) => Err(self.at(&written.defined, format!("must be 1 to {MAX_CONCURRENCY}"))),
        }
    }

    pub(super) fn retry(&self, file: &ConnectorFile) -> Result<RetryPolicy, Mistake> {
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

    pub(super) fn key_header(&self, submit: &SubmitFile) -> Result<Option<HeaderName>, Mistake> {
        let Some(written) = &submit.idempotency_header else {
            return Ok(DEFAULT_KEY_HEADER.parse().ok());
        };
        if written.value.is_empty() {
            return Ok(None);
        }
        let name = HeaderName::from_bytes(written.value.as_bytes());
        name.map(Some).map_err(|_| self.at(&written.defined, "cannot be the name of a header"))
    }

    pub(super) fn keep(&self, submit: &SubmitFile) -> Result<BTreeMap<String, jsone::Template>, Mistake> {
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
}
