//! The project's own commands, run as `cargo xtask <command>`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench;
mod build;
mod control_plane;
mod docs;
mod kinds;
mod process;
mod schema;
mod test;
mod tidy;

/// The project's own commands.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Xtask,
}

#[derive(Debug, Subcommand)]
enum Xtask {
    /// Run every check and every test; the one command that CI runs
    Test(test::Options),
    /// Check what no compiler checks: stray files, broken links, forbidden dependencies, …
    Tidy,
    /// Measure what things cost, contestants side by side
    Bench(bench::Bench),
    /// Run the real servers: etcd, kube-apiserver, kube-controller-manager
    #[command(subcommand)]
    ControlPlane(control_plane::ControlPlaneCommand),
    /// Make the embedded server's tables of built-in kinds from the pinned Kubernetes release
    Kinds {
        /// Only compare with what is committed
        #[arg(long)]
        check: bool,
    },
    /// Make the library's table of protobuf messages from the pinned Kubernetes release
    Schema {
        /// Only compare with what is committed
        #[arg(long)]
        check: bool,
    },
}

fn main() -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new()?;
    let result = runtime.block_on(run(Cli::parse().command));
    // After Ctrl-C a build may still be waited for on a blocking thread; it ends with this process.
    runtime.shutdown_background();
    result
}

async fn run(command: Xtask) -> anyhow::Result<ExitCode> {
    match command {
        Xtask::Test(options) => test::run(&options).await,
        Xtask::Bench(command) => bench::run(&command).await.map(|()| ExitCode::SUCCESS),
        Xtask::ControlPlane(command) => control_plane::run(command).await,
        Xtask::Kinds { check } => kinds::run(check).map(|()| ExitCode::SUCCESS),
        Xtask::Schema { check } => schema::run(check).map(|()| ExitCode::SUCCESS),
        Xtask::Tidy => tidy::run(&root()).map(|()| ExitCode::SUCCESS),
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}

/// The cargo that runs this, so that a chosen toolchain stays chosen.
fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_root_holds_the_workspace() {
        assert!(root().join("Cargo.toml").is_file() && root().join("xtask").is_dir());
    }
}
