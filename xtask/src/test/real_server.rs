//! The one real control plane that all tests of a run share.
//!
//! Its binaries are found or built by the testbed, which takes some ten minutes the first
//! time on two cores and nothing afterwards. Tests find it through
//! `KUBE_INFORMER_E2E_DIR`. With `KUBECONFIG_E2E` set, the tests use that cluster, and
//! nothing is built or started.
//!
//! It runs without kube-controller-manager: what a test writes stays as it is, as in a control
//! plane that the test starts itself. Tests that want controllers start their own.
//!
//! What cannot be had is left out; what is there and does not work is a failure.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use kube_informer_testbed::binaries::{self, Tool, Unavailable};
use kube_informer_testbed::cluster::{E2E_DIR, KUBECONFIG_E2E};
use kube_informer_testbed::control_plane::{ControlPlane, Options};
use tokio::time::timeout;

use super::report::Report;

/// How long the servers may take until they are ready.
const START: Duration = Duration::from_secs(180);

/// The control plane of this run.
#[derive(Debug, Default)]
pub(super) enum RealServer {
    /// Not asked for.
    #[default]
    None,
    /// The cluster that `KUBECONFIG_E2E` names.
    Given,
    /// Ours; dropped, its servers end at once.
    Running(Box<ControlPlane>),
    /// Not to be had, and why.
    Unavailable(String),
}

impl RealServer {
    /// Builds what is missing within `limit`, and starts the servers.
    pub(super) async fn start(&mut self, report: &mut Report, limit: Duration) -> anyhow::Result<()> {
        if let Some(kubeconfig) = std::env::var_os(KUBECONFIG_E2E).filter(|value| !value.is_empty()) {
            println!("the tests use the cluster of {KUBECONFIG_E2E}={}", kubeconfig.display());
            *self = RealServer::Given;
            return Ok(());
        }
        let all = async {
            for tool in Tool::ALL {
                let path = binaries::locate(tool).await?;
                println!("{}: {}", tool.name(), path.display());
            }
            Ok(())
        };
        match timeout(limit, all).await {
            Ok(Ok(())) => {}
            Ok(Err(unavailable)) => return self.give_up(report, &unavailable),
            Err(_elapsed) => {
                *self = RealServer::Unavailable("it could not be built in time".to_owned());
                anyhow::bail!("the servers are not built after {} s", limit.as_secs());
            }
        }
        let started = timeout(START, ControlPlane::start(Options::new())).await;
        match started.context("the servers do not get ready").and_then(|started| started) {
            Ok(plane) => {
                println!("running at {}", plane.url());
                report.pass(1);
                *self = RealServer::Running(Box::new(plane));
                Ok(())
            }
            Err(error) => {
                *self = RealServer::Unavailable("it did not start".to_owned());
                Err(error)
            }
        }
    }

    fn give_up(&mut self, report: &mut Report, unavailable: &Unavailable) -> anyhow::Result<()> {
        *self = RealServer::Unavailable(format!("no real control plane: {}", unavailable.reason()));
        report.unavailable("control-plane", unavailable);
        Ok(())
    }

    /// Why there is none, if there is none.
    pub(super) fn unavailable(&self) -> Option<&str> {
        match self {
            RealServer::None => Some("the real control plane was not asked for"),
            RealServer::Unavailable(why) => Some(why),
            RealServer::Given | RealServer::Running(_) => None,
        }
    }

    /// What the tests need to know.
    pub(super) fn environment(&self) -> Option<(&'static str, PathBuf)> {
        match self {
            RealServer::Running(plane) => Some((E2E_DIR, plane.dir().to_owned())),
            RealServer::None | RealServer::Given | RealServer::Unavailable(_) => None,
        }
    }

    /// Ends the servers in good order.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        match std::mem::take(self) {
            RealServer::Running(plane) => plane.stop().await,
            RealServer::None | RealServer::Given | RealServer::Unavailable(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_line(ci: bool, unavailable: &Unavailable) -> String {
        let mut report = Report::new(ci);
        report.unavailable("control-plane", unavailable);
        report.render().lines().last().unwrap().to_owned()
    }

    #[test]
    fn what_can_be_installed_fails_in_ci_and_what_is_broken_fails_everywhere() {
        let missing = Unavailable::installable("Go", "apt-get install golang");
        assert_eq!(last_line(false, &missing), "0 passed, 0 failed, 1 skipped");
        assert_eq!(last_line(true, &missing), "0 passed, 1 failed, 0 skipped");
        let broken = Unavailable::broken(&anyhow::anyhow!("go build failed"));
        assert_eq!(last_line(false, &broken), "0 passed, 1 failed, 0 skipped");
        let not_here = Unavailable::not_here("another system");
        assert_eq!(last_line(true, &not_here), "0 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn without_a_control_plane_the_reason_is_known() {
        let mut server = RealServer::default();
        assert!(server.unavailable().is_some() && server.environment().is_none());
        let missing = Unavailable::installable("Go", "apt-get install golang");
        server.give_up(&mut Report::new(false), &missing).unwrap();
        assert!(server.unavailable().unwrap().contains("apt-get install golang"));
    }
}
