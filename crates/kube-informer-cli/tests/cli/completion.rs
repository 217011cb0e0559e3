//! `completion`: what shells, and kubectl, make of it.

use anyhow::Result;

use crate::harness::{Place, on_both, output};
use crate::running::{Running, finish, kube_informer, run, text};

on_both! {
    types_and_names_are_those_of_the_cluster,
}

async fn types_and_names_are_those_of_the_cluster(place: Place) -> Result<()> {
    for name in ["first", "second"] {
        place.config_map(name, serde_json::json!({})).await?;
    }
    let file = place.file();
    let completed = async |words: &[&str]| {
        let before = ["__complete", "wait", "--kubeconfig", &file, "-n", &place.namespace];
        let command = kube_informer(&[&before, words].concat());
        text(&output(command).await.stdout)
    };
    assert_eq!(completed(&["leas"]).await, "leases\n:4\n");
    assert!(completed(&["c"]).await.contains("\ncontrollerrevisions\n"), "{}", completed(&["c"]).await);
    assert_eq!(completed(&["cm/fi"]).await, "cm/first\n:4\n");
    assert_eq!(completed(&["configmaps", "sec"]).await, "second\n:4\n");
    assert_eq!(completed(&["nothings", "x"]).await, ":4\n");
    let namespaces = completed(&["pods", "-n", &place.namespace]).await;
    assert!(namespaces.lines().any(|line| line == place.namespace), "{namespaces}");
    Ok(())
}

/// What bash offers for a line, its words split at spaces.
fn bash(script: &str, line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let program = format!(
        "{script}\n\
         COMP_WORDS=({})\nCOMP_CWORD={}\nCOMPREPLY=()\n\
         spec=$(complete -p kube-informer)\n\
         function=${{spec#*-F }}\nfunction=${{function%% *}}\n\
         \"$function\" kube-informer \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        quoted.join(" "),
        words.len() - 1,
    );
    let mut command = std::process::Command::new("bash");
    command.args(["--norc", "-c", &program]);
    let output = finish(command);
    assert_eq!(text(&output.stderr), "", "{line}");
    text(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_flags_and_values() {
    if std::process::Command::new("bash").arg("--version").output().is_err() {
        kube_informer_testbed::skip::skip_missing(
            "bash_completes_commands_flags_and_values",
            "bash",
            "apt install bash",
        );
        return;
    }
    let output = run(&["completion", "bash"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let script = text(&output.stdout);
    assert_eq!(bash(&script, "kube-informer wai"), ["wait"]);
    assert_eq!(bash(&script, "kube-informer wait --fail"), ["--fail-on"]);
    let shells = bash(&script, "kube-informer completion ");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish", "kubectl"] {
        assert!(shells.iter().any(|each| each == shell), "{shells:?}");
    }
}

#[test]
fn there_is_a_script_for_every_shell() {
    for (shell, part) in [
        ("bash", "-o default kube-informer\n"),
        ("zsh", "#compdef kube-informer"),
        ("fish", "complete -c kube-informer"),
        ("powershell", "Register-ArgumentCompleter"),
        ("elvish", "edit:completion:arg-completer[kube-informer]"),
        ("kubectl", "exec kubectl-informer __complete"),
    ] {
        let output = run(&["completion", shell]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let script = text(&output.stdout);
        assert!(script.contains(part), "{shell}: {script:.500}");
    }
    let output = run(&["completion", "bsh"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("bash"), "{}", text(&output.stderr));
}

#[test]
fn a_script_that_nobody_reads_to_its_end_is_no_error() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = kube_informer(&["completion", "zsh"]);
    command.stdout(writer);
    let output = Running::of(command).output();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

#[test]
fn the_last_word_is_completed_as_kubectl_asks() {
    let completed = |words: &[&str]| {
        let mut command = kube_informer(&[&["__complete"], words].concat());
        // There is no cluster to ask.
        command.env("KUBECONFIG", "/nowhere/at/all");
        let output = finish(command);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{words:?}");
        text(&output.stdout)
    };
    let waiting = completed(&["wai"]);
    assert!(waiting.starts_with("wait\t") && waiting.ends_with("\n:4\n"), "{waiting}");
    assert!(completed(&["wait", "--fail"]).starts_with("--fail-on\t"));
    assert_eq!(completed(&["wait", "pods,depl"]), "pods,deployments\n:4\n");
    assert_eq!(completed(&["wait", "--kubeconfig", ""]), ":0\n", "a file may stand there");
    assert_eq!(completed(&["watch", "--color", "a"]).lines().count(), 3, "auto, always, and the end");
    // A flag that is to be completed is not one that is meant.
    assert!(completed(&["--hel"]).starts_with("--help\t"));
    assert_eq!(completed(&["--help"]).lines().count(), 2);
}
