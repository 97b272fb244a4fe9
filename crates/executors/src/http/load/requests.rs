//! From a request of the file to one that can be made: its templates are parsed, and what they read is there when it is made.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{HeaderName, Method};
use serde_json::Value;
use serde_saphyr::Spanned;

use super::Loader;
use crate::http::call::{Call, Read};
use crate::http::file::{AskFile, CancelFile, ConnectorFile, ReadFile, SubmitFile};
use crate::http::members::{Members, Stage};
use crate::http::template::{self, REQUEST_NAMES};
use crate::outbound::OutboundLimits;
use config_file::Mistake;

const MAX_TIMEOUT_MS: u32 = 600_000;

/// The parts that every request has.
pub(super) struct Parts<'p> {
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
    pub(super) fn call(&self, parts: Parts<'_>, file: &ConnectorFile) -> Result<Call, Mistake> {
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
}

impl<'p> Parts<'p> {
    pub(super) fn of_submit(submit: &'p SubmitFile, timeout_ms: u32, body_bytes: usize) -> Self {
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

    pub(super) fn of_ask(ask: &'p AskFile, timeout_ms: u32, body_bytes: usize, stage: Stage) -> Self {
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
            stage,
        }
    }

    pub(super) fn of_cancel(cancel: &'p CancelFile, timeout_ms: u32, body_bytes: usize) -> Self {
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
