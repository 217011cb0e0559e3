//! Which cluster addresses and node ports are taken.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::Value;

use crate::strategy::service::{self, Allocator};

/// The service range 10.96.0.0/12.
const FIRST: u32 = u32::from_be_bytes([10, 96, 0, 0]);
const SIZE: u32 = 1 << 20;
const PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

/// What Services hold.
#[derive(Debug)]
pub(crate) struct Addresses {
    addresses: BTreeSet<Ipv4Addr>,
    ports: BTreeSet<i64>,
    next_address: u32,
    next_port: i64,
}

impl Default for Addresses {
    fn default() -> Self {
        Self {
            addresses: BTreeSet::new(),
            ports: BTreeSet::new(),
            next_address: 1,
            next_port: *PORTS.start(),
        }
    }
}

impl Addresses {
    /// Notes what a stored Service holds.
    pub(crate) fn claim(&mut self, object: &Value) {
        let (addresses, ports) = service::claims(object);
        self.addresses.extend(addresses.iter().filter_map(|a| a.parse::<Ipv4Addr>().ok()));
        self.ports.extend(ports);
    }

    /// Gives back what a Service held.
    pub(crate) fn release(&mut self, object: &Value) {
        let (addresses, ports) = service::claims(object);
        for address in addresses.iter().filter_map(|a| a.parse::<Ipv4Addr>().ok()) {
            self.addresses.remove(&address);
        }
        for port in ports {
            self.ports.remove(&port);
        }
    }

    /// Allocates for a write over `old`, which holds its own already.
    pub(crate) fn allocator<'a>(&'a mut self, old: Option<&'a Value>) -> impl Allocator + use<'a> {
        let (addresses, ports) = old.map(service::claims).unwrap_or_default();
        let addresses = addresses.iter().filter_map(|a| a.parse().ok()).collect();
        Allocation { taken: self, own_addresses: addresses, own_ports: ports.into_iter().collect() }
    }
}

struct Allocation<'a> {
    taken: &'a mut Addresses,
    own_addresses: BTreeSet<Ipv4Addr>,
    own_ports: BTreeSet<i64>,
}

impl Allocator for Allocation<'_> {
    fn cluster_ip(&mut self, wanted: Option<&str>) -> Result<String, String> {
        if let Some(wanted) = wanted {
            let Ok(address) = wanted.parse::<Ipv4Addr>() else { return Ok(wanted.to_owned()) };
            let in_range = (FIRST..FIRST + SIZE).contains(&u32::from(address));
            return match (in_range, self.taken.addresses.contains(&address)) {
                _ if self.own_addresses.contains(&address) => Ok(wanted.to_owned()),
                (false, _) => Err(format!(
                    "the provided IP ({wanted}) is not in the valid range. The range of valid IPs is 10.96.0.0/12"
                )),
                (true, true) => Err("provided IP is already allocated".into()),
                (true, false) => Ok(wanted.to_owned()),
            };
        }
        for _ in 0..SIZE {
            let address = Ipv4Addr::from(FIRST + self.taken.next_address);
            self.taken.next_address = (self.taken.next_address + 1) % SIZE;
            if !self.taken.addresses.contains(&address) {
                return Ok(address.to_string());
            }
        }
        Err("range is full".into())
    }

    fn node_port(&mut self, wanted: Option<i64>) -> Result<i64, String> {
        if let Some(wanted) = wanted {
            return match (PORTS.contains(&wanted), self.taken.ports.contains(&wanted)) {
                _ if self.own_ports.contains(&wanted) => Ok(wanted),
                (false, _) => {
                    Err("provided port is not in the valid range. The range of valid ports is 30000-32767"
                        .into())
                }
                (true, true) => Err("provided port is already allocated".into()),
                (true, false) => Ok(wanted),
            };
        }
        for _ in PORTS {
            let port = self.taken.next_port;
            self.taken.next_port = if port >= *PORTS.end() { *PORTS.start() } else { port + 1 };
            if !self.taken.ports.contains(&port) {
                return Ok(port);
            }
        }
        Err("range is full".into())
    }
}
