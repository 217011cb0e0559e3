//! Programs of this repository, built to be run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// Builds, and says where the executable of that name is.
pub(crate) fn program(root: &Path, arguments: &[&str], name: &str) -> Result<PathBuf> {
    eprintln!("==> cargo build {}", arguments.join(" "));
    let mut command = Command::new(crate::cargo());
    kube_informer_testbed::examples::without_package(&mut command);
    let output = command
        .args(["build", "--message-format", "json-render-diagnostics"])
        .args(arguments)
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "cargo build {arguments:?}: {}", output.status);
    let messages = String::from_utf8(output.stdout)?;
    let executable = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| Some(PathBuf::from(message["executable"].as_str()?)));
    executable.with_context(|| format!("cargo build {arguments:?} made no {name}"))
}
