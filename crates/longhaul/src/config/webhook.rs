//! What the file says of webhooks: where they come in, what they become, and the secret that they are signed with, by reference.

use std::path::Path;

use config_file::Mistake;
use executors::http::{SecretSource, Secrets};
use serde::Deserialize;
use server::{Endpoint, SignedTime, Webhooks};

use super::bounded::{Bounded, Seconds};
use super::{Config, check_circle};

const MAX_BODY_BYTES: u64 = Endpoint::MAX_BODY_BYTES as u64;
/// A day.
const MAX_AGE_SECONDS: u64 = 86_400;
/// What the paths of webhooks may begin with, since it is where they are.
const UNDER: &str = "/hooks/";

/// One webhook of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookConfig {
    name: String,
    /// Under `/hooks/`.
    path: String,
    /// The type of its events.
    event: String,
    secret: SecretSource,
    signature_header: String,
    /// The header with the time that is signed with the body.
    #[serde(default)]
    timestamp_header: Option<String>,
    #[serde(default)]
    max_age_seconds: Option<Seconds<1, MAX_AGE_SECONDS>>,
    #[serde(default)]
    max_body_bytes: Option<Bounded<1, MAX_BODY_BYTES>>,
    /// The header that says which messages are the same.
    #[serde(default)]
    dedupe_header: Option<String>,
    #[serde(default)]
    circle: Option<String>,
}

impl Config {
    /// Sets the webhooks of this file up, and reads their secrets. Files are seen from this one.
    pub(super) fn open_webhooks(&mut self, path: &Path) -> Result<(), Mistake> {
        let beside = path.parent().unwrap_or(Path::new(""));
        let mut opened = Webhooks::default();
        for webhook in &self.webhooks {
            let wrong = |told: String| Mistake::at(path.display(), &webhook.defined, told);
            let endpoint = webhook.value.endpoint(beside).map_err(wrong)?;
            opened.add(endpoint).map_err(wrong)?;
        }
        self.opened_webhooks = opened;
        Ok(())
    }
}

impl WebhookConfig {
    fn endpoint(&self, beside: &Path) -> Result<Endpoint, String> {
        check_circle(self.circle.as_deref())?;
        if self.max_age_seconds.is_some() && self.timestamp_header.is_none() {
            return Err(format!("max_age_seconds of {:?} needs a timestamp_header", self.name));
        }
        let mut secret = self.secret.clone();
        secret.file = secret.file.take().map(|file| beside.join(file));
        let read = Secrets::read([(&self.name, &secret)], &|name| std::env::var(name).ok());
        let secrets = read.map_err(|error| error.to_string())?;
        let key = secrets.value(&self.name).ok_or_else(|| format!("{:?} has no secret", self.name))?;
        let time = self.timestamp_header.clone().map(|header| SignedTime {
            header,
            max_age_seconds: self.max_age_seconds.map_or(Endpoint::DEFAULT_MAX_AGE_SECONDS, Seconds::value),
        });
        Ok(Endpoint {
            name: self.name.clone(),
            path: self.path.strip_prefix(UNDER).unwrap_or(&self.path).to_owned(),
            event: self.event.clone(),
            key: key.as_bytes().to_vec(),
            signature_header: self.signature_header.clone(),
            time,
            max_body_bytes: self.max_body_bytes.map_or(Endpoint::MAX_BODY_BYTES, Bounded::as_usize),
            dedupe_header: self.dedupe_header.clone(),
            circle: self.circle.clone(),
        })
    }
}
