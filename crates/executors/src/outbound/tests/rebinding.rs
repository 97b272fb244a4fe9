//! A name whose addresses change each time that somebody asks: what is judged is what is connected, so nothing ever arrives inside.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use tokio::net::TcpListener;

use super::super::connect::Names;
use super::super::{Outbound, OutboundLimits, OutboundRules};
use super::service::{Service, plain};
use super::{get, post};

const TRIES: usize = 1_000;
/// Stands for a public address: the operator allows it, and no other.
const OUTSIDE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const INSIDE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A name server with a time to live of 0.
#[derive(Default)]
struct Fickle {
    asked: AtomicUsize,
}

impl Names for Fickle {
    fn look_up<'a>(&'a self, _: &'a str, port: u16) -> BoxFuture<'a, std::io::Result<Vec<SocketAddr>>> {
        let addresses: &[IpAddr] = match self.asked.fetch_add(1, Ordering::SeqCst) % 5 {
            0 => &[OUTSIDE],
            1 => &[INSIDE],
            2 => &[INSIDE, OUTSIDE],
            3 => &[OUTSIDE, INSIDE],
            _ => &[INSIDE, INSIDE],
        };
        Box::pin(std::future::ready(Ok(addresses.iter().map(|ip| SocketAddr::new(*ip, port)).collect())))
    }
}

/// The same port outside and inside.
async fn listeners() -> (TcpListener, TcpListener) {
    loop {
        let outside = TcpListener::bind((OUTSIDE, 0)).await.unwrap();
        let port = outside.local_addr().unwrap().port();
        if let Ok(inside) = TcpListener::bind((INSIDE, port)).await {
            return (outside, inside);
        }
    }
}

#[tokio::test]
async fn a_name_that_changes_its_mind_a_thousand_times_never_leads_inside() {
    let (outside, inside) = listeners().await;
    let port = outside.local_addr().unwrap().port();
    let again = format!("Location: http://fickle.example.com:{port}/again\r\n");
    let outside = Service::at(outside, plain("303 See Other", &again, ""));
    let inside = Service::at(inside, plain("200 OK", "", "secret"));
    let names = Arc::new(Fickle::default());
    let rules = OutboundRules {
        allow: vec![outside.address.to_string().parse().unwrap()],
        ..OutboundRules::default()
    };
    let outbound = Outbound::knowing(rules, names.clone()).unwrap();
    let url = format!("http://fickle.example.com:{port}/");
    for number in 0..TRIES {
        let request = if number.is_multiple_of(2) { get(&url) } else { post(&url) };
        // Each answer from outside sends on to the same name, which then leads inside, sooner or later.
        let error = outbound.send(request, &OutboundLimits::default()).await.unwrap_err();
        assert_eq!(error.code(), "refused_address", "{error}");
    }
    let asked = names.asked.load(Ordering::SeqCst);
    println!("{asked} look-ups, {} requests outside", outside.heard().len());
    assert_eq!(inside.connections(), 0, "something arrived inside");
    // Asked once for each connection and once for each refusal, and never again between the verdict and the connection.
    assert_eq!(asked, outside.connections() + TRIES);
    assert!(outside.connections() > TRIES, "too few led outside first");
}
