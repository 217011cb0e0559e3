//! Services and what routes to them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::view::{View, first_three};
use super::{AGE, Layout, NAME, text, wide};

/// Addresses of load balancers are not cut: every table is a wide one.
pub(super) fn layout(group: &str, plural: &str) -> Option<Layout> {
    Some(match (group, plural) {
        ("", "services") => Layout {
            columns: const {
                &[
                    NAME,
                    text("Type"),
                    text("Cluster-IP"),
                    text("External-IP"),
                    text("Port(s)"),
                    AGE,
                    wide("Selector"),
                ]
            },
            cells: service,
        },
        ("", "endpoints") => Layout {
            columns: const { &[NAME, text("Endpoints"), AGE] },
            cells: |o| vec![json!(o.name()), json!(endpoints(o)), json!(o.age())],
        },
        ("discovery.k8s.io", "endpointslices") => Layout {
            columns: const { &[NAME, text("AddressType"), text("Ports"), text("Endpoints"), AGE] },
            cells: endpoint_slice,
        },
        ("networking.k8s.io", "ingresses") => Layout {
            columns: const { &[NAME, text("Class"), text("Hosts"), text("Address"), text("Ports"), AGE] },
            cells: ingress,
        },
        ("networking.k8s.io", "ingressclasses") => Layout {
            columns: const { &[NAME, text("Controller"), text("Parameters"), AGE] },
            cells: ingress_class,
        },
        ("networking.k8s.io", "networkpolicies") => Layout {
            columns: const { &[NAME, text("Pod-Selector"), AGE] },
            cells: |o| {
                // An empty selector is left out of the object, and still selects every pod.
                let selector = if o.has("/spec/podSelector") {
                    o.selector_or_none("/spec/podSelector")
                } else {
                    "<none>".to_owned()
                };
                vec![json!(o.name()), json!(selector), json!(o.age())]
            },
        },
        ("networking.k8s.io", "servicecidrs") => Layout {
            columns: const { &[NAME, text("CIDRs"), AGE] },
            cells: |o| vec![json!(o.name()), json!(o.strings("/spec/cidrs").join(",")), json!(o.age())],
        },
        ("networking.k8s.io", "ipaddresses") => {
            // The age is a cell without a column, as on the real server.
            Layout { columns: const { &[NAME, text("ParentRef")] }, cells: ip_address }
        }
        _ => return None,
    })
}

fn service(o: &View<'_>) -> Vec<Value> {
    let external: Vec<&str> = o.strings("/spec/externalIPs");
    let external = match o.text("/spec/type") {
        "ClusterIP" | "NodePort" if external.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => external.join(","),
        "LoadBalancer" => {
            let balancer = load_balancer(o);
            let all: Vec<&str> = balancer.split(',').filter(|ip| !ip.is_empty()).chain(external).collect();
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        "ExternalName" => o.text("/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    };
    let ports: Vec<String> = o
        .each("/spec/ports")
        .map(|p| match (p.int("/port"), p.int("/nodePort"), p.text("/protocol")) {
            (port, node, protocol) if node > 0 => format!("{port}:{node}/{protocol}"),
            (port, _, protocol) => format!("{port}/{protocol}"),
        })
        .collect();
    vec![
        json!(o.name()),
        json!(o.text("/spec/type")),
        json!(o.text_or("/spec/clusterIPs/0", o.text_or("/spec/clusterIP", "<none>"))),
        json!(external),
        json!(if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") }),
        json!(o.age()),
        json!(o.labels("/spec/selector")),
    ]
}

fn load_balancer(o: &View<'_>) -> String {
    let addresses: BTreeSet<&str> = o
        .each("/status/loadBalancer/ingress")
        .map(|i| i.text_or("/ip", i.text("/hostname")))
        .filter(|address| !address.is_empty())
        .collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}

fn endpoints(o: &View<'_>) -> String {
    if o.list("/subsets").is_empty() {
        return "<none>".to_owned();
    }
    let mut all = Vec::new();
    for subset in o.each("/subsets") {
        let addresses = || subset.each("/addresses").map(|a| a.text("/ip"));
        if subset.list("/ports").is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in subset.each("/ports") {
            let port = port.int("/port");
            all.extend(
                addresses().map(|ip| {
                    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
                }),
            );
        }
    }
    if all.is_empty() { String::new() } else { first_three(&all) }
}

fn endpoint_slice(o: &View<'_>) -> Vec<Value> {
    let ports: Vec<String> = o
        .each("/ports")
        .map(|p| {
            let number = p.scalar("/port");
            number.or_else(|| p.scalar("/name")).unwrap_or_else(|| "*".to_owned())
        })
        .collect();
    let addresses: Vec<String> =
        o.each("/endpoints").flat_map(|e| e.strings("/addresses")).map(str::to_owned).collect();
    vec![
        json!(o.name()),
        json!(o.text("/addressType")),
        json!(first_three(&ports)),
        json!(first_three(&addresses)),
        json!(o.age()),
    ]
}

fn ingress(o: &View<'_>) -> Vec<Value> {
    let rules = o.list("/spec/rules").len();
    let mut hosts: Vec<&str> = Vec::new();
    let mut more = false;
    for rule in o.each("/spec/rules") {
        more = more || hosts.len() == 3;
        let host = rule.text("/host");
        if !more && !host.is_empty() {
            hosts.push(host);
        }
    }
    let shown = if hosts.is_empty() { "*".to_owned() } else { hosts.join(",") };
    let shown = if more { format!("{shown} + {} more...", rules.saturating_sub(3)) } else { shown };
    vec![
        json!(o.name()),
        json!(o.text_or("/spec/ingressClassName", "<none>")),
        json!(shown),
        json!(load_balancer(o)),
        json!(if o.list("/spec/tls").is_empty() { "80" } else { "80, 443" }),
        json!(o.age()),
    ]
}

fn ingress_class(o: &View<'_>) -> Vec<Value> {
    let annotations = o.map("/metadata/annotations");
    let default = annotations.and_then(|a| a.get("ingressclass.kubernetes.io/is-default-class"));
    let default = if default.is_some_and(|v| v == "true") { " (default)" } else { "" };
    let parameters = o.at("/spec/parameters").map_or_else(
        || "<none>".to_owned(),
        |_| {
            let kind = o.text("/spec/parameters/kind");
            let name = o.text("/spec/parameters/name");
            o.scalar("/spec/parameters/apiGroup")
                .map_or_else(|| format!("{kind}/{name}"), |group| format!("{kind}.{group}/{name}"))
        },
    );
    vec![
        json!(format!("{}{default}", o.name())),
        json!(o.text("/spec/controller")),
        json!(parameters),
        json!(o.age()),
    ]
}

fn ip_address(o: &View<'_>) -> Vec<Value> {
    let parent = if o.has("/spec/parentRef") {
        let resource =
            crate::status::qualified(o.text("/spec/parentRef/group"), o.text("/spec/parentRef/resource"));
        let mut parts = vec![resource.to_lowercase()];
        parts.extend(o.scalar("/spec/parentRef/namespace").filter(|ns| !ns.is_empty()));
        parts.push(o.text("/spec/parentRef/name").to_owned());
        parts.join("/")
    } else {
        "<none>".to_owned()
    };
    vec![json!(o.name()), json!(parent), json!(o.age())]
}
