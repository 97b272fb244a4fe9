//! The body of a request that knows whether it was asked for: until then nothing was on its way.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Method;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Bytes;

use super::Sent;

/// A body that marks the moment in which the connection asks for it.
pub(super) struct MarkedBody {
    bytes: Bytes,
    over: bool,
    sent: Sent,
}

impl MarkedBody {
    /// A request without a body is marked here and now, but for those that change something: their empty body is asked for.
    pub(super) fn new(method: &Method, bytes: Vec<u8>, sent: Sent) -> Self {
        let over = bytes.is_empty() && (method == Method::GET || method == Method::HEAD);
        if over {
            sent.mark();
        }
        Self { bytes: bytes.into(), over, sent }
    }
}

impl Body for MarkedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.sent.mark();
        self.over = true;
        let bytes = std::mem::take(&mut self.bytes);
        Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.over
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}
