//! The one way out: every HTTP request that leaves the daemon goes through [`Outbound::send`].
//!
//! Addresses are checked where the connection is made (`outbound/connect.rs`), so that no name, redirect or spelling gets around it.
//! Nothing of the environment is a proxy. Redirects are followed here, one by one. Every answer is bounded in headers, bytes, bytes
//! after decompression and time, whatever the service does. It knows nothing of jobs, and writes no log line.

mod address;
mod allow;
mod body;
mod connect;
mod error;
mod redirect;
mod request;
mod sent;
mod tls;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT_ENCODING, HOST, USER_AGENT};
use http::{HeaderValue, Request};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use url::{Host, Url};

pub use allow::{InvalidTarget, Target};
pub use error::OutboundError;
pub use request::{Answer, OutboundLimits, OutboundRequest};

use connect::{Connector, Names, SystemNames};
use error::Sent;
use sent::MarkedBody;

/// Connections kept open to one origin while nothing goes over them.
const IDLE_PER_ORIGIN: usize = 8;
const IDLE_FOR: Duration = Duration::from_secs(30);
/// What one answer's head may take, whatever the caller allows.
const MAX_HEAD_BYTES: usize = 65_536;
const MAX_HEADERS: usize = 128;
const OUR_NAME: &str = concat!("longhaul/", env!("CARGO_PKG_VERSION"));

/// Where requests may go, and whom they trust.
#[derive(Clone, Debug, Default)]
pub struct OutboundRules {
    /// Targets that the operator allows although they are not public.
    pub allow: Vec<Target>,
    /// Where this daemon itself listens: refused unless allowed by name and port.
    pub own: Vec<SocketAddr>,
    /// Certificates trusted besides those of the system, in PEM.
    pub ca_file: Option<PathBuf>,
}

/// The one way out.
#[derive(Clone)]
pub struct Outbound {
    client: Client<Connector, MarkedBody>,
}

impl Outbound {
    /// With these rules. Fails only when a certificate file cannot be used.
    pub fn new(rules: OutboundRules) -> Result<Self, OutboundError> {
        Self::knowing(rules, Arc::new(SystemNames))
    }

    fn knowing(rules: OutboundRules, names: Arc<dyn Names>) -> Result<Self, OutboundError> {
        let trust = tls::trust(rules.ca_file.as_deref())?;
        let connector = Connector::new(Arc::new(rules), trust, names);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_FOR)
            .pool_max_idle_per_host(IDLE_PER_ORIGIN)
            .http1_max_buf_size(MAX_HEAD_BYTES)
            .http1_max_headers(MAX_HEADERS)
            .build(connector);
        Ok(Self { client })
    }

    /// Sends a request and takes its whole answer, within the limits.
    pub async fn send(
        &self,
        request: OutboundRequest,
        limits: &OutboundLimits,
    ) -> Result<Answer, OutboundError> {
        // The first request is the one whose arrival matters; the mark survives the end of the future below.
        let sent = Sent::not_yet();
        let exchange = self.follow(request, limits, &sent);
        match tokio::time::timeout(limits.deadline, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(OutboundError::TimedOut { may_have_arrived: sent.may_have_arrived() }),
        }
    }

    async fn follow(
        &self,
        mut request: OutboundRequest,
        limits: &OutboundLimits,
        sent: &Sent,
    ) -> Result<Answer, OutboundError> {
        for hop in 0..=limits.redirects {
            let answered = self.exchange(&request, limits, sent).await;
            let answer = answered.map_err(|error| if hop == 0 { error } else { error.after_redirect() })?;
            match redirect::next(&request, &answer)? {
                None => return Ok(answer),
                Some(next) => request = next,
            }
        }
        Err(OutboundError::TooManyRedirects { limit: limits.redirects })
    }

    async fn exchange(
        &self,
        request: &OutboundRequest,
        limits: &OutboundLimits,
        sent: &Sent,
    ) -> Result<Answer, OutboundError> {
        request.check()?;
        let answered = self.client.request(built(request, sent)?).await;
        let answer = answered.map_err(|error| error::of_client(&error, sent))?;
        let (head, stream) = answer.into_parts();
        let headers = request::headers_of(&head.headers, limits)?;
        let body = body::read(&head.headers, stream, limits).await?;
        Ok(Answer { status: head.status.as_u16(), url: request.url.clone(), headers, body })
    }
}

/// What the host of a URL is, if it is written as an address that is not public and nobody allows it. A name is looked up only when
/// it is connected; of those, `localhost` alone is known before.
pub(crate) fn closed_to(url: &Url, allow: &[Target]) -> Option<&'static str> {
    let (host, port) = (url.host()?, url.port_or_known_default()?);
    let addresses: Vec<IpAddr> = match &host {
        Host::Ipv4(address) => vec![(*address).into()],
        Host::Ipv6(address) => vec![(*address).into()],
        Host::Domain("localhost") => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
        Host::Domain(_) => return None,
    };
    let name = host.to_string();
    let allowed = |ip: &IpAddr| allow.iter().any(|target| target.covers(&name, *ip, port));
    if addresses.iter().any(allowed) {
        return None;
    }
    addresses.first().and_then(|ip| address::closed(*ip))
}

fn built(request: &OutboundRequest, sent: &Sent) -> Result<Request<MarkedBody>, OutboundError> {
    let invalid = |what: &str| OutboundError::InvalidRequest { what: what.to_owned() };
    let body = MarkedBody::new(&request.method, request.body.clone(), sent.clone());
    let mut built = Request::builder().method(request.method.clone()).uri(request.url.as_str());
    if let Some(headers) = built.headers_mut() {
        headers.insert(USER_AGENT, HeaderValue::from_static(OUR_NAME));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        for (name, value) in &request.headers {
            // A request that names another host than it goes to would be for someone else.
            if name == HOST {
                return Err(invalid("the host header is made from the URL"));
            }
            headers.insert(name.clone(), value.clone());
        }
    }
    built.body(body).map_err(|_| invalid("its URL or method cannot be sent"))
}

#[cfg(test)]
mod tests;
