//! Examples as programs, for tests that run them as people do.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};

/// Set where all examples have been built already.
pub const BUILT: &str = "KUBE_INFORMER_EXAMPLES_BUILT";

/// The program of an example. A test that is run alone finds it built, too.
///
/// # Errors
///
/// Where it cannot be built.
pub fn example(package: &str, name: &str) -> Result<PathBuf> {
    static ONE: LazyLock<Mutex<()>> = LazyLock::new(Mutex::default);
    let test = std::env::current_exe()?;
    let folder = test.parent().and_then(|deps| deps.parent()).context("a test in no folder")?;
    let program = folder.join("examples").join(name);
    if std::env::var_os(BUILT).is_some() {
        ensure!(program.is_file(), "{BUILT} is set, but there is no {}", program.display());
        return Ok(program);
    }
    // Not two at a time: they would wait for each other, and say so where nobody expects it.
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--quiet", "--package", package, "--example", name]);
    without_package(&mut build);
    ensure!(build.status()?.success(), "the example {name} of {package} cannot be built");
    Ok(program)
}

/// Does not pass on what cargo says to a program about its package: build scripts that look at it, such as ring's, would
/// be run anew, and everything that stands on them built again.
pub fn without_package(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
}
