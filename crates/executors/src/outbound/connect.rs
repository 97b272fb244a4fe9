//! Connects, and only where it may: every address is judged here, after the name was looked up and right before it is connected.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::Uri;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::error::{NotConnected, refused};
use super::{OutboundError, OutboundRules, address};

/// Addresses of one name that are tried.
const MAX_ADDRESSES: usize = 8;
/// How long one address is tried.
const CONNECTS_WITHIN: Duration = Duration::from_secs(3);

/// Makes connections for the client, within the rules.
#[derive(Clone)]
pub(super) struct Connector {
    rules: Arc<OutboundRules>,
    trust: Arc<ClientConfig>,
    names: Arc<dyn Names>,
}

/// Whoever knows what addresses a name has. It may say something else the next time, so it is asked once for each connection.
pub(super) trait Names: Send + Sync {
    fn look_up<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>>;
}

/// The names that this machine knows.
pub(super) struct SystemNames;

impl Names for SystemNames {
    fn look_up<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

/// A connection, plain or secured.
pub(super) enum Line {
    Plain(TcpStream),
    Secured(Box<TlsStream<TcpStream>>),
}

impl Connector {
    pub(super) fn new(rules: Arc<OutboundRules>, trust: Arc<ClientConfig>, names: Arc<dyn Names>) -> Self {
        Self { rules, trust, names }
    }

    async fn connect(self, uri: Uri) -> Result<Line, OutboundError> {
        let secured = uri.scheme() == Some(&Scheme::HTTPS);
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(if secured { 443 } else { 80 });
        let stream = self.reach(&host, port).await?;
        if !secured {
            return Ok(Line::Plain(stream));
        }
        let untrusted = |what: String| OutboundError::Tls { what };
        let name = ServerName::try_from(host).map_err(|_| untrusted("the host has no name".to_owned()))?;
        let secured = TlsConnector::from(self.trust).connect(name, stream).await;
        secured.map(|line| Line::Secured(Box::new(line))).map_err(|error| untrusted(error.to_string()))
    }

    /// The first of the host's addresses that may be reached and answers.
    async fn reach(&self, host: &str, port: u16) -> Result<TcpStream, OutboundError> {
        let mut last = OutboundError::ConnectFailed { what: format!("{host} has no address") };
        for address in self.addresses(host, port).await?.into_iter().take(MAX_ADDRESSES) {
            if let Err(why) = self.judge(host, address) {
                last = why;
                continue;
            }
            let failed = |error: io::Error| OutboundError::ConnectFailed { what: error.to_string() };
            match tokio::time::timeout(CONNECTS_WITHIN, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    self.judge_line(host, &stream).map_err(failed)??;
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => last = failed(error),
                Err(_) => last = failed(io::ErrorKind::TimedOut.into()),
            }
        }
        Err(last)
    }

    async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, OutboundError> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let failed = |error: io::Error| OutboundError::ConnectFailed { what: format!("{host}: {error}") };
        self.names.look_up(host, port).await.map_err(failed)
    }

    fn judge(&self, host: &str, target: SocketAddr) -> Result<(), OutboundError> {
        let (ip, port) = (target.ip(), target.port());
        let mut covering = self.rules.allow.iter().filter(|allowed| allowed.covers(host, ip, port));
        if self.is_own(target) {
            let allowed = covering.any(super::Target::is_exact);
            return if allowed { Ok(()) } else { Err(refused(host, ip, "where this daemon listens")) };
        }
        match address::closed(ip) {
            Some(class) if covering.next().is_none() => Err(refused(host, ip, class)),
            Some(_) | None => Ok(()),
        }
    }

    /// Once connected it shows whether the other end is this machine, under whatever address.
    fn judge_line(&self, host: &str, stream: &TcpStream) -> io::Result<Result<(), OutboundError>> {
        let (here, there) = (stream.local_addr()?, stream.peer_addr()?);
        let listens =
            self.rules.own.iter().any(|own| own.ip().is_unspecified() && own.port() == there.port());
        let allowed = |one: &super::Target| one.is_exact() && one.covers(host, there.ip(), there.port());
        if here.ip() == there.ip() && listens && !self.rules.allow.iter().any(allowed) {
            return Ok(Err(refused(host, there.ip(), "where this daemon listens")));
        }
        Ok(Ok(()))
    }

    fn is_own(&self, target: SocketAddr) -> bool {
        let (ip, port) = (target.ip().to_canonical(), target.port());
        self.rules.own.iter().any(|own| {
            let same = own.ip().to_canonical() == ip;
            let everywhere = own.ip().is_unspecified() && (ip.is_loopback() || ip.is_unspecified());
            own.port() == port && (same || everywhere)
        })
    }
}

impl tower_service::Service<Uri> for Connector {
    type Response = TokioIo<Line>;
    type Error = NotConnected;
    type Future = Pin<Box<dyn Future<Output = Result<TokioIo<Line>, NotConnected>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NotConnected>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move { connector.connect(uri).await.map(TokioIo::new).map_err(NotConnected) })
    }
}

impl Connection for Line {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Line {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(line) => Pin::new(line).poll_read(context, buffer),
            Self::Secured(line) => Pin::new(line).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Line {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(line) => Pin::new(line).poll_write(context, bytes),
            Self::Secured(line) => Pin::new(line).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(line) => Pin::new(line).poll_flush(context),
            Self::Secured(line) => Pin::new(line).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(line) => Pin::new(line).poll_shutdown(context),
            Self::Secured(line) => Pin::new(line).poll_shutdown(context),
        }
    }
}
