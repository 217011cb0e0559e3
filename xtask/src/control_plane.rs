//! `cargo xtask control-plane`: a control plane to play with, which stays up.
//!
//! `up` starts the servers in sessions of their own and returns. What runs is written down in the folder, with
//! process ids and start times: `down` ends exactly those processes and no others. Both can be repeated.
//! stdout carries the path that was asked for and nothing else; everything for people goes to stderr.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use kube_informer_testbed::binaries::{self, Tool};
use kube_informer_testbed::cluster::Cluster;
use kube_informer_testbed::control_plane::{ControlPlane, Layout, Options, Record};
use kube_informer_testbed::process::Identity;

/// Run the real servers.
#[derive(Debug, Subcommand)]
pub(crate) enum ControlPlaneCommand {
    /// Start a control plane, unless it is up, and print its administrator's kubeconfig
    Up {
        #[command(flatten)]
        folder: Folder,
        /// Start kube-controller-manager, too
        #[arg(long)]
        controller_manager: bool,
        /// One more flag for kube-apiserver, as `--name=value`
        #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
        apiserver_flag: Vec<String>,
    },
    /// End the servers that `up` started
    Down(Folder),
    /// Say what runs; exit with 1 unless all of it does, and is ready
    Status(Folder),
    /// Print the path of a new kubeconfig of a user or a service account
    Kubeconfig {
        #[command(flatten)]
        folder: Folder,
        #[command(flatten)]
        who: Who,
        /// A group of the user; may be repeated
        #[arg(long, conflicts_with = "service_account")]
        group: Vec<String>,
    },
    /// Build what is not in the cache yet, and print where the binaries are
    Build,
}

/// Where a control plane lies.
#[derive(Debug, Args)]
pub(crate) struct Folder {
    /// The folder of the control plane [default: `up` in the cache]
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Whom a kubeconfig is for.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Who {
    /// The name of a user
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// A service account, which is created if it does not exist
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = service_account)]
    service_account: Option<(String, String)>,
}

/// Does what `command` says.
pub(crate) async fn run(command: ControlPlaneCommand) -> Result<ExitCode> {
    match command {
        ControlPlaneCommand::Up { folder, controller_manager, apiserver_flag } => {
            let mut options = Options::new().controller_manager(controller_manager);
            options.apiserver_flags = apiserver_flag;
            up(&folder.path()?, options).await?;
        }
        ControlPlaneCommand::Down(folder) => down(&folder.path()?).await?,
        ControlPlaneCommand::Status(folder) => {
            if !status(&folder.path()?).await? {
                return Ok(ExitCode::FAILURE);
            }
        }
        ControlPlaneCommand::Kubeconfig { folder, who, group } => {
            let cluster = Cluster::open(&folder.path()?).await.context("start one with `up`")?;
            let groups: Vec<&str> = group.iter().map(String::as_str).collect();
            let path = match who {
                Who { service_account: Some((namespace, name)), .. } => {
                    cluster.kubeconfig_for_service_account(&namespace, &name).await?
                }
                Who { user, .. } => cluster.kubeconfig_for_user(&user.unwrap_or_default(), &groups).await?,
            };
            println!("{}", path.display());
        }
        ControlPlaneCommand::Build => build().await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn up(dir: &Path, options: Options) -> Result<()> {
    match Record::read(dir)? {
        Some(record) if record.is_up() => {
            if options.controller_manager && !record.controller_manager {
                bail!("it is up without kube-controller-manager: `down` first");
            }
            eprintln!("already up at {}", record.url);
            println!("{}", Cluster::open(dir).await?.admin_kubeconfig().display());
            return Ok(());
        }
        // A part of it died: what is left is of no use.
        Some(record) => drop(record.stop().await?),
        None => {}
    }

    let start = ControlPlane::start(options.dir(dir).detached(true));
    let control_plane = tokio::select! {
        started = start => started?,
        // Dropping the unfinished start ends the servers that it has started.
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
    };
    eprintln!("up at {}; logs in {}", control_plane.url(), dir.join("logs").display());
    println!("{}", control_plane.admin_kubeconfig().display());
    control_plane.leave_running();
    Ok(())
}

async fn down(dir: &Path) -> Result<()> {
    let Some(record) = Record::read(dir)? else {
        eprintln!("nothing runs in {}", dir.display());
        return Ok(());
    };
    let ended = record.stop().await?;
    if ended.is_empty() {
        eprintln!("nothing ran any more in {}", dir.display());
    }
    for server in ended {
        eprintln!("ended {} ({})", server.name, server.identity.pid);
    }
    std::fs::remove_file(Layout::new(dir).record()).context("cannot remove the record of what ran")
}

/// Whether everything is up, and ready.
async fn status(dir: &Path) -> Result<bool> {
    let Some(record) = Record::read(dir)? else {
        println!("down: nothing runs in {}", dir.display());
        return Ok(false);
    };
    let mut is_ready = false;
    if record.is_up() {
        let cluster = Cluster::open(dir).await?;
        let ready = match cluster.endpoint().get("/readyz").await {
            Ok(answer) if answer.text() == "ok" => {
                is_ready = true;
                "ready".to_owned()
            }
            Ok(answer) => format!("not ready:\n{}", answer.text().trim()),
            Err(error) => format!("{error:#}"),
        };
        println!("up: {}, {ready}", record.url);
        println!("kubeconfig: {}", cluster.admin_kubeconfig().display());
    } else {
        println!("down, or not completely up, in {}", dir.display());
    }
    for server in &record.servers {
        println!("{}: process {}, {}", server.name, server.identity.pid, state(server.identity));
    }
    Ok(is_ready)
}

async fn build() -> Result<()> {
    for tool in Tool::ALL {
        println!("{}", binaries::locate(tool).await?.display());
    }
    Ok(())
}

fn state(identity: Identity) -> &'static str {
    if identity.is_alive() { "running" } else { "ended" }
}

fn service_account(text: &str) -> Result<(String, String), String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err("expected NAMESPACE/NAME".to_owned()),
    }
}

impl Folder {
    fn path(self) -> Result<PathBuf> {
        match self.dir {
            Some(dir) => Ok(std::path::absolute(dir)?),
            None => Ok(binaries::cache_dir()?.join("up")),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(subcommand)]
        command: ControlPlaneCommand,
    }

    fn parse(line: &str) -> Result<ControlPlaneCommand, clap::Error> {
        Cli::try_parse_from(std::iter::once("xtask").chain(line.split(' '))).map(|cli| cli.command)
    }

    #[test]
    fn a_kubeconfig_is_for_a_user_or_a_service_account_and_never_both() {
        parse("kubeconfig --user jane --group dev --group ops --dir d").unwrap();
        parse("kubeconfig --service-account ns/name").unwrap();
        for wrong in [
            "kubeconfig",
            "kubeconfig --user jane --service-account ns/name",
            "kubeconfig --service-account name",
            "kubeconfig --service-account ns/name --group dev",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[tokio::test]
    async fn down_is_no_failure_where_nothing_runs_and_status_says_so() {
        let dir = std::env::temp_dir().join("no control plane was ever here");
        down(&dir).await.unwrap();
        assert!(!status(&dir).await.unwrap());
    }

    #[tokio::test]
    async fn servers_that_have_ended_are_not_up() {
        let dir = std::env::temp_dir().join(format!("xtask-ended-plane-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let ended = |name: &str| format!(r#"{{"name": "{name}", "pid": 4294967295, "start_time": 1}}"#);
        let record = format!(
            r#"{{"url": "https://127.0.0.1:1", "controller_manager": false, "servers": [{}, {}]}}"#,
            ended("etcd"),
            ended("kube-apiserver")
        );
        std::fs::write(Layout::new(&dir).record(), record).unwrap();
        let is_up = status(&dir).await;
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(!is_up.unwrap());
    }
}
