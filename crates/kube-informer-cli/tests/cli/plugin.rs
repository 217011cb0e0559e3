//! The binary as kubectl's plugin: `kubectl informer`.

use std::path::Path;
use std::process::{Command, Output};

use kube_informer_testbed::{binaries, require};

use crate::running::{finish, run, text};

/// A folder with the binary under kubectl's names for plugins.
fn plugins() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["kubectl-informer", "kubectl_complete-informer"] {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kube-informer"), folder.path().join(name)).unwrap();
    }
    folder
}

fn kubectl(kubectl: &Path, plugins: &Path, arguments: &[&str]) -> Output {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(plugins.to_owned()).chain(std::env::split_paths(&path)));
    let mut command = Command::new(kubectl);
    command.args(arguments).env("PATH", path.unwrap()).env("HOME", plugins).env("KUBERC", "off");
    command.env_remove("KUBECONFIG").env_remove("RUST_LOG");
    finish(command)
}

#[tokio::test]
async fn kubectl_runs_it_and_it_says_how_it_was_called() {
    let binary = require!(binaries::kubectl().await);
    let plugins = plugins();
    let help = kubectl(&binary, plugins.path(), &["informer", "--help"]);
    assert_eq!(help.status.code(), Some(0), "{}", text(&help.stderr));
    assert!(
        text(&help.stdout).contains("Usage: kubectl informer [OPTIONS] <COMMAND>"),
        "{}",
        text(&help.stdout)
    );
    let help = text(&kubectl(&binary, plugins.path(), &["informer", "wait", "--help"]).stdout);
    assert!(
        help.contains("Usage: kubectl informer wait ") && help.contains("kubectl informer wait pod/web"),
        "{help}"
    );
    assert!(!help.contains("kube-informer "), "{help}");
    let wrong = kubectl(&binary, plugins.path(), &["informer", "wach"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong.stderr));
    assert!(text(&wrong.stderr).contains("kubectl informer"), "{}", text(&wrong.stderr));
}

#[tokio::test]
async fn kubectl_completes_its_arguments() {
    let binary = require!(binaries::kubectl().await);
    let plugins = plugins();
    let completed = |words: &[&str]| {
        let output = kubectl(&binary, plugins.path(), &[&["__complete", "informer"], words].concat());
        text(&output.stdout)
    };
    let commands = completed(&["wa"]);
    assert!(commands.lines().any(|line| line.starts_with("wait\t")), "{commands}");
    assert!(completed(&["wait", "--fail"]).starts_with("--fail-on"), "{}", completed(&["wait", "--fail"]));
    assert!(completed(&["wait", "depl"]).starts_with("deployments\n"));
    // The script that `completion kubectl` prints does the same.
    let file = plugins.path().join("kubectl_complete-informer");
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, run(&["completion", "kubectl"]).stdout).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&file, mode).unwrap();
    assert_eq!(completed(&["wa"]), commands);
}

#[test]
fn the_help_lists_every_command_by_what_it_is_for() {
    let help = text(&run(&["--help"]).stdout);
    let place = |part: &str| help.find(part).unwrap_or_else(|| panic!("{part} in {help}"));
    assert!(place("Look at a cluster:") < place("  wait "), "{help}");
    assert!(place("  wait ") < place("Run for others:") && place("Run for others:") < place("  controller "));
    assert!(place("  controller ") < place("Try it without a cluster:"));
    assert!(
        place("Try it without a cluster:") < place("  demo ")
            && place("  demo ") < place("Shells and manuals:")
    );
    assert!(place("Shells and manuals:") < place("Options:") && place("Options:") < place("-v"));
    assert!(!help.contains('\x1b'), "no colours in a pipe: {help}");
    let short = text(&run(&["-h"]).stdout);
    assert!(short.contains("Look at a cluster:"), "{short}");
}

#[test]
fn the_version_names_the_release_of_kubernetes_that_is_known() {
    let version = text(&run(&["--version"]).stdout);
    let (first, rest) = version.split_once('\n').unwrap();
    assert_eq!(first, format!("kube-informer {}", env!("CARGO_PKG_VERSION")));
    assert_eq!(rest, "schema of Kubernetes 1.37\n");
    assert_eq!(text(&run(&["-V"]).stdout), format!("{first}\n"));
}

#[test]
fn a_word_that_is_nearly_one_is_answered_with_that() {
    for (args, near) in [
        (&["wiat"][..], "wait"),
        (&["wait", "pod/a", "--form", "create"], "--for"),
        (&["completion", "bsh"], "bash"),
        (&["demo", "--sped", "2"], "--speed"),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(near), "{args:?}: {}", text(&output.stderr));
    }
}
