//! Where the configuration is found: this depends on the environment, so it is looked at in other processes.

use std::fs;
use std::process::Command;

use super::*;

/// What a child is told to read.
const CHILD: &str = "KUBE_INFORMER_TEST_SOURCE";

/// Reads a source in a process with this environment, and gives what it says.
fn read(test: &str, source: &str, home: &Path, kubeconfig: Option<&Path>, service: Option<&str>) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).env(CHILD, source).env("HOME", home);
    for variable in
        ["KUBECONFIG", "HTTPS_PROXY", "https_proxy", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"]
    {
        child.env_remove(variable);
    }
    if let Some(path) = kubeconfig {
        child.env("KUBECONFIG", path);
    }
    if let Some(host) = service {
        child.env("KUBERNETES_SERVICE_HOST", host).env("KUBERNETES_SERVICE_PORT", "443");
    }
    let output = child.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().find_map(|line| line.split_once("says: ")).unwrap_or_else(|| panic!("{text}")).1.to_owned()
}

async fn child(source: &str) {
    let source = match source {
        "default" => Source::default(),
        "in-cluster-first" => Source::in_cluster_first(),
        context => Source::default().context(context),
    };
    match source.load().await.map(|(config, _)| config) {
        Ok(config) => println!("says: {}", config.cluster_url),
        Err(error) => println!("says: {}", error.to_string().replace('\n', " ")),
    }
}

fn kubeconfig(current: &str) -> String {
    let cluster =
        |name| format!(r#"{{"name":"{name}","cluster":{{"server":"https://{name}.example.com"}}}}"#);
    let context = |name| format!(r#"{{"name":"{name}","context":{{"cluster":"{name}","user":"u"}}}}"#);
    format!(
        r#"{{"apiVersion":"v1","kind":"Config","clusters":[{},{}],"contexts":[{},{}],"users":[{{"name":"u","user":{{}}}}],"current-context":"{current}"}}"#,
        cluster("one"),
        cluster("two"),
        context("one"),
        context("two")
    )
}

#[tokio::test]
async fn the_kubeconfig_comes_first_unless_the_cluster_shall() {
    if let Ok(source) = std::env::var(CHILD) {
        return child(&source).await;
    }
    let home = tempfile::tempdir().unwrap();
    let named = home.path().join("named");
    fs::write(&named, kubeconfig("one")).unwrap();
    let test = "connect::tests::places::the_kubeconfig_comes_first_unless_the_cluster_shall";
    let read = |source, kubeconfig, service| read(test, source, home.path(), kubeconfig, service);
    let one = "https://one.example.com/";

    assert_eq!(read("default", Some(&named), None), one);
    assert_eq!(read("two", Some(&named), None), "https://two.example.com/");
    assert_eq!(read("in-cluster-first", Some(&named), None), one);
    // A kubeconfig is there: it is not looked whether this is a pod.
    assert_eq!(read("default", Some(&named), Some("10.0.0.1")), one);

    // None is there: what is said is about both.
    let nothing = read("default", None, None);
    assert!(nothing.contains(".kube") && nothing.contains("KUBERNETES_SERVICE_HOST is not set"), "{nothing}");
    let nothing = read("in-cluster-first", None, None);
    assert!(nothing.contains(".kube") && nothing.contains("KUBERNETES_SERVICE_HOST is not set"), "{nothing}");

    // The one in the home folder.
    fs::create_dir(home.path().join(".kube")).unwrap();
    fs::write(home.path().join(".kube/config"), kubeconfig("two")).unwrap();
    assert_eq!(read("default", None, None), "https://two.example.com/");

    // One that is wrong is not gone around, nor is a context that is not there.
    fs::write(&named, "{").unwrap();
    for (source, kubeconfig) in [("default", Some(named.as_path())), ("three", None)] {
        let wrong = read(source, kubeconfig, Some("10.0.0.1"));
        assert!(wrong.contains("kubeconfig cannot be used") && !wrong.contains("cluster,"), "{wrong}");
    }
}
