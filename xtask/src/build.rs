//! Programs of this repository, built to be run.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

/// Beyond this, something hangs; a cold machine compiles everything, and some of it as a whole.
const LIMIT: Duration = Duration::from_secs(60 * 60);

/// Builds, and says where the executable of that name is.
pub(crate) fn program(root: &Path, arguments: &[&str], name: &str) -> Result<PathBuf> {
    eprintln!("==> cargo build {}", arguments.join(" "));
    let mut command = Command::new(crate::cargo());
    kube_informer_testbed::examples::without_package(&mut command);
    command.args(["build", "--message-format", "json-render-diagnostics"]).args(arguments).current_dir(root);
    let (status, messages) = output(command, LIMIT).with_context(|| format!("cargo build {arguments:?}"))?;
    ensure!(status.success(), "cargo build {arguments:?}: {status}");
    let executable = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| Some(PathBuf::from(message["executable"].as_str()?)));
    executable.with_context(|| format!("cargo build {arguments:?} made no {name}"))
}

/// What a command prints; beyond the limit it is killed.
fn output(mut command: Command, limit: Duration) -> Result<(ExitStatus, String)> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut pipe = child.stdout.take().context("no output")?;
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        // Nobody listens any more beyond the limit.
        let _ = tell.send(pipe.read_to_string(&mut text).map(|_| text));
    });
    let Ok(text) = told.recv_timeout(limit) else {
        child.kill()?;
        child.wait()?;
        bail!("killed after {} s, its limit", limit.as_secs());
    };
    Ok((child.wait()?, text?))
}

#[cfg(test)]
mod tests {
    use kube_informer_testbed::process::Identity;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_a_command_prints_and_how_it_ends_is_known() {
        let (status, text) = output(shell("echo one; echo two; exit 3"), Duration::from_secs(60)).unwrap();
        assert_eq!((status.code(), text.as_str()), (Some(3), "one\ntwo\n"));
    }

    #[test]
    fn a_build_that_hangs_is_killed() {
        let file = std::env::temp_dir().join(format!("xtask-build-{}", std::process::id()));
        let script = format!("echo $$ > {}; exec sleep 600", file.display());
        let error = output(shell(&script), Duration::from_secs(1)).unwrap_err();
        assert!(error.to_string().contains("its limit"), "{error}");
        // On a machine that is too busy, it did not even begin.
        if let Ok(process) = std::fs::read_to_string(&file) {
            let process = process.trim().parse().unwrap();
            assert_eq!(Identity::of(process).filter(Identity::is_alive), None);
        }
        let _ = std::fs::remove_file(&file);
    }
}
