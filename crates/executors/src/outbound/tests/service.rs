//! A service that says what it is told to, byte for byte, and remembers what it heard.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub struct Service {
    pub address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

#[derive(Clone, Copy)]
enum Manner {
    Answer,
    Drip,
    Hang,
}

impl Service {
    pub async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::start(Manner::Answer, move |_| answer.clone()).await
    }

    pub async fn by_path(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self::start(Manner::Answer, move |path| answer(path).into_bytes()).await
    }

    /// One byte now and then, for ever.
    pub async fn dripping() -> Self {
        Self::start(Manner::Drip, |_| b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n".to_vec()).await
    }

    pub async fn hanging() -> Self {
        Self::start(Manner::Hang, |_| Vec::new()).await
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    async fn start(manner: Manner, answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::listening(TcpListener::bind("127.0.0.1:0").await.unwrap(), manner, answer)
    }

    /// The same answer to everybody who comes here.
    pub fn at(listener: TcpListener, answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::listening(listener, Manner::Answer, move |_| answer.clone())
    }

    fn listening(
        listener: TcpListener,
        manner: Manner,
        answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let service = Self {
            address: listener.local_addr().unwrap(),
            heard: Arc::default(),
            connections: Arc::default(),
        };
        let (heard, connections, answer) =
            (service.heard.clone(), service.connections.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                let (heard, answer) = (heard.clone(), answer.clone());
                tokio::spawn(async move {
                    let request = request(&mut stream).await;
                    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                    heard.lock().unwrap().push(request);
                    let _ = stream.write_all(&answer(&path)).await;
                    match manner {
                        Manner::Answer => {
                            let _ = stream.shutdown().await;
                        }
                        Manner::Drip => {
                            while stream.write_all(b"x").await.is_ok() {
                                tokio::time::sleep(Duration::from_millis(50)).await;
                            }
                        }
                        Manner::Hang => std::future::pending().await,
                    }
                });
            }
        });
        service
    }
}

/// A whole answer, after which the connection ends.
pub fn plain(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
}

pub fn bytes(headers: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// One request with its body.
async fn request(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    let mut chunk = [0; 4_096];
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_lowercase().lines().find_map(|line| {
                line.strip_prefix("content-length:").and_then(|length| length.trim().parse::<usize>().ok())
            });
            if body.len() >= length.unwrap_or(0) {
                return text;
            }
        }
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return text,
            Ok(count) => read.extend_from_slice(&chunk[..count]),
        }
    }
}
