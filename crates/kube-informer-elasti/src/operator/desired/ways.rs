//! By which ways requests come to a Service, and who answers there.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;

use super::{Family, families, is_ready, is_tcp, ports};

/// How a request comes to a Service: by an address family, at a port, which slices know by its name.
pub(in crate::operator) type Way = (Family, String);

/// The ways that slices are about. Other protocols than TCP do not count.
pub(in crate::operator) fn ways<'a>(slices: impl IntoIterator<Item = &'a EndpointSlice>) -> BTreeSet<Way> {
    let mut ways = BTreeSet::new();
    for slice in slices {
        let Some(family) = Family::parse(&slice.address_type) else { continue };
        let ports = slice.ports.iter().flatten();
        let tcp = ports.filter(|port| port.protocol.as_deref().is_none_or(|protocol| protocol == "TCP"));
        ways.extend(tcp.map(|port| (family, port.name.clone().unwrap_or_default())));
    }
    ways
}

/// The ways by which a Service is asked.
pub(in crate::operator) fn ways_of(public: &Service) -> BTreeSet<Way> {
    let mut ways = BTreeSet::new();
    for family in families(public) {
        let tcp = ports(public).filter(|port| is_tcp(port));
        ways.extend(tcp.map(|port| (family, port.name.clone().unwrap_or_default())));
    }
    ways
}

/// The ways by which slices lead to somebody who takes requests.
pub(in crate::operator) fn answered<'a>(
    slices: impl IntoIterator<Item = &'a EndpointSlice>,
) -> BTreeSet<Way> {
    ways(slices.into_iter().filter(|slice| slice.endpoints.iter().flatten().any(is_ready)))
}

/// Slices without the ways by which others answer. Those with nothing left to lead anywhere are not among them.
pub(in crate::operator) fn without(
    mut slices: Vec<EndpointSlice>,
    answered: &BTreeSet<Way>,
) -> Vec<EndpointSlice> {
    for slice in &mut slices {
        let Some(family) = Family::parse(&slice.address_type) else { continue };
        if let Some(ports) = &mut slice.ports {
            ports.retain(|port| !answered.contains(&(family, port.name.clone().unwrap_or_default())));
        }
    }
    slices.retain(|slice| slice.ports.as_ref().is_some_and(|ports| !ports.is_empty()));
    slices
}

/// Ways, as people call them.
pub(in crate::operator) fn named_ways(ways: &BTreeSet<Way>) -> String {
    let named = ways.iter().map(|(family, port)| match port.as_str() {
        "" => format!("its port by {}", family.as_str()),
        port => format!("port {port} by {}", family.as_str()),
    });
    named.collect::<Vec<_>>().join(", ")
}
