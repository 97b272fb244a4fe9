//! What the operator allows although it is not public: an address, a network, or a host by name, each with or without a port.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use url::Host;

/// One allowed target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    place: Place,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Named(String),
    Network(IpNet),
}

/// A text that names no target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no target: write an address, a network such as 10.0.0.0/8, or a host, with :port if only one is meant"
)]
pub struct InvalidTarget(pub String);

impl Target {
    /// Whether the operator meant this address, which the host of a request turned out to be.
    pub(super) fn covers(&self, host: &str, address: IpAddr, port: u16) -> bool {
        if self.port.is_some_and(|allowed| allowed != port) {
            return false;
        }
        match &self.place {
            Place::Named(name) => name.eq_ignore_ascii_case(host),
            Place::Network(network) => network.contains(&address.to_canonical()),
        }
    }

    /// Whether it names exactly one port of one host: the only way to allow the daemon itself.
    pub(super) fn is_exact(&self) -> bool {
        let one_host = match &self.place {
            Place::Named(_) => true,
            Place::Network(network) => network.prefix_len() == network.max_prefix_len(),
        };
        one_host && self.port.is_some()
    }
}

impl FromStr for Target {
    type Err = InvalidTarget;

    fn from_str(text: &str) -> Result<Self, InvalidTarget> {
        let invalid = || InvalidTarget(text.to_owned());
        if text.contains('/') {
            return Ok(Self { place: Place::Network(text.parse().map_err(|_| invalid())?), port: None });
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self { place: Place::one(address), port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            None => (text, None),
            Some((host, port)) => (host, Some(port.parse().map_err(|_| invalid())?)),
        };
        let place = match Host::parse(host).map_err(|_| invalid())? {
            Host::Ipv4(address) => Place::one(address.into()),
            Host::Ipv6(address) => Place::one(address.into()),
            Host::Domain(name) if name.is_empty() || name.contains('*') => return Err(invalid()),
            Host::Domain(name) => Place::Named(name),
        };
        Ok(Self { place, port })
    }
}

impl Place {
    fn one(address: IpAddr) -> Self {
        Self::Network(address.to_canonical().into())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Named(name) => f.write_str(name)?,
            Place::Network(network) => write!(f, "{network}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::Target;

    fn covers(target: &str, host: &str, address: &str, port: u16) -> bool {
        target.parse::<Target>().unwrap().covers(host, address.parse().unwrap(), port)
    }

    #[test]
    fn target_covers_what_it_says_and_nothing_beside_it() {
        assert!(covers("127.0.0.1:9000", "localhost", "127.0.0.1", 9000));
        assert!(covers("127.0.0.1:9000", "x", "::ffff:127.0.0.1", 9000));
        assert!(!covers("127.0.0.1:9000", "localhost", "127.0.0.1", 9001));
        assert!(!covers("127.0.0.1:9000", "localhost", "127.0.0.2", 9000));
        assert!(covers("10.0.0.0/8", "x", "10.255.0.1", 1));
        assert!(!covers("10.0.0.0/8", "x", "11.0.0.0", 1));
        assert!(covers("0.0.0.0/0", "x", "10.0.0.1", 1));
        assert!(!covers("0.0.0.0/0", "x", "::1", 1));
        assert!(covers("fd00::/8", "x", "fd12::1", 1));
        assert!(covers("[::1]:80", "x", "::1", 80));
        assert!(covers("::1", "x", "::1", 80));
        assert!(covers("build.internal:443", "Build.Internal", "10.1.1.1", 443));
        assert!(!covers("build.internal:443", "build.internal", "10.1.1.1", 80));
        assert!(!covers("build.internal:443", "other.internal", "10.1.1.1", 443));
        assert!(covers("build.internal", "build.internal", "10.1.1.1", 80));
    }

    #[test]
    fn text_that_names_no_target_is_refused() {
        for text in
            ["", ":80", "10.0.0.0/33", "10.0.0.0/x", "host:port", "host:99999", "*.internal", "http://x/"]
        {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_one_port_of_one_host_is_exact() {
        let exact = |text: &str| text.parse::<Target>().unwrap().is_exact();
        assert!(exact("127.0.0.1:9000") && exact("build.internal:443"));
        assert!(!exact("127.0.0.1") && !exact("127.0.0.0/8") && !exact("build.internal"));
    }
}
