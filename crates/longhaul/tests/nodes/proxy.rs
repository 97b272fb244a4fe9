//! A proxy before the database that falls silent when it is told to, and counts what passes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// How long a silent proxy waits before it looks whether it still is.
const SILENCE: Duration = Duration::from_millis(20);

pub struct Proxy {
    /// The same address, through the proxy.
    pub address: String,
    state: Arc<State>,
    _runtime: Runtime,
}

#[derive(Default)]
struct State {
    silent: AtomicBool,
    /// How often a client has sent something.
    asked: AtomicUsize,
}

impl Proxy {
    pub fn before(address: &str) -> Self {
        let runtime = Runtime::new().expect("there is room");
        let (host, rest) = address.split_once("127.0.0.1:").expect("the server is on this machine");
        let (port, rest) = rest.split_once('/').expect("the address names a database");
        let server = format!("127.0.0.1:{port}");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("there is a free port");
        let own = listener.local_addr().expect("it is bound").port();
        let state = Arc::new(State::default());
        let shared = state.clone();
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass_on(client, server.clone(), shared.clone()));
            }
        });
        Self { address: format!("{host}127.0.0.1:{own}/{rest}"), state, _runtime: runtime }
    }

    /// From now on nothing passes: no answer, no end of a connection.
    pub fn cut(&self) {
        self.state.silent.store(true, Ordering::SeqCst);
    }

    /// What waited passes, late.
    pub fn heal(&self) {
        self.state.silent.store(false, Ordering::SeqCst);
    }

    /// How often clients have sent something so far.
    pub fn asked(&self) -> usize {
        self.state.asked.load(Ordering::SeqCst)
    }
}

async fn pass_on(mut client: TcpStream, server: String, state: Arc<State>) {
    state.spoken().await;
    let Ok(mut server) = TcpStream::connect(&server).await else { return };
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        let passed = tokio::select! {
            read = client.read(&mut asked) => match read {
                Ok(read) if read > 0 => {
                    state.asked.fetch_add(1, Ordering::SeqCst);
                    state.spoken().await;
                    server.write_all(&asked[..read]).await
                }
                Ok(_) | Err(_) => return,
            },
            read = server.read(&mut answered) => match read {
                Ok(read) if read > 0 => {
                    state.spoken().await;
                    client.write_all(&answered[..read]).await
                }
                Ok(_) | Err(_) => return,
            },
        };
        if passed.is_err() {
            return;
        }
    }
}

impl State {
    /// Waits while nothing may pass.
    async fn spoken(&self) {
        while self.silent.load(Ordering::SeqCst) {
            tokio::time::sleep(SILENCE).await;
        }
    }
}
