//! Kubeconfigs as people have them: in several files, with short addresses, and with programs that log them in.

use std::fs;

use anyhow::Result;
use serde_json::{Value, json};

use crate::bad_input::one_line;
use crate::harness::{Place, blocking, output};
use crate::running::{Running, finish, kube_informer, run, text};

/// A kubeconfig with one server and one user.
fn kubeconfig(server: &str, user: &Value) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{ "name": "here", "cluster": { "server": server } }],
        "users": [{ "name": "me", "user": user }],
        "contexts": [{ "name": "here", "context": { "cluster": "here", "user": "me" } }],
    })
    .to_string()
}

/// A user whose credentials come from a program of the shell.
fn login(program: &str) -> Value {
    exec("sh", &["-c", program])
}

fn exec(command: &str, args: &[&str]) -> Value {
    json!({ "exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": command, "args": args,
        "interactiveMode": "Never", "installHint": "get it from example.com",
    } })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_without_a_scheme_is_taken_as_kubectl_takes_it() -> Result<()> {
    let place = Place::embedded().await?;
    place.config_map("a", json!({})).await?;
    let url = place.server().unwrap().url();
    let short = url.strip_prefix("http://").unwrap().trim_end_matches('/');
    let file = place.path_of("short");
    fs::write(&file, kubeconfig(short, &json!({})))?;
    let printed = output(place.command_through(&file, &["get", "cm", "a", "-o", "name"])).await;
    assert_eq!((text(&printed.stdout), text(&printed.stderr)), ("configmap/a\n".to_owned(), String::new()));
    fs::write(&file, kubeconfig("/nowhere", &json!({})))?;
    let refused = output(place.command_through(&file, &["get", "cm"])).await;
    assert_eq!(refused.status.code(), Some(1));
    one_line(&refused.stderr, &["\"/nowhere\" is no address", "`server` in the kubeconfig"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_files_those_that_are_not_there_are_left_out() -> Result<()> {
    let place = Place::embedded().await?;
    place.config_map("a", json!({})).await?;
    let missing = place.path_of("missing");
    let command = |files: &[&str]| {
        let mut command = kube_informer(&["get", "cm", "a", "-o", "name", "-n", &place.namespace]);
        command.env("KUBECONFIG", files.join(":"));
        command
    };
    for files in [&[&*missing, &*place.file()][..], &[&place.file(), "", &missing], &[&place.file()]] {
        let printed = output(command(files)).await;
        assert_eq!(text(&printed.stdout), "configmap/a\n", "{files:?}: {}", text(&printed.stderr));
    }
    let refused = output(command(&[&missing, &missing])).await;
    assert_eq!(refused.status.code(), Some(1));
    one_line(&refused.stderr, &[&missing]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_for_everything_is_none_for_a_cluster() -> Result<()> {
    let server = kube_informer_apiserver::Server::builder().tls(true).start().await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("config");
    server.write_kubeconfig(&file)?;
    let mut command = kube_informer(&["get", "ns", "default", "-o", "name"]);
    command.args(["--kubeconfig", file.to_str().unwrap()]).env("HTTPS_PROXY", "http://127.0.0.1:1");
    let output = blocking(|| finish(command));
    assert_eq!(
        (text(&output.stdout), text(&output.stderr)),
        ("namespace/default\n".to_owned(), String::new())
    );
    // One that the kubeconfig names is not passed by.
    let mut config: Value = serde_json::from_str(&fs::read_to_string(&file)?)?;
    config["clusters"][0]["cluster"]["proxy-url"] = json!("http://127.0.0.1:1");
    fs::write(&file, config.to_string())?;
    let refused = blocking(|| run(&["get", "ns", "--kubeconfig", file.to_str().unwrap()]));
    assert_eq!(refused.status.code(), Some(1));
    one_line(&refused.stderr, &["proxy-url", "not supported"]);
    Ok(())
}

#[test]
fn a_token_that_cannot_be_sent_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    for token in ["a\nb", "secret\n", "a\u{1b}b"] {
        fs::write(&file, kubeconfig("http://127.0.0.1:1", &json!({ "token": token }))).unwrap();
        let output = run(&["get", "pods", "--kubeconfig", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1));
        one_line(&output.stderr, &["the token has a line's end in it", "mend `token` in the kubeconfig"]);
        assert!(!text(&output.stderr).contains("secret"));
    }
}

#[test]
fn a_login_program_that_fails_is_named_with_what_it_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    for (user, words) in [
        (
            login("echo 'please log in' >&2; echo again >&2; exit 3"),
            &["login program \"sh\"", "exit code 3: please log in; again", "run it by hand"][..],
        ),
        (login("echo nonsense"), &["login program \"sh\"", "nothing that is a credential"]),
        (
            exec("/nowhere/plugin", &[]),
            &["login program \"/nowhere/plugin\" of the kubeconfig cannot be run", "get it from example.com"],
        ),
    ] {
        fs::write(&file, kubeconfig("http://127.0.0.1:1", &user)).unwrap();
        let output = run(&["get", "pods", "--kubeconfig", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1));
        one_line(&output.stderr, words);
        let said = text(&output.stderr);
        assert!(!said.contains("Output {") && !said.contains("PATH="), "{said}");
    }
}

/// Below the library, somebody panics about it: that is not for users.
#[test]
fn a_token_of_a_login_program_that_cannot_be_sent_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": { "token": "sec\nret" },
    });
    let user = login(&format!("printf %s '{credential}'"));
    fs::write(&file, kubeconfig("http://127.0.0.1:1", &user)).unwrap();
    let output = run(&["get", "pods", "--kubeconfig", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    one_line(&output.stderr, &["login program \"sh\"", "the token has a line's end in it", "run it by hand"]);
    let said = text(&output.stderr);
    assert!(!said.contains("ret") && !said.contains("bug"), "{said}");
}

#[test]
fn a_login_program_that_does_not_end_holds_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    // Each run has files of its own: what an earlier one does late is not seen in the next.
    let prepare = |run: &str| {
        let (file, runs) = (folder.path().join(run), folder.path().join(format!("{run}-runs")));
        // It ends with who has started it.
        let program =
            format!("touch {}; while kill -0 $PPID; do sleep 0.05; done 2>/dev/null", runs.display());
        fs::write(&file, kubeconfig("http://127.0.0.1:1", &login(&program))).unwrap();
        (file.to_str().unwrap().to_owned(), runs)
    };
    let (file, _) = prepare("late");
    let late = run(&["get", "pods", "--kubeconfig", &file, "--request-timeout", "500ms"]);
    assert_eq!(late.status.code(), Some(1));
    one_line(&late.stderr, &["no credentials within 500ms", "--request-timeout"]);
    for args in [
        &["get", "pods"][..],
        &["watch", "pods"],
        &["wait", "pod/web", "--for", "create"],
        &["serve", "pods"],
        &["controller", "deployments"],
    ] {
        let (file, runs) = prepare(args[0]);
        let mut running = Running::start(&[args, &["--kubeconfig", &file]].concat());
        running.until_it_is("the program runs", || runs.exists());
        running.signal("-INT");
        assert_eq!(running.code(), Some(130), "{args:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_logged_in_gets_in() -> Result<()> {
    let server = kube_informer_apiserver::Server::builder().token("right", "jane", &[]).start().await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("config");
    for (token, code) in [("right", 0), ("wrong", 1)] {
        let credential = json!({
            "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": { "token": token },
        });
        let user = login(&format!("echo '{credential}'"));
        fs::write(&file, kubeconfig(&server.url(), &user))?;
        let mut command = kube_informer(&["get", "ns", "-o", "name"]);
        command.args(["--kubeconfig", file.to_str().unwrap()]);
        let output = blocking(|| finish(command));
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        if code == 1 {
            one_line(&output.stderr, &["Unauthorized", "log in again"]);
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_context_leads_to_its_cluster_and_namespace() -> Result<()> {
    let (here, there) = (Place::embedded().await?, Place::embedded().await?);
    for (place, name) in [(&here, "here"), (&there, "there")] {
        place.config_map(name, json!({})).await?;
    }
    let mut config: Value = serde_json::from_str(&kubeconfig(&here.server().unwrap().url(), &json!({})))?;
    let mut add = |key: &str, entry: Value| config[key].as_array_mut().unwrap().push(entry);
    add("clusters", json!({ "name": "there", "cluster": { "server": there.server().unwrap().url() } }));
    let context = json!({ "cluster": "there", "user": "me", "namespace": there.namespace });
    add("contexts", json!({ "name": "there", "context": context }));
    config["contexts"][0]["context"]["namespace"] = json!(here.namespace);
    let file = here.path_of("contexts");
    fs::write(&file, config.to_string())?;
    let get = async |more: &[&str]| {
        let args = ["get", "cm", "-l", "app=test", "-o", "name", "--kubeconfig", &file];
        let output = output(kube_informer(&[&args, more].concat())).await;
        assert_eq!(text(&output.stderr), "", "{more:?}");
        text(&output.stdout)
    };
    assert_eq!(get(&[]).await, "configmap/here\n", "the current one");
    assert_eq!(get(&["--context", "here"]).await, "configmap/here\n");
    assert_eq!(get(&["--context", "there"]).await, "configmap/there\n");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_be_somebody_else_is() -> Result<()> {
    let server = kube_informer_apiserver::Server::builder()
        .token("admin", "root", &["system:masters"])
        .token("other", "joe", &["staff"])
        .start()
        .await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("config");
    let get = async |token: &str, more: &[&str]| {
        fs::write(&file, kubeconfig(&server.url(), &json!({ "token": token }))).unwrap();
        let args = ["get", "ns", "default", "-o", "name", "--kubeconfig", file.to_str().unwrap()];
        let output = output(kube_informer(&[&args, more].concat())).await;
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let found = (Some(0), "namespace/default\n".to_owned(), String::new());
    assert_eq!(get("admin", &["--as", "jane"]).await, found);
    assert_eq!(get("admin", &["--as", "jane", "--as-group", "a", "--as-group", "b"]).await, found);
    // It is asked for: who may not is refused.
    assert_eq!(get("other", &[]).await, found);
    let refused = get("other", &["--as", "jane"]).await;
    assert!(refused.0 == Some(1) && refused.2.contains("impersonate"), "{refused:?}");
    Ok(())
}
