//! Ingresses, their classes and network policies.

use std::net::IpAddr;

use serde_json::Value;

use super::at::{At, Errors};
use super::{formats, selector};
use crate::status::FieldError;

pub(super) fn ingress(object: &Value, errors: &mut Errors) {
    let spec = At::root(object).get("spec");
    let (rules, backend) = (spec.get("rules"), spec.get("defaultBackend"));
    if rules.is_empty() && !backend.is_set() {
        let why = "either `defaultBackend` or `rules` must be specified";
        errors.invalid(&rules.named(&spec.path), why);
    }
    if backend.is_set() {
        check_backend(&backend, errors);
    }
    for rule in rules.items() {
        let host = rule.get("host");
        if !host.text().is_empty() {
            if host.text().parse::<IpAddr>().is_ok() {
                errors.invalid(&host, "must be a DNS name, not an IP address");
            }
            check_host(&host, errors);
        }
        let http = rule.get("http");
        if http.is_set() && http.get("paths").is_empty() {
            errors.required(&http.get("paths"), "");
        }
        for path in http.get("paths").items() {
            check_path(&path, errors);
        }
    }
    for tls in spec.get("tls").items() {
        for host in tls.get("hosts").items() {
            check_host(&host, errors);
        }
        let secret = tls.get("secretName");
        if !secret.text().is_empty() {
            errors.invalid_each(&secret, formats::dns_subdomain(secret.text()));
        }
    }
    let class = spec.get("ingressClassName");
    if class.is_set() {
        errors.invalid_each(&class, formats::dns_subdomain(class.text()));
    }
}

fn check_host(host: &At<'_>, errors: &mut Errors) {
    let check = if host.text().contains('*') { formats::wildcard_subdomain } else { formats::dns_subdomain };
    errors.invalid_each(host, check(host.text()));
}

fn check_path(path: &At<'_>, errors: &mut Errors) {
    let (kind, text) = (path.get("pathType"), path.get("path"));
    if !kind.is_set() {
        errors.required(&kind, "pathType must be specified");
        return;
    }
    match kind.text() {
        "Exact" | "Prefix" => {
            if !text.text().starts_with('/') {
                errors.push(FieldError::invalid(&text.path, text.text(), "must be an absolute path"));
            }
            for bad in ["//", "/./", "/../", "%2f", "%2F"] {
                if text.text().contains(bad) {
                    errors.invalid(&text, format!("must not contain '{bad}'"));
                }
            }
            for bad in ["/..", "/."] {
                if text.text().ends_with(bad) {
                    errors.invalid(&text, format!("cannot end with '{bad}'"));
                }
            }
        }
        "ImplementationSpecific" => {
            if !text.text().is_empty() && !text.text().starts_with('/') {
                errors.invalid(&text, "must be an absolute path");
            }
        }
        _ => errors.unsupported(&kind, &["Exact", "ImplementationSpecific", "Prefix"]),
    }
    check_backend(&path.get("backend"), errors);
}

fn check_backend(backend: &At<'_>, errors: &mut Errors) {
    let wrong = |errors: &mut Errors, why: &str| errors.push(FieldError::invalid(&backend.path, "", why));
    let (resource, service) = (backend.get("resource"), backend.get("service"));
    match (resource.is_set(), service.is_set()) {
        (true, true) => wrong(errors, "cannot set both resource and service backends"),
        (false, false) => wrong(errors, "resource or service backend is required"),
        (true, false) => {
            for field in ["kind", "name"] {
                let field = resource.get(field);
                if field.text().is_empty() {
                    errors.required(&field, "");
                } else {
                    errors.invalid_each(&field, formats::path_segment(field.text()));
                }
            }
        }
        (false, true) => {
            let name = service.get("name");
            if name.text().is_empty() {
                errors.required(&name, "");
            } else {
                errors.invalid_each(&name, formats::dns_label(name.text()));
            }
            let (name, number) = (service.walk(&["port", "name"]), service.walk(&["port", "number"]));
            match (name.text(), number.int().unwrap_or_default()) {
                ("", 0) => errors.required(backend, "port name or number is required"),
                ("", port) => errors.invalid_each(&number, formats::port_number(port)),
                (text, 0) => errors.invalid_each(&name, formats::port_name(text)),
                _ => wrong(errors, "cannot set both port name & port number"),
            }
        }
    }
}

pub(super) fn ingress_class(object: &Value, errors: &mut Errors) {
    let controller = At::root(object).walk(&["spec", "controller"]);
    match controller.text().split_once('/') {
        _ if controller.text().is_empty() => errors.required(&controller, ""),
        Some((host, path)) if !host.is_empty() && !path.is_empty() => {
            for why in formats::dns_subdomain(host) {
                errors.push(FieldError::invalid(&controller.path, host, why));
            }
        }
        _ => errors.invalid(&controller, "must be a domain-prefixed path (such as \"acme.io/foo\")"),
    }
}

pub(super) fn update_ingress_class(old: &Value, new: &Value, errors: &mut Errors) {
    let path = ["spec", "controller"];
    errors.immutable(&At::root(new).walk(&path), &At::root(old).walk(&path));
}

pub(super) fn policy(object: &Value, errors: &mut Errors) {
    let spec = At::root(object).get("spec");
    selector::check(&spec.get("podSelector"), errors);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.get(direction).items() {
            for port in rule.get("ports").items() {
                policy_port(&port, errors);
            }
            for peer in rule.get(peers).items() {
                policy_peer(&peer, errors);
            }
        }
    }
    let types = spec.get("policyTypes");
    if types.items().count() > 2 {
        errors.invalid(&types, "may not specify more than two policyTypes");
        return;
    }
    for kind in types.items() {
        if !matches!(kind.text(), "Ingress" | "Egress") {
            errors.unsupported(&kind, &["Ingress", "Egress"]);
        }
    }
}

fn policy_port(port: &At<'_>, errors: &mut Errors) {
    errors.one_of_if_set(&port.get("protocol"), &["TCP", "UDP", "SCTP"]);
    let (number, end) = (port.get("port"), port.get("endPort"));
    match number.value {
        Value::Null => {
            if end.is_set() {
                errors.invalid(&end, "may not be specified when `port` is not specified");
            }
        }
        Value::String(name) => {
            if end.is_set() {
                errors.invalid(&end, "may not be specified when `port` is non-numeric");
            }
            errors.invalid_each(&number, formats::port_name(name));
        }
        _ => {
            let first = number.int().unwrap_or_default();
            errors.invalid_each(&number, formats::port_number(first));
            if let Some(last) = end.int() {
                if last < first {
                    errors.invalid(&end, "must be greater than or equal to `port`");
                }
                errors.invalid_each(&end, formats::port_number(last));
            }
        }
    }
}

fn policy_peer(peer: &At<'_>, errors: &mut Errors) {
    let mut peers = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if peer.get(field).is_set() {
            peers += 1;
            selector::check(&peer.get(field), errors);
        }
    }
    let block = peer.get("ipBlock");
    if block.is_set() {
        peers += 1;
        ip_block(&block, errors);
    }
    if peers == 0 {
        errors.required(peer, "must specify a peer");
    } else if peers > 1 && block.is_set() {
        errors.forbidden(peer, "may not specify both ipBlock and another peer");
    }
}

fn ip_block(block: &At<'_>, errors: &mut Errors) {
    let cidr = block.get("cidr");
    if cidr.text().is_empty() {
        errors.declare(FieldError::required(&cidr.path, ""));
        return;
    }
    errors.invalid_each(&cidr, formats::cidr(cidr.text()));
    let Some(whole) = formats::parse_cidr(cidr.text()) else { return };
    for except in block.get("except").items() {
        errors.invalid_each(&except, formats::cidr(except.text()));
        if let Some(part) = formats::parse_cidr(except.text())
            && (!contains(whole, part.0) || whole.1 >= part.1)
        {
            errors.invalid(&except, "must be a strict subset of `cidr`");
        }
    }
}

/// Whether a network holds an address.
fn contains((network, length): (IpAddr, u32), address: IpAddr) -> bool {
    let bits = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => (u128::from(ip.to_bits()), 32),
        IpAddr::V6(ip) => (ip.to_bits(), 128),
    };
    let ((network, width), (address, other)) = (bits(network), bits(address));
    let host = width - length.min(width);
    width == other && network.checked_shr(host).unwrap_or(0) == address.checked_shr(host).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::contains;

    #[test]
    fn a_network_holds_the_addresses_that_begin_like_it() {
        let held = |network: &str, length, address: &str| {
            contains((network.parse().unwrap(), length), address.parse().unwrap())
        };
        assert!(held("10.0.0.0", 8, "10.1.2.3"));
        assert!(!held("10.0.0.0", 8, "11.0.0.0"));
        assert!(held("0.0.0.0", 0, "1.2.3.4"));
        assert!(held("::", 0, "2001:db8::1"));
        assert!(!held("::", 0, "1.2.3.4"));
        assert!(held("2001:db8::", 32, "2001:db8:1::"));
    }
}
