//! Which addresses are public: everything else is somebody's inside, and refused.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// IPv4 networks that are not public, and what they are.
const CLOSED_V4: [(Ipv4Addr, u8, &str); 16] = [
    (Ipv4Addr::UNSPECIFIED, 8, "this network"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "private"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "shared by a carrier"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "loopback"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "private"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "reserved"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "for documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "a relay"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "private"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "for benchmarks"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "for documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "for documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved"),
    (Ipv4Addr::new(168, 63, 129, 16), 32, "a cloud's own"),
];

/// IPv6 networks within the global unicast range that are not public, and what they are.
const CLOSED_V6: [(Ipv6Addr, u8, &str); 6] = [
    // Teredo, benchmarks, ORCHID and what else is carved out of 2001::/23; Teredo holds an IPv4 address.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "reserved, or holds an IPv4 address"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "for documentation"),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "an IPv4 address in other clothes"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "for documentation"),
    (Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 0), 16, "no longer in use"),
    (Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48, "a sink"),
];

/// All that is given out for unicast: `2000::/3`.
const GLOBAL_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// What an address is, if it is not public.
pub(super) fn closed(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(_) => {
            CLOSED_V4.iter().find(|(network, length, _)| within(*network, *length, address)).map(|row| row.2)
        }
        IpAddr::V6(six) => {
            if six.to_ipv4_mapped().is_some() || six.octets()[..12] == NAT64 {
                return Some("an IPv4 address in other clothes");
            }
            // Loopback, link-local, unique local, multicast, local NAT64 and whatever comes: not within it.
            if !within(GLOBAL_V6.0, GLOBAL_V6.1, address) {
                return Some("not a public unicast address");
            }
            CLOSED_V6.iter().find(|(network, length, _)| within(*network, *length, address)).map(|row| row.2)
        }
    }
}

/// `64:ff9b::/96`, which ends in an IPv4 address.
const NAT64: [u8; 12] = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0];

fn within(network: impl Into<IpAddr>, length: u8, address: IpAddr) -> bool {
    IpNet::new(network.into(), length).is_ok_and(|network| network.contains(&address))
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::closed;

    #[test]
    fn every_class_of_inside_addresses_is_closed_at_its_first_and_last() {
        for (first, last) in [
            ("0.0.0.0", "0.255.255.255"),
            ("10.0.0.0", "10.255.255.255"),
            ("100.64.0.0", "100.127.255.255"),
            ("127.0.0.1", "127.255.255.255"),
            ("169.254.0.0", "169.254.169.254"),
            ("172.16.0.0", "172.31.255.255"),
            ("192.0.0.0", "192.0.0.255"),
            ("192.168.0.0", "192.168.255.255"),
            ("198.18.0.0", "198.19.255.255"),
            ("224.0.0.1", "239.255.255.255"),
            ("240.0.0.0", "255.255.255.255"),
            ("fc00::1", "fdff:ffff::1"),
            ("fe80::1", "febf::1"),
        ] {
            for address in [first, last] {
                assert!(closed(address.parse().unwrap()).is_some(), "{address}");
            }
        }
        for address in [
            "168.63.129.16",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::808:808",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:808:808::1",
            "2001::1",
            "2001:0:808:808::",
            "2001:db8::1",
            "fec0::1",
            "ff02::1",
            "4000::1",
            "100::1",
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert!(closed(address).is_some(), "{address}");
        }
    }

    #[test]
    fn neighbours_of_closed_networks_are_public() {
        for (below, above) in [
            ("9.255.255.255", "11.0.0.0"),
            ("100.63.255.255", "100.128.0.0"),
            ("126.255.255.255", "128.0.0.0"),
            ("169.253.255.255", "169.255.0.0"),
            ("172.15.255.255", "172.32.0.0"),
            ("192.167.255.255", "192.169.0.0"),
            ("198.17.255.255", "198.20.0.0"),
        ] {
            for address in [below, above] {
                assert_eq!(closed(address.parse().unwrap()), None, "{address}");
            }
        }
        for address in [
            "1.0.0.0",
            "192.0.1.0",
            "223.255.255.255",
            "8.8.8.8",
            "2600::1",
            "2a00:1450:4001::1",
            "2001:4860:4860::8888",
            "2003::1",
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(closed(address), None, "{address}");
        }
    }

    proptest! {
        #[test]
        fn no_form_that_holds_an_ipv4_address_is_public(four in any::<u32>(), low in any::<u64>()) {
            let four = Ipv4Addr::from(four);
            let [a, b, c, d] = four.octets();
            let (high_half, low_half) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            let low = low.to_be_bytes();
            let tail = |at: usize| u16::from_be_bytes([low[at], low[at + 1]]);
            let mapped = four.to_ipv6_mapped();
            let compatible = Ipv6Addr::new(0, 0, 0, 0, 0, 0, high_half, low_half);
            let nat64 = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high_half, low_half);
            let six_to_four = Ipv6Addr::new(0x2002, high_half, low_half, tail(0), tail(2), tail(4), tail(6), 0);
            let teredo = Ipv6Addr::new(0x2001, 0, tail(0), tail(2), tail(4), tail(6), high_half, low_half);
            for six in [mapped, compatible, nat64, six_to_four, teredo] {
                prop_assert!(closed(six.into()).is_some(), "{six}");
            }
        }

        #[test]
        fn what_the_standard_library_calls_inside_is_closed(four in any::<u32>()) {
            let four = Ipv4Addr::from(four);
            let inside = four.is_private() || four.is_loopback() || four.is_link_local() || four.is_multicast()
                || four.is_broadcast() || four.is_documentation() || four.is_unspecified();
            prop_assert!(!inside || closed(four.into()).is_some(), "{four}");
        }
    }
}
