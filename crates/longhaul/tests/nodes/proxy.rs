//! A proxy before the database that falls silent when it is told to, counts what passes, and may keep every hint to itself.

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

/// What of the server's answers passes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Passing {
    All,
    /// Hints between nodes are lost, every one.
    AllButHints,
}

/// How the server's protocol marks what was not asked for: a notification.
const NOTIFICATION: u8 = b'A';
/// The mark of a message and its length, which counts itself but not the mark.
const HEAD_BYTES: usize = 5;

#[derive(Default)]
struct State {
    silent: AtomicBool,
    /// How often a client has sent something.
    asked: AtomicUsize,
    lost_hints: AtomicUsize,
}

impl Proxy {
    pub fn before(address: &str) -> Self {
        Self::start(address, Passing::All)
    }

    /// Whoever is behind it never hears that another node has written something.
    pub fn without_hints_before(address: &str) -> Self {
        Self::start(address, Passing::AllButHints)
    }

    fn start(address: &str, passing: Passing) -> Self {
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
                tokio::spawn(pass_on(client, server.clone(), shared.clone(), passing));
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

    /// How many hints were lost so far.
    pub fn lost_hints(&self) -> usize {
        self.state.lost_hints.load(Ordering::SeqCst)
    }

    /// How often clients have sent something so far.
    pub fn asked(&self) -> usize {
        self.state.asked.load(Ordering::SeqCst)
    }
}

async fn pass_on(mut client: TcpStream, server: String, state: Arc<State>, passing: Passing) {
    state.spoken().await;
    let Ok(mut server) = TcpStream::connect(&server).await else { return };
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    let mut unfinished = Vec::new();
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
                    match passing {
                        Passing::All => client.write_all(&answered[..read]).await,
                        Passing::AllButHints => {
                            unfinished.extend_from_slice(&answered[..read]);
                            client.write_all(&state.without_hints(&mut unfinished)).await
                        }
                    }
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

    /// The messages that are whole, but for the hints; what is left is the beginning of the next.
    fn without_hints(&self, messages: &mut Vec<u8>) -> Vec<u8> {
        let mut passed = Vec::new();
        while let Some(&[mark, a, b, c, d]) = messages.first_chunk::<HEAD_BYTES>() {
            let length = 1 + usize::try_from(u32::from_be_bytes([a, b, c, d])).expect("it fits");
            if messages.len() < length {
                break;
            }
            let message = messages.drain(..length);
            if mark == NOTIFICATION {
                self.lost_hints.fetch_add(1, Ordering::SeqCst);
            } else {
                passed.extend(message);
            }
        }
        passed
    }
}
