//! A server, embedded or real, with a namespace of the test's own, and commands that know no other.

use std::ops::Deref;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::Result;
use kube_informer_testbed::binaries::{self, Unavailable};
use kube_informer_testbed::cluster::Cluster;
pub(crate) use kube_informer_testbed::on_both;
use kube_informer_testbed::place;
use kube_informer_testbed::proxy::{self, Proxy};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::running::{Running, kube_informer};

/// Long enough for anything on a busy machine; no test waits for it to pass.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// See the module.
pub(crate) struct Place {
    place: place::Place,
    folder: TempDir,
}

impl Deref for Place {
    type Target = place::Place;

    fn deref(&self) -> &place::Place {
        &self.place
    }
}

impl Place {
    /// The embedded server.
    pub(crate) async fn embedded() -> Result<Self> {
        Self::of(place::Place::embedded().await?)
    }

    /// The real server of this test run.
    pub(crate) async fn real(cluster: Cluster, test: &str) -> Result<Self> {
        Self::of(place::Place::real(cluster, test).await?)
    }

    fn of(place: place::Place) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("kubeconfig"), place.kubeconfig())?;
        Ok(Self { place, folder })
    }

    /// The file that leads to the server.
    pub(crate) fn file(&self) -> String {
        self.path_of("kubeconfig")
    }

    /// A file of the test's own, which may be there.
    pub(crate) fn path_of(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// A command on the server, in the test's namespace; its arguments split at spaces.
    pub(crate) fn command(&self, args: &str) -> Command {
        self.command_of(&args.split_whitespace().collect::<Vec<_>>())
    }

    /// The same with arguments that have spaces.
    pub(crate) fn command_of(&self, args: &[&str]) -> Command {
        self.command_through(&self.file(), args)
    }

    /// The same with a kubeconfig that leads there in another way.
    pub(crate) fn command_through(&self, file: &str, args: &[&str]) -> Command {
        let mut command = kube_informer(args);
        command.args(["--kubeconfig", file]);
        if !args.iter().any(|arg| matches!(*arg, "-A" | "-n")) {
            command.args(["-n", &self.namespace]);
        }
        command
    }

    /// What a command says.
    pub(crate) async fn run(&self, args: &str) -> Output {
        output(self.command(args)).await
    }

    /// What a command prints that succeeds and has nothing else to say.
    pub(crate) async fn ok(&self, args: &str) -> String {
        let output = self.run(args).await;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{args}: {}: {said}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    /// A command that goes on.
    pub(crate) fn start(&self, args: &str) -> Running {
        Running::of(self.command(args))
    }

    /// What kubectl says to the same arguments.
    pub(crate) async fn kubectl(&self, args: &[&str]) -> Result<Output, Unavailable> {
        let binary = binaries::kubectl().await?;
        let home = self.folder.path();
        let mut command = Command::new(binary);
        command.args(args).args(["--kubeconfig", &self.file()]);
        if !args.iter().any(|arg| matches!(*arg, "-A" | "-n")) {
            command.args(["-n", &self.namespace]);
        }
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()))
            .env("HOME", home)
            .env("KUBECACHEDIR", home.join("cache"))
            .env("KUBERC", "off")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok(output(command).await)
    }

    /// A config map in the test's namespace.
    pub(crate) async fn config_map(&self, name: &str, data: Value) -> Result<Value> {
        let object = json!({ "metadata": { "name": name, "labels": { "app": "test" } }, "data": data });
        self.post(&self.path("configmaps"), &object).await
    }

    /// A fault proxy before the server, and the kubeconfig that leads to it.
    pub(crate) async fn proxy(&self) -> Result<(Proxy, String)> {
        let proxy = proxy::Config::new(self.endpoint.access()).add_credentials().start().await?;
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let file: PathBuf = self.folder.path().join(format!("proxy-{number}"));
        let access = kube_informer_testbed::kubeconfig::Access::anonymous(proxy.url());
        access.write(&file)?;
        Ok((proxy, file.to_str().unwrap().to_owned()))
    }
}

/// Runs a command to its end that has pipes for what it says, without holding up the server of the test.
pub(crate) async fn output(command: Command) -> Output {
    tokio::task::spawn_blocking(move || Running::of(command).output()).await.unwrap()
}

/// What a blocking call gives, without holding up the server of the test.
pub(crate) fn blocking<T>(call: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(call)
}
