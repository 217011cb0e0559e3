use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::{Value, json};

use super::*;

fn service(spec: Value) -> Service {
    let metadata = json!({
        "name": "web", "namespace": "shop",
        "labels": { "app": "web", "helm.sh/chart": "web-1" },
        "annotations": { "cloud": "lb" },
        "ownerReferences": [{ "apiVersion": "v1", "kind": "Foreign", "name": "f", "uid": "f", "controller": true }],
    });
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
}

fn web() -> Service {
    service(json!({
        "type": "LoadBalancer",
        "clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
        "loadBalancerIP": "1.2.3.4", "externalTrafficPolicy": "Local", "publishNotReadyAddresses": true,
        "selector": { "app": "web" },
        "ports": [
            { "name": "http", "port": 80, "targetPort": "http", "nodePort": 30080, "protocol": "TCP", "appProtocol": "h2c" },
            { "name": "metrics", "port": 9090, "targetPort": 9090, "nodePort": 30090, "protocol": "TCP" },
            { "name": "dns", "port": 53, "targetPort": 53, "nodePort": 30053, "protocol": "UDP" },
        ],
    }))
}

fn owner() -> Owner {
    Owner { namespace: "shop".to_owned(), name: "web-elasti".to_owned(), uid: "u-1".to_owned() }
}

fn resolver_slice(family: &str, endpoints: Value) -> EndpointSlice {
    serde_json::from_value(
        json!({ "metadata": {}, "addressType": family, "endpoints": endpoints, "ports": [] }),
    )
    .unwrap()
}

fn ready(address: &str) -> Value {
    json!({ "addresses": [address], "conditions": { "ready": true } })
}

fn resolver() -> Resolver {
    let all = [
        resolver_slice("IPv4", json!([ready("10.1.0.9"), ready("10.1.0.2")])),
        resolver_slice("IPv6", json!([ready("fd00::2")])),
    ];
    Resolver::of(&all)
}

fn addresses(slice: &EndpointSlice) -> Vec<&str> {
    slice.endpoints.iter().flatten().flat_map(|each| each.addresses.iter().map(String::as_str)).collect()
}

#[test]
fn a_private_service_has_the_selector_and_ports_of_the_public_one_and_nothing_else() {
    let private = private_service(&owner(), &web(), "apps/v1/deployments/web".to_owned());
    let expected = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "elasti-web-pvt-7e1a83ce8b", "namespace": "shop",
            "labels": { "app.kubernetes.io/managed-by": "kube-informer-elasti" },
            "annotations": { "elasti.truefoundry.com/scale-target": "apps/v1/deployments/web" },
            "ownerReferences": [{
                "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService", "name": "web-elasti", "uid": "u-1",
                "controller": true, "blockOwnerDeletion": true }],
        },
        "spec": {
            "type": "ClusterIP", "selector": { "app": "web" }, "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "ports": [
                { "name": "http", "port": 80, "targetPort": "http", "protocol": "TCP", "appProtocol": "h2c" },
                { "name": "metrics", "port": 9090, "targetPort": 9090, "protocol": "TCP" },
                { "name": "dns", "port": 53, "targetPort": 53, "protocol": "UDP" },
            ],
        },
    });
    let mut expected = expected;
    // The hash is tested where names are made.
    expected["metadata"]["name"] = names::private_service("web").into();
    assert_eq!(serde_json::to_value(private).unwrap(), expected);
}

#[test]
fn a_headless_service_has_a_headless_private_one() {
    let public = service(json!({ "clusterIP": "None", "selector": { "a": "b" }, "ports": [{ "port": 80 }] }));
    let private = private_service(&owner(), &public, String::new());
    assert_eq!(private.spec.as_ref().unwrap().cluster_ip.as_deref(), Some("None"));
    let with_address = private_service(&owner(), &web(), String::new());
    assert_eq!(with_address.spec.as_ref().unwrap().cluster_ip, None);
    assert_eq!(amended_service(&with_address, &private), Amended::Anew, "an address is for life");
}

#[test]
fn a_private_service_is_written_only_where_it_differs() {
    let wanted = private_service(&owner(), &web(), "t".to_owned());
    let mut there = wanted.clone();
    // What the server adds.
    there.metadata.resource_version = Some("7".to_owned());
    there.metadata.uid = Some("s".to_owned());
    let spec = there.spec.as_mut().unwrap();
    spec.cluster_ip = Some("10.0.0.9".to_owned());
    spec.cluster_ips = Some(vec!["10.0.0.9".to_owned()]);
    spec.session_affinity = Some("None".to_owned());
    spec.internal_traffic_policy = Some("Cluster".to_owned());
    assert_eq!(amended_service(&there, &wanted), Amended::Same);

    // As the operator before us left it: a copy of everything.
    let mut copied = there.clone();
    copied.metadata.labels = Some(BTreeMap::from([("app".to_owned(), "web".to_owned())]));
    let spec = copied.spec.as_mut().unwrap();
    spec.selector =
        Some(BTreeMap::from([("old".to_owned(), "1".to_owned()), ("app".to_owned(), "web".to_owned())]));
    spec.type_ = Some("LoadBalancer".to_owned());
    spec.publish_not_ready_addresses = Some(true);
    let Amended::Changed(new) = amended_service(&copied, &wanted) else { panic!("it differs") };
    assert_eq!(*new, there);
    assert_eq!(amended_service(&new, &wanted), Amended::Same, "once is enough");
}

#[test]
fn slices_lead_every_tcp_port_to_the_one_of_the_resolver() {
    let slices = slices(&owner(), &web(), &resolver(), 8012);
    let [slice] = &slices[..] else { panic!("the Service has one family") };
    assert_eq!(slice.metadata.name, Some(names::resolver_slice("web")));
    let labels = slice.metadata.labels.clone().unwrap();
    assert_eq!(labels[SERVICE_NAME], "web");
    assert_eq!(labels[SLICE_MANAGED_BY], MANAGER);
    assert_eq!(slice.metadata.owner_references.as_ref().unwrap()[0].uid, "u-1");
    assert_eq!(addresses(slice), ["10.1.0.2", "10.1.0.9"], "in order");
    assert!(
        slice.endpoints.iter().flatten().all(|each| each.conditions.as_ref().unwrap().ready == Some(true))
    );
    let ports = serde_json::to_value(&slice.ports).unwrap();
    let expected = json!([
        { "name": "http", "port": 8012, "protocol": "TCP", "appProtocol": "h2c" },
        { "name": "metrics", "port": 8012, "protocol": "TCP" },
    ]);
    assert_eq!(ports, expected);
    assert_eq!(left_out(&web()), ["53/UDP"]);
}

#[test]
fn there_is_a_slice_for_each_family_that_both_have() {
    let mut public = web();
    public.spec.as_mut().unwrap().ip_families = Some(vec!["IPv6".to_owned(), "IPv4".to_owned()]);
    let both = slices(&owner(), &public, &resolver(), 8012);
    let names: Vec<_> = both.iter().filter_map(|slice| slice.metadata.name.clone()).collect();
    assert_eq!(names, slice_names("web"));
    assert!(names.iter().all(|name| is_to_resolver(name, "web") && !is_to_resolver(name, "we")));
    assert_eq!(
        both.iter().map(addresses).collect::<Vec<_>>(),
        [vec!["10.1.0.2", "10.1.0.9"], vec!["fd00::2"]]
    );

    let old = Resolver::of(&[resolver_slice("IPv4", json!([ready("10.1.0.2")]))]);
    let one = slices(&owner(), &public, &old, 8012);
    assert_eq!(one.iter().map(|slice| &*slice.address_type).collect::<Vec<_>>(), ["IPv4"]);

    let new = Resolver::of(&[resolver_slice("IPv6", json!([ready("fd00::2")]))]);
    assert!(!new.hears(&web()), "the Service is asked by IPv4 alone");
    let deaf = slices(&owner(), &web(), &new, 8012);
    assert_eq!(deaf.iter().map(addresses).collect::<Vec<_>>(), [Vec::<&str>::new()], "true, and there");
}

#[test]
fn only_ready_endpoints_of_the_resolver_are_led_to() {
    let endpoints = json!([
        { "addresses": ["10.0.0.1"], "conditions": { "ready": true, "serving": true }, "nodeName": "n", "zone": "z" },
        { "addresses": ["10.0.0.2"], "conditions": { "ready": false } },
        { "addresses": ["10.0.0.3"], "conditions": { "ready": true, "terminating": true } },
        { "addresses": ["10.0.0.4"], "conditions": { "ready": true, "serving": false } },
        { "addresses": ["10.0.0.5"] },
        { "addresses": [] },
    ]);
    let found = Resolver::of(&[
        resolver_slice("IPv4", endpoints),
        resolver_slice("FQDN", json!([ready("x.example")])),
        resolver_slice("IPv4", json!([ready("10.0.0.1")])),
    ]);
    let slices = slices(&owner(), &web(), &found, 1);
    assert_eq!(addresses(&slices[0]), ["10.0.0.1", "10.0.0.5"], "each once");
    assert!(Resolver::of(&[resolver_slice("IPv4", json!([]))]).is_empty());
    assert!(Resolver::of(&[resolver_slice("IPv4", Value::Null)]).is_empty());
}

#[test]
fn no_slice_has_more_endpoints_than_it_may() {
    let many: Vec<_> = (0..1500).map(|n| ready(&format!("10.0.{}.{}", n / 250, n % 250))).collect();
    let found = Resolver::of(&[resolver_slice("IPv4", many.into())]);
    assert_eq!(addresses(&slices(&owner(), &web(), &found, 1)[0]).len(), 1000);
}

#[test]
fn a_slice_is_written_only_where_it_differs() {
    let wanted = slices(&owner(), &web(), &resolver(), 8012).remove(0);
    let mut there = wanted.clone();
    there.metadata.resource_version = Some("7".to_owned());
    there.metadata.generation = Some(3);
    assert_eq!(amended_slice(&there, &wanted), Amended::Same);
    let fewer = Resolver::of(&[resolver_slice("IPv4", json!([ready("10.1.0.2")]))]);
    let fewer = slices(&owner(), &web(), &fewer, 8012).remove(0);
    let Amended::Changed(new) = amended_slice(&there, &fewer) else { panic!("an endpoint is gone") };
    assert_eq!(addresses(&new), ["10.1.0.2"]);
    assert_eq!(new.metadata.resource_version.as_deref(), Some("7"));
    let none = slices(&owner(), &web(), &Resolver::default(), 8012).remove(0);
    let mut empty = none.clone();
    empty.endpoints = None;
    assert_eq!(amended_slice(&empty, &none), Amended::Same, "nothing and an empty list are the same");
    there.address_type = "IPv6".to_owned();
    assert_eq!(amended_slice(&there, &wanted), Amended::Anew);
}

#[test]
fn a_service_that_nothing_can_be_done_for_is_told_what_to_do() {
    assert_eq!(check(&web()), Ok(()));
    let with = |spec: Value| check(&service(spec));
    assert_eq!(
        with(json!({ "type": "ExternalName", "externalName": "x.example" })),
        Err(Unfit::ExternalName)
    );
    assert_eq!(with(json!({ "ports": [{ "port": 80 }] })), Err(Unfit::NoSelector));
    assert_eq!(with(json!({ "selector": {}, "ports": [{ "port": 80 }] })), Err(Unfit::NoSelector));
    assert_eq!(with(json!({ "selector": { "a": "b" } })), Err(Unfit::NoPorts));
    let udp = json!({ "selector": { "a": "b" }, "ports": [{ "port": 53, "protocol": "UDP" }] });
    assert_eq!(with(udp), Err(Unfit::NoTcpPorts));
    let mut long = web();
    long.metadata.name = Some("x".repeat(42));
    assert_eq!(check(&long), Err(Unfit::NameTooLong));
    assert!(Unfit::NoSelector.to_string().contains("give it the selector"));
}

#[test]
fn what_others_manage_is_not_free() {
    let owned = |owners: Value| {
        let metadata: ObjectMeta = serde_json::from_value(json!({ "ownerReferences": owners })).unwrap();
        is_free(&metadata)
    };
    let by = |api: &str, kind: &str, controller: bool| json!([{ "apiVersion": api, "kind": kind, "name": "n", "uid": "u", "controller": controller }]);
    assert!(owned(json!([])));
    assert!(owned(by("elasti.truefoundry.com/v1alpha1", "ElastiService", true)), "of the same name, before");
    assert!(owned(by("apps/v1", "Deployment", false)));
    assert!(!owned(by("apps/v1", "Deployment", true)));
    assert!(!owned(by("example.com/v1", "ElastiService", true)));
}

#[test]
fn a_private_service_gets_the_families_of_the_public_one() {
    let there = private_service(&owner(), &web(), "t".to_owned());
    let mut public = web();
    let spec = public.spec.as_mut().unwrap();
    spec.ip_families = Some(vec!["IPv4".to_owned(), "IPv6".to_owned()]);
    spec.ip_family_policy = Some("PreferDualStack".to_owned());
    let wanted = private_service(&owner(), &public, "t".to_owned());
    let Amended::Changed(new) = amended_service(&there, &wanted) else { panic!("it differs") };
    let spec = new.spec.as_ref().unwrap();
    assert_eq!(spec.ip_families.as_ref().unwrap().len(), 2);
    assert_eq!(spec.ip_family_policy.as_deref(), Some("PreferDualStack"));
    assert_eq!(amended_service(&new, &wanted), Amended::Same, "once is enough");
    // A server that has become dual-stack gives it both, whatever is written.
    public.spec.as_mut().unwrap().ip_families = Some(vec!["IPv4".to_owned()]);
    let wanted = private_service(&owner(), &public, "t".to_owned());
    assert_eq!(amended_service(&new, &wanted), Amended::Same, "it would be written for ever");
    public.spec.as_mut().unwrap().ip_family_policy = Some("SingleStack".to_owned());
    let wanted = private_service(&owner(), &public, "t".to_owned());
    let Amended::Changed(one) = amended_service(&new, &wanted) else { panic!("it differs") };
    assert_eq!(one.spec.as_ref().unwrap().ip_families.as_ref().unwrap().len(), 1);
    // The first one is for life.
    public.spec.as_mut().unwrap().ip_families = Some(vec!["IPv6".to_owned()]);
    let wanted = private_service(&owner(), &public, "t".to_owned());
    assert_eq!(amended_service(&there, &wanted), Amended::Anew);
    // A server that knows one family says nothing, and what there is stays.
    let spec = public.spec.as_mut().unwrap();
    (spec.ip_families, spec.ip_family_policy) = (None, None);
    let wanted = private_service(&owner(), &public, "t".to_owned());
    assert_eq!(amended_service(&there, &wanted), Amended::Same);
}

#[test]
fn what_does_not_come_to_the_resolver_is_said() {
    let both = resolver();
    let one = Resolver::of(&[resolver_slice("IPv4", json!([ready("10.1.0.9")]))]);
    let port = |target: Value| json!([{ "port": 80, "targetPort": target }]);
    let headless =
        |target: Value| misled(&service(json!({ "clusterIP": "None", "ports": port(target) })), 8012);
    assert_eq!(misled(&web(), 8012), None);
    for elsewhere in [json!(5432), json!("db")] {
        assert!(headless(elsewhere).unwrap().contains("name a Service with a cluster IP"));
    }
    assert_eq!(headless(json!(8012)), None, "the resolver listens there");
    assert_eq!(unheard(&web(), &one), None);
    let dual = service(json!({ "ipFamilies": ["IPv4", "IPv6"], "ports": port(json!(80)) }));
    assert_eq!(unheard(&dual, &both), None);
    assert!(unheard(&dual, &one).unwrap().contains("give the resolver IPv6 addresses"));
}

fn native(family: &str, ports: &[&str], ready: bool) -> EndpointSlice {
    let ports: Vec<_> =
        ports.iter().map(|name| json!({ "name": name, "port": 1, "protocol": "TCP" })).collect();
    serde_json::from_value(json!({ "metadata": {}, "addressType": family, "ports": ports,
        "endpoints": [{ "addresses": ["a"], "conditions": { "ready": ready } }] }))
    .unwrap()
}

fn way(family: Family, port: &str) -> Way {
    (family, port.to_owned())
}

#[test]
fn a_way_is_answered_by_a_ready_endpoint_of_its_family_and_port() {
    let slices = [
        native("IPv4", &["http"], true),
        native("IPv4", &["metrics"], false),
        native("IPv6", &["metrics"], true),
        native("FQDN", &["http"], true),
    ];
    let answered = answered(&slices);
    assert_eq!(answered, BTreeSet::from([way(Family::V4, "http"), way(Family::V6, "metrics")]));
    let mut udp = native("IPv4", &["dns"], true);
    udp.ports.as_mut().unwrap()[0].protocol = Some("UDP".to_owned());
    assert_eq!(ways(&[udp]), BTreeSet::new(), "it is not redirected either");
    let mut nameless = native("IPv4", &[""], true);
    nameless.ports.as_mut().unwrap()[0].name = None;
    assert_eq!(ways(&[nameless]), BTreeSet::from([way(Family::V4, "")]), "no name is an empty one");
}

#[test]
fn a_service_is_asked_by_its_families_at_its_tcp_ports() {
    let mut public = web();
    let both = [way(Family::V4, "http"), way(Family::V4, "metrics")];
    assert_eq!(ways_of(&public), BTreeSet::from(both));
    let spec = public.spec.as_mut().unwrap();
    spec.ip_families = Some(vec!["IPv6".to_owned()]);
    spec.ports.as_mut().unwrap().truncate(1);
    assert_eq!(ways_of(&public), BTreeSet::from([way(Family::V6, "http")]));
}

#[test]
fn a_redirect_ends_where_others_answer_and_nowhere_else() {
    let mut public = web();
    public.spec.as_mut().unwrap().ip_families = Some(vec!["IPv4".to_owned(), "IPv6".to_owned()]);
    let all = slices(&owner(), &public, &resolver(), 8012);
    let left = |answered: &[Way]| {
        let left = without(all.clone(), &answered.iter().cloned().collect());
        (left.len(), ways(&left))
    };
    let (http, metrics) = (|family| way(family, "http"), |family| way(family, "metrics"));
    assert_eq!(left(&[]), (2, ways(&all)));
    let (count, open) = left(&[http(Family::V4)]);
    assert_eq!(
        (count, open),
        (2, BTreeSet::from([metrics(Family::V4), http(Family::V6), metrics(Family::V6)]))
    );
    let (count, open) = left(&[http(Family::V4), metrics(Family::V4), http(Family::V6)]);
    assert_eq!((count, open.clone()), (1, BTreeSet::from([metrics(Family::V6)])));
    assert_eq!(named_ways(&open), "port metrics by IPv6");
    assert_eq!(left(&[http(Family::V4), metrics(Family::V4), http(Family::V6), metrics(Family::V6)]).0, 0);
}

#[test]
fn what_others_add_to_our_objects_stays() {
    let wanted = private_service(&owner(), &web(), "t".to_owned());
    let mut there = wanted.clone();
    there.metadata.labels.as_mut().unwrap().insert("team".to_owned(), "shop".to_owned());
    let theirs: OwnerReference =
        serde_json::from_value(json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "c" }))
            .unwrap();
    there.metadata.owner_references.as_mut().unwrap().push(theirs.clone());
    assert_eq!(amended_service(&there, &wanted), Amended::Same, "nobody undoes what others do");
    // Ours are put back, beside theirs; the ElastiService of before owns nothing any more.
    let mut before = there.clone();
    before.metadata.owner_references.as_mut().unwrap()[0].uid = "u-0".to_owned();
    before.spec.as_mut().unwrap().selector = None;
    let Amended::Changed(new) = amended_service(&before, &wanted) else { panic!("it differs") };
    assert_eq!(new.metadata.labels, there.metadata.labels);
    assert_eq!(new.metadata.owner_references, Some(vec![theirs, owner().reference()]));
    assert_eq!(amended_service(&new, &wanted), Amended::Same, "once is enough");
    // A slice, too, whatever others label it with.
    let wanted = slices(&owner(), &web(), &resolver(), 8012).remove(0);
    let mut there = wanted.clone();
    there.metadata.labels.as_mut().unwrap().insert(MANAGED_BY.to_owned(), "Helm".to_owned());
    assert_eq!(amended_slice(&there, &wanted), Amended::Same);
    // What an operator before us made has what belongs to the public Service: that goes.
    there.metadata.labels.as_mut().unwrap().remove(SLICE_MANAGED_BY);
    let Amended::Changed(new) = amended_slice(&there, &wanted) else { panic!("it differs") };
    assert_eq!(new.metadata.labels, wanted.metadata.labels);
}

#[test]
fn a_slice_is_refreshed_and_keeps_the_rest() {
    let [old, ..] = &slices(&owner(), &web(), &Resolver::default(), 8012)[..] else { panic!("no slice") };
    let new = refreshed(old, &resolver());
    assert_eq!(addresses(&new), ["10.1.0.2", "10.1.0.9"]);
    assert_eq!((&new.metadata, &new.ports), (&old.metadata, &old.ports));
}
