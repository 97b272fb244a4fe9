//! The listener: takes connections in, so many at a time, and gives each client a bounded time for the head of a request.
//!
//! Whoever comes when all connections are taken is told so and sent away at once. A client that is slow or silent loses its
//! connection, the sooner the fuller it is; nobody waits behind it.

use std::sync::Arc;
use std::time::Duration;

use api::ProblemCode;
use api::problem::MEDIA_TYPE;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::respond::RETRY_AFTER_SECONDS;
use crate::http::patient_stream::PatientStream;
use crate::http::slots::ServerLimits;

/// Wait after a connection could not be taken in: most often no file descriptor was left.
const AFTER_FAILURE: Duration = Duration::from_millis(200);
/// Clients that are being told to come back later; more are closed without a word.
const SENT_AWAY: usize = 64;
/// How long one of those may take to read it.
const SENT_AWAY_WITHIN: Duration = Duration::from_secs(1);
/// What one of those may still send.
const SENT_AWAY_BYTES: u64 = 65_536;
/// How long requests may go on once nothing new is taken in.
const FINISHING: Duration = Duration::from_secs(30);

/// Takes connections in until told to close; then waits for those that are left.
pub(crate) async fn listen(
    listener: TcpListener,
    router: Router,
    limits: ServerLimits,
    mut closing: watch::Receiver<bool>,
) {
    let connections = Arc::new(Semaphore::new(limits.connections));
    let sent_away = Arc::new(Semaphore::new(SENT_AWAY));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = closing.wait_for(|closing| *closing) => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!("a connection could not be taken in: {error}");
                tokio::time::sleep(AFTER_FAILURE).await;
                continue;
            }
        };
        match connections.clone().try_acquire_owned() {
            Ok(slot) => {
                let is_crowded = connections.available_permits() < limits.connections / 2;
                let head_within =
                    if is_crowded { limits.head_within_when_crowded } else { limits.head_within };
                // Small answers go out at once; without this option they still do, later.
                let _ = stream.set_nodelay(true);
                let stream = PatientStream::new(stream, limits.write_within);
                tokio::spawn(connection(stream, router.clone(), head_within, closing.clone(), slot));
            }
            Err(_) => {
                if let Ok(slot) = sent_away.clone().try_acquire_owned() {
                    tokio::spawn(send_away(stream, slot));
                }
            }
        }
    }
    drop(listener);
    let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
    if tokio::time::timeout(FINISHING, connections.acquire_many(all)).await.is_err() {
        tracing::warn!("connections did not end in time and are left");
    }
}

/// One connection, request by request.
async fn connection(
    stream: PatientStream,
    router: Router,
    head_within: Duration,
    mut closing: watch::Receiver<bool>,
    _slot: OwnedSemaphorePermit,
) {
    let mut serving = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(head_within)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
    );
    let ended = tokio::select! {
        ended = &mut serving => Some(ended),
        _ = closing.wait_for(|closing| *closing) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection was cut: {error}");
    }
}

/// Tells a client to come back later.
async fn send_away(mut stream: TcpStream, _slot: OwnedSemaphorePermit) {
    let told = async {
        stream.write_all(come_back_later().as_bytes()).await?;
        stream.shutdown().await?;
        // Read to its end: closing on what was not read would take the answer back.
        let rest = &mut (&mut stream).take(SENT_AWAY_BYTES);
        tokio::io::copy(rest, &mut tokio::io::sink()).await
    };
    let _ = tokio::time::timeout(SENT_AWAY_WITHIN, told).await;
}

fn come_back_later() -> String {
    let problem = ProblemCode::Overloaded.because("all connections are taken; come back later");
    let body = serde_json::to_string(&problem).expect("a problem has only string keys");
    let length = body.len();
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: {MEDIA_TYPE}\r\nretry-after: {RETRY_AFTER_SECONDS}\r\n\
         connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}
