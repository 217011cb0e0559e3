//! Ports that are free, in place of those that a document names: what it says can be typed where one of them is taken,
//! and twice at a time.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::Context as _;

const LOOPBACK: &str = "127.0.0.1:";

/// Below those that systems give to whoever asks for any: nobody gets them by chance.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

/// What was put in place of what.
#[derive(Debug, Default)]
pub(super) struct Ports(BTreeMap<u16, u16>);

impl Ports {
    /// The text with other ports of the loopback address; the same ones for the same ones. 0 stays 0.
    pub(super) fn exchanged(&mut self, text: &str) -> anyhow::Result<String> {
        let mut parts = text.split(LOOPBACK);
        let mut exchanged = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            let (port, rest) = part.split_at(end);
            exchanged += LOOPBACK;
            match port.parse() {
                Ok(named) if named != 0 => exchanged += &self.instead_of(named)?.to_string(),
                _ => exchanged += port,
            }
            exchanged += rest;
        }
        Ok(exchanged)
    }

    fn instead_of(&mut self, named: u16) -> anyhow::Result<u16> {
        if let Some(port) = self.0.get(&named) {
            return Ok(*port);
        }
        let port = free()?;
        self.0.insert(named, port);
        Ok(port)
    }
}

/// A port on which nobody listens, and which was not given before.
fn free() -> anyhow::Result<u16> {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    // Another process begins elsewhere.
    let begin = std::process::id() % u32::from(COUNT);
    let ports = std::iter::repeat_with(|| {
        let offset = begin + u32::from(GIVEN.fetch_add(1, Ordering::Relaxed));
        FIRST + u16::try_from(offset % u32::from(COUNT)).unwrap_or_default()
    });
    first_free(ports.take(COUNT.into())).context("no port is free")
}

fn first_free(mut ports: impl Iterator<Item = u16>) -> Option<u16> {
    ports.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_port_stays_the_same_and_any_port_stays_any() {
        let mut ports = Ports::default();
        let text =
            "a 127.0.0.1:8080 b 127.0.0.1:8081, http://127.0.0.1:8080/x 127.0.0.1:0 127.0.0.1:… 10.0.0.1:80";
        let exchanged = ports.exchanged(text).unwrap();
        let [one, other] = [8080, 8081].map(|port| ports.0[&port]);
        assert_eq!(
            exchanged,
            format!(
                "a 127.0.0.1:{one} b 127.0.0.1:{other}, http://127.0.0.1:{one}/x 127.0.0.1:0 127.0.0.1:… 10.0.0.1:80"
            )
        );
        assert!(one != other && one != 8080 && other != 8081);
        assert_eq!(ports.exchanged("127.0.0.1:8081").unwrap(), format!("127.0.0.1:{other}"));
    }

    #[test]
    fn a_port_that_is_taken_is_not_given() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        assert_eq!(first_free([port].into_iter()), None);
        assert!(first_free([port, free().unwrap()].into_iter()).is_some());
        assert_ne!(free().unwrap(), free().unwrap());
    }
}
