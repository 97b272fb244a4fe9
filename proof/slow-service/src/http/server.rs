//! Accepting connections and answering on them until the service is stopped.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

use super::answer::{Answer, Response, Then, send};
use super::request::{Request, Unreadable, read};

const MAX_CONNECTIONS: usize = 4096;

/// Answers requests.
pub trait Handler: Send + Sync + 'static {
    /// The answer to one of them.
    fn answer(&self, request: Request) -> impl Future<Output = Answer> + Send;

    /// A client has connected.
    fn connected(&self) {}
}

/// A running server. Dropped or stopped, it closes every connection.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Listens there; port 0 takes a free one.
    pub async fn start<H: Handler>(listen: SocketAddr, handler: Arc<H>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        Ok(Self { address, accepting: tokio::spawn(accept(listener, handler)) })
    }

    /// Where it is reached.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Closes the listener and every connection, and comes back when that is done.
    pub async fn stop(&mut self) {
        self.accepting.abort();
        // Aborted, as asked.
        let _ = (&mut self.accepting).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept<H: Handler>(listener: TcpListener, handler: Arc<H>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    // Dropped with this task, and every connection with it.
    let mut connections = JoinSet::new();
    loop {
        let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((stream, _)) = accepted else { continue };
        handler.connected();
        let handler = handler.clone();
        connections.spawn(async move {
            converse(stream, handler.as_ref()).await;
            drop(place);
        });
    }
}

async fn converse<H: Handler>(mut stream: TcpStream, handler: &H) {
    // Small answers must not wait for an acknowledgement; a failure costs only time.
    let _ = stream.set_nodelay(true);
    let mut buffer = Vec::new();
    loop {
        let request = match read(&mut stream, &mut buffer).await {
            Ok(request) => request,
            Err(Unreadable::Gone) => return,
            Err(Unreadable::Refused(status)) => {
                let refusal = Response::refusal(status, "unreadable_request", "the request cannot be read");
                let _ = stream.write_all(&refusal.with("Connection", "close").bytes()).await;
                return;
            }
        };
        let closes = request.wants_close();
        let answer = handler.answer(request).await;
        match send(&mut stream, answer).await {
            Ok(Then::KeepOpen) if !closes => {}
            Ok(Then::KeepOpen | Then::Close) | Err(_) => return,
        }
    }
}
