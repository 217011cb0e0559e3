//! Addresses and ports of services.
//!
//! [`normalise`] brings `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy` in line, before
//! validation; [`allocate`] asks the core for what is missing, after it. The cluster is single-stack
//! IPv4.

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::fields;
use crate::status::FieldError;

/// Where addresses and ports come from. An error is the reason as the real server words it.
pub(crate) trait Allocator {
    /// A free cluster address, or this one.
    fn cluster_ip(&mut self, wanted: Option<&str>) -> Result<String, String>;
    /// A free node port, or this one.
    fn node_port(&mut self, wanted: Option<i64>) -> Result<i64, String>;
}

/// Fills in what follows from the other fields and, on an update, what was allocated before.
pub(crate) fn normalise(old: Option<&Value>, new: &mut Value) -> Vec<FieldError> {
    if let Some(old) = old {
        keep_allocated(old, new);
    }
    same_cluster_ips(old, new);
    if needs_cluster_ip(new) {
        return families(old, new);
    }
    fields::remove(new, &["spec", "internalTrafficPolicy"]);
    Vec::new()
}

/// Allocates addresses and node ports for a valid service.
pub(crate) fn allocate(object: &mut Value, allocator: &mut dyn Allocator) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if needs_cluster_ip(object) && fields::text(object, &["spec", "clusterIP"]).is_empty() {
        match allocator.cluster_ip(None) {
            Ok(ip) => {
                fields::set(object, &["spec", "clusterIPs"], json!([ip]));
                fields::set(object, &["spec", "clusterIP"], ip);
            }
            Err(why) => errors.push(FieldError {
                kind: crate::status::FieldErrorKind::Internal,
                field: "spec.clusterIPs".to_owned(),
                value: None,
                detail: format!("failed to allocate a serviceIP: {why}"),
            }),
        }
    } else if needs_cluster_ip(object) && !is_headless(object) {
        let ip = fields::text(object, &["spec", "clusterIP"]).to_owned();
        if let Err(why) = allocator.cluster_ip(Some(&ip)) {
            let ips = fields::at(object, &["spec", "clusterIPs"]).cloned().unwrap_or_default();
            let why = format!("failed to allocate IP {ip}: {why}");
            errors.push(FieldError::invalid("spec.clusterIPs", ips, why));
        }
    }
    if needs_node_port(object) {
        node_ports(object, allocator, &mut errors);
    }
    errors
}

fn node_ports(object: &mut Value, allocator: &mut dyn Allocator, errors: &mut Vec<FieldError>) {
    let no_ports = fields::text(object, &["spec", "type"]) == "LoadBalancer"
        && fields::at(object, &["spec", "allocateLoadBalancerNodePorts"]) == Some(&Value::Bool(false));
    // One number serves TCP and UDP alike.
    let mut given: Vec<(String, i64)> = Vec::new();
    for (index, port) in fields::list_mut(object, &["spec", "ports"]).into_iter().flatten().enumerate() {
        let wanted = fields::int(port, &["nodePort"]).filter(|port| *port != 0);
        if wanted.is_none() && no_ports {
            continue;
        }
        let protocol = fields::text(port, &["protocol"]).to_owned();
        if let Some(wanted) = wanted
            && given.iter().any(|(other, number)| *number == wanted && *other != protocol)
        {
            continue;
        }
        match allocator.node_port(wanted) {
            Ok(number) => {
                fields::set(port, &["nodePort"], number);
                given.push((protocol, number));
            }
            Err(why) => {
                let field = format!("spec.ports[{index}].nodePort");
                errors.push(FieldError::invalid(field, wanted.unwrap_or_default(), why));
            }
        }
    }
    if needs_health_check_port(object) && fields::int(object, &["spec", "healthCheckNodePort"]).is_none() {
        match allocator.node_port(None) {
            Ok(number) => fields::set(object, &["spec", "healthCheckNodePort"], number),
            Err(why) => errors.push(FieldError::invalid("spec.healthCheckNodePort", 0, why)),
        }
    }
}

/// Cluster addresses and node ports that a service holds.
pub(crate) fn claims(object: &Value) -> (Vec<&str>, Vec<i64>) {
    let ips = fields::list(object, &["spec", "clusterIPs"]).iter().filter_map(Value::as_str);
    let ports = fields::list(object, &["spec", "ports"]).iter().filter_map(|p| fields::int(p, &["nodePort"]));
    let health = fields::int(object, &["spec", "healthCheckNodePort"]);
    (ips.filter(|ip| *ip != "None").collect(), ports.chain(health).filter(|port| *port != 0).collect())
}

pub(crate) fn is_headless(object: &Value) -> bool {
    fields::list(object, &["spec", "clusterIPs"]).first().is_some_and(|ip| ip == "None")
        || fields::text(object, &["spec", "clusterIP"]) == "None"
}

/// A type that no longer needs a field loses it, unless the client changed the field as well.
pub(super) fn drop_unneeded(old: &Value, new: &mut Value) {
    if needs_cluster_ip(old) && !needs_cluster_ip(new) {
        for (field, along) in
            [("clusterIPs", Some("clusterIP")), ("ipFamilies", None), ("ipFamilyPolicy", None)]
        {
            if unchanged(old, new, field) && along.is_none_or(|along| unchanged(old, new, along)) {
                fields::remove(new, &["spec", field]);
                if let Some(along) = along {
                    fields::remove(new, &["spec", along]);
                }
            }
        }
    }
    let numbers = |object: &Value| -> Vec<i64> { claims(object).1 };
    if needs_node_port(old) && !needs_node_port(new) && numbers(old) == numbers(new) {
        for port in fields::list_mut(new, &["spec", "ports"]).into_iter().flatten() {
            fields::remove(port, &["nodePort"]);
        }
    }
    let drop = |new: &mut Value, field: &str, needed: fn(&Value) -> bool| {
        if needed(old) && !needed(new) && unchanged(old, new, field) {
            fields::remove(new, &["spec", field]);
        }
    };
    drop(new, "healthCheckNodePort", needs_health_check_port);
    drop(new, "allocateLoadBalancerNodePorts", is_load_balancer);
    drop(new, "loadBalancerClass", is_load_balancer);
    drop(new, "externalTrafficPolicy", is_reached_from_outside);
    if !is_load_balancer(new) {
        fields::set(new, &["status", "loadBalancer"], json!({}));
    }
}

fn unchanged(old: &Value, new: &Value, field: &str) -> bool {
    fields::same(fields::at(old, &["spec", field]), fields::at(new, &["spec", field]))
}

fn needs_cluster_ip(object: &Value) -> bool {
    fields::text(object, &["spec", "type"]) != "ExternalName"
}

fn needs_node_port(object: &Value) -> bool {
    matches!(fields::text(object, &["spec", "type"]), "NodePort" | "LoadBalancer")
}

fn is_load_balancer(object: &Value) -> bool {
    fields::text(object, &["spec", "type"]) == "LoadBalancer"
}

fn needs_health_check_port(object: &Value) -> bool {
    is_load_balancer(object) && fields::text(object, &["spec", "externalTrafficPolicy"]) == "Local"
}

pub(crate) fn is_reached_from_outside(object: &Value) -> bool {
    match fields::text(object, &["spec", "type"]) {
        "NodePort" | "LoadBalancer" => true,
        "ClusterIP" => !fields::list(object, &["spec", "externalIPs"]).is_empty(),
        _ => false,
    }
}

/// An update that leaves out what the server chose does not give it up.
fn keep_allocated(old: &Value, new: &mut Value) {
    if needs_cluster_ip(old) && needs_cluster_ip(new) {
        if fields::text(new, &["spec", "clusterIP"]).is_empty() {
            fields::copy(old, new, &["spec", "clusterIP"]);
        }
        if fields::list(new, &["spec", "clusterIPs"]).is_empty() {
            fields::copy(old, new, &["spec", "clusterIPs"]);
        }
    }
    if needs_node_port(old) && needs_node_port(new) {
        let taken = claims(new).1;
        let before = fields::list(old, &["spec", "ports"]);
        for port in fields::list_mut(new, &["spec", "ports"]).into_iter().flatten() {
            if !fields::is_zero(port.get("nodePort")) {
                continue;
            }
            let name = fields::text(port, &["name"]);
            let same = before.iter().rev().find(|old| fields::text(old, &["name"]) == name);
            let number = same.and_then(|old| fields::int(old, &["nodePort"]));
            if let Some(number) = number.filter(|number| *number != 0 && !taken.contains(number)) {
                fields::set(port, &["nodePort"], number);
            }
        }
    }
    if needs_health_check_port(old)
        && needs_health_check_port(new)
        && fields::is_zero(fields::at(new, &["spec", "healthCheckNodePort"]))
    {
        fields::copy(old, new, &["spec", "healthCheckNodePort"]);
    }
}

/// `clusterIP` is the first of `clusterIPs`; an old client knows only the one.
fn same_cluster_ips(old: Option<&Value>, new: &mut Value) {
    let ip = fields::text(new, &["spec", "clusterIP"]).to_owned();
    let none = fields::list(new, &["spec", "clusterIPs"]).is_empty();
    let Some(old) = old else {
        if !ip.is_empty() && none {
            fields::set(new, &["spec", "clusterIPs"], json!([ip]));
        }
        return;
    };
    let same_list = unchanged(old, new, "clusterIPs");
    let old_ip = fields::text(old, &["spec", "clusterIP"]);
    if old_ip == ip {
        if none {
            fields::copy(old, new, &["spec", "clusterIPs"]);
        }
    } else if same_list {
        if ip.is_empty() {
            fields::remove(new, &["spec", "clusterIPs"]);
        } else {
            fields::set(new, &["spec", "clusterIPs"], json!([ip]));
        }
    } else if none && old_ip.is_empty() {
        fields::set(new, &["spec", "clusterIPs"], json!([ip]));
    }
}

fn families(old: Option<&Value>, new: &mut Value) -> Vec<FieldError> {
    let headless = fields::text(new, &["spec", "clusterIP"]) == "None";
    let selectorless =
        fields::map(new, &["spec", "selector"]).is_none_or(serde_json::Map::is_empty) && headless;
    if fields::at(new, &["spec", "ipFamilyPolicy"]).is_none() {
        let before = old.and_then(|old| fields::at(old, &["spec", "ipFamilyPolicy"])).cloned();
        let policy =
            before.unwrap_or_else(|| if selectorless { "RequireDualStack" } else { "SingleStack" }.into());
        fields::set(new, &["spec", "ipFamilyPolicy"], policy);
    }
    // The real server looks at these fields before it allocates, and stops there if they are wrong.
    let mut errors = Vec::new();
    crate::validation::cluster_ips(new, &mut errors);
    if !errors.is_empty() {
        return errors;
    }
    let policy = fields::text(new, &["spec", "ipFamilyPolicy"]).to_owned();
    let several = |new: &Value, field: &str| fields::list(new, &["spec", field]).len() == 2;
    if policy == "SingleStack" {
        for (field, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
            if several(new, field) {
                let why = format!(
                    "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
                );
                errors.push(FieldError::invalid("spec.ipFamilyPolicy", policy.as_str(), why));
            }
        }
    }
    infer_families(new);
    if !errors.is_empty() {
        return errors;
    }
    let none = fields::list(new, &["spec", "ipFamilies"]).is_empty();
    if none {
        fields::set(new, &["spec", "ipFamilies"], json!(["IPv4"]));
    }
    if selectorless {
        if policy != "SingleStack" && fields::list(new, &["spec", "ipFamilies"]).len() < 2 {
            let first = fields::list(new, &["spec", "ipFamilies"]).first() == Some(&json!("IPv4"));
            let both = if first { json!(["IPv4", "IPv6"]) } else { json!(["IPv6", "IPv4"]) };
            fields::set(new, &["spec", "ipFamilies"], both);
        }
        return errors;
    }
    if policy == "RequireDualStack" {
        let why = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid("spec.ipFamilyPolicy", policy.as_str(), why));
    }
    for (index, family) in fields::list(new, &["spec", "ipFamilies"]).iter().enumerate() {
        if family != "IPv4" {
            let field = format!("spec.ipFamilies[{index}]");
            errors.push(FieldError::invalid(field, family.clone(), "not configured on this cluster"));
        }
    }
    errors
}

/// An address that was asked for says which family it is of.
fn infer_families(new: &mut Value) {
    let known = fields::list(new, &["spec", "ipFamilies"]).len();
    let inferred: Vec<&str> = fields::list(new, &["spec", "clusterIPs"])
        .iter()
        .skip(known)
        .filter_map(|ip| ip.as_str()?.parse::<IpAddr>().ok())
        .map(|ip| if ip.is_ipv4() { "IPv4" } else { "IPv6" })
        .collect();
    if inferred.is_empty() {
        return;
    }
    let mut all = fields::list(new, &["spec", "ipFamilies"]).to_vec();
    all.extend(inferred.into_iter().map(Value::from));
    fields::set(new, &["spec", "ipFamilies"], Value::Array(all));
}
