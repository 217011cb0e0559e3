//! Where the configuration is found: this depends on the environment, so it is looked at in other processes.

use std::fs;
use std::process::Command;

use super::source::TEST_MOUNT;
use super::*;

/// What a child is told to read.
const CHILD: &str = "KUBE_INFORMER_TEST_SOURCE";

/// What a pod is given: the host of its cluster, and a folder.
type Pod<'a> = Option<(&'a str, &'a Path)>;

/// Reads a source in a process with this environment, and gives what it says.
fn read(test: &str, source: &str, home: &Path, kubeconfig: Option<&Path>, pod: Pod<'_>) -> String {
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
    if let Some((host, mount)) = pod {
        child.env("KUBERNETES_SERVICE_HOST", host).env("KUBERNETES_SERVICE_PORT", "443");
        child.env(TEST_MOUNT, mount);
    }
    let output = child.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().find_map(|line| line.split_once("says: ")).unwrap_or_else(|| panic!("{text}")).1.to_owned()
}

async fn child(source: &str) {
    let source = match source {
        "default" => Source::default(),
        "in-cluster" => Source::in_cluster(),
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
    let read = |source, kubeconfig, pod| read(test, source, home.path(), kubeconfig, pod);
    // A pod to which nothing is mounted.
    let pod: Pod<'_> = Some(("10.0.0.1", home.path()));
    let one = "https://one.example.com/";

    assert_eq!(read("default", Some(&named), None), one);
    assert_eq!(read("two", Some(&named), None), "https://two.example.com/");
    assert_eq!(read("in-cluster-first", Some(&named), None), one);
    // A kubeconfig is there: it is not looked whether this is a pod.
    assert_eq!(read("default", Some(&named), pod), one);

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
        let wrong = read(source, kubeconfig, pod);
        assert!(wrong.contains("kubeconfig cannot be used") && !wrong.contains("cluster,"), "{wrong}");
    }
}

#[tokio::test]
async fn in_a_pod_the_cluster_comes_first_only_where_it_shall() {
    if let Ok(source) = std::env::var(CHILD) {
        return child(&source).await;
    }
    let home = tempfile::tempdir().unwrap();
    let (named, mount) = (home.path().join("named"), home.path().join("mount"));
    fs::write(&named, kubeconfig("one")).unwrap();
    let server = Server::builder().tls(true).start().await.unwrap();
    fs::create_dir(&mount).unwrap();
    fs::write(mount.join("ca.crt"), server.ca_pem().unwrap()).unwrap();
    let test = "connect::tests::places::in_a_pod_the_cluster_comes_first_only_where_it_shall";
    let read = |source, kubeconfig, pod| read(test, source, home.path(), kubeconfig, pod);
    let pod: Pod<'_> = Some(("10.0.0.1", &mount));
    let (one, here) = ("https://one.example.com/", "https://10.0.0.1:443/");

    // Without a token it is none: the kubeconfig is what is left, and where there is none, that is said of both.
    assert_eq!(read("in-cluster-first", Some(&named), pod), one);
    for source in ["in-cluster", "in-cluster-first", "default"] {
        let nothing = read(source, None, pod);
        assert!(nothing.contains("in a cluster, but") && nothing.contains("/mount/token"), "{nothing}");
        assert_eq!(nothing.contains(".kube"), source != "in-cluster", "{nothing}");
    }

    fs::write(mount.join("token"), "t").unwrap();
    assert_eq!(read("in-cluster-first", Some(&named), pod), here);
    assert_eq!(read("in-cluster-first", None, pod), here);
    assert_eq!(read("in-cluster", Some(&named), pod), here);
    assert_eq!(read("default", Some(&named), pod), one);
    assert_eq!(read("default", None, pod), here);
    // Who names a context means a kubeconfig.
    assert_eq!(read("two", Some(&named), pod), "https://two.example.com/");
    assert_eq!(read("in-cluster", None, Some(("fd00::1", &mount))), "https://[fd00::1]:443/");
    // It is a pod no more.
    assert_eq!(read("in-cluster-first", Some(&named), None), one);
}
