//! `get` and `describe`.

use kube_informer_testbed::require;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::harness::Kubectl;

const PODS: &str = r#"
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: b, labels: {app: shop, tier: front}}
  spec: {nodeName: n1, containers: [{name: main, image: "nginx:1", ports: [{containerPort: 80}], env: [{name: A, value: "1"}]}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: a, labels: {app: shop}}
  spec: {containers: [{name: main, image: "nginx:1"}, {name: side, image: busybox}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: c, namespace: kube-system, labels: {app: dns}}
  spec: {nodeName: n1, containers: [{name: main, image: dns}]}
"#;

async fn with_pods() -> Result<Kubectl, kube_informer_testbed::binaries::Unavailable> {
    let k = Kubectl::new().await?;
    assert_eq!(k.feed(PODS, "create -f -").await, "pod/b created\npod/a created\npod/c created");
    Ok(k)
}

#[tokio::test]
async fn tables_have_the_columns_of_the_kind() {
    let k = require!(with_pods().await);
    let namespaces = "\
NAME STATUS AGE
default Active AGE
kube-node-lease Active AGE
kube-public Active AGE
kube-system Active AGE";
    assert_eq!(k.tidy("get ns").await, namespaces);
    let pods = "NAME READY STATUS RESTARTS AGE\na 0/2 Pending 0 AGE\nb 0/1 Pending 0 AGE";
    assert_eq!(k.tidy("get pods").await, pods);
    let wide = "\
NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES
b 0/1 Pending 0 AGE <none> n1 <none> <none>";
    assert_eq!(k.tidy("get pod b -o wide").await, wide);
    let everywhere = "\
NAMESPACE NAME READY STATUS RESTARTS AGE
default a 0/2 Pending 0 AGE
default b 0/1 Pending 0 AGE
kube-system c 0/1 Pending 0 AGE";
    assert_eq!(k.tidy("get pods -A").await, everywhere);
    let labels = "NAME READY STATUS RESTARTS AGE LABELS\nb 0/1 Pending 0 AGE app=shop,tier=front";
    assert_eq!(k.tidy("get pod b --show-labels").await, labels);
    let column = "NAME READY STATUS RESTARTS AGE TIER\na 0/2 Pending 0 AGE\nb 0/1 Pending 0 AGE front";
    assert_eq!(k.tidy("get pods -L tier").await, column);
    let several = "\
NAME READY STATUS RESTARTS AGE
pod/a 0/2 Pending 0 AGE
pod/b 0/1 Pending 0 AGE

NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE
service/kubernetes ClusterIP 10.96.0.1 <none> 443/TCP AGE";
    assert_eq!(k.tidy("get all").await, several);
}

#[tokio::test]
async fn objects_are_selected_and_sorted() {
    let k = require!(with_pods().await);
    assert_eq!(k.ok("get pods -A -l app=shop,tier!=front -o name").await, "pod/a\n");
    assert_eq!(k.ok("get pods -A -l tier -o name").await, "pod/b\n");
    assert_eq!(
        k.ok("get pods -A --field-selector spec.nodeName=n1,metadata.namespace!=kube-system -o name").await,
        "pod/b\n"
    );
    assert_eq!(
        k.ok("get pods -A --sort-by=.spec.containers[0].image -o name").await,
        "pod/c\npod/a\npod/b\n"
    );
    let none = k.warned("get pods -l app=none").await;
    assert_eq!(none, (String::new(), "No resources found in default namespace.".to_owned()));
    assert_eq!(k.ok("get pods a b -o name").await, "pod/a\npod/b\n");
    assert_eq!(k.ok("get pod/a svc/kubernetes -o name").await, "pod/a\nservice/kubernetes\n");
    // Page by page.
    assert_eq!(k.ok("get pods -A --chunk-size=1 -o name").await, "pod/a\npod/b\npod/c\n");
}

#[tokio::test]
async fn objects_are_printed_in_every_format() {
    let k = require!(with_pods().await);
    assert_eq!(k.ok("get pod b -o jsonpath={.spec.containers[0].image}").await, "nginx:1");
    assert_eq!(k.ok("get pods -o jsonpath={.items[*].metadata.name}").await, "a b");
    assert_eq!(k.ok("get pod b -o go-template={{.spec.nodeName}}").await, "n1");
    let columns =
        k.tidy("get pods -A -o custom-columns=N:.metadata.name,IMAGES:.spec.containers[*].image").await;
    assert_eq!(columns, "N IMAGES\na nginx:1,busybox\nb nginx:1\nc dns");
    let json: serde_json::Value = serde_json::from_str(&k.ok("get pod a -o json").await).unwrap();
    assert_eq!(json["spec"]["containers"][1]["imagePullPolicy"], "Always");
    assert!(json["metadata"]["managedFields"].is_null(), "{json}");
    let json: serde_json::Value = serde_json::from_str(&k.ok("get pods -o json").await).unwrap();
    assert_eq!((json["kind"].as_str(), json["items"].as_array().map(Vec::len)), (Some("List"), Some(2)));
    assert_eq!(json["items"][0]["kind"], "Pod");
    let yaml = k.ok("get ns default -o yaml").await;
    assert!(yaml.contains("\nspec:\n  finalizers:\n  - kubernetes\nstatus:\n  phase: Active\n"), "{yaml}");
    let managed = k.ok("get pod a -o yaml --show-managed-fields").await;
    assert!(managed.contains("manager: kubectl-create\n    operation: Update\n"), "{managed}");
}

#[tokio::test]
async fn changes_are_watched() {
    let k = require!(Kubectl::new().await);
    k.ok("create configmap a").await;
    let arguments =
        r#"get configmaps --watch --output-watch-events -o jsonpath={.type}:{.object.metadata.name}{"\n"}"#;
    let mut watch = k.command(arguments).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = async || lines.next_line().await.unwrap().unwrap();
    assert_eq!(next().await, "ADDED:a");
    k.ok("create configmap b").await;
    assert_eq!(next().await, "ADDED:b");
    k.ok("label configmap a x=y").await;
    assert_eq!(next().await, "MODIFIED:a");
    k.ok("delete configmap a").await;
    assert_eq!(next().await, "DELETED:a");
    watch.kill().await.unwrap();
}

#[tokio::test]
async fn a_table_is_watched_row_by_row() {
    let k = require!(with_pods().await);
    let mut watch = k.command("get pods --watch").spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = async || crate::harness::tidy(&lines.next_line().await.unwrap().unwrap());
    assert_eq!(next().await, "NAME READY STATUS RESTARTS AGE");
    assert_eq!(next().await, "a 0/2 Pending 0 AGE");
    assert_eq!(next().await, "b 0/1 Pending 0 AGE");
    k.ok(r#"patch pod a --subresource=status --type=merge -p {"status":{"phase":"Failed","reason":"Evicted"}}"#).await;
    assert_eq!(next().await, "a 0/2 Evicted 0 AGE");
    watch.kill().await.unwrap();
}

#[tokio::test]
async fn objects_are_described_with_what_belongs_to_them() {
    let k = require!(with_pods().await);
    let uid = k.ok("get pod b -o jsonpath={.metadata.uid}").await;
    let event = r#"
apiVersion: v1
kind: Event
metadata: {name: e1}
involvedObject: {apiVersion: v1, kind: Pod, name: b, namespace: default, uid: UID}
type: Warning
reason: TooHot
message: It burns
count: 3
firstTimestamp: "2020-01-01T00:00:00Z"
lastTimestamp: "2020-01-01T00:00:00Z"
source: {component: tests}
"#;
    k.feed(&event.replace("UID", &uid), "create -f -").await;
    let pod = k.tidy("describe pod b").await;
    for part in [
        "Name: b\nNamespace: default\nPriority: 0\nNode: n1/\nLabels: app=shop\ntier=front\n",
        "\nmain:\nImage: nginx:1\nPort: 80/TCP\nHost Port: 0/TCP\nEnvironment:\nA: 1\nMounts: <none>\n",
        "\nQoS Class: BestEffort\nNode-Selectors: <none>\nTolerations: node.kubernetes.io/not-ready:NoExecute op=Exists for AGE\n",
        "Warning TooHot ",
        "tests It burns",
    ] {
        assert!(pod.contains(part), "no {part:?} in\n{pod}");
    }
    let events = k
        .ok("get events --field-selector involvedObject.name=b,type=Warning -o jsonpath={.items[*].reason}")
        .await;
    assert_eq!(events, "TooHot");
    assert!(k.ok("events --for pod/b").await.contains("It burns"));

    let namespace = "\
Name: default
Labels: kubernetes.io/metadata.name=default
Annotations: <none>
Status: Active

No resource quota.

No LimitRange resource.";
    assert_eq!(k.tidy("describe ns default").await, namespace);
    k.ok("create configmap conf --from-literal=key=value").await;
    let configmap = k.tidy("describe configmap conf").await;
    assert!(configmap.contains("\nData\n====\nkey:\n----\nvalue\n"), "{configmap}");
    let service = k.tidy("describe service kubernetes").await;
    assert!(service.contains("\nType: ClusterIP\nIP Family Policy: SingleStack\n"), "{service}");
    k.feed("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {capacity: {cpu: 2}}", "create -f -")
        .await;
    let node = k.tidy("describe node n1").await;
    assert!(node.contains("\nCapacity:\ncpu: 2\n"), "{node}");
    assert!(node.contains("\nNon-terminated Pods: (2 in total)\n"), "{node}");
}
