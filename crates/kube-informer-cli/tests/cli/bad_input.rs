//! Wrong input, and clusters that are not there: one clear line and the right exit code, never a backtrace.

use std::process::{Command, Stdio};

use anyhow::Result;
use kube_informer_apiserver::Server;
use kube_informer_apiserver::faults::{Answer, Match};
use kube_informer_testbed::cluster::Cluster;
use kube_informer_testbed::kubeconfig::Access;
use kube_informer_testbed::require;
use serde_json::json;

use crate::harness::{Place, on_both, output};
use crate::running::{finish, kube_informer, run, text};

on_both! {
    a_selector_of_fields_may_have_what_is_escaped,
    a_selector_that_the_server_does_not_take_is_told,
    who_may_not_be_somebody_else_is_told,
    a_page_instead_of_a_server_is_told,
}

/// One line that begins with `error: `, has these words and no backtrace.
#[track_caller]
pub(crate) fn one_line(said: &[u8], words: &[&str]) {
    let said = text(said);
    assert!(said.starts_with("error: ") && said.lines().count() == 1, "{said}");
    for word in words {
        assert!(said.contains(word), "{said}\nlacks {word}");
    }
    assert!(!said.contains("backtrace") && !said.contains("panicked"), "{said}");
}

#[test]
fn wrong_flags_are_explained_with_exit_code_2() {
    for (args, expected) in [
        (&["watch"][..], "TYPE"),
        (&["get"], "TYPE"),
        (&["watch", "pods", "--watchonly"], "--watch-only"),
        (&["get", "pods", "-o", "jsn"], "json"),
        (&["get", "pods", "-o", "diff"], "watch"),
        (&["get", "pods", "-o", "xml"], "must be one of table, wide, json,"),
        (&["watch", "pods", "-o", "xml"], "must be one of diff, table, wide, json,"),
        (&["watch", "pods", "--until", "nonsense"], "is nothing to wait for: write condition=NAME"),
        (&["watch", "pods", "--until", "jsonpath={.a"], "is no path"),
        (&["wait", "pods"], "--for <CONDITION>"),
        (&["wait", "--for", "create"], "TYPE"),
        (&["get", "pods", "-l", "app in (a"], "--selector"),
        (&["get", "pods", "-n", ""], "must not be empty"),
        (&["get", "pods", "-n", "../x"], "no name of a namespace"),
        (&["get", "pods", "--as", ""], "must not be empty"),
        (&["get", "pods", "--as", "a\nb"], "is no name"),
        (&["get", "pods", "--as", "jürgen"], "characters of ASCII only"),
        (&["get", "pods", "--as", "a", "--as-group", "b\n"], "is no name"),
        (&["get", "pods", "-o", "custom-columns=a"], "write HEADER:PATH"),
        (&["watch", "pods", "--timeout=-5s"], "such as 30s"),
        (&["watch", "pods", "-l", "a in b"], "--selector"),
        (&["watch", "pods", "-l", "=a"], "--selector"),
        (&["get", "pods", "--field-selector", "status.phase"], "FIELD=VALUE"),
        (&["get", "pods", "-n", "A b"], "no name of a namespace"),
        (&["get", "pods", "--as-group", "a"], "--as"),
        (&["watch", "pods", "--timeout", "soon"], "such as 30s"),
        (&["watch", "pods", "--timeout", "1m30"], "lacks a unit"),
        (&["get", "pods", "--request-timeout", "2d"], "is no unit of time"),
        (&["watch", "pods", "--color", "red"], "always"),
        (&["get", "pods", "-o", "jsonpath={.a"], "jsonpath"),
        (&["get", "pods", "-o", "jsonpath="], "lacks a template"),
        (
            &["watch", "pods", "-o", "go-template={{.metadata.name}}"],
            "Go templates are not supported: use jsonpath=",
        ),
        (&["watch", "pods", "-o", "template={{.metadata.name}}"], "Go templates are not supported"),
        (&["get", "pods", "-o", "go-template-file=a"], "Go templates are not supported"),
        (&["get", "pods", "-o", "templatefile=a"], "Go templates are not supported"),
        (&["get", "pods", "--field-selector", "a=b\\x"], "\\\\, \\, and \\="),
        (&["watch", "pods", "--until", "condition="], "condition=Ready"),
        (&["get", "pods", "--request-timeout", "x"], "--request-timeout"),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output.stderr));
        one_line(&output.stderr, &[expected, "--help` says more"]);
    }
}

#[test]
fn without_a_kubeconfig_it_says_where_it_looked() {
    let home = tempfile::tempdir().unwrap();
    let command = |args: &[&str]| {
        let mut command = kube_informer(args);
        command.env_remove("KUBECONFIG").env_remove("KUBERNETES_SERVICE_HOST").env("HOME", home.path());
        command
    };
    for name in ["get", "watch"] {
        let output = finish(command(&[name, "pods"]));
        assert_eq!(output.status.code(), Some(1));
        let looked = home.path().join(".kube/config");
        one_line(&output.stderr, &[looked.to_str().unwrap(), "KUBECONFIG is not set", "--kubeconfig FILE"]);
    }
    let mut elsewhere = command(&["get", "pods"]);
    elsewhere.env("KUBECONFIG", "/nowhere/at/all");
    let output = finish(elsewhere);
    assert_eq!(output.status.code(), Some(1));
    one_line(&output.stderr, &["/nowhere/at/all", "--kubeconfig FILE"]);
    let output = finish(command(&["get", "pods", "--kubeconfig", "/nowhere/else"]));
    assert_eq!(output.status.code(), Some(1));
    one_line(&output.stderr, &["/nowhere/else"]);
    let file = home.path().join("broken");
    std::fs::write(&file, "clusters: [\n").unwrap();
    let output = finish(command(&["get", "pods", "--kubeconfig", file.to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(1));
    one_line(&output.stderr, &["the kubeconfig cannot be used: ", "give another --kubeconfig FILE"]);
    Access::anonymous("http://127.0.0.1:1").write(&file).unwrap();
    let args = ["get", "pods", "--kubeconfig", file.to_str().unwrap(), "--context", "none"];
    let output = finish(command(&args));
    assert_eq!(output.status.code(), Some(1));
    one_line(&output.stderr, &["none", "kubectl config get-contexts"]);
}

#[test]
fn a_kubeconfig_that_is_none_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let no_current = json!({
        "apiVersion": "v1", "kind": "Config", "users": [],
        "clusters": [{ "name": "c", "cluster": { "server": "http://127.0.0.1:1" } }],
        "contexts": [{ "name": "here", "context": { "cluster": "c", "user": "" } }],
    });
    let mut no_cluster = no_current.clone();
    no_cluster["current-context"] = json!("here");
    no_cluster["clusters"] = json!([]);
    for (name, content) in [
        ("empty", String::new()),
        ("no-current", no_current.to_string()),
        ("no-cluster", no_cluster.to_string()),
        ("list", "[1, 2]".to_owned()),
    ] {
        std::fs::write(path(name), content).unwrap();
    }
    std::fs::create_dir(path("folder")).unwrap();
    for (name, words) in [
        ("empty", &["no current-context", "--context NAME", "--kubeconfig FILE"][..]),
        ("no-current", &["no current-context", "--context NAME"]),
        ("no-cluster", &["c", "--kubeconfig FILE"]),
        ("list", &["--kubeconfig FILE"]),
        ("folder", &["Is a directory", "--kubeconfig FILE"]),
    ] {
        for command in [&["get", "pods"][..], &["watch", "pods"], &["wait", "pod/a", "--for", "create"]] {
            let output = run(&[command, &["--kubeconfig", &path(name)]].concat());
            assert_eq!(output.status.code(), Some(1), "{name}: {}", text(&output.stderr));
            one_line(&output.stderr, words);
            // And where nobody has named the file.
            let mut command = kube_informer(command);
            command.env("KUBECONFIG", path(name)).env_remove("KUBERNETES_SERVICE_HOST");
            let output = finish(command);
            assert_eq!(output.status.code(), Some(1), "{name}: {}", text(&output.stderr));
            one_line(&output.stderr, &[&path(name)]);
        }
    }
    let output = run(&["get", "pods", "--kubeconfig", &path("no-current"), "--context", "here"]);
    assert_eq!(output.status.code(), Some(1));
    one_line(&output.stderr, &["http://127.0.0.1:1 ", "refused"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_names_are_told_with_the_right_code() -> Result<()> {
    let place = Place::embedded().await?;
    place.config_map("one", json!({ "a": "b" })).await?;
    for (args, code, words) in [
        (&["get", "cm/one", "-A"][..], 2, &["all namespaces", "-n NAMESPACE"][..]),
        (&["watch", "cm", "one", "-A"], 2, &["all namespaces", "-n NAMESPACE"]),
        (&["get", "cm/a/b"], 2, &["\"a/b\" is no name"]),
        (&["get", "cm", "a/b"], 2, &["TYPE/NAME"]),
        (&["get", "cm/"], 2, &["\"\" is no name"]),
        (&["get", "cm", ""], 2, &["\"\" is no name"]),
        (&["get", "cm", "A B"], 2, &["is no name"]),
        (&["get", "cm", ".."], 2, &["is no name"]),
        (&["get", "cm", "a%2Fb"], 2, &["is no name"]),
        (&["get", ""], 2, &["a type is missing"]),
        (&["get", ","], 2, &["a type is missing"]),
        (&["get", "/one"], 2, &["a type is missing"]),
        (&["get", "cm", "one", "-l", "a=b"], 2, &["by name or by selector"]),
        (&["wait", "cm", "--for", "create"], 2, &["say which objects", "--all"]),
        (&["wait", "cm", "one", "-A", "--for", "create"], 2, &["all namespaces"]),
        (
            &["get", "cm", "none"],
            1,
            &["configmaps \"none\" not found in test: give another -n, or leave out"],
        ),
        (&["get", "ns", "none"], 1, &["namespaces \"none\" not found: leave out names to see what there is"]),
        (&["get", "cm/none", "-o", "yaml"], 1, &["configmaps \"none\" not found in test"]),
        (&["get", "cm,podz"], 1, &["no resource \"podz\"", "did you mean pods?"]),
        (&["watch", "podz"], 1, &["no resource \"podz\"", "did you mean pods?"]),
        (&["wait", "podz/a", "--for", "create"], 1, &["no resource \"podz\"", "did you mean pods?"]),
        (&["get", "cm.v9"], 1, &["no resource \"cm.v9\""]),
        (&["get", "tokenreviews"], 1, &["cannot be listed and watched", "ask `kubectl get`"]),
        (
            &["get", "cm", "-o", "jsonpath={.items[9].a}"],
            1,
            &["out of bounds", "-o json shows what there is"],
        ),
    ] {
        let output = output(place.command_of(args)).await;
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output.stderr));
        one_line(&output.stderr, words);
        assert_eq!(text(&output.stdout), "", "{args:?}");
    }
    // Where there is nothing, that is no error, as in kubectl.
    for args in [&["get", "cm", "-n", "nowhere"][..], &["get", "cm", "-l", "app!=test,x in (a,b),!y"]] {
        let output = output(place.command_of(args)).await;
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), String::new()), "{args:?}");
        assert!(text(&output.stderr).starts_with("No resources found in "), "{args:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_logged_is_no_error_where_nobody_reads_it() -> Result<()> {
    let place = Place::embedded().await?;
    place.config_map("one", json!({})).await?;
    let args = format!("get cm/one -o name -n {} --kubeconfig {} -vvvv", place.namespace, place.file());
    for (redirected, expected) in [
        ("2>&-", "configmap/one\n"),
        ("2>/dev/full", "configmap/one\n"),
        ("2> >(true)", "configmap/one\n"),
        ("2>&1 | true", ""),
    ] {
        let mut shell = Command::new("bash");
        let program = env!("CARGO_BIN_EXE_kube-informer");
        shell.args(["-c", &format!("set -o pipefail; {program} {args} {redirected}")]);
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = output(shell).await;
        assert_eq!(
            (output.status.code(), text(&output.stdout)),
            (Some(0), expected.to_owned()),
            "{redirected}"
        );
    }
    Ok(())
}

#[test]
fn a_server_that_nobody_runs_is_told_at_once() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("config");
    Access::anonymous("http://127.0.0.1:1").write(&file).unwrap();
    for name in ["get", "watch"] {
        let output = run(&[name, "pods", "--kubeconfig", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1));
        one_line(&output.stderr, &["http://127.0.0.1:1 ", "refused", "check that it runs"]);
        assert_eq!(text(&output.stderr).matches("os error").count(), 1, "it says nothing twice");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_answer_is_told_after_the_time_that_one_gives_it() -> Result<()> {
    let place = Place::embedded().await?;
    let _stalled = place.server().unwrap().faults().on(Match::any()).stall();
    let output = place.run("get pods --request-timeout 1s").await;
    assert_eq!(output.status.code(), Some(1));
    one_line(&output.stderr, &["no answer within 1s"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_does_not_come_is_told_after_the_time_that_one_gives_it() -> Result<()> {
    let place = Place::embedded().await?;
    let _stalled = place.server().unwrap().faults().on(Match::any().path_contains("/pods")).stall();
    let output = place.run("get pods --request-timeout 1s").await;
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    one_line(&output.stderr, &["pods cannot be read: ", "nothing for 1s", "give a longer --request-timeout"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_failed_once_takes_its_time_then() -> Result<()> {
    let place = Place::embedded().await?;
    for number in 0..60 {
        place.config_map(&format!("large-{number}"), json!({ "filler": "x".repeat(10_000) })).await?;
    }
    let faults = place.server().unwrap().faults();
    // The stream, and the plain list in its place.
    let cut = faults.on(Match::any().path_contains("/configmaps")).times(2).cut_after_bytes(100);
    // Twelve seconds of it, at this pace: more than the patience and twice that.
    let _slow = faults.on(Match::any().path_contains("/configmaps")).throttle(50_000);
    // By names alone, nothing large would be sent.
    assert!(place.ok("get cm -o json --request-timeout 5s").await.len() > 600_000);
    assert_eq!(cut.applied(), 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_always_breaks_off_is_told_with_why() -> Result<()> {
    let place = Place::embedded().await?;
    place.config_map("one", json!({})).await?;
    let _cut =
        place.server().unwrap().faults().on(Match::any().path_contains("/configmaps")).cut_after_bytes(100);
    let output = place.run("get cm --request-timeout 1s").await;
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    one_line(&output.stderr, &["configmaps cannot be read: ", "--request-timeout can make longer"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_not_accepted_is_told() -> Result<()> {
    let server = Server::builder().token("right", "admin", &["system:masters"]).start().await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("config");
    Access::anonymous(server.url()).with_token("wrong").write(&file)?;
    let output = output(kube_informer(&["get", "pods", "--kubeconfig", file.to_str().unwrap()])).await;
    assert_eq!(output.status.code(), Some(1));
    one_line(&output.stderr, &["Unauthorized", "credentials"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_forbidden_is_told_with_who_asked_and_what_to_do() -> Result<()> {
    let cluster = require!(Cluster::shared().await, else Ok(()));
    let place = Place::real(cluster, "what_is_forbidden").await?;
    for name in ["get", "watch"] {
        let output = place.run(&format!("{name} secrets --as nobody --as-group strangers")).await;
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        one_line(&output.stderr, &["secrets", "forbidden", "nobody", "kubectl auth can-i"]);
    }
    Ok(())
}

async fn who_may_not_be_somebody_else_is_told(place: Place) -> Result<()> {
    place.post(&place.path("serviceaccounts"), &json!({ "metadata": { "name": "web" } })).await?;
    let request = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest" });
    let token = place.post(&place.path("serviceaccounts/web/token"), &request).await?;
    let token = token["status"]["token"].as_str().unwrap();
    let file = place.path_of("web");
    place.endpoint.access().clone().with_token(token).write(std::path::Path::new(&file))?;
    for name in ["get", "watch"] {
        let args = [name, "configmaps", "-n", &place.namespace, "--kubeconfig", &file, "--as", "jane"];
        let output = output(kube_informer(&args)).await;
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        let words = ["forbidden", "impersonate", ":web\" cannot", "kubectl auth whoami", "--as needs"];
        one_line(&output.stderr, &words);
    }
    Ok(())
}

async fn a_selector_of_fields_may_have_what_is_escaped(place: Place) -> Result<()> {
    place.config_map("one", json!({})).await?;
    for (selector, expected) in
        [(r"metadata.name=a\,b\=c\\d", ""), (r"metadata.name!=a\,b,metadata.name=one", "configmap/one\n")]
    {
        assert_eq!(
            place.ok(&format!("get cm -o name --field-selector {selector}")).await,
            expected,
            "{selector}"
        );
    }
    Ok(())
}

async fn a_selector_that_the_server_does_not_take_is_told(place: Place) -> Result<()> {
    for name in ["get", "watch"] {
        let output = place.run(&format!("{name} pods --field-selector spec.colour=red")).await;
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        one_line(&output.stderr, &["pods cannot be read", "spec.colour"]);
    }
    Ok(())
}

async fn a_page_instead_of_a_server_is_told(place: Place) -> Result<()> {
    let (proxy, file) = place.proxy().await?;
    proxy.on(Match::any()).answer(Answer::raw(200, "text/html", "<html>please log in</html>"));
    let output = output(kube_informer(&["get", "pods", "--kubeconfig", &file])).await;
    assert_eq!(output.status.code(), Some(1));
    one_line(&output.stderr, &["please log in"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_told_and_a_closed_stdout_is_not() -> Result<()> {
    let place = Place::embedded().await?;
    place.config_map("a", json!({ "a": "b" })).await?;
    let mut command = place.command("get cm");
    command.stdout(std::fs::OpenOptions::new().write(true).open("/dev/full")?);
    let full = output(command).await;
    assert_eq!(full.status.code(), Some(1));
    one_line(&full.stderr, &["cannot write to stdout", "No space left", "redirect it elsewhere"]);
    // Nobody reads, and nobody is told.
    for stdout in ["| true", ">&-"] {
        let mut shell = Command::new("bash");
        let line = format!(
            "set -o pipefail; {} get cm -n {} --kubeconfig {} {stdout}",
            env!("CARGO_BIN_EXE_kube-informer"),
            place.namespace,
            place.file(),
        );
        shell.args(["-c", &line]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = output(shell).await;
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{stdout}");
    }
    Ok(())
}
