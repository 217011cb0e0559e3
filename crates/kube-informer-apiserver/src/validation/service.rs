//! Services, Endpoints and EndpointSlices.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

use super::at::{At, Errors};
use super::{container, formats, metadata};
use crate::fields;
use crate::status::FieldError;
use crate::strategy::service::{is_headless, is_reached_from_outside};

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

pub(super) fn service(object: &Value, errors: &mut Errors) {
    let spec = At::root(object).get("spec");
    let kind = spec.get("type").text();
    let headless = is_headless(object);
    if spec.get("ports").is_empty() && !headless && kind != "ExternalName" {
        errors.required(&spec.get("ports"), "");
    }
    by_type(&spec, headless, errors);
    let several = spec.get("ports").items().count() > 1;
    let mut names = BTreeSet::new();
    for port in spec.get("ports").items() {
        service_port(&port, several, &mut names, errors);
    }
    metadata::labels(&spec.get("selector"), errors);
    let affinity = spec.get("sessionAffinity");
    errors.one_of(&affinity, &["ClientIP", "None"]);
    let mut families = Vec::new();
    cluster_ips(object, &mut families);
    families.into_iter().for_each(|error| errors.push(error));
    for ip in spec.get("externalIPs").items() {
        let complaints = formats::ip(ip.text());
        if complaints.is_empty() {
            errors.invalid_each(&ip, formats::endpoint_ip(ip.text()));
        } else {
            errors.invalid_each(&ip, complaints);
        }
    }
    errors.one_of(&spec.get("type"), &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
    duplicate_ports(&spec, kind, errors);
    load_balancer_only(&spec, kind, errors);
    traffic(&spec, object, errors);
}

fn by_type(spec: &At<'_>, headless: bool, errors: &mut Errors) {
    match spec.get("type").text() {
        kind @ ("LoadBalancer" | "NodePort") if headless => {
            let why = format!("may not be set to 'None' for {kind} services");
            errors.push(FieldError::invalid(spec.get("clusterIPs").index(0), "None", why));
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies"] {
                if !spec.get(field).is_empty() {
                    errors.forbidden(&spec.get(field), "may not be set for ExternalName services");
                }
            }
            if spec.get("ipFamilyPolicy").is_set() {
                errors.forbidden(&spec.get("ipFamilyPolicy"), "may not be set for ExternalName services");
            }
            let name = spec.get("externalName");
            match name.text().strip_suffix('.').unwrap_or(name.text()) {
                "" => errors.required(&name, ""),
                text => errors.invalid_each(&name, formats::dns_subdomain(text)),
            }
        }
        _ => {}
    }
}

fn service_port<'a>(port: &At<'a>, needs_name: bool, names: &mut BTreeSet<&'a str>, errors: &mut Errors) {
    let name = port.get("name");
    if name.text().is_empty() {
        if needs_name {
            errors.required(&name, "");
        }
    } else {
        errors.invalid_each(&name, formats::dns_label(name.text()));
        if !names.insert(name.text()) {
            errors.duplicate(&name);
        }
    }
    let number = port.get("port");
    let shown = Value::from(number.int().unwrap_or_default());
    let at = At { value: &shown, path: number.path.clone() };
    errors.invalid_each(&at, formats::port_number(number.int().unwrap_or_default()));
    errors.one_of(&port.get("protocol"), PROTOCOLS);
    container::port_or_name(&port.get("targetPort"), errors);
    let protocol = port.get("appProtocol");
    if protocol.is_set() {
        errors.invalid_each(&protocol, formats::qualified_name(protocol.text()));
    }
}

fn duplicate_ports(spec: &At<'_>, kind: &str, errors: &mut Errors) {
    let node_port = |port: &At<'_>| port.get("nodePort").int().filter(|number| *number != 0);
    if kind == "ClusterIP" {
        for port in spec.get("ports").items().filter(|port| node_port(port).is_some()) {
            errors.forbidden(&port.get("nodePort"), "may not be used when `type` is 'ClusterIP'");
        }
    }
    let mut node_ports = BTreeSet::new();
    for port in spec.get("ports").items() {
        if let Some(number) = node_port(&port)
            && !node_ports.insert((port.get("protocol").text(), number))
        {
            errors.duplicate(&port.get("nodePort"));
        }
    }
    let mut ports = BTreeSet::new();
    for port in spec.get("ports").items() {
        let (protocol, number) = (port.get("protocol").text(), port.get("port").int().unwrap_or_default());
        if !ports.insert((protocol, number)) {
            let mut error = FieldError::duplicate(&port.path, Value::Null);
            error.value = None;
            error.detail = format!(
                "{{\"Name\":\"\",\"Protocol\":{protocol:?},\"AppProtocol\":null,\"Port\":{number},\
                 \"TargetPort\":0,\"NodePort\":0}}"
            );
            errors.push(error);
        }
    }
}

fn load_balancer_only(spec: &At<'_>, kind: &str, errors: &mut Errors) {
    const ONLY: &str = "may only be used when `type` is 'LoadBalancer'";
    // The real server spells this one with a capital.
    let ranges = spec.get("loadBalancerSourceRanges").named("spec.LoadBalancerSourceRanges");
    if !ranges.is_empty() {
        if kind != "LoadBalancer" {
            errors.forbidden(&ranges, ONLY);
        }
        for range in ranges.items() {
            errors.invalid_each(&range, formats::cidr(range.text().trim()));
        }
    }
    for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        if spec.get(field).is_set() && kind != "LoadBalancer" {
            errors.forbidden(&spec.get(field), ONLY);
        }
    }
}

fn traffic(spec: &At<'_>, object: &Value, errors: &mut Errors) {
    let external = spec.get("externalTrafficPolicy");
    if is_reached_from_outside(object) {
        errors.one_of(&external, &["Cluster", "Local"]);
    } else if !external.text().is_empty() {
        errors.invalid(&external, "may only be set for externally-accessible services");
    }
    let health = spec.get("healthCheckNodePort");
    if let Some(port) = health.int().filter(|port| *port != 0) {
        if spec.get("type").text() == "LoadBalancer" && external.text() == "Local" {
            errors.invalid_each(&health, formats::port_number(port));
        } else {
            let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.invalid(&health, why);
        }
    }
    errors.one_of_if_set(&spec.get("internalTrafficPolicy"), &["Cluster", "Local"]);
    let distribution = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    errors.one_of_if_set(&spec.get("trafficDistribution"), &distribution);
}

/// Addresses and families of a service, and whether they agree.
pub(crate) fn cluster_ips(object: &Value, errors: &mut Vec<FieldError>) {
    let spec = At::root(object).get("spec");
    if spec.get("type").text() == "ExternalName" {
        return;
    }
    let mut found = Errors::default();
    let (ip, ips) = (spec.get("clusterIP").text(), spec.get("clusterIPs"));
    let first = ips.items().next();
    match (ip, &first) {
        ("", Some(_)) => found.invalid(&ips, "must be empty when `clusterIP` is not specified"),
        ("", None) => {}
        (_, None) => found.required(&ips, ""),
        (ip, Some(first)) if first.text() != ip => found.invalid(&ips, "first value must match `clusterIP`"),
        _ => {}
    }
    let mut seen = BTreeSet::new();
    for family in spec.get("ipFamilies").items() {
        if !matches!(family.text(), "IPv4" | "IPv6") {
            found.unsupported(&family, &["IPv4", "IPv6"]);
        }
        if !seen.insert(family.text()) {
            found.duplicate(&family);
        }
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    found.one_of_if_set(&spec.get("ipFamilyPolicy"), &policies);
    let families: Vec<&str> =
        fields::list(spec.value, &["ipFamilies"]).iter().filter_map(Value::as_str).collect();
    for (index, ip) in ips.items().enumerate() {
        if index == 0 && ip.text() == "None" {
            if ips.items().count() > 1 {
                found.invalid(&ips, "'None' must be the first and only value");
            }
            continue;
        }
        let complaints = formats::ip(ip.text());
        if complaints.is_empty() {
            let parsed = ip.text().parse::<IpAddr>();
            let wrong = match families.get(index) {
                Some(&"IPv4") => parsed.is_ok_and(|ip| ip.is_ipv6()).then_some("an IPv4"),
                Some(&"IPv6") => parsed.is_ok_and(|ip| ip.is_ipv4()).then_some("an IPv6"),
                _ => None,
            };
            if let Some(wrong) = wrong {
                found.invalid(&ip, format!("expected {wrong} value as indicated by `ipFamilies[{index}]`"));
            }
        }
        found.invalid_each(&ip, complaints);
    }
    errors.extend(found.finish());
}

pub(super) fn update(old: &Value, new: &Value, errors: &mut Errors) {
    let external = |object: &Value| fields::text(object, &["spec", "type"]) == "ExternalName";
    if external(old) || external(new) || (is_headless(old) && is_headless(new)) {
        return;
    }
    let (before, after) =
        (At::root(old).walk(&["spec", "clusterIPs"]), At::root(new).walk(&["spec", "clusterIPs"]));
    for (index, (before, ip)) in before.items().zip(after.items()).enumerate() {
        if before.text() != ip.text() {
            let value = after.value.clone();
            errors.push(FieldError::invalid(after.index(index), value, "may not change once set"));
        }
    }
    if !before.is_empty() && after.is_empty() {
        let why = "primary clusterIP can not be unset";
        errors.push(FieldError::invalid(after.index(0), after.value.clone(), why));
    }
}

pub(super) fn status(object: &Value, errors: &mut Errors) {
    let ingress = At::root(object).walk(&["status", "loadBalancer", "ingress"]);
    if !ingress.is_empty() && fields::text(object, &["spec", "type"]) != "LoadBalancer" {
        errors.forbidden(&ingress, "may only be used when `spec.type` is 'LoadBalancer'");
    }
    for entry in ingress.items() {
        let ip = entry.get("ip");
        if !ip.text().is_empty() {
            errors.invalid_each(&ip, formats::ip(ip.text()));
        }
    }
}

pub(super) fn endpoints(object: &Value, errors: &mut Errors) {
    for subset in At::root(object).get("subsets").items() {
        let lists = ["addresses", "notReadyAddresses"].map(|list| subset.get(list));
        if lists.iter().all(At::is_empty) {
            errors.required(&subset, "must specify `addresses` or `notReadyAddresses`");
        }
        for address in lists.iter().flat_map(At::items) {
            let ip = address.get("ip");
            errors.invalid_each(&ip, formats::ip(ip.text()));
            errors.invalid_each(&ip, formats::endpoint_ip(ip.text()));
        }
        let several = subset.get("ports").items().count() > 1;
        for port in subset.get("ports").items() {
            let name = port.get("name");
            if !name.text().is_empty() {
                errors.invalid_each(&name, formats::dns_label(name.text()));
            } else if several {
                errors.required(&name, "");
            }
            let number = port.get("port");
            errors.invalid_each(&number, formats::port_number(number.int().unwrap_or_default()));
            errors.one_of(&port.get("protocol"), PROTOCOLS);
        }
    }
}

pub(super) fn endpoint_slice(object: &Value, known: bool, errors: &mut Errors) {
    let slice = At::root(object);
    let kind = slice.get("addressType");
    let kinds = ["FQDN", "IPv4", "IPv6"];
    if kind.text().is_empty() {
        errors.declare(FieldError::required(&kind.path, ""));
    } else if !kinds.contains(&kind.text()) {
        errors.declare(FieldError::not_supported(&kind.path, kind.text(), &kinds));
    }
    let mut names = BTreeSet::new();
    for port in slice.get("ports").items() {
        let name = port.get("name");
        if !name.text().is_empty() {
            errors.invalid_each(&name, formats::dns_label(name.text()));
        }
        if !names.insert(name.text()) {
            errors.duplicate(&name);
        }
        errors.one_of(&port.get("protocol"), PROTOCOLS);
    }
    if known {
        return;
    }
    for endpoint in slice.get("endpoints").items() {
        let addresses = endpoint.get("addresses");
        if addresses.is_empty() {
            errors.declare(FieldError::required(&addresses.path, ""));
        }
        for address in addresses.items() {
            slice_address(kind.text(), &addresses, &address, errors);
        }
        let hostname = endpoint.get("hostname");
        if hostname.is_set() {
            errors.invalid_each(&hostname, formats::dns_label(hostname.text()));
        }
    }
}

fn slice_address(kind: &str, addresses: &At<'_>, address: &At<'_>, errors: &mut Errors) {
    if !matches!(kind, "IPv4" | "IPv6") {
        return;
    }
    let complaints = formats::ip(address.text());
    if !complaints.is_empty() {
        errors.invalid_each(address, complaints);
        return;
    }
    let is_v4 = address.text().parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv4());
    if is_v4 != (kind == "IPv4") {
        errors.invalid(&address.named(&addresses.path), format!("must be an {kind} address"));
    }
    errors.invalid_each(address, formats::endpoint_ip(address.text()));
}
