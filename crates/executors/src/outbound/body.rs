//! Takes an answer's body to its end or to its limit, whichever is first: once as it comes, once after decompression.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::{OutboundError, OutboundLimits};

/// The whole body, decompressed.
pub(super) async fn read(
    headers: &HeaderMap,
    mut stream: Incoming,
    limits: &OutboundLimits,
) -> Result<Vec<u8>, OutboundError> {
    let limit = limits.body_bytes;
    let too_large = OutboundError::TooLarge { what: "body", limit };
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_large);
    }
    let mut bytes = Vec::new();
    while let Some(frame) = stream.frame().await {
        let broken = |error: hyper::Error| OutboundError::BadAnswer { what: error.to_string() };
        let Ok(chunk) = frame.map_err(broken)?.into_data() else { continue };
        if bytes.len() + chunk.len() > limit {
            return Err(too_large);
        }
        bytes.extend_from_slice(&chunk);
    }
    match headers.get(CONTENT_ENCODING).map(http::HeaderValue::as_bytes) {
        None | Some(b"" | b"identity") => Ok(bytes),
        Some(b"gzip" | b"x-gzip") => decompressed(&bytes, limit),
        Some(_) => {
            Err(OutboundError::BadAnswer { what: "it is encoded in a way that was not asked for".to_owned() })
        }
    }
}

fn decompressed(bytes: &[u8], limit: usize) -> Result<Vec<u8>, OutboundError> {
    let mut decompressed = Vec::new();
    let mut reader = MultiGzDecoder::new(bytes).take(limit as u64 + 1);
    match reader.read_to_end(&mut decompressed) {
        Ok(_) if decompressed.len() > limit => {
            Err(OutboundError::TooLarge { what: "decompressed body", limit })
        }
        Ok(_) => Ok(decompressed),
        Err(error) => Err(OutboundError::BadAnswer { what: format!("it cannot be decompressed: {error}") }),
    }
}
