//! `demo`: what a newcomer sees.

use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use tokio_tungstenite::connect_async;

use crate::client::{message, op, word};
use crate::harness::SOON;
use crate::running::{Running, kube_informer, run, stuck_pipe, text};

#[test]
fn the_demo_shows_what_comes_alive_and_a_service_that_sleeps_and_wakes() {
    let mut demo = Running::start(&["demo", "--speed", "10"]);
    demo.line("Kubernetes API on http://127.0.0.1:");
    demo.line("kubectl --kubeconfig");
    demo.line("websocat ws://127.0.0.1:");
    demo.line("~ changed, old→new");
    let web = demo.line("Deployment     shop/web ");
    assert!(web.contains("replicas "), "{web}");
    demo.line("Ready");
    demo.line("▸ somebody applies an ElastiService");
    demo.line("+ ElastiService");
    // Its pods may be seen to answer a moment after it is.
    demo.line("→serve: it is awake");
    demo.line("▸ nobody looks at shop/gallery: somebody scales it to zero");
    demo.line("replicas 1→0 (demo)");
    demo.line("mode serve→proxy: it sleeps");
    demo.line("▸ somebody opens shop/gallery");
    demo.line("▸ a request for shop/gallery is at the resolver");
    let awake = demo.line("mode proxy→serve: it is awake");
    assert!(!awake.contains('\x1b'), "no colours in a pipe: {awake}");
    // People decide something, again and again, and who it was.
    demo.line("(kubectl)");
    assert_eq!(demo.terminate(), Some(130));
}

#[test]
fn the_demo_ends_by_itself_and_says_what_there_was() {
    let output = run(&["demo", "--duration", "4s"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    let said = text(&output.stdout);
    assert!(said.contains(" shop/web "), "{said}");
    let summary = said.lines().find(|line| line.starts_with("ended after ")).unwrap();
    for words in ["objects are in the cluster", "KiB", "changes", "lines", "MiB of memory"] {
        assert!(summary.contains(words), "{summary}");
    }
    assert!(said.ends_with("nothing is left behind\n"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_too_early_is_told_so_and_nothing_is_played() {
    // So slow that the play has not begun.
    let (demo, url) = tokio::task::block_in_place(|| {
        let mut demo = Running::start(&["demo", "--speed", "0.05"]);
        let line = demo.line("curl http://127.0.0.1:");
        (demo, word(&line, "http://").trim_end_matches('/').to_owned())
    });
    let answer = Endpoint::new(Access::anonymous(url)).unwrap().get("/").await.unwrap();
    assert_eq!(answer.status, 503);
    assert_eq!(answer.text(), "shop/gallery is not there yet: try again in some seconds\n");
    demo.signal("-INT");
    let said = text(&tokio::task::block_in_place(|| demo.output()).stdout);
    assert!(said.contains("nothing is left behind") && !said.contains("▸ a request"), "{said}");
}

#[test]
fn the_demo_names_its_own_file_where_the_path_does_not_lead_to_it() {
    let named = |path: &std::path::Path| {
        let mut command = kube_informer(&["demo"]);
        command.env("PATH", path);
        let mut demo = Running::of(command);
        let line = demo.line(" watch deployments -A -o diff");
        demo.terminate();
        line.trim().split_once(" watch ").unwrap().0.to_owned()
    };
    let file = std::path::Path::new(env!("CARGO_BIN_EXE_kube-informer"));
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(named(folder.path()), file.to_str().unwrap());
    assert_eq!(named(file.parent().unwrap()), "kube-informer");
    // Another program of that name.
    std::os::unix::fs::symlink("/bin/sh", folder.path().join("kube-informer")).unwrap();
    assert_eq!(named(folder.path()), file.to_str().unwrap());
}

#[test]
fn what_the_demo_prints_to_be_typed_can_be() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("two words");
    std::fs::create_dir(&place).unwrap();
    let mut command = kube_informer(&["demo"]);
    command.env("TMPDIR", &place);
    let mut demo = Running::of(command);
    for part in ["kubectl --kubeconfig ", " watch deployments -A -o diff --kubeconfig "] {
        let line = demo.line(part);
        let (_, typed) = line.split_once("--kubeconfig ").unwrap();
        assert!(typed.starts_with(&format!("'{}/", place.display())) && typed.contains(".yaml'"), "{line}");
    }
    demo.terminate();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_feeds_any_websocket_client() {
    let (mut demo, url) = tokio::task::block_in_place(|| {
        let mut demo = Running::start(&["demo", "--speed", "10"]);
        let line = demo.line("websocat");
        (demo, word(&line, "ws://").to_owned())
    });
    let (mut socket, _) = connect_async(&url).await.unwrap();
    let hello = op(&mut socket, "hello").await;
    for gvr in ["apps/v1/deployments", "v1/pods", "elasti.truefoundry.com/v1alpha1/elastiservices"] {
        assert!(hello["resources"].as_array().unwrap().contains(&gvr.into()), "{hello}");
    }
    // What there is, what the controller finds, and what the hub reads by itself.
    op(&mut socket, "snap.end").await;
    message(&mut socket, |change| change["op"] == "change" && change["obj"]["kind"] == "Deployment").await;
    message(&mut socket, |change| change["op"] == "change" && change["obj"]["kind"] == "Pod").await;
    tokio::task::block_in_place(|| demo.signal("-INT"));
    let bye = op(&mut socket, "bye").await;
    assert_eq!(bye["code"], 1001, "{bye}");
    crate::client::closed(socket).await;
    assert_eq!(tokio::task::block_in_place(|| demo.code()), Some(130));
}

#[test]
fn the_kubeconfig_that_the_demo_names_leads_to_its_cluster() {
    let mut demo = Running::start(&["demo", "--speed", "10"]);
    let line = demo.line("kubectl --kubeconfig");
    let file = word(line.split_once("--kubeconfig ").unwrap().1, "/").to_owned();
    let waited = run(&[
        "wait",
        "deploy/web",
        "-n",
        "shop",
        "--for",
        "create",
        "--timeout",
        "60s",
        "--kubeconfig",
        &file,
    ]);
    assert_eq!(text(&waited.stdout), "deployment.apps/web condition met\n", "{}", text(&waited.stderr));
    let got = run(&["get", "deploy", "web", "-n", "shop", "-o", "name", "--kubeconfig", &file]);
    assert_eq!((text(&got.stdout), text(&got.stderr)), ("deployment.apps/web\n".to_owned(), String::new()));
    assert_eq!(demo.terminate(), Some(130));
    let gone = run(&["get", "deploy", "-n", "shop", "--kubeconfig", &file]);
    assert_eq!(gone.status.code(), Some(1), "the file is gone with it: {}", text(&gone.stdout));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_seed_makes_the_same_pods() {
    let pods = async || {
        let (demo, url) = tokio::task::block_in_place(|| {
            let mut demo = Running::start(&["demo", "--seed", "7"]);
            let line = demo.line("Kubernetes API on");
            (demo, word(&line, "http://").to_owned())
        });
        let cluster = Endpoint::new(Access::anonymous(url)).unwrap();
        let pods = eventually("the shop has its pods", SOON, async || {
            let list = cluster.get_json("/api/v1/namespaces/shop/pods").await.ok()?;
            let items = list["items"].as_array()?;
            let web = items.iter().filter_map(|pod| pod["metadata"]["name"].as_str());
            let mut web: Vec<String> =
                web.filter(|name| name.starts_with("web-")).map(str::to_owned).collect();
            web.sort();
            (web.len() >= 3).then_some(web)
        })
        .await;
        tokio::task::block_in_place(|| demo.terminate());
        pods
    };
    let first = pods().await;
    assert_eq!(first, pods().await);
}

#[test]
fn the_demo_is_quiet_when_its_reader_has_seen_enough() {
    let mut demo = Running::start(&["demo", "--speed", "10"]);
    demo.line("Kubernetes API on http://127.0.0.1:");
    // `demo | head -1`: the pipe closes.
    demo.close_stdout();
    assert_eq!(demo.code(), Some(0));
    assert_eq!(demo.said(), "");
}

#[test]
fn the_demo_ends_at_sigterm_though_its_output_is_stuck() {
    let folder = std::env::temp_dir().join(format!("kube-informer-stuck-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (reader, writer) = stuck_pipe(0);
    let mut command = kube_informer(&["demo"]);
    command.env("TMPDIR", &folder).stdout(writer);
    let mut demo = Running::of(command);
    let kubeconfig = folder.join(format!("kube-informer-demo-{}.yaml", demo.child.id()));
    demo.until_it_is("the kubeconfig is there", || kubeconfig.exists());
    assert_eq!(demo.terminate(), Some(130));
    drop(reader);
    // Empty, therefore it goes: the kubeconfig was taken away.
    std::fs::remove_dir(&folder).unwrap();
}
