//! What the operator allows although it is not public: an address, a network, or a host by name, each with or without a port.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

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
    Network(Network),
}

/// Addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Network {
    address: IpAddr,
    length: u8,
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
            Place::Network(network) => network.contains(address.to_canonical()),
        }
    }

    /// Whether it names exactly one port of one host: the only way to allow the daemon itself.
    pub(super) fn is_exact(&self) -> bool {
        let one_host = match &self.place {
            Place::Named(_) => true,
            Place::Network(network) => network.length == width(network.address),
        };
        one_host && self.port.is_some()
    }
}

impl FromStr for Target {
    type Err = InvalidTarget;

    fn from_str(text: &str) -> Result<Self, InvalidTarget> {
        let invalid = || InvalidTarget(text.to_owned());
        if let Some((address, length)) = text.split_once('/') {
            let address = address.parse().map_err(|_| invalid())?;
            let network = Network::new(address, length.parse().map_err(|_| invalid())?);
            return Ok(Self { place: Place::Network(network.ok_or_else(invalid)?), port: None });
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
        let address = address.to_canonical();
        Self::Network(Network { address, length: width(address) })
    }
}

impl Network {
    /// The addresses that share so many leading bits with this one.
    pub(super) fn new(address: IpAddr, length: u8) -> Option<Self> {
        (length <= width(address)).then_some(Self { address, length })
    }

    pub(super) fn contains(&self, address: IpAddr) -> bool {
        if width(address) != width(self.address) {
            return false;
        }
        // Nothing is left of a shift by the whole width: that is the network of everything.
        let differing =
            (bits(address) ^ bits(self.address)).checked_shr(u32::from(width(address) - self.length));
        self.length == 0 || differing == Some(0)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Named(name) => f.write_str(name)?,
            Place::Network(network) => write!(f, "{}/{}", network.address, network.length)?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

const fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(four) => u128::from(four.to_bits()),
        IpAddr::V6(six) => six.to_bits(),
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
