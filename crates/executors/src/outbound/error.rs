//! Why there is no answer, and whether the request may have arrived all the same: that decides what the caller may do next.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    /// The request itself cannot be sent.
    #[error("the request cannot be sent: {what}")]
    InvalidRequest {
        /// Why.
        what: String,
    },
    /// The target is none that requests may go to.
    #[error("{host} is not reached: {why}; the operator may list it under allow")]
    RefusedAddress {
        /// The host as it was asked for.
        host: String,
        /// Which address it is, and why that is refused.
        why: String,
        /// Whether only a redirect led there: the request itself had arrived.
        by_redirect: bool,
    },
    /// Nobody was reached.
    #[error("could not connect: {what}")]
    ConnectFailed {
        /// What the system said.
        what: String,
    },
    /// Time ran out.
    #[error("there was no whole answer in time")]
    TimedOut {
        /// Whether any of the request was on its way.
        may_have_arrived: bool,
    },
    /// The answer is larger than allowed.
    #[error("the answer has more than {limit} bytes of {what}")]
    TooLarge {
        /// Of what.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The answer sends around in circles.
    #[error("more than {limit} redirects")]
    TooManyRedirects {
        /// The limit.
        limit: u8,
    },
    /// The other end could not prove who it is.
    #[error("no secure connection: {what}")]
    Tls {
        /// What failed.
        what: String,
    },
    /// What came is no answer of HTTP, or none that may be followed.
    #[error("the answer cannot be used: {what}")]
    BadAnswer {
        /// Why.
        what: String,
    },
}

impl OutboundError {
    /// A stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InvalidRequest { .. } => "invalid_request",
            Self::RefusedAddress { .. } => "refused_address",
            Self::ConnectFailed { .. } => "connect_failed",
            Self::TimedOut { .. } => "timed_out",
            Self::TooLarge { .. } => "too_large",
            Self::TooManyRedirects { .. } => "too_many_redirects",
            Self::Tls { .. } => "tls",
            Self::BadAnswer { .. } => "bad_answer",
        }
    }

    /// Whether the service may have taken the request and acted on it.
    pub const fn may_have_arrived(&self) -> bool {
        match self {
            Self::InvalidRequest { .. } | Self::ConnectFailed { .. } | Self::Tls { .. } => false,
            Self::RefusedAddress { by_redirect, .. } => *by_redirect,
            Self::TimedOut { may_have_arrived } => *may_have_arrived,
            // Something came back, so something had arrived.
            Self::TooLarge { .. } | Self::TooManyRedirects { .. } | Self::BadAnswer { .. } => true,
        }
    }

    /// The same, met where an answer had sent on to: the first request had arrived.
    pub(super) fn after_redirect(self) -> Self {
        match self {
            Self::RefusedAddress { host, why, .. } => Self::RefusedAddress { host, why, by_redirect: true },
            Self::InvalidRequest { .. } | Self::ConnectFailed { .. } | Self::Tls { .. } => {
                Self::BadAnswer { what: format!("its redirect failed: {self}") }
            }
            Self::TimedOut { .. }
            | Self::TooLarge { .. }
            | Self::TooManyRedirects { .. }
            | Self::BadAnswer { .. } => self,
        }
    }
}

/// Whether any of a request was on its way.
#[derive(Clone, Debug)]
pub(super) struct Sent(Arc<AtomicBool>);

impl Sent {
    pub(super) fn not_yet() -> Self {
        Self(Arc::new(AtomicBool::new(false)))
    }

    pub(super) fn mark(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(super) fn may_have_arrived(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Refused by our own connector: how it comes back out of the client.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct NotConnected(pub(super) OutboundError);

/// What the client says. Its texts hold no URL and nothing of the request.
pub(super) fn of_client(error: &hyper_util::client::legacy::Error, sent: &Sent) -> OutboundError {
    if let Some(NotConnected(why)) = cause::<NotConnected>(error) {
        return why.clone();
    }
    let told = cause::<hyper::Error>(error);
    if told.is_some_and(hyper::Error::is_parse_too_large) {
        return OutboundError::TooLarge { what: "headers", limit: super::MAX_HEAD_BYTES };
    }
    let what = told.map_or_else(|| "the connection failed".to_owned(), ToString::to_string);
    if sent.may_have_arrived() {
        OutboundError::BadAnswer { what }
    } else {
        OutboundError::ConnectFailed { what }
    }
}

/// The first of the causes that is of this type.
fn cause<'e, T: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// For people: this address, and what it is.
pub(super) fn refused(host: &str, address: IpAddr, class: &str) -> OutboundError {
    OutboundError::RefusedAddress {
        host: host.to_owned(),
        why: format!("{address} is {class}"),
        by_redirect: false,
    }
}
