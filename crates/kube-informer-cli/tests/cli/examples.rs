//! The examples in the help: whoever types them gets what they promise.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use kube_informer_apiserver::{Server, Simulation};
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use serde_json::{Value, json};

use crate::harness::blocking;
use crate::running::{Running, kube_informer, run, text};

/// What the help of a command shows to type, without what is said beside it.
fn examples(command: &str) -> Vec<String> {
    let help = text(&blocking(|| run(&[command, "--help"])).stdout);
    let (_, shown) = help.split_once("Examples:\n").unwrap_or_else(|| panic!("{command} has no examples"));
    let shown = shown.replace("\\\n", "");
    let lines = shown.lines().map(str::trim).filter(|line| line.starts_with("kube-informer "));
    // What follows a pipe is no matter of ours, and words after a gap are no arguments.
    let typed = lines.map(|line| line.split(" | ").next().unwrap_or_default());
    typed.map(|line| line.split_once("    ").map_or(line, |(line, _)| line).to_owned()).collect()
}

/// A command line, typed to a shell.
fn typed(line: &str, kubeconfig: &Path) -> Command {
    let binary = Path::new(env!("CARGO_BIN_EXE_kube-informer"));
    let mut paths = vec![binary.parent().unwrap().to_owned()];
    paths.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    // Its pipes and its environment are those of any other command here.
    let mut command = Command::new("sh");
    for (name, value) in kube_informer(&[]).get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args(["-c", &format!("exec {line}")]).env("PATH", std::env::join_paths(paths).unwrap());
    command.env("KUBECONFIG", kubeconfig).env("RUST_LOG", "info");
    command.stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    command
}

fn template(app: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": app } },
        "spec": { "containers": [{ "name": "main", "image": "nginx:1" }] },
    })
}

/// A cluster in which everything is that the examples speak of.
async fn cluster() -> Result<(Server, Endpoint)> {
    let simulation = Simulation::default().with_speed(20.0).with_nodes(2).with_events(0);
    let server = Server::builder().seed(1).simulate(simulation).start().await?;
    let endpoint = Endpoint::new(Access::anonymous(server.url()))?;
    let mut deployment = json!({ "metadata": { "name": "web" }, "spec": { "replicas": 2 } });
    deployment["spec"]["selector"] = json!({ "matchLabels": { "app": "web" } });
    deployment["spec"]["template"] = template("web");
    let pod = |name: &str| {
        let mut pod = template(name);
        pod["metadata"]["name"] = json!(name);
        pod
    };
    let job = |name: &str| {
        let mut template = template(name);
        template["spec"]["restartPolicy"] = json!("Never");
        json!({ "metadata": { "name": name }, "spec": { "template": template } })
    };
    for name in ["shop", "web"] {
        endpoint.post("/api/v1/namespaces", &json!({ "metadata": { "name": name } })).await?.success()?;
    }
    for (path, object) in [
        ("/apis/apps/v1/namespaces/default/deployments", deployment),
        ("/api/v1/namespaces/default/pods", pod("web")),
        ("/api/v1/namespaces/default/pods", pod("old")),
        ("/apis/batch/v1/namespaces/default/jobs", job("migrate")),
        ("/apis/batch/v1/namespaces/default/jobs", job("import")),
    ] {
        endpoint.post(path, &object).await?.success()?;
    }
    Ok((server, endpoint))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_help_shows_works_as_it_is_typed() -> Result<()> {
    let (server, endpoint) = cluster().await?;
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("config");
    server.write_kubeconfig(&kubeconfig)?;
    for (command, least) in [("wait", 6), ("get", 4), ("watch", 4)] {
        let examples = examples(command);
        assert!(examples.len() >= least, "{command}: {examples:?}");
        for example in examples {
            // It waits longer here, and does not watch for ever.
            let more = match command {
                _ if example.contains("--timeout") => "",
                "wait" => " --timeout 100s",
                "watch" => " --timeout 0",
                _ => "",
            };
            let mut running = Running::of(typed(&format!("{example}{more}"), &kubeconfig));
            if example.contains("--for delete") {
                blocking(|| running.note("what there is was seen"));
                endpoint.delete("/api/v1/namespaces/default/pods/old").await?.success()?;
            }
            let output = blocking(|| running.output());
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{example}: {said}");
            if command == "wait" {
                let met = text(&output.stdout);
                assert!(met.contains(" condition met\n"), "{example}: {met}{said}");
            }
        }
    }
    Ok(())
}
