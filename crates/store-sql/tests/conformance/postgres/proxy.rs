//! A proxy before the server that loses answers when it is told to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How the server says that it has committed.
const COMMITTED: &[u8] = b"COMMIT\0";

pub struct Proxy {
    /// The same address, through the proxy.
    pub address: String,
    armed: Arc<AtomicBool>,
}

impl Proxy {
    pub async fn before(address: &str) -> Self {
        let mut url = url::Url::parse(address).unwrap();
        let server = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap_or(5_432));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        url.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
        let armed = Arc::new(AtomicBool::new(false));
        let proxy = Self { address: url.to_string(), armed: armed.clone() };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(pass_on(client, server, armed.clone()));
            }
        });
        proxy
    }

    /// The next commit happens, and its answer does not arrive.
    pub fn lose_the_next_commit(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }
}

async fn pass_on(mut client: TcpStream, mut server: TcpStream, armed: Arc<AtomicBool>) {
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => match read {
                Ok(read) if read > 0 => server.write_all(&asked[..read]).await.unwrap_or_default(),
                Ok(_) | Err(_) => return,
            },
            read = server.read(&mut answered) => match read {
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
