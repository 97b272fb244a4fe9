//! The header `Host`: a request of HTTP/1.1 has exactly one, and it names a host (RFC 9112, section 3.2).
//!
//! Whoever stands in front of us may route by another of two hosts than whoever reads the log: such a request is refused. HTTP/1.0 knows
//! no such header.

use api::ProblemCode;
use axum::extract::Request;
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Version};
use axum::middleware::Next;
use axum::response::Response;

use super::respond::refuse;
use crate::operations::Dialect;

/// Lets a request through whose host is clear.
pub(crate) async fn check(request: Request, next: Next) -> Response {
    match mistake(request.version(), request.headers()) {
        None => next.run(request).await,
        Some(told) => refuse(&ProblemCode::InvalidHost.because(told), Dialect::Own),
    }
}

fn mistake(version: Version, headers: &HeaderMap) -> Option<&'static str> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if version < Version::HTTP_11 => None,
        (None, _) => Some("send the header `Host`: HTTP/1.1 requires it"),
        (Some(_), Some(_)) => Some("send the header `Host` once; it came more than once"),
        (Some(host), None) => {
            let is_host =
                host.to_str().is_ok_and(|host| !host.contains('@') && host.parse::<Authority>().is_ok());
            if is_host { None } else { Some("the header `Host` must be a host, with or without a port") }
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn exactly_one_host_is_required_since_http_1_1() {
        let (old, new) = (Version::HTTP_10, Version::HTTP_11);
        for (version, hosts, is_right) in [
            (new, &["longhaul:7420"][..], true),
            (new, &["[::1]:7420"], true),
            (new, &["127.0.0.1"], true),
            (new, &[], false),
            (new, &["a", "a"], false),
            (new, &["a", "b"], false),
            (new, &[""], false),
            (new, &["a b"], false),
            (new, &["user@a"], false),
            (new, &["a/b"], false),
            (new, &["\u{e9}"], false),
            (old, &[], true),
            (old, &["a"], true),
            (old, &["a", "b"], false),
        ] {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(HOST, HeaderValue::from_bytes(host.as_bytes()).unwrap());
            }
            assert_eq!(mistake(version, &headers).is_none(), is_right, "{version:?} {hosts:?}");
        }
    }
}
