//! The header `Host`, as RFC 9112 asks for it.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::given::{World, world};

async fn answer(world: &World, head: &str) -> String {
    let mut stream = TcpStream::connect(&world.address).await.expect("the server listens");
    stream.write_all(format!("{head}connection: close\r\n\r\n").as_bytes()).await.expect("it takes that");
    let mut heard = String::new();
    stream.read_to_string(&mut heard).await.expect("it answers and closes");
    heard
}

#[tokio::test]
async fn request_without_one_clear_host_is_refused_everywhere() {
    let world = world().await;
    for path in ["/healthz", "/jobs", "/plugins", "/no-such-route"] {
        for hosts in ["", "host: a\r\nhost: a\r\n", "host: a\r\nhost: b\r\n", "host:\r\n", "host: a b\r\n"] {
            let heard = answer(&world, &format!("GET {path} HTTP/1.1\r\n{hosts}")).await;
            assert!(heard.starts_with("HTTP/1.1 400 "), "{path} {hosts:?}: {heard}");
            assert!(heard.contains("application/problem+json"), "{path} {hosts:?}: {heard}");
            assert!(heard.contains(r#""code":"invalid_host""#), "{path} {hosts:?}: {heard}");
        }
    }
}

#[tokio::test]
async fn one_host_is_enough_and_http_1_0_needs_none() {
    let world = world().await;
    for head in [
        "GET /healthz HTTP/1.1\r\nhost: longhaul.example:7420\r\n",
        "GET /healthz HTTP/1.1\r\nhost: [::1]:7420\r\n",
        "GET /healthz HTTP/1.0\r\n",
        "GET /healthz HTTP/1.0\r\nhost: a\r\n",
    ] {
        let heard = answer(&world, head).await;
        assert!(heard.contains(" 200 OK\r\n"), "{head:?}: {heard}");
    }
}
