//! The servers' binaries: found, or built once from the pinned Go module `e2e/control-plane`.
//!
//! A tool is looked for in this order:
//!
//! 1. the folder `$KUBEBUILDER_ASSETS`, where setup-envtest puts etcd, kube-apiserver and kubectl;
//! 2. for kubectl alone: `$PATH`;
//! 3. the cache: `$KUBE_INFORMER_CACHE`, else `$XDG_CACHE_HOME/kube-informer`, else
//!    `$HOME/.cache/kube-informer`, and there `control-plane-<hash>/`, where the hash covers go.mod, go.sum and
//!    the build flags. What is missing there is built with Go; two builders at once do not get in each
//!    other's way, and a half-built binary never appears under its name.
//!
//! A tool that cannot be had is [`Unavailable`], with a reason and a remedy, never a panic.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use crate::process::Launch;

/// The Go module that pins the servers, from the root of the repository.
const MODULE: &str = "e2e/control-plane";

/// How the folder of an unfinished build begins.
const UNFINISHED: &str = ".build-";

/// A binary of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tool {
    /// The store.
    Etcd,
    /// Restores etcd's snapshots.
    Etcdutl,
    /// The API server.
    KubeApiserver,
    /// The controllers: namespaces, garbage, deployments, service accounts, ….
    KubeControllerManager,
    /// The command line client.
    Kubectl,
}

/// Why a test cannot have what it needs.
#[derive(Clone, Debug)]
pub struct Unavailable {
    reason: String,
    verdict: Verdict,
}

/// What a test does about something unavailable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The test does not apply here: it is skipped by name.
    NotHere,
    /// Something can be installed: the test is skipped by name on a developer's machine, and fails on CI.
    Installable {
        /// What is missing.
        tool: String,
        /// How to get it.
        how: String,
    },
    /// Everything is there and does not work: the test fails.
    Broken,
}

impl Tool {
    /// All tools.
    pub const ALL: [Self; 5] =
        [Self::Etcd, Self::Etcdutl, Self::KubeApiserver, Self::KubeControllerManager, Self::Kubectl];

    /// The file name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::Etcdutl => "etcdutl",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::Kubectl => "kubectl",
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::Etcdutl => "go.etcd.io/etcd/etcdutl/v3",
            Self::KubeApiserver => "k8s.io/kubernetes/cmd/kube-apiserver",
            Self::KubeControllerManager => "k8s.io/kubernetes/cmd/kube-controller-manager",
            Self::Kubectl => "k8s.io/kubernetes/cmd/kubectl",
        }
    }
}

impl Unavailable {
    /// `tool` is missing and can be installed: `how`.
    #[must_use]
    pub fn installable(tool: impl Into<String>, how: impl Into<String>) -> Self {
        let (tool, how) = (tool.into(), how.into());
        let reason = format!("{tool} not found; install it with: {how}");
        Self { reason, verdict: Verdict::Installable { tool, how } }
    }

    /// The test does not apply to this environment.
    #[must_use]
    pub fn not_here(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), verdict: Verdict::NotHere }
    }

    /// Everything needed is there and failed.
    #[must_use]
    pub fn broken(error: &anyhow::Error) -> Self {
        Self { reason: format!("{error:#}"), verdict: Verdict::Broken }
    }

    /// Why, and what to do about it.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// What a test does about it.
    #[must_use]
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.verdict {
            Verdict::Broken => write!(f, "{}", self.reason),
            Verdict::NotHere | Verdict::Installable { .. } => write!(f, "unavailable: {}", self.reason),
        }
    }
}

impl std::error::Error for Unavailable {}

/// The path of `tool`, which is built first where it must be. That takes minutes when Go's own cache is cold;
/// progress goes to stderr.
pub async fn locate(tool: Tool) -> Result<PathBuf, Unavailable> {
    tokio::task::spawn_blocking(move || locate_blocking(tool))
        .await
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
}

/// The kubectl on `$PATH`, or one built from the module.
pub async fn kubectl() -> Result<PathBuf, Unavailable> {
    locate(Tool::Kubectl).await
}

/// The folder of a module that the servers are built from, such as `k8s.io/api`, in the version that they
/// are built with. It is downloaded where it must be.
pub fn go_module(path: &str) -> Result<PathBuf, Unavailable> {
    if on_path("go").is_none() {
        return Err(Unavailable::installable(format!("Go (for {path})"), "https://go.dev/dl, 1.26 or newer"));
    }
    let found = || -> Result<PathBuf> {
        let source = module_source()?;
        let go = |args: &[&str]| -> Result<String> {
            let output =
                Command::new("go").args(args).current_dir(&source).output().context("cannot run go")?;
            let error = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "go {} failed: {error}", args.join(" "));
            Ok(String::from_utf8(output.stdout)?.trim().to_owned())
        };
        go(&["mod", "download", path])?;
        let dir = go(&["list", "-m", "-f", "{{.Dir}}", path])?;
        ensure!(!dir.is_empty(), "go does not know where {path} is");
        Ok(dir.into())
    };
    found().map_err(|error| Unavailable::broken(&error))
}

/// The folder for everything that is expensive to make and may be deleted at any time.
pub fn cache_dir() -> Result<PathBuf> {
    cache_dir_from(|name| std::env::var_os(name).filter(|value| !value.is_empty()))
}

fn cache_dir_from(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    if let Some(dir) = variable("KUBE_INFORMER_CACHE") {
        return Ok(dir.into());
    }
    if let Some(dir) = variable("XDG_CACHE_HOME") {
        return Ok(PathBuf::from(dir).join("kube-informer"));
    }
    let home = variable("HOME").context("none of KUBE_INFORMER_CACHE, XDG_CACHE_HOME and HOME is set")?;
    Ok(PathBuf::from(home).join(".cache/kube-informer"))
}

fn locate_blocking(tool: Tool) -> Result<PathBuf, Unavailable> {
    if let Some(assets) = std::env::var_os("KUBEBUILDER_ASSETS").filter(|assets| !assets.is_empty()) {
        let path = Path::new(&assets).join(tool.name());
        if path.is_file() {
            return Ok(path);
        }
        // Both servers must be of one kind; the rest may come from elsewhere.
        if matches!(tool, Tool::Etcd | Tool::KubeApiserver) {
            let tool = format!("{} in the folder KUBEBUILDER_ASSETS", tool.name());
            return Err(Unavailable::installable(tool, "setup-envtest use; or unset KUBEBUILDER_ASSETS"));
        }
    }
    if tool == Tool::Kubectl
        && let Some(path) = on_path(tool.name())
    {
        return Ok(path);
    }
    let module = Module::read().map_err(|error| Unavailable::broken(&error))?;
    let path = module.dir.join(tool.name());
    if path.is_file() {
        return Ok(path);
    }
    if on_path("go").is_none() {
        let tool = format!("Go (to build {})", tool.name());
        let how =
            "https://go.dev/dl, 1.26 or newer; or point KUBEBUILDER_ASSETS at a folder with the servers";
        return Err(Unavailable::installable(tool, how));
    }
    // Skipping a test because a build broke would hide the breakage.
    module.build(tool).map_err(|error| Unavailable::broken(&error))?;
    Ok(path)
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// The pinned module, and where its binaries go.
struct Module {
    source: PathBuf,
    dir: PathBuf,
    kubernetes: String,
}

impl Module {
    fn read() -> Result<Self> {
        let source = module_source()?;
        let read = |name: &str| {
            let path = source.join(name);
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        let (go_mod, go_sum) = (read("go.mod")?, read("go.sum")?);
        let kubernetes = required_version(&go_mod, "k8s.io/kubernetes")
            .context("go.mod does not require k8s.io/kubernetes")?
            .to_owned();
        let mut hash = Sha256::new();
        for text in
            [&go_mod, &go_sum, &flags(Tool::Etcd, &kubernetes), &flags(Tool::KubeApiserver, &kubernetes)]
        {
            hash.update(text);
        }
        let hash: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { dir: cache_dir()?.join(format!("control-plane-{hash}")), source, kubernetes })
    }

    fn build(&self, tool: Tool) -> Result<()> {
        std::fs::create_dir_all(&self.dir)
            .with_context(|| format!("cannot create the cache {}", self.dir.display()))?;
        let lock = std::fs::File::create(self.dir.join(".lock")).context("cannot create the cache's lock")?;
        if lock.try_lock().is_err() {
            eprintln!("waiting for another build of the servers");
            lock.lock().context("cannot lock the cache")?;
        }
        let target = self.dir.join(tool.name());
        if target.is_file() {
            // Whoever held the lock has built it.
            return Ok(());
        }

        remove_unfinished(&self.dir);
        // In the same folder, so that the rename cannot cross file systems.
        let work = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(&self.dir)?;
        let built = work.path().join(tool.name());
        eprintln!("building {} (minutes, if Go's build cache is cold)", tool.name());
        let started = Instant::now();
        let mut go = Launch::new("go build", "go", work.path().join("log"))
            .args(["build", "-trimpath", "-mod=readonly", "-ldflags"])
            .args([flags(tool, &self.kubernetes)])
            .args(["-o".to_owned(), built.display().to_string(), tool.package().to_owned()])
            .env("CGO_ENABLED", "0")
            .current_dir(&self.source)
            .spawn()?;
        let (done, finished) = mpsc::channel();
        let (go, status) = std::thread::scope(|scope| {
            scope.spawn(move || {
                let status = go.wait();
                let _ = done.send((go, status));
            });
            loop {
                match finished.recv_timeout(Duration::from_secs(30)) {
                    Ok(result) => break Ok(result),
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        eprintln!("building {}: {} s so far", tool.name(), started.elapsed().as_secs());
                    }
                    Err(gone) => break Err(gone),
                }
            }
        })?;
        let status = status?;
        if !status.success() {
            return Err(go.failure(&format!("ended with {status}")));
        }
        std::fs::rename(&built, &target)
            .with_context(|| format!("cannot move the new binary to {}", target.display()))?;
        eprintln!("built {} in {:.1} s: {}", tool.name(), started.elapsed().as_secs_f32(), target.display());
        Ok(())
    }
}

/// The module beside this crate or, if the repository has moved since this was compiled, around the current
/// directory.
fn module_source() -> Result<PathBuf> {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let current = std::env::current_dir().unwrap_or_default();
    crate_dir
        .ancestors()
        .chain(current.ancestors())
        .map(|dir| dir.join(MODULE))
        .find(|dir| dir.join("go.mod").is_file())
        .with_context(|| format!("no {MODULE} above {} nor above {}", crate_dir.display(), current.display()))
}

/// Removes what builds that were killed have left. The caller holds the lock: no build is going on.
fn remove_unfinished(dir: &Path) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// The linker's flags. The version is put in where Kubernetes' own build script puts it.
fn flags(tool: Tool, kubernetes: &str) -> String {
    let mut flags = "-s -w".to_owned();
    if matches!(tool, Tool::Etcd | Tool::Etcdutl) {
        return flags;
    }
    let mut numbers = kubernetes.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or("0"), numbers.next().unwrap_or("0"));
    for (name, value) in
        [("gitVersion", kubernetes), ("gitMajor", major), ("gitMinor", minor), ("gitTreeState", "clean")]
    {
        flags.push_str(&format!(" -X k8s.io/component-base/version.{name}={value}"));
    }
    flags
}

fn required_version<'a>(go_mod: &'a str, module: &str) -> Option<&'a str> {
    go_mod.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some(module)).then(|| words.next()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_the_most_specific_variable_says() {
        let with = |set: &'static [(&'static str, &'static str)]| {
            cache_dir_from(move |name| set.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into()))
        };
        let all = &[("KUBE_INFORMER_CACHE", "/c"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(with(all).unwrap(), Path::new("/c"));
        assert_eq!(with(&all[1..]).unwrap(), Path::new("/x/kube-informer"));
        assert_eq!(with(&all[2..]).unwrap(), Path::new("/h/.cache/kube-informer"));
        assert!(with(&all[3..]).is_err());
    }

    #[test]
    fn the_servers_report_the_version_that_go_mod_pins() {
        let module = Module::read().unwrap();
        assert!(module.kubernetes.starts_with("v1."), "{}", module.kubernetes);
        let flags = flags(Tool::KubeApiserver, "v1.37.1");
        assert!(
            flags.contains("version.gitVersion=v1.37.1 ") && flags.contains("version.gitMinor=37 "),
            "{flags}"
        );
    }
}
