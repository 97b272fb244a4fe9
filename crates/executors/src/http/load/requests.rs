//! From a request of the file to one that can be made: its templates are parsed, and what they read is there when it is made.

use std::time::Duration;

use http::{HeaderName, Method};
use jsone::Template;
use serde_json::Value;
use serde_saphyr::Spanned;

use super::Loader;
use crate::http::call::Call;
use crate::http::file::{ConnectorFile, ReadFile, Reads, RequestFile};
use crate::http::members::{Members, Stage};
use crate::http::template::{self, REQUEST_NAMES};
use crate::outbound::OutboundLimits;
use config_file::Mistake;

const MAX_TIMEOUT_MS: u32 = 600_000;

/// What a request is like where the file does not say it.
#[derive(Clone)]
pub(super) struct Usual {
    pub(super) method: Method,
    pub(super) timeout_ms: u32,
    pub(super) body_bytes: usize,
    pub(super) stage: Stage,
}

impl Loader<'_> {
    pub(super) fn call(
        &self,
        written: RequestFile<'_>,
        usual: Usual,
        file: &ConnectorFile,
    ) -> Result<Call, Mistake> {
        let members = Members::of(file, usual.stage);
        let request = |written: &Spanned<Value>| {
            let parsed = template::parse(&written.value, &REQUEST_NAMES);
            let checked = parsed.and_then(|parsed| members.check(&parsed).map(|()| parsed));
            checked.map_err(|told| self.at(&written.defined, told))
        };
        let method = match written.method {
            None => usual.method,
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
        for (name, value) in written.headers {
            let wrong = || self.at(&value.defined, format!("{name:?} cannot be the name of a header"));
            let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
            if ["host", "content-length", "transfer-encoding", "connection"].contains(&parsed.as_str()) {
                return Err(self.at(&value.defined, format!("the header {name:?} is made by longhaul")));
            }
            headers.push((parsed, request(value)?));
        }
        let timeout_ms = written.timeout_ms.unwrap_or(usual.timeout_ms);
        if timeout_ms == 0 || timeout_ms > MAX_TIMEOUT_MS {
            let told = format!("timeout_ms is 1 to {MAX_TIMEOUT_MS}, and is {timeout_ms}");
            return Err(self.at(&written.url.defined, told));
        }
        let limits = OutboundLimits {
            deadline: Duration::from_millis(u64::from(timeout_ms)),
            body_bytes: usual.body_bytes,
            header_bytes: file.limits.header_bytes.unwrap_or(OutboundLimits::default().header_bytes),
            redirects: file.limits.redirects.unwrap_or(OutboundLimits::default().redirects),
        };
        Ok(Call {
            method,
            url: request(written.url)?,
            headers,
            body: written.body.map(request).transpose()?,
            accept: written.accept.cloned(),
            gone: vec![404, 410],
            limits,
            read: self.reading(written.read, &file.read)?,
        })
    }

    fn reading(&self, own: &ReadFile, common: &ReadFile) -> Result<Reads<Option<Template>>, Mistake> {
        let either = |own: &Option<Spanned<Value>>, common: &Option<Spanned<Value>>| {
            let Some(written) = own.as_ref().or(common.as_ref()) else { return Ok(None) };
            let parsed = template::parse_expression(&written.value);
            parsed.map(Some).map_err(|told| self.at(&written.defined, told))
        };
        Ok(Reads {
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
}
