//! A proxy before the server that loses answers, or a connection, when it is told to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How the server says that it has committed.
const COMMITTED: &[u8] = b"COMMIT\0";

pub struct Proxy {
    /// The same address, through the proxy.
    pub address: String,
    armed: Arc<AtomicBool>,
    /// Messages, in either direction, until a connection is cut; below 0 after that, and before.
    left: Arc<AtomicI64>,
}

impl Proxy {
    pub async fn before(address: &str) -> Self {
        let mut url = url::Url::parse(address).unwrap();
        let server = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap_or(5_432));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        url.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
        let armed = Arc::new(AtomicBool::new(false));
        let left = Arc::new(AtomicI64::new(-1));
        let proxy = Self { address: url.to_string(), armed: armed.clone(), left: left.clone() };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(pass_on(client, server, armed.clone(), left.clone()));
            }
        });
        proxy
    }

    /// The next commit happens, and its answer does not arrive.
    pub fn lose_the_next_commit(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }

    /// After so many messages more, the next one is lost, and its connection with it. Then everything goes through again.
    pub fn cut_after(&self, messages: i64) {
        self.left.store(messages, Ordering::SeqCst);
    }

    pub fn has_cut(&self) -> bool {
        self.left.load(Ordering::SeqCst) < 0
    }
}

async fn pass_on(mut client: TcpStream, mut server: TcpStream, armed: Arc<AtomicBool>, left: Arc<AtomicI64>) {
    let is_cut = || {
        left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| (left >= 0).then(|| left - 1)) == Ok(0)
    };
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => match read {
                Ok(_) if is_cut() => return,
                Ok(read) if read > 0 => server.write_all(&asked[..read]).await.unwrap_or_default(),
                Ok(_) | Err(_) => return,
            },
            read = server.read(&mut answered) => match read {
                Ok(_) if is_cut() => return,
                Ok(read) if read > 0 => {
                    let said = &answered[..read];
                    let committed = said.windows(COMMITTED.len()).any(|window| window == COMMITTED);
                    if committed && armed.swap(false, Ordering::SeqCst) {
                        return;
                    }
                    if client.write_all(said).await.is_err() {
                        return;
                    }
                }
                Ok(_) | Err(_) => return,
            },
        }
    }
}
