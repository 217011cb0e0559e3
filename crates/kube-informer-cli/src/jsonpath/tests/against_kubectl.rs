use std::path::Path;
use std::process::Stdio;

use futures_util::StreamExt as _;
use kube_informer_apiserver::Server;
use kube_informer_testbed::binaries;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use serde_json::json;
use tokio::process::Command;

use super::super::*;
use super::object;

/// Objects in these have one entry, or none: kubectl gives entries in any order.
const TEMPLATES: &[&str] = &[
    // Fields.
    "{.metadata.name}",
    "{ .metadata.name }",
    "{$.metadata.name}",
    "{@.metadata.name}",
    "{.}",
    "{.spec.replicas} {.spec.zero} {.spec.huge} {.spec.ratio} {.spec.large}",
    "{.spec.on}{.spec.off}{.spec.empty}{.spec.text}",
    "{.spec.missing}|{.missing.deeper}|{.spec.text.deeper}",
    "{.metadata.labels.tier}",
    "{.metadata.labels['tier']}",
    "{.metadata['labels'].tier}",
    "{.metadata.labels.app.kubernetes.io/name}",
    r"{.metadata.labels.app\.kubernetes\.io/name}",
    r"{.metadata.labels['app\.kubernetes\.io/name']}",
    "{.metadata.labels['app.kubernetes.io/name']}",
    r"{.metadata.annotations.a\.b/c-d}",
    "{.metadata.labels[\"tier\"]}",
    "{['metadata']['name']}",
    "{.spec['single.key']}",
    "{['metadata.name', 'spec.replicas']}",
    // What is no text.
    "{.spec.words}",
    "{.spec.numbers} {.spec.none} {.spec.nothing}",
    "{.spec.single}",
    "{.spec.matrix}",
    "{.spec.containers[2]}",
    "{.spec.containers}",
    "{.spec}",
    "{.status.conditions}",
    "[{.spec.html}] {.metadata.labels}",
    // Lists.
    "{.spec.words[0]}",
    "{.spec.words[-1]}",
    "{.spec.words[]}",
    "{.spec.words[*]}",
    "{.spec.words[1:3]}",
    "{.spec.words[1:]}",
    "{.spec.words[:2]}",
    "{.spec.words[:-1]}",
    "{.spec.words[-3:-1]}",
    "{.spec.words[::2]}",
    "{.spec.words[1::2]}",
    "{.spec.words[0:5:3]}",
    "{.spec.words[2:2]}",
    "{.spec.words[0,2]}",
    "{.spec.words[0, -1 , 1:3]}",
    "{.spec.words[99]}",
    "{.spec.words[-9]}",
    "{.spec.words[0:99]}",
    "{.spec.words[3:1]}",
    "{.spec.words[::0]}",
    "{.spec.words[::-1]}",
    "{.spec.words[9:9]}",
    "{.spec.words[-0]}",
    "{.spec.none[0]}",
    "{.spec.none[*]}",
    "{.spec.missing[0]}",
    "{.spec.text[0]}",
    "{.spec.replicas[0]}",
    "{.spec[0]}",
    "{.spec.matrix[*][0]}",
    "{.spec.matrix[1][*]}",
    "{.spec.matrix[0,1][1]}",
    // Wildcards and descent.
    "{.spec.single.*}",
    "{.spec.words.*}",
    "{.spec.matrix.*}",
    "{.spec.containers[*].name}",
    "{.spec.containers[*].share}",
    "{.spec.containers[*].ports[*].port}",
    "{.spec.containers[0].name.*}",
    "{..port}",
    "{..share}",
    "{.spec.containers..port}",
    "{.spec.matrix..[0]}",
    "{.spec.matrix..}",
    "{.spec.text..}",
    // Filters.
    "{.spec.containers[?(@.name==\"side\")].image}",
    "{.spec.containers[?(@.name == 'side')].image}",
    "{.spec.containers[?(@.name!=\"side\")].image}",
    "{.spec.containers[?(@.cpu>1)].name}",
    "{.spec.containers[?(@.cpu>=2)].name}",
    "{.spec.containers[?(@.cpu<2)].name}",
    "{.spec.containers[?(@.cpu<=2)].name}",
    "{.spec.containers[?(@.ok==true)].name}",
    "{.spec.containers[?(@.ok!=true)].name}",
    "{.spec.containers[?(@.ok)].name}",
    "{.spec.containers[?(@.share)].name}",
    "{.spec.containers[?(@.share==0.5)].name}",
    "{.spec.containers[?(@.ports[0].port==80)].name}",
    "{.spec.containers[?(@.ports[0])].name}",
    "{.spec.containers[?(@.name>\"b\")].name}",
    "{.spec.containers[?(\"side\"==@.name)].name}",
    "{.spec.containers[?(@.name==@.name)].name}",
    "{.spec.words[?(@==\"two\")]}",
    "{.spec.numbers[?(@>1)]}",
    "{.status.conditions[?(@.type==\"Ready\")].status}",
    "{.status.conditions[?(@.reason==\"it's (odd)\")].type}",
    "{.status.conditions[?(@.type==\"None\")].status}",
    "{.spec.containers[?(@.cpu==\"2\")].name}",
    "{.spec.containers[?(@.cpu==2.0)].name}",
    "{.spec.containers[?(@.ok>true)].name}",
    "{.spec.containers[?(@.ports==1)].name}",
    "{.spec.containers[?(@.ports[*].port==80)].name}",
    "{.spec.single[?(@.key)]}",
    "{.spec.none[?(@.x==1)]}",
    "{.spec.containers[?(@.cpu=2)].name}",
    "{.spec.containers[?(@.cpu===2)].name}",
    // Texts.
    "plain",
    "{\"quoted\"}",
    "{'single'}",
    r#"{"tab\tnew\nline\\"}|"#,
    r#"{"\u00e9\x41\101"}"#,
    r#"{'it\'s'}"#,
    r#"{"say \"so\""}"#,
    "{1}{-2}{+3}{1.50}{true}",
    "{.metadata.name}{\"\\n\"}",
    "é{.metadata.name}ü",
    "{}",
    "{ }x",
    "a}b",
    // Ranges.
    "{range .spec.words[*]}{@}{\",\"}{end}",
    "{range .spec.containers[*]}{.name}={.image}{\"\\n\"}{end}done",
    "{range .spec.containers[*]}{.name}:{range .ports[*]}{.port},{end};{end}",
    "{range .spec.missing[*]}{.name}{end}after",
    "{range .spec.none[*]}{.name}{end}after",
    "{range .spec.containers[?(@.ok==true)]}{.name} {end}",
    "{range .spec.words[*]}{@}{\"-\"}",
    "{range .spec.containers[*]}{range .ports[*]}{.port},{end};",
    "{range .spec.containers[*]}[{range .ports[*]}{.port},",
    "{range}{.metadata.name}{end}",
    "{range .spec.matrix[*]}{[0]}{end}",
    "{range .spec.words[0,1]}{@}{end}{range .spec.words[2]}{@}{end}",
    // What cannot be read.
    "{.spec.words[}",
    "{.spec",
    "{.spec.words[x]}",
    "{.spec.words[-]}",
    "{.spec.words[1:2:3:4]}",
    "{.spec.words[99999999999999999999]}",
    "{.spec.words[?(@.a)",
    "{.spec.words[?(@.a]}",
    "{.spec.words[?(@==)]}",
    "{.spec.words[?(@=~\"t.*\")]}",
    "{.spec.words[?(@<>\"two\")]}",
    "{name}",
    "{end}",
    "{....name}",
    "{~}",
    "{..*}",
    "{.a{.b}}",
    "{\"open}",
    r#"{"\q"}"#,
    r#"{"\"}"#,
    "{1.2.3}",
    "{-}",
    "{.a\n}",
    "{\t.metadata.name}",
    "{.a['b[']}",
    "{['']}",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn templates_give_what_they_give_in_kubectl() {
    let kubectl = kube_informer_testbed::require!(binaries::kubectl().await);
    let server = Server::builder().start().await.unwrap();
    let home = tempfile::tempdir().unwrap();
    server.write_kubeconfig(home.path().join("kubeconfig")).unwrap();
    let endpoint = Endpoint::new(Access::anonymous(server.url())).unwrap();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.example.com" },
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": { "plural": "things", "singular": "thing", "kind": "Thing" },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    endpoint.post(definitions, &definition).await.unwrap().success().unwrap();
    let things = "/apis/example.com/v1/things";
    kube_informer_testbed::eventually::eventually("things", std::time::Duration::from_secs(30), async || {
        endpoint.post(things, &object()).await.ok().filter(|answer| answer.status.is_success())
    })
    .await;
    let object = endpoint.get_json(&format!("{things}/web")).await.unwrap();
    let differences: Vec<String> = futures_util::stream::iter(TEMPLATES)
        .map(|template| compare(&kubectl, home.path(), template, &object))
        .buffer_unordered(4)
        .filter_map(std::future::ready)
        .collect()
        .await;
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

/// What is different, if something is.
async fn compare(kubectl: &Path, home: &Path, template: &str, object: &Value) -> Option<String> {
    let output = Command::new(kubectl)
        .args(["--kubeconfig", "kubeconfig", "get", "thing", "web", "-o"])
        .arg(format!("jsonpath={template}"))
        .current_dir(home)
        .env("HOME", home)
        .env("KUBECACHEDIR", home.join("cache"))
        .env("KUBERC", "off")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = output.await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let ours = Template::parse(template).and_then(|read| read.render(object));
    match ours {
        Ok(ours) if output.status.success() && ours == printed => None,
        Err(error) if !output.status.success() && said.contains(kubectls(&error.to_string())) => None,
        ours => Some(format!("{template}\n  ours:    {ours:?}\n  kubectl: {printed:?} {said:.300}")),
    }
}

/// Our errors say more where they can; and what is no list by its type, where kubectl prints all of it.
fn kubectls(message: &str) -> &str {
    let message = message.split(": texts are").next().unwrap_or(message);
    message.find("is not array or slice and").and_then(|at| message.get(at..)).unwrap_or(message)
}
