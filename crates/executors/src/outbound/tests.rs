//! The way out over real sockets of 127.0.0.1: what it refuses, what it cuts off, and what it says about it.

mod rebinding;
mod service;
mod spellings;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderName, HeaderValue, Method};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use url::Url;

use super::{Answer, Outbound, OutboundError, OutboundLimits, OutboundRequest, OutboundRules};
use service::{Service, plain};

fn allowing(addresses: &[SocketAddr]) -> Outbound {
    let allow = addresses.iter().map(|address| address.to_string().parse().unwrap()).collect();
    Outbound::new(OutboundRules { allow, ..OutboundRules::default() }).unwrap()
}

fn get(url: &str) -> OutboundRequest {
    OutboundRequest::new(Method::GET, Url::parse(url).unwrap())
}

fn post(url: &str) -> OutboundRequest {
    let headers =
        [("authorization", "Bearer t0ken"), ("x-api-key", "k3y"), ("content-type", "application/json")];
    let headers =
        headers.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    let body = br#"{"a":1}"#.to_vec();
    OutboundRequest { method: Method::POST, headers: headers.to_vec(), body, ..get(url) }
}

async fn fetch(service: &Service, limits: &OutboundLimits) -> Result<Answer, OutboundError> {
    allowing(&[service.address]).send(get(&service.url("/")), limits).await
}

#[tokio::test]
async fn the_operators_word_opens_one_port_and_no_other() {
    let (open, shut) = (Service::answering(plain("200 OK", "", "in")).await, Service::answering("").await);
    let outbound = allowing(&[open.address]);
    let answer = outbound.send(get(&open.url("/")), &OutboundLimits::default()).await.unwrap();
    assert_eq!((answer.status, answer.body.as_slice()), (200, b"in".as_slice()));
    let error = outbound.send(get(&shut.url("/")), &OutboundLimits::default()).await.unwrap_err();
    assert_eq!(error.code(), "refused_address");
    assert_eq!(shut.connections(), 0);
}

#[tokio::test]
async fn the_daemons_own_address_needs_to_be_named_with_its_port() {
    let service = Service::answering(plain("200 OK", "", "")).await;
    let sends = async |allow: &str, own: SocketAddr| {
        let rules =
            OutboundRules { allow: vec![allow.parse().unwrap()], own: vec![own], ..OutboundRules::default() };
        Outbound::new(rules).unwrap().send(get(&service.url("/")), &OutboundLimits::default()).await
    };
    let everywhere = SocketAddr::new("0.0.0.0".parse().unwrap(), service.address.port());
    for own in [service.address, everywhere] {
        assert_eq!(sends("127.0.0.0/8", own).await.unwrap_err().code(), "refused_address");
        assert!(sends(&service.address.to_string(), own).await.is_ok());
    }
}

#[tokio::test]
async fn a_target_where_nobody_listens_was_not_reached() {
    let gone = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let error = allowing(&[gone]).send(get(&format!("http://{gone}/")), &OutboundLimits::default()).await;
    let error = error.unwrap_err();
    assert_eq!((error.code(), error.may_have_arrived()), ("connect_failed", false));
}

#[tokio::test]
async fn a_redirect_to_an_inside_address_is_refused_and_the_request_counts_as_arrived() {
    let inside = Service::answering(plain("200 OK", "", "secret")).await;
    let location = format!("Location: {}\r\n", inside.url("/latest/meta-data"));
    let outside = Service::answering(plain("303 See Other", &location, "")).await;
    let error = allowing(&[outside.address]).send(post(&outside.url("/")), &OutboundLimits::default()).await;
    let error = error.unwrap_err();
    assert_eq!((error.code(), error.may_have_arrived()), ("refused_address", true));
    assert_eq!(inside.connections(), 0);
}

#[tokio::test]
async fn credentials_and_bodies_stay_with_the_origin_that_they_were_meant_for() {
    let other = Service::answering(plain("200 OK", "", "there")).await;
    for (status, follows) in [("303 See Other", true), ("302 Found", true), ("307 Temporary Redirect", false)]
    {
        let location = format!("Location: {}\r\n", other.url("/x"));
        let first = Service::answering(plain(status, &location, "")).await;
        let outbound = allowing(&[first.address, other.address]);
        let answer = outbound.send(post(&first.url("/")), &OutboundLimits::default()).await;
        assert_eq!(answer.is_ok(), follows, "{status}");
        assert!(first.heard()[0].contains("t0ken") && first.heard()[0].contains(r#"{"a":1}"#));
    }
    assert_eq!(other.heard().len(), 2);
    for heard in other.heard() {
        assert!(heard.starts_with("GET /x "), "{heard}");
        assert!(!heard.contains("t0ken") && !heard.contains("k3y") && !heard.contains(r#""a""#), "{heard}");
    }
}

#[tokio::test]
async fn a_redirect_within_the_origin_keeps_what_it_should() {
    let service = Service::by_path(|path| match path {
        "/first" => plain("307 Temporary Redirect", "Location: /second\r\n", ""),
        _ => plain("200 OK", "", "done"),
    })
    .await;
    let outbound = allowing(&[service.address]);
    let answer = outbound.send(post(&service.url("/first")), &OutboundLimits::default()).await.unwrap();
    assert_eq!((answer.url.path(), answer.body.as_slice()), ("/second", b"done".as_slice()));
    let second = &service.heard()[1];
    assert!(second.starts_with("POST /second ") && second.contains("t0ken") && second.contains(r#"{"a":1}"#));
}

#[tokio::test]
async fn circles_end() {
    let service = Service::answering(plain("302 Found", "Location: /again\r\n", "")).await;
    let error = fetch(&service, &OutboundLimits::default()).await.unwrap_err();
    assert_eq!(error, OutboundError::TooManyRedirects { limit: 3 });
    assert_eq!(service.heard().len(), 4);
}

#[tokio::test]
async fn an_answer_is_cut_off_at_its_limits_announced_or_not() {
    let limits = OutboundLimits { body_bytes: 1_000, ..OutboundLimits::default() };
    let long = "x".repeat(1_001);
    for text in [
        plain("200 OK", "", &long),
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{long}"),
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n{long}\r\n0\r\n\r\n"),
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n".to_owned(),
    ] {
        let service = Service::answering(text).await;
        assert_eq!(fetch(&service, &limits).await.unwrap_err().code(), "too_large");
    }
    let service = Service::answering(plain("200 OK", "", &long[1..])).await;
    assert_eq!(fetch(&service, &limits).await.unwrap().body.len(), 1_000);
}

#[tokio::test]
async fn headers_are_bounded() {
    let limits = OutboundLimits { header_bytes: 1_000, ..OutboundLimits::default() };
    for bytes in [1_001, 1_000_000] {
        let service =
            Service::answering(plain("200 OK", &format!("X-Long: {}\r\n", "x".repeat(bytes)), "")).await;
        assert_eq!(fetch(&service, &limits).await.unwrap_err().code(), "too_large");
    }
    let many = "X-Many: 1\r\n".repeat(1_000);
    let service = Service::answering(plain("200 OK", &many, "")).await;
    assert_eq!(fetch(&service, &limits).await.unwrap_err().code(), "too_large");
}

#[tokio::test]
async fn a_compressed_answer_is_bounded_by_what_it_unpacks_to() {
    let packed = |bytes: usize| {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packer.write_all(&vec![b'0'; bytes]).unwrap();
        packer.finish().unwrap()
    };
    let limits = OutboundLimits { body_bytes: 100_000, ..OutboundLimits::default() };
    for (bytes, outcome) in
        [(100_000, Ok(100_000)), (100_001, Err("too_large")), (50_000_000, Err("too_large"))]
    {
        let service = Service::answering(service::bytes("Content-Encoding: gzip\r\n", &packed(bytes))).await;
        let answer = fetch(&service, &limits).await;
        assert_eq!(answer.map(|answer| answer.body.len()).map_err(|error| error.code()), outcome);
    }
    for header in
        ["Content-Encoding: br\r\n", "Content-Encoding: gzip\r\n", "Content-Encoding: gzip, gzip\r\n"]
    {
        let service = Service::answering(service::bytes(header, b"no such thing")).await;
        assert_eq!(fetch(&service, &limits).await.unwrap_err().code(), "bad_answer");
    }
}

#[tokio::test]
async fn a_drip_is_cut_by_the_deadline() {
    let service = Service::dripping().await;
    let limits = OutboundLimits { deadline: Duration::from_millis(300), ..OutboundLimits::default() };
    let begun = Instant::now();
    let error = fetch(&service, &limits).await.unwrap_err();
    assert_eq!(error, OutboundError::TimedOut { may_have_arrived: true });
    assert!(begun.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn a_deadline_before_the_connection_says_that_nothing_was_sent() {
    // It listens and never takes a secure connection to its end.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = OutboundLimits { deadline: Duration::from_millis(300), ..OutboundLimits::default() };
    let error = allowing(&[address]).send(post(&format!("https://{address}/")), &limits).await.unwrap_err();
    assert_eq!(error, OutboundError::TimedOut { may_have_arrived: false });
}

#[tokio::test]
async fn a_service_that_takes_a_request_and_hangs_or_hangs_up_may_have_it() {
    let limits = OutboundLimits { deadline: Duration::from_millis(300), ..OutboundLimits::default() };
    let hangs = Service::hanging().await;
    let error = allowing(&[hangs.address]).send(post(&hangs.url("/")), &limits).await.unwrap_err();
    assert_eq!(error, OutboundError::TimedOut { may_have_arrived: true });
    for nonsense in
        ["", "SSH-2.0-hello\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "HTTP/1.1 2x0\r\n\r\n"]
    {
        let service = Service::answering(nonsense).await;
        let outbound = allowing(&[service.address]);
        let error = outbound.send(post(&service.url("/")), &OutboundLimits::default()).await.unwrap_err();
        assert_eq!((error.code(), error.may_have_arrived()), ("bad_answer", true), "{nonsense:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_before_anything_is_looked_up() {
    for url in [
        "ftp://example.com/",
        "file:///etc/passwd",
        "http://user:pass@example.com/",
        "http://user@example.com/",
    ] {
        let error = allowing(&[]).send(get(url), &OutboundLimits::default()).await.unwrap_err();
        assert_eq!(error.code(), "invalid_request", "{url}");
    }
    let mut request = get("http://example.com/");
    request.headers.push((http::header::HOST, HeaderValue::from_static("other.example")));
    let error = allowing(&[]).send(request, &OutboundLimits::default()).await.unwrap_err();
    assert_eq!(error.code(), "invalid_request");
}

#[tokio::test]
async fn a_secure_connection_is_verified_and_the_operator_may_add_an_authority() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/outbound/tests");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let chain = vec![CertificateDer::from_pem_file(here.join("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(here.join("server.key.pem")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let acceptor = TlsAcceptor::from(Arc::new(config.with_single_cert(chain, key).unwrap()));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(mut stream) = acceptor.accept(stream).await {
                let answer = plain("200 OK", "", "safe");
                let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, answer.as_bytes()).await;
                let _ = tokio::io::AsyncWriteExt::shutdown(&mut stream).await;
            }
        }
    });
    let with = |ca_file: Option<std::path::PathBuf>| {
        let allow = vec![address.to_string().parse().unwrap()];
        Outbound::new(OutboundRules { allow, ca_file, ..OutboundRules::default() })
    };
    let url = format!("https://localhost:{}/", address.port());
    let stranger = with(None).unwrap().send(get(&url), &OutboundLimits::default()).await.unwrap_err();
    assert_eq!((stranger.code(), stranger.may_have_arrived()), ("tls", false));
    let trusted = with(Some(here.join("authority.pem"))).unwrap();
    assert_eq!(trusted.send(get(&url), &OutboundLimits::default()).await.unwrap().body, b"safe");
    assert_eq!(with(Some(here.join("server.key.pem"))).err().unwrap().code(), "tls");
    assert_eq!(with(Some(here.join("nowhere.pem"))).err().unwrap().code(), "tls");
}
