//! One request of a connector: its templates, and what becomes of them with what a job brings.

use domain::Timestamp;
use domain::limit::{LimitOwner, LimitValue, NamedLimit};
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Method};
use jsone::Template;
use serde_json::Value;
use url::Url;

use super::file::Reads;
use super::template;
use crate::outbound::{OutboundError, OutboundLimits, OutboundRequest};

/// A request as the file has it.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) url: Template,
    pub(super) headers: Vec<(HeaderName, Template)>,
    pub(super) body: Option<Template>,
    /// The statuses of answers that are read; every 2xx if absent.
    pub(super) accept: Option<Vec<u16>>,
    /// The statuses that mean that the service does not know the work.
    pub(super) gone: Vec<u16>,
    pub(super) limits: OutboundLimits,
    pub(super) read: Reads<Option<Template>>,
}

impl Call {
    /// Why there was no answer; a limit of ours by its name, its value and the key that changes it.
    pub(super) fn told(&self, what: &str, error: &OutboundError) -> String {
        match self.reached(what, error) {
            Some((limit, number)) => format!("{error}: {} = {number}; change {}", limit.name, limit.key),
            None => error.to_string(),
        }
    }

    /// The limit of ours that cut the answer off, if one did, and its number.
    pub(super) fn reached(&self, what: &str, error: &OutboundError) -> Option<(NamedLimit, u64)> {
        let limits = &self.limits;
        let (name, number, value, else_of): (String, u64, fn(u64) -> LimitValue, &str) = match error {
            OutboundError::TimedOut { .. } => {
                let usual =
                    if what == "submit" { "policy.invoke_timeout_ms" } else { "policy.status_timeout_ms" };
                let millis = u64::try_from(limits.deadline.as_millis()).unwrap_or(u64::MAX);
                (format!("{what}.timeout_ms"), millis, LimitValue::Millis, usual)
            }
            OutboundError::TooLarge { what: "headers", .. } => {
                ("limits.header_bytes".to_owned(), limits.header_bytes as u64, LimitValue::Bytes, "")
            }
            OutboundError::TooLarge { .. } if what == "result" => {
                ("limits.result_bytes".to_owned(), limits.body_bytes as u64, LimitValue::Bytes, "")
            }
            OutboundError::TooLarge { .. } => {
                let usual = "policy.max_response_bytes";
                ("limits.response_bytes".to_owned(), limits.body_bytes as u64, LimitValue::Bytes, usual)
            }
            OutboundError::TooManyRedirects { limit } => {
                ("limits.redirects".to_owned(), u64::from(*limit), LimitValue::Count, "")
            }
            OutboundError::InvalidRequest { .. }
            | OutboundError::RefusedAddress { .. }
            | OutboundError::ConnectFailed { .. }
            | OutboundError::Tls { .. }
            | OutboundError::BadAnswer { .. } => return None,
        };
        let or_else = if else_of.is_empty() { String::new() } else { format!(", or {else_of} there") };
        let key = format!("{name} in the connector file{or_else}");
        Some((
            NamedLimit { name: name.into(), value: value(number), owner: LimitOwner::Connector, key },
            number,
        ))
    }

    /// Whether any of its templates reads this name.
    pub(super) fn reads(&self, name: &str) -> bool {
        self.templates().any(|template| template.reads().contains(name) || template.reads_any_name())
    }

    /// Whether any of its templates takes this from that name, or passes the name on whole.
    pub(super) fn takes(&self, name: &str, member: &str) -> bool {
        self.templates().any(|template| {
            let mut members = template.reads_members().iter().filter(|(of, _)| of == name).peekable();
            let whole = template.reads().contains(name) && members.peek().is_none();
            whole || members.any(|(_, taken)| taken == member)
        })
    }

    /// Whether any of its templates takes this from that name.
    pub(super) fn takes_member(&self, name: &str, member: &str) -> bool {
        let is_taken = |template: &Template| {
            template.reads_members().iter().any(|(of, taken)| of == name && taken == member)
        };
        self.templates().any(is_taken)
    }

    fn templates(&self) -> impl Iterator<Item = &Template> {
        self.headers.iter().map(|(_, value)| value).chain(&self.body).chain([&self.url])
    }

    /// Whether an answer with this status is read.
    pub(super) fn accepts(&self, status: u16) -> bool {
        self.accept.as_ref().map_or((200..300).contains(&status), |accept| accept.contains(&status))
    }

    /// The request. A URL without a host is taken from `base`, the one that `submit` went to.
    pub(super) fn request(
        &self,
        context: &Value,
        base: Option<&Url>,
        now: Timestamp,
    ) -> Result<OutboundRequest, String> {
        let mut request = OutboundRequest::new(self.method.clone(), self.place(context, base, now)?);
        for (name, value) in &self.headers {
            let Some(text) = plain_text(&template::render(value, context, now)?) else { continue };
            let mut value =
                HeaderValue::from_str(&text).map_err(|_| format!("the header {name} cannot be sent"))?;
            value.set_sensitive(true);
            request.headers.push((name.clone(), value));
        }
        if let Some(body) = &self.body {
            let body = template::render(body, context, now)?;
            request.body = in_bytes(&body, &mut request.headers);
        }
        Ok(request)
    }

    /// Where the request goes.
    pub(super) fn place(&self, context: &Value, base: Option<&Url>, now: Timestamp) -> Result<Url, String> {
        let Value::String(url) = template::render(&self.url, context, now)? else {
            return Err("the URL is no text".to_owned());
        };
        if url.trim().is_empty() {
            // Joined to the URL of `submit`, it would ask there.
            return Err("the URL is empty: the answer to submit had nothing of what it is made of".to_owned());
        }
        let url = base.map_or_else(|| Url::parse(&url), |base| base.join(&url));
        url.map_err(|error| format!("the URL cannot be read: {error}"))
    }
}

/// JSON, unless the headers say that a text is something else.
fn in_bytes(body: &Value, headers: &mut Vec<(HeaderName, HeaderValue)>) -> Vec<u8> {
    let told = headers.iter().find(|(name, _)| *name == CONTENT_TYPE).map(|(_, value)| value.as_bytes());
    let is_json = told.is_none_or(|told| told.windows(4).any(|word| word == b"json"));
    if told.is_none() {
        headers.push((CONTENT_TYPE, HeaderValue::from_static("application/json")));
    }
    match body.as_str() {
        Some(text) if !is_json => text.as_bytes().to_vec(),
        Some(_) | None => body.to_string().into_bytes(),
    }
}

/// A text, number or truth as text; nothing otherwise.
pub(super) fn plain_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
