//! Where a block is run: a home folder of its own, programs on the `PATH`, and a server, where it wants one.
//!
//! Nothing of the user's is read or written: the home is empty and goes away afterwards, `cargo install` writes to it, and no
//! kubeconfig is known but that of the server. The real control plane is the exception, whose binaries are in the user's cache;
//! its folder is one of the ground's. Cargo keeps its own folders. What was started ends with the ground, however its block ended,
//! and the server with this process at the latest.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use kube_informer_testbed::process::{Launch, Process};
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use super::control_plane::Plane;
use super::ports::Ports;
use super::{Block, Place, environment};
use crate::process::obeyed;

/// What the documents call the binary.
const BINARY: &str = "kube-informer";

/// How much faster than life the demo is: what documents show of it comes within some seconds.
const SPEED: &str = "3";

/// How long a server may take until it serves.
const START: Duration = Duration::from_secs(120);

/// How often a server that starts is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Programs that are there for blocks, beside those of the user.
#[derive(Debug, Clone, Default)]
pub(super) struct Programs {
    pub(super) binary: Option<PathBuf>,
    pub(super) kubectl: Option<PathBuf>,
}

/// A prepared place.
#[derive(Debug)]
pub(super) struct Ground {
    root: PathBuf,
    place: Place,
    path: OsString,
    server: Option<Server>,
    plane: Plane,
    // Goes last: what runs writes into it.
    folder: Folder,
}

#[derive(Debug)]
struct Server {
    process: Process,
    kubeconfig: PathBuf,
}

impl Ground {
    /// Makes the folders, and starts the server.
    pub(super) async fn prepare(root: &Path, place: Place, programs: &Programs) -> Result<Self> {
        let folder = Folder::create()?;
        // Where people have programs of their own.
        let bin = folder.home().join(".local/bin");
        std::fs::create_dir_all(&bin)?;
        for (name, program) in [(BINARY, &programs.binary), ("kubectl", &programs.kubectl)] {
            if let Some(program) = program {
                std::os::unix::fs::symlink(program, bin.join(name))?;
            }
        }
        let old = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([bin.clone()].into_iter().chain(std::env::split_paths(&old)))?;
        let binary = bin.join(BINARY);
        let server = match place {
            Place::Embedded => Some(Server::embedded(&binary, &folder).await?),
            Place::Demo => Some(Server::demo(&binary, &folder).await?),
            Place::Here | Place::ControlPlane | Place::Installed | Place::OtherTerminal => None,
        };
        let plane = Plane::at(folder.0.join("control-plane"));
        Ok(Self { root: root.to_owned(), place, path, server, plane, folder })
    }

    /// The block with ports that are free, and the folder of the control plane here.
    pub(super) fn exchanged(&self, block: &Block, ports: &mut Ports) -> Result<Block> {
        let mut exchanged = |text: &str| -> Result<String> {
            let text = ports.exchanged(text)?;
            Ok(if self.place == Place::ControlPlane { self.plane.exchanged(&text) } else { text })
        };
        let script = exchanged(&block.script)?;
        let output = block.output.iter().map(|line| exchanged(line)).collect::<Result<_>>()?;
        Ok(Block { line: block.line, script, action: block.action.clone(), output })
    }

    /// The shell that runs a script here; the first command that fails ends it. Told to end, it waits for the command that
    /// runs, and ends as that one does.
    pub(super) fn shell(&self, script: &str) -> Command {
        let mut command = std::process::Command::new("sh");
        kube_informer_testbed::examples::without_package(&mut command);
        environment::clean(&mut command);
        command.args(["-euc", &format!("trap exit TERM\n{script}")]).env("PATH", &self.path);
        if self.place == Place::ControlPlane {
            command.current_dir(&self.root);
            return command.into();
        }
        // Cargo and rustup have what they have in the user's home, unless told otherwise.
        if let Some(home) = std::env::var_os("HOME") {
            for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
                command.env(name, std::env::var_os(name).unwrap_or(Path::new(&home).join(folder).into()));
            }
        }
        let home = self.folder.home();
        command.current_dir(if self.place == Place::Installed { &home } else { &self.root });
        command.env("HOME", &home);
        for name in ["CONFIG", "DATA", "STATE", "CACHE"] {
            command.env_remove(format!("XDG_{name}_HOME"));
        }
        // On the `PATH`, as what people install is.
        command.env("CARGO_INSTALL_ROOT", home.join(".local"));
        if let Some(server) = &self.server {
            command.env("KUBECONFIG", &server.kubeconfig);
        }
        command.into()
    }

    /// Ends the server, which must have served until now, and what is left of a control plane, and takes everything away.
    /// What the server has said, if there is one. It has as long as `patience` to end as it is told to.
    pub(super) async fn clear(self, patience: Duration) -> Result<Option<String>> {
        self.plane.stop().await?;
        let Some(Server { mut process, .. }) = self.server else {
            return Ok(None);
        };
        if let Some(status) = process.exited()? {
            return Err(process.failure(&format!("has ended before its block, with {status}")));
        }
        let status = process.stop(patience).await?;
        if !obeyed(status) {
            return Err(process.failure(&format!("was told to end, and ended with {status}")));
        }
        Ok(Some(format!("{:#}", process.failure("was there for it"))))
    }
}

impl Server {
    async fn embedded(binary: &Path, folder: &Folder) -> Result<Self> {
        let kubeconfig = folder.0.join("kubeconfig");
        let launch = folder
            .launch(binary)
            .args(["apiserver", "--simulate", "--write-kubeconfig"])
            .args([kubeconfig.display().to_string()]);
        let process = serving(launch, "Ctrl-C ends it").await?;
        Ok(Self { process, kubeconfig })
    }

    /// With a shop that works: what documents show is there at once.
    async fn demo(binary: &Path, folder: &Folder) -> Result<Self> {
        let launch = folder
            .launch(binary)
            .args(["demo", "--speed", SPEED])
            .env("TMPDIR", folder.0.display().to_string());
        let process = serving(launch, "what the informers see").await?;
        let kubeconfig = folder.0.join(format!("kube-informer-demo-{}.yaml", process.id()));
        let mut wait = std::process::Command::new(binary);
        environment::clean(&mut wait);
        let mut wait = Command::from(wait);
        wait.args(["wait", "deployments", "--all", "--namespace", "shop", "--for", "condition=Available"]);
        wait.args(["--timeout", "2m"]).env("KUBECONFIG", &kubeconfig).kill_on_drop(true);
        let output = wait.output().await.context("cannot run the binary")?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(process.failure(&format!("has no shop that works: {}", why.trim())));
        }
        Ok(Self { process, kubeconfig })
    }
}

/// A server that has said so.
async fn serving(launch: Launch, word: &str) -> Result<Process> {
    let mut process = launch.spawn()?;
    let said = async {
        while !process.logged().contains(word) {
            if let Some(status) = process.exited()? {
                return Err(process.failure(&format!("has ended with {status}")));
            }
            sleep(LOOK).await;
        }
        Ok(())
    };
    match timeout(START, said).await {
        Ok(said) => said?,
        Err(_elapsed) => return Err(process.failure(&format!("does not serve after {} s", START.as_secs()))),
    }
    Ok(process)
}

/// A folder that goes away.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    fn create() -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("kube-informer-docs-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }

    fn home(&self) -> PathBuf {
        self.0.join("home")
    }

    fn launch(&self, binary: &Path) -> Launch {
        environment::cleaned(Launch::new("the server", binary, self.0.join("server.log")))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is in the system's folder for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether there is a program of that name.
pub(super) fn is_on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(OsStr::new(name)).is_file())
}
