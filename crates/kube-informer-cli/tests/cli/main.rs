//! The binary as people use it: what it prints, how it ends, what it says about wrong input.

#![allow(clippy::unwrap_used, reason = "a panic in what a test calls is the failure report, too")]

use std::io::{Read, Write};

// A command that runs.
mod running;

// `controller deployments`, and who is connected to it.
mod controller;

use running::{Running, kube_informer, run, text};

#[test]
fn the_demo_shows_what_comes_alive() {
    let mut demo = Running::start(&["demo", "--speed", "10"]);
    let kubeconfig = demo.line("kubectl --kubeconfig");
    demo.line("+ deployment/shop/web");
    demo.line("+ pod/shop/");
    let ready = demo.line("ready");
    assert!(!ready.contains('\x1b'), "no colours in a pipe: {ready}");
    assert_eq!(demo.terminate(), Some(130));
    let kubeconfig = kubeconfig.split_whitespace().find(|word| word.ends_with(".yaml")).unwrap();
    assert!(!std::path::Path::new(kubeconfig).exists(), "{kubeconfig} was left behind");
}

#[test]
fn the_demo_ends_by_itself_after_its_duration() {
    let output = run(&["demo", "--duration", "1s"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    assert!(text(&output.stdout).contains("+ deployment/shop/web"));
}

#[test]
fn the_same_seed_makes_the_same_pods() {
    let pods = || {
        let mut demo = Running::start(&["demo", "--seed", "7"]);
        let pods: Vec<String> = (0..3).map(|_| demo.line("+ pod/")).collect();
        demo.terminate();
        pods
    };
    let first = pods();
    assert_eq!(first, pods());
}

#[test]
fn the_demo_is_quiet_when_its_reader_has_seen_enough() {
    let mut demo = Running::start(&["demo", "--speed", "10"]);
    demo.line("Kubernetes API on http://127.0.0.1:");
    let mut stderr = demo.child.stderr.take().unwrap();
    // `demo | head -1`: the pipe closes.
    demo.lines = None;
    assert_eq!(demo.child.wait().unwrap().code(), Some(0));
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(said, "");
}

#[test]
fn the_demo_ends_at_sigterm_though_its_output_is_stuck() {
    let folder = std::env::temp_dir().join(format!("kube-informer-stuck-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // As much as a pipe holds: the demo's first word waits for a reader, who never comes.
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&vec![b'.'; 65536]).unwrap();
    let mut command = kube_informer(&["demo"]);
    let child = command.env("TMPDIR", &folder).stdout(writer).spawn().unwrap();
    let mut demo = Running { child, lines: None };
    let kubeconfig = folder.join(format!("kube-informer-demo-{}.yaml", demo.child.id()));
    while !kubeconfig.exists() {
        assert_eq!(demo.child.try_wait().unwrap(), None);
        std::thread::yield_now();
    }
    assert_eq!(demo.terminate(), Some(130));
    drop(reader);
    // Empty, therefore it goes: the kubeconfig was taken away.
    std::fs::remove_dir(&folder).unwrap();
}

#[test]
fn the_embedded_server_goes_on_when_nobody_reads_what_it_prints() {
    let folder = std::env::temp_dir().join(format!("kube-informer-unread-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("config");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = kube_informer(&["apiserver", "--write-kubeconfig", file.to_str().unwrap()]);
    let mut server = Running { child: command.stdout(writer).spawn().unwrap(), lines: None };
    let mut stderr = server.child.stderr.take().unwrap();
    while !std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with("}\n")) {
        assert_eq!(server.child.try_wait().unwrap(), None);
        std::thread::yield_now();
    }
    assert_eq!(server.terminate(), Some(130));
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(said, "");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_embedded_server_writes_a_kubeconfig_and_ends_at_sigterm_with_130() {
    let folder = std::env::temp_dir().join(format!("kube-informer-cli-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("config");
    let file = file.to_str().unwrap();
    let mut server = Running::start(&["apiserver", "--write-kubeconfig", file, "--tls", "--token", "secret"]);
    server.line("Kubernetes API on https://127.0.0.1:");
    server.line(file);
    let kubeconfig = std::fs::read_to_string(file).unwrap();
    assert!(kubeconfig.contains("certificate-authority-data") && kubeconfig.contains("secret"));
    assert_eq!(server.terminate(), Some(130));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_taken_port_is_one_line_that_names_it() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = run(&["apiserver", "--listen", &address]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.starts_with("error: ") && said.contains(&address), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(said.matches("os error").count(), 1, "the cause is said once: {said}");
}

#[test]
fn a_kubeconfig_that_cannot_be_written_is_named() {
    let output = run(&["apiserver", "--write-kubeconfig", "/nowhere/at/all"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/nowhere/at/all"), "{}", text(&output.stderr));
}

#[test]
fn wrong_arguments_are_explained_with_exit_code_2() {
    for (args, expected) in [
        (&["demo", "--duration", "soon"][..], "such as 30s"),
        (&["demo", "--speed", "0"], "above 0"),
        (&["apiserver", "--listen", "here"], "--listen"),
        (&["apiserver", "--token", ""], "must not be empty"),
        (&["apiserver", "--watch-window", "0"], "above 0"),
        (&["demo", "--sped", "2"], "--speed"),
        (&["controller"], "Usage"),
        (&["controller", "pods"], "unrecognized subcommand"),
        (&["controller", "deployments", "--listen", "here"], "--listen"),
        (&["controller", "deployments", "-n", "A b"], "is no name of a namespace"),
        (&["controller", "deployments", "--workers", "0"], "from 1 to 1000"),
        (&["elasti", "--watch-namespace", "A b"], "is no name"),
        (&["elasti", "--metrics-bind-address", "8080"], "as 127.0.0.1:8080 or :8080"),
        (&["elasti", "--wake-bind-address", "here"], "--wake-bind-address"),
        (&["elasti", "--resolver-proxy-port", "0"], "from 1 to 65535"),
        (&["elasti", "--leader-elect=maybe"], "--leader-elect"),
        (&["elasti", "--leader-elect-lease-duration", "long"], "such as 30s"),
        (&["wach"], "unrecognized subcommand"),
        (&[], "Usage"),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(expected), "{args:?}: {}", text(&output.stderr));
    }
}

#[test]
fn the_help_of_the_operator_names_its_flags_and_variables() {
    let output = run(&["elasti", "--help"]);
    assert_eq!(output.status.code(), Some(0));
    let help = text(&output.stdout);
    for word in [
        "--watch-namespace",
        "--leader-elect",
        "--metrics-bind-address",
        "--health-probe-bind-address",
        "--wake-bind-address",
        "--kubeconfig",
        "ELASTI_OPERATOR_NAMESPACE",
        "ELASTI_OPERATOR_PORT",
        "ELASTI_RESOLVER_NAMESPACE",
        "ELASTI_RESOLVER_SERVICE_NAME",
        "ELASTI_RESOLVER_PROXY_PORT",
        ":8013",
    ] {
        assert!(help.contains(word), "{help}\nlacks {word}");
    }
    assert!(text(&run(&["--help"]).stdout).contains("elasti"));
}
