//! How many connections each address has, so that one of them does not take the places of all.
//!
//! Networks of the newer kind give a whole range to one machine: its addresses count as one, by their first half.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// See the module. What is kept is one number for each address that has a connection.
#[derive(Debug)]
pub(crate) struct Addresses {
    share: Share,
    counts: Mutex<HashMap<IpAddr, usize>>,
}

/// How many one address may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// So many, whichever it is.
    Each(usize),
    /// So many, but for this machine itself.
    EachOther(usize),
}

/// A connection of an address; it counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    addresses: Arc<Addresses>,
    address: IpAddr,
}

impl Share {
    /// Of so many in all: as it was set, or a quarter.
    pub(crate) fn of(all: usize, set: Option<usize>) -> Self {
        match set {
            Some(most) => Self::Each(most),
            None => Self::EachOther((all / 4).max(1)),
        }
    }

    fn most(self, address: IpAddr) -> usize {
        match self {
            Self::EachOther(_) if address.is_loopback() => usize::MAX,
            Self::Each(most) | Self::EachOther(most) => most,
        }
    }
}

impl Addresses {
    pub(crate) fn new(share: Share) -> Arc<Self> {
        Arc::new(Self { share, counts: Mutex::default() })
    }

    /// How many a connection of this address is one of, at most.
    pub(crate) fn most(&self, address: IpAddr) -> usize {
        self.share.most(one(address))
    }

    /// One more connection of an address, where it may have one.
    pub(crate) fn seat(self: &Arc<Self>, address: IpAddr) -> Option<Seat> {
        let address = one(address);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if *count >= self.share.most(address) {
            if *count == 0 {
                counts.remove(&address);
            }
            return None;
        }
        *count += 1;
        Some(Seat { addresses: Arc::clone(self), address })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut counts = self.addresses.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

/// What counts as one address.
fn one(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_has_so_many_and_others_have_theirs() {
        let addresses = Addresses::new(Share::Each(2));
        let first = addresses.seat(ip("192.0.2.1")).unwrap();
        let _second = addresses.seat(ip("192.0.2.1")).unwrap();
        assert!(addresses.seat(ip("192.0.2.1")).is_none());
        assert!(addresses.seat(ip("::ffff:192.0.2.1")).is_none(), "it is the same");
        let _other = addresses.seat(ip("192.0.2.2")).unwrap();
        drop(first);
        assert!(addresses.seat(ip("192.0.2.1")).is_some());
    }

    #[test]
    fn a_range_of_addresses_counts_as_one() {
        let addresses = Addresses::new(Share::Each(1));
        let _one = addresses.seat(ip("2001:db8::1")).unwrap();
        assert!(addresses.seat(ip("2001:db8::ffff:2")).is_none());
        assert!(addresses.seat(ip("2001:db8:0:1::1")).is_some());
    }

    #[test]
    fn this_machine_has_as_many_as_it_wants_unless_it_is_said_otherwise() {
        assert_eq!(Share::of(4_096, None), Share::EachOther(1_024));
        assert_eq!(Share::of(1, None), Share::EachOther(1));
        let addresses = Addresses::new(Share::of(4, None));
        let seats: Vec<_> = (0..100).filter_map(|_| addresses.seat(ip("127.0.0.1"))).collect();
        let others: Vec<_> = (0..100).filter_map(|_| addresses.seat(ip("192.0.2.1"))).collect();
        assert_eq!((seats.len(), others.len()), (100, 1));
        assert!(Addresses::new(Share::of(4, Some(0))).seat(ip("::1")).is_none());
    }

    #[test]
    fn nothing_is_kept_of_addresses_without_connections() {
        for share in [Share::Each(1), Share::Each(0)] {
            let addresses = Addresses::new(share);
            for last in 0..=255 {
                drop(addresses.seat(IpAddr::from([192, 0, 2, last])));
            }
            assert!(addresses.counts.lock().unwrap().is_empty());
        }
    }
}
