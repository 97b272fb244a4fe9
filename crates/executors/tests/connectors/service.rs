//! A service on a socket of 127.0.0.1 that answers as a function says, and remembers what it was asked.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub struct Service {
    pub address: SocketAddr,
    asked: watch::Receiver<Vec<Asked>>,
}

#[derive(Clone, Debug)]
pub struct Asked {
    pub method: String,
    pub path: String,
    pub head: String,
    pub body: String,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

pub enum Reply {
    Plain {
        status: u16,
        headers: Vec<(String, String)>,
        body: String,
    },
    /// A byte now and then, for ever.
    Drip,
    /// Never a word.
    Hang,
}

pub fn reply(status: u16, body: impl ToString) -> Reply {
    Reply::Plain { status, headers: Vec::new(), body: body.to_string() }
}

impl Reply {
    pub fn with(self, name: &str, value: impl ToString) -> Self {
        match self {
            Self::Plain { status, mut headers, body } => {
                headers.push((name.to_owned(), value.to_string()));
                Self::Plain { status, headers, body }
            }
            other @ (Self::Drip | Self::Hang) => other,
        }
    }
}

impl Service {
    /// Runs on a thread of its own: it outlives whatever process of ours talks to it.
    pub fn start(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), answer)
    }

    /// An address of this machine where nobody listens, and nobody else will: it is none that others choose from.
    pub fn no_address() -> SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.77.9:0").unwrap();
        listener.local_addr().unwrap()
    }

    pub fn start_at(at: SocketAddr, answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let (told, asked) = watch::channel(Vec::new());
        let (bound, address) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(serve(at, Arc::new(answer), told, bound));
        });
        Self { address: address.recv().unwrap(), asked }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.borrow().clone()
    }

    /// The requests with this method and path.
    pub fn asked_for(&self, method: &str, path: &str) -> Vec<Asked> {
        let mut asked = self.asked();
        asked.retain(|one| one.method == method && one.path == path);
        asked
    }

    pub async fn until_asked(&self, times: usize) {
        self.asked.clone().wait_for(|asked| asked.len() >= times).await.unwrap();
    }
}

async fn serve(
    at: SocketAddr,
    answer: Arc<dyn Fn(&Asked) -> Reply + Send + Sync>,
    told: watch::Sender<Vec<Asked>>,
    bound: std::sync::mpsc::Sender<SocketAddr>,
) {
    let listener = TcpListener::bind(at).await.unwrap();
    bound.send(listener.local_addr().unwrap()).unwrap();
    let told = Arc::new(Mutex::new(told));
    while let Ok((mut stream, _)) = listener.accept().await {
        let (answer, told) = (answer.clone(), told.clone());
        tokio::spawn(async move {
            let Some(asked) = heard(&mut stream).await else { return };
            let reply = answer(&asked);
            told.lock().unwrap().send_modify(|all| all.push(asked));
            say(&mut stream, reply).await;
        });
    }
}

async fn say(stream: &mut TcpStream, reply: Reply) {
    match reply {
        Reply::Plain { status, headers, body } => {
            let headers: Vec<_> =
                headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let headers = headers.concat();
            let text = format!(
                "HTTP/1.1 {status} Said\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(text.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
        Reply::Drip => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n").await;
            while stream.write_all(b" ").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Reply::Hang => std::future::pending().await,
    }
}

async fn heard(stream: &mut TcpStream) -> Option<Asked> {
    let mut read = Vec::new();
    let mut chunk = [0; 4_096];
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let mut first = head.split(' ');
            let asked = Asked {
                method: first.next()?.to_owned(),
                path: first.next()?.to_owned(),
                head: head.to_owned(),
                body: body.to_owned(),
            };
            let length = asked.header("content-length").map_or(0, |length| length.parse().unwrap());
            if body.len() >= length {
                return Some(asked);
            }
        }
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => read.extend_from_slice(&chunk[..count]),
        }
    }
}
