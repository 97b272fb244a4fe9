//! Every way to write an address of this machine, of the network around it or of a cloud's inside that URLs are known to have, each with
//! its verdict. No connection is made to any of them.

use http::Method;
use url::Url;

use super::service::{Service, plain};
use super::{OutboundLimits, OutboundRequest, allowing};

/// What becomes of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It cannot be read as a URL.
    NoUrl,
    /// It is a URL that is not sent: another scheme, or somebody's name and password in it.
    NotSent,
    /// Its address is not public.
    Refused,
    /// It is a name; whoever answers for it leads to an address that is refused, or nobody does.
    NoSuchPlace,
}

use Verdict::{NoSuchPlace, NoUrl, NotSent, Refused};

/// `PORT` is that of a service that listens on 127.0.0.1.
const SPELLINGS: &[(&str, Verdict)] = &[
    // Loopback, as numbers of every base and in fewer parts.
    ("http://127.0.0.1:PORT/", Refused),
    ("http://127.0.0.2:PORT/", Refused),
    ("http://127.255.255.254:PORT/", Refused),
    ("http://127.1:PORT/", Refused),
    ("http://127.0.1:PORT/", Refused),
    ("http://2130706433:PORT/", Refused),
    ("http://0x7f000001:PORT/", Refused),
    ("http://0X7F000001:PORT/", Refused),
    ("http://0x7f.1:PORT/", Refused),
    ("http://0x7f.0x0.0x0.0x1:PORT/", Refused),
    ("http://0177.0.0.1:PORT/", Refused),
    ("http://0177.0.0.01:PORT/", Refused),
    ("http://00000177.0.0.1:PORT/", Refused),
    ("http://017700000001:PORT/", Refused),
    ("http://0177.1:PORT/", Refused),
    ("http://127.0x0.0.1:PORT/", Refused),
    ("http://0x7f.0.1:PORT/", Refused),
    ("http://127.0.0.1.:PORT/", Refused),
    ("http://127.0.0.0x1:PORT/", Refused),
    ("http://4294967296:PORT/", NoUrl),
    ("http://256.0.0.1:PORT/", NoUrl),
    ("http://127.0.0.1.1:PORT/", NoUrl),
    ("http://127..0.1:PORT/", NoUrl),
    ("http://0x:PORT/", Refused),
    // This host and everything around it.
    ("http://0:PORT/", Refused),
    ("http://0.0.0.0:PORT/", Refused),
    ("http://0.1.2.3:PORT/", Refused),
    ("http://00:PORT/", Refused),
    ("http://0x0:PORT/", Refused),
    ("http://10.0.0.1:PORT/", Refused),
    ("http://012.1:PORT/", Refused),
    ("http://100.64.0.1:PORT/", Refused),
    ("http://172.16.0.1:PORT/", Refused),
    ("http://192.168.0.1:PORT/", Refused),
    ("http://0xc0a80001:PORT/", Refused),
    ("http://192.0.0.192:PORT/", Refused),
    ("http://198.18.0.1:PORT/", Refused),
    ("http://255.255.255.255:PORT/", Refused),
    ("http://224.0.0.1:PORT/", Refused),
    // A cloud's inside.
    ("http://169.254.169.254/latest/meta-data/", Refused),
    ("http://2852039166/latest/meta-data/", Refused),
    ("http://0xa9fea9fe/latest/meta-data/", Refused),
    ("http://0251.0376.0251.0376/latest/meta-data/", Refused),
    ("http://169.254.43518/latest/meta-data/", Refused),
    ("http://168.63.129.16/metadata/", Refused),
    ("http://100.100.100.200/latest/meta-data/", Refused),
    ("http://[fd00:ec2::254]/latest/meta-data/", Refused),
    ("http://[::ffff:169.254.169.254]/latest/meta-data/", Refused),
    // IPv6, and IPv4 in its clothes.
    ("http://[::1]:PORT/", Refused),
    ("http://[0:0:0:0:0:0:0:1]:PORT/", Refused),
    ("http://[0000:0000:0000:0000:0000:0000:0000:0001]:PORT/", Refused),
    ("http://[::]:PORT/", Refused),
    ("http://[::127.0.0.1]:PORT/", Refused),
    ("http://[::7f00:1]:PORT/", Refused),
    ("http://[::ffff:127.0.0.1]:PORT/", Refused),
    ("http://[::ffff:7f00:1]:PORT/", Refused),
    ("http://[::FFFF:7F00:0001]:PORT/", Refused),
    ("http://[0:0:0:0:0:ffff:127.0.0.1]:PORT/", Refused),
    ("http://[::ffff:0:127.0.0.1]:PORT/", Refused),
    ("http://[64:ff9b::127.0.0.1]:PORT/", Refused),
    ("http://[64:ff9b::7f00:1]:PORT/", Refused),
    ("http://[64:ff9b:1::7f00:1]:PORT/", Refused),
    ("http://[2002:7f00:1::]:PORT/", Refused),
    ("http://[2002:a9fe:a9fe::1]/", Refused),
    ("http://[2001:0:7f00:1::]:PORT/", Refused),
    ("http://[2001:db8::1]:PORT/", Refused),
    ("http://[fe80::1]:PORT/", Refused),
    ("http://[fec0::1]:PORT/", Refused),
    ("http://[fc00::1]:PORT/", Refused),
    ("http://[fdff::1]:PORT/", Refused),
    ("http://[ff02::1]:PORT/", Refused),
    ("http://[fe80::1%25lo]:PORT/", NoUrl),
    ("http://[::1%lo]:PORT/", NoUrl),
    ("http://[127.0.0.1]:PORT/", NoUrl),
    ("http://[::1:PORT/", NoUrl),
    ("http://::1:PORT/", NoUrl),
    // Letters, digits and dots of other scripts, escapes, and what is dropped on the way.
    ("http://①②⑦.0.0.1:PORT/", Refused),
    ("http://１２７.０.０.１:PORT/", Refused),
    ("http://127。0。0。1:PORT/", Refused),
    ("http://127．0．0．1:PORT/", Refused),
    ("http://127｡0｡0｡1:PORT/", Refused),
    ("http://%31%32%37.0.0.1:PORT/", Refused),
    ("http://127%2e0%2e0%2e1:PORT/", Refused),
    ("http://127.0.0.1%00.example.com:PORT/", NoUrl),
    ("http://127.0.0.1%20:PORT/", NoUrl),
    ("http://127.0.0\u{ad}.1:PORT/", Refused),
    ("http://127.0.0\u{200b}.1:PORT/", Refused),
    ("ht\ttp://127.0.\n0.1:PORT/", Refused),
    (" http://127.0.0.1:PORT/ ", Refused),
    ("HTTP://127.0.0.1:PORT/", Refused),
    ("http:127.0.0.1:PORT/", Refused),
    ("http:/127.0.0.1:PORT/", Refused),
    ("http:////127.0.0.1:PORT/", Refused),
    ("http:\\\\127.0.0.1:PORT\\", Refused),
    ("https://127.0.0.1:PORT/", Refused),
    // Names of this machine.
    ("http://localhost:PORT/", Refused),
    ("http://LOCALHOST:PORT/", Refused),
    ("http://localhost.:PORT/", NoSuchPlace),
    ("http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:PORT/", Refused),
    ("http://loc%61lhost:PORT/", Refused),
    ("http://press.localhost:PORT/", NoSuchPlace),
    ("http://localhost.localdomain:PORT/", NoSuchPlace),
    ("http://127.0.0.1.example.invalid:PORT/", NoSuchPlace),
    ("http://metadata.google.internal/computeMetadata/v1/", NoSuchPlace),
    ("http://0x7f000001.example.invalid:PORT/", NoSuchPlace),
    // A host that only looks like another.
    ("http://example.com@127.0.0.1:PORT/", NotSent),
    ("http://example.com:80@127.0.0.1:PORT/", NotSent),
    ("http://example.com%40127.0.0.1:PORT/", NoUrl),
    ("http://127.0.0.1:PORT\\@example.com/", Refused),
    ("http://127.0.0.1:PORT#@example.com/", Refused),
    ("http://127.0.0.1:PORT?@example.com/", Refused),
    ("http://127.0.0.1:PORT&@example.com/", NotSent),
    ("http://:@127.0.0.1:PORT/", Refused),
    ("http://127.0.0.1:00PORT/", Refused),
    ("http://127.0.0.1:99999/", NoUrl),
    ("http://127.0.0.1:-1/", NoUrl),
    ("http://:PORT/", NoUrl),
    ("http://", NoUrl),
    // Other ways in.
    ("file:///etc/passwd", NotSent),
    ("ftp://127.0.0.1:PORT/", NotSent),
    ("gopher://127.0.0.1:PORT/_GET%20/", NotSent),
    ("dict://127.0.0.1:PORT/info", NotSent),
    ("ws://127.0.0.1:PORT/", NotSent),
    ("data:text/plain,hello", NotSent),
    ("unix:/var/run/docker.sock", NotSent),
    ("javascript:alert(1)", NotSent),
    ("//127.0.0.1:PORT/", NoUrl),
    ("127.0.0.1:PORT/", NoUrl),
];

const FEWEST: usize = 80;

#[tokio::test]
async fn every_spelling_of_an_inside_address_has_its_verdict_and_no_connection_is_made() {
    assert!(SPELLINGS.len() >= FEWEST);
    let service = Service::answering(plain("200 OK", "", "never")).await;
    let (outbound, limits) = (allowing(&[]), OutboundLimits::default());
    let mut wrong = Vec::new();
    for (spelling, verdict) in SPELLINGS {
        let text = spelling.replace("PORT", &service.address.port().to_string());
        let found = match Url::parse(&text) {
            Err(_) => NoUrl,
            Ok(url) => {
                let sent = outbound.send(OutboundRequest::new(Method::GET, url), &limits).await;
                let error = sent.expect_err(spelling);
                assert!(!error.may_have_arrived(), "{spelling}");
                match error.code() {
                    "refused_address" if *verdict == NoSuchPlace => NoSuchPlace,
                    "refused_address" => Refused,
                    "connect_failed" => NoSuchPlace,
                    "invalid_request" => NotSent,
                    other => panic!("{spelling}: {other}: {error}"),
                }
            }
        };
        if found != *verdict {
            wrong.push((spelling, found));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!((service.heard().len(), service.connections()), (0, 0));
}

/// The other half of the verdict: what is refused above would have been reached, had nobody judged the address.
#[tokio::test]
async fn spellings_of_a_target_that_the_operator_allows_reach_it() {
    let service = Service::answering(plain("200 OK", "", "in")).await;
    let outbound = allowing(&[service.address]);
    for host in ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "017700000001", "①②⑦.0.0.1", "%31%32%37.0.0.1"]
    {
        let url = Url::parse(&format!("http://{host}:{}/", service.address.port())).unwrap();
        let answer = outbound.send(OutboundRequest::new(Method::GET, url), &OutboundLimits::default()).await;
        assert_eq!(answer.unwrap().body, b"in", "{host}");
    }
}
