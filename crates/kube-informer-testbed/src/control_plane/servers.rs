//! The servers' processes: their flags, their order, and when they are ready.
//!
//! A server is ready when it says so; until then it is asked every few milliseconds, for at most
//! [`READY_DEADLINE`]. A server that ends before is a failure at once.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::time::Instant;

use super::{Accounts, Options, Record, STOP_DEADLINE, Server, lifetime, random_bytes};
use crate::http::Endpoint;
use crate::kubeconfig::Access;
use crate::process::{Identity, Launch, POLL, Process};

/// How long a server has to get ready. Seconds on an idle machine; a busy one needs more.
const READY_DEADLINE: Duration = Duration::from_secs(120);

/// How long a port may stay taken at a restart: whoever had it is on its way out.
const PORT_DEADLINE: Duration = Duration::from_secs(10);

/// Ports are taken from below the range that the kernel gives to outgoing connections: nobody is given ours
/// by chance while a server restarts.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

#[derive(Clone, Debug)]
pub(super) struct Binaries {
    pub(super) etcd: PathBuf,
    pub(super) kube_apiserver: PathBuf,
    pub(super) kube_controller_manager: Option<PathBuf>,
}

/// The ports of one control plane, for its whole life.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    pub(super) etcd: u16,
    pub(super) etcd_peer: u16,
    pub(super) apiserver: u16,
    pub(super) controller_manager: u16,
}

/// The running servers.
#[derive(Debug)]
pub(super) struct Servers {
    binaries: Binaries,
    options: Options,
    ports: Ports,
    accounts: Accounts,
    /// Fields drop in this order: clients before what they are clients of.
    controller_manager: Option<Process>,
    apiserver: Option<Process>,
    etcd: Option<Process>,
    /// The last server that did not start said that its port was taken.
    port_was_taken: bool,
}

impl Ports {
    pub(super) fn choose() -> Result<Self> {
        // Held until all are found, so that they differ.
        let mut listeners = Vec::new();
        while listeners.len() < 4 {
            listeners.push(free_port()?);
        }
        let port = |index: usize| -> Result<u16> {
            let listener: &TcpListener = &listeners[index];
            Ok(listener.local_addr()?.port())
        };
        Ok(Self { etcd: port(0)?, etcd_peer: port(1)?, apiserver: port(2)?, controller_manager: port(3)? })
    }

    pub(super) fn etcd_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.etcd)
    }

    pub(super) fn etcd_peer_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.etcd_peer)
    }
}

impl Servers {
    pub(super) fn new(binaries: Binaries, options: Options, ports: Ports, accounts: Accounts) -> Self {
        Self {
            binaries,
            options,
            ports,
            accounts,
            controller_manager: None,
            apiserver: None,
            etcd: None,
            port_was_taken: false,
        }
    }

    pub(super) fn ports(&self) -> &Ports {
        &self.ports
    }

    pub(super) fn port_was_taken(&self) -> bool {
        self.port_was_taken
    }

    pub(super) fn apiserver(&mut self) -> Result<&mut Process> {
        self.apiserver.as_mut().context("kube-apiserver is not running")
    }

    pub(super) fn identities(&self) -> Vec<(String, Identity)> {
        [&self.etcd, &self.apiserver, &self.controller_manager]
            .into_iter()
            .flatten()
            .map(|process| (process.name().to_owned(), process.identity()))
            .collect()
    }

    /// Starts everything, without patience for taken ports: the caller chooses others.
    pub(super) async fn start_all(&mut self) -> Result<()> {
        // A process that is killed with its parent leaves a socket behind, never data that matters.
        let data = self.accounts.layout().etcd_data();
        if data.exists() {
            std::fs::remove_dir_all(&data)
                .with_context(|| format!("cannot remove the old data {}", data.display()))?;
        }
        self.spawn_etcd()?;
        self.etcd_ready().await?;
        self.spawn_apiserver()?;
        self.apiserver_ready().await?;
        // Made by the API server itself, some time after it says that it is ready.
        self.appears("/api/v1/namespaces/default").await?;
        self.start_controller_manager().await
    }

    /// Starts etcd on its old port, which its predecessor may still be giving up.
    pub(super) async fn start_etcd(&mut self) -> Result<()> {
        let deadline = Instant::now() + PORT_DEADLINE;
        loop {
            port_free(self.ports.etcd, deadline).await;
            self.spawn_etcd()?;
            match self.etcd_ready().await {
                Err(_) if self.port_was_taken && Instant::now() < deadline => {}
                result => return result,
            }
        }
    }

    /// Starts the API server on its old port, which its predecessor may still be giving up.
    pub(super) async fn start_apiserver(&mut self) -> Result<()> {
        let deadline = Instant::now() + PORT_DEADLINE;
        loop {
            port_free(self.ports.apiserver, deadline).await;
            self.spawn_apiserver()?;
            match self.apiserver_ready().await {
                Err(_) if self.port_was_taken && Instant::now() < deadline => {}
                result => return result,
            }
        }
    }

    /// Starts the controller manager, if there is to be one.
    pub(super) async fn start_controller_manager(&mut self) -> Result<()> {
        if !self.options.controller_manager {
            return Ok(());
        }
        self.spawn_controller_manager()?;
        // Its controllers run when the first of them has done something.
        self.appears("/api/v1/namespaces/default/serviceaccounts/default").await
    }

    /// Ends etcd under a running API server, whose streams it would otherwise wait for for seven seconds.
    pub(super) async fn stop_etcd(&mut self) -> Result<()> {
        stop(&mut self.etcd, Duration::from_secs(1)).await
    }

    pub(super) async fn stop_apiserver(&mut self) -> Result<()> {
        stop(&mut self.apiserver, STOP_DEADLINE).await
    }

    pub(super) fn kill_apiserver(&mut self) -> Result<()> {
        self.apiserver()?.kill()?;
        self.apiserver = None;
        Ok(())
    }

    pub(super) async fn stop_all(&mut self) -> Result<()> {
        stop(&mut self.controller_manager, STOP_DEADLINE).await?;
        stop(&mut self.apiserver, STOP_DEADLINE).await?;
        stop(&mut self.etcd, STOP_DEADLINE).await
    }

    pub(super) fn leave_running(mut self) {
        for process in [self.etcd.take(), self.apiserver.take(), self.controller_manager.take()] {
            process.into_iter().for_each(Process::leave_running);
        }
    }

    pub(super) async fn etcd_ready(&mut self) -> Result<()> {
        let etcd = self.etcd.as_mut().context("etcd is not running")?;
        let endpoint = Endpoint::new(Access::anonymous(self.ports.etcd_url()))?;
        ready(etcd, &endpoint, "/health", &mut self.port_was_taken).await
    }

    pub(super) async fn apiserver_ready(&mut self) -> Result<()> {
        let endpoint = Endpoint::new(self.accounts.admin())?;
        let apiserver = self.apiserver.as_mut().context("kube-apiserver is not running")?;
        ready(apiserver, &endpoint, "/readyz", &mut self.port_was_taken).await
    }

    /// Waits for an object that the last server started makes.
    async fn appears(&mut self, path: &str) -> Result<()> {
        let endpoint = Endpoint::new(self.accounts.admin())?;
        let process = self.controller_manager.as_mut().or(self.apiserver.as_mut());
        ready(process.context("no server is running")?, &endpoint, path, &mut self.port_was_taken).await
    }

    fn spawn_etcd(&mut self) -> Result<()> {
        let (client, peer) = (self.ports.etcd_url(), self.ports.etcd_peer_url());
        let data = self.accounts.layout().etcd_data();
        let args = [
            format!("--data-dir={}", data.display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            // Nothing here survives a power cut, nor needs to.
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
        ];
        let launch = self.launch("etcd", self.binaries.etcd.clone()).args(args);
        self.etcd = Some(launch.args(self.options.etcd_flags.clone()).spawn()?);
        self.write_record()
    }

    fn spawn_apiserver(&mut self) -> Result<()> {
        let layout = self.accounts.layout();
        let pki = |file: &str| layout.pki(file).display().to_string();
        let mut args = vec![
            format!("--etcd-servers={}", self.ports.etcd_url()),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.ports.apiserver),
            format!("--cert-dir={}", layout.pki("generated").display()),
            format!("--tls-cert-file={}", pki("apiserver.crt")),
            format!("--tls-private-key-file={}", pki("apiserver.key")),
            format!("--client-ca-file={}", pki("ca.crt")),
            format!("--token-auth-file={}", layout.tokens().display()),
            "--authorization-mode=RBAC".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", pki("sa.crt")),
            format!("--service-account-signing-key-file={}", pki("sa.key")),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            // The API server refuses to publish a loopback address as the endpoint of `kubernetes.default`.
            "--endpoint-reconciler-type=none".to_owned(),
            // At SIGTERM watches end; otherwise the server waits for them for a minute.
            "--shutdown-watch-termination-grace-period=1s".to_owned(),
            "--allow-privileged=true".to_owned(),
            "--profiling=false".to_owned(),
        ];
        if !self.options.controller_manager {
            // It refuses pods of a namespace that has no service account `default`, which nobody makes.
            args.push("--disable-admission-plugins=ServiceAccount".to_owned());
        }
        let launch = self.launch("kube-apiserver", self.binaries.kube_apiserver.clone()).args(args);
        self.apiserver = Some(launch.args(self.options.apiserver_flags.clone()).spawn()?);
        self.write_record()
    }

    fn spawn_controller_manager(&mut self) -> Result<()> {
        let binary = self.binaries.kube_controller_manager.clone().context("no binary was asked for")?;
        let kubeconfig = self.accounts.kubeconfig_for_controller_manager()?;
        let layout = self.accounts.layout();
        let args = [
            format!("--kubeconfig={}", kubeconfig.display()),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.ports.controller_manager),
            format!("--cert-dir={}", layout.pki("generated").display()),
            format!("--root-ca-file={}", layout.pki("ca.crt").display()),
            format!("--service-account-private-key-file={}", layout.pki("sa.key").display()),
            // There is only one.
            "--leader-elect=false".to_owned(),
            // The default of 20 a second makes tests wait.
            "--kube-api-qps=200".to_owned(),
            "--kube-api-burst=400".to_owned(),
        ];
        let launch = self.launch("kube-controller-manager", binary).args(args);
        self.controller_manager = Some(launch.args(self.options.controller_manager_flags.clone()).spawn()?);
        self.write_record()
    }

    fn launch(&self, name: &str, binary: PathBuf) -> Launch {
        Launch::new(name, binary, self.accounts.layout().log(name)).lifetime(lifetime(&self.options))
    }

    fn write_record(&self) -> Result<()> {
        let servers =
            self.identities().into_iter().map(|(name, identity)| Server { name, identity }).collect();
        let controller_manager = self.options.controller_manager;
        Record { url: self.accounts.url().to_owned(), controller_manager, servers }
            .write(self.accounts.layout())
    }
}

async fn stop(process: &mut Option<Process>, deadline: Duration) -> Result<()> {
    if let Some(process) = process {
        process.stop(deadline).await?;
    }
    *process = None;
    Ok(())
}

/// Waits until `path` is answered with 200.
async fn ready(
    process: &mut Process,
    endpoint: &Endpoint,
    path: &str,
    port_was_taken: &mut bool,
) -> Result<()> {
    *port_was_taken = false;
    let endpoint = endpoint.clone().with_timeout(Duration::from_secs(10));
    let deadline = Instant::now() + READY_DEADLINE;
    loop {
        let answer = tokio::select! {
            biased;
            status = process.ended() => {
                *port_was_taken = process.logged().contains("address already in use");
                return Err(process.failure(&format!("ended with {} before it was ready", status?)));
            }
            answer = endpoint.get(path) => answer,
        };
        if matches!(&answer, Ok(response) if response.status == http::StatusCode::OK) {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let last = match answer {
                Ok(response) => format!("{}: {}", response.status, response.text()),
                Err(error) => format!("{error:#}"),
            };
            return Err(process
                .failure(&format!("was not ready after {} s: {path}: {last}", READY_DEADLINE.as_secs())));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Waits for a port that a server is giving up, but not past the deadline: a server that finds it taken says so.
async fn port_free(port: u16, deadline: Instant) {
    while TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_err() && Instant::now() < deadline {
        tokio::time::sleep(POLL).await;
    }
}

fn free_port() -> Result<TcpListener> {
    let attempts = 100;
    for _ in 0..attempts {
        let random = u16::from_ne_bytes(random_bytes()?);
        let port = PORTS.start + random % (PORTS.end - PORTS.start);
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return Ok(listener);
        }
    }
    anyhow::bail!("no free port among {attempts} between {} and {}", PORTS.start, PORTS.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binaries::{Tool, locate};
    use crate::control_plane::layout::Layout;
    use crate::{cluster, require};

    #[tokio::test]
    async fn a_taken_port_is_told_from_other_failures_and_waited_for_at_a_restart() {
        require!(cluster::own_servers().await);
        let etcd = require!(locate(Tool::Etcd).await);
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        layout.create().unwrap();
        let ports = Ports::choose().unwrap();
        let accounts = Accounts::create(layout, ports.apiserver).unwrap();
        let binaries = Binaries { etcd, kube_apiserver: PathBuf::new(), kube_controller_manager: None };
        let mut servers = Servers::new(binaries, Options::new(), ports, accounts);

        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, ports.etcd)).unwrap();
        let error = servers.start_all().await.unwrap_err().to_string();
        assert!(servers.port_was_taken() && error.contains("address already in use"), "{error}");

        // Runs when the restart has to wait for the first time.
        let release = async { drop(taken) };
        let (started, ()) = tokio::join!(servers.start_etcd(), release);
        started.unwrap();
    }
}
