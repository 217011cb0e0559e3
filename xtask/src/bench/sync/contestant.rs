//! Who takes part, as which program, and how to talk to its process.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Who takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Contestant {
    /// client-go's shared informer over pods, in protobuf.
    ClientGo,
    /// kube-runtime's watcher and reflector over pods.
    KubeRuntime,
    /// Our informer over pods, as it comes.
    Ours,
    /// The same with ten handlers.
    OursTenHandlers,
    /// The same with one handler, and all views kept.
    OursAllViews,
    /// client-go's dynamic informer over custom resources.
    ClientGoDynamic,
    /// kube-runtime over the same, as `DynamicObject`.
    KubeRuntimeDynamic,
    /// Our informer over the same.
    OursDynamic,
    /// The same, and it is read; not one of those that take turns.
    OursDynamicReads,
    /// The programs without an informer.
    ClientGoIdle,
    KubeRuntimeIdle,
    OursIdle,
}

/// What is asked of a contestant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    /// To connect, and nothing else.
    Idle,
    /// To sync custom resources.
    SyncCustomResources,
    /// To follow updates, reading metadata.
    Follow,
    /// To be read.
    BeRead,
    /// To sync, to follow in both ways, to be read.
    Everything,
}

impl Contestant {
    /// All of them, in the order of their turns: those that are compared stand side by side.
    pub(super) const ALL: [Self; 11] = [
        Self::ClientGo,
        Self::KubeRuntime,
        Self::Ours,
        Self::OursTenHandlers,
        Self::OursAllViews,
        Self::ClientGoDynamic,
        Self::KubeRuntimeDynamic,
        Self::OursDynamic,
        Self::ClientGoIdle,
        Self::KubeRuntimeIdle,
        Self::OursIdle,
    ];

    /// What it is called in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ClientGo => "client-go, typed",
            Self::KubeRuntime => "kube-runtime, typed",
            Self::Ours => "kube-informer",
            Self::OursTenHandlers => "kube-informer, ten handlers",
            Self::OursAllViews => "kube-informer, all views kept",
            Self::ClientGoDynamic => "client-go, dynamic",
            Self::KubeRuntimeDynamic => "kube-runtime, `DynamicObject`",
            Self::OursDynamic => "kube-informer, custom resources",
            Self::OursDynamicReads => "kube-informer, custom resources, read",
            Self::ClientGoIdle => "client-go, idle",
            Self::KubeRuntimeIdle => "kube-runtime, idle",
            Self::OursIdle => "kube-informer, idle",
        }
    }

    /// What is asked of it.
    pub(super) fn task(self) -> Task {
        match self {
            Self::ClientGo | Self::KubeRuntime | Self::Ours => Task::Everything,
            Self::OursTenHandlers => Task::Follow,
            Self::OursAllViews | Self::OursDynamicReads => Task::BeRead,
            Self::ClientGoDynamic | Self::KubeRuntimeDynamic | Self::OursDynamic => Task::SyncCustomResources,
            Self::ClientGoIdle | Self::KubeRuntimeIdle | Self::OursIdle => Task::Idle,
        }
    }

    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::ClientGo | Self::KubeRuntime | Self::Ours => &["typed"],
            Self::OursTenHandlers => &["typed", "--handlers", "10"],
            Self::OursAllViews => &["typed", "--all-views"],
            Self::ClientGoDynamic | Self::KubeRuntimeDynamic | Self::OursDynamic => &["dynamic"],
            Self::OursDynamicReads => &["dynamic", "--reads"],
            Self::ClientGoIdle | Self::KubeRuntimeIdle | Self::OursIdle => &["idle"],
        }
    }
}

/// The programs, built.
#[derive(Debug)]
pub(super) struct Programs {
    client_go: PathBuf,
    kube_runtime: PathBuf,
    ours: PathBuf,
}

impl Programs {
    /// Builds them, as fast as they get.
    pub(super) fn build(root: &Path) -> Result<Self> {
        let package = ["--release", "--package", "kube-informer-bench-sync", "--bins"];
        let ours = super::super::build(root, &package, "bench-sync-kube-informer")?;
        let [kube_runtime, client_go] =
            ["bench-sync-kube-runtime", "bench-sync-client-go"].map(|name| ours.with_file_name(name));
        eprintln!("==> go build, in bench/peers");
        let output = client_go.to_str().context("the path of the target folder is not UTF-8")?;
        crate::kinds::go(&root.join("bench/peers"), &["build", "-trimpath", "-o", output, "."])?;
        Ok(Self { client_go, kube_runtime, ours })
    }

    /// Where they all are, and the embedded server.
    pub(super) fn folder(&self) -> &Path {
        self.ours.parent().unwrap_or(&self.ours)
    }

    fn of(&self, contestant: Contestant) -> &Path {
        use Contestant as C;
        match contestant {
            C::ClientGo | C::ClientGoDynamic | C::ClientGoIdle => &self.client_go,
            C::KubeRuntime | C::KubeRuntimeDynamic | C::KubeRuntimeIdle => &self.kube_runtime,
            C::Ours
            | C::OursTenHandlers
            | C::OursAllViews
            | C::OursDynamic
            | C::OursDynamicReads
            | C::OursIdle => &self.ours,
        }
    }

    /// Starts a contestant. All get as many threads as the machine has processors, which is what each would take by
    /// itself.
    pub(super) fn start(&self, contestant: Contestant, kubeconfig: &Path) -> Result<Running> {
        let threads = std::thread::available_parallelism()?.to_string();
        let mut command = Command::new(self.of(contestant));
        command
            .args(contestant.arguments())
            .env("KUBECONFIG", kubeconfig)
            .env("GOMAXPROCS", &threads)
            .env("TOKIO_WORKER_THREADS", &threads)
            // Its default of this release, whatever the environment says.
            .env("KUBE_FEATURE_WatchListClient", "true");
        Running::start(command)
    }
}

/// A program at work that is told what to do. Dropped, it is killed.
pub(super) struct Running {
    child: Child,
    stdin: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

/// What it has used since its start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Usage {
    /// Seconds.
    pub(super) wall: f64,
    /// Seconds of the processor.
    pub(super) cpu: f64,
    /// Bytes.
    pub(super) rss: f64,
    pub(super) peak: f64,
    pub(super) objects: u64,
    pub(super) updates: u64,
}

/// Beyond this, something hangs: the slowest sync takes minutes, and a busy machine makes that more.
const PATIENCE: Duration = Duration::from_secs(900);

impl Running {
    pub(super) fn start(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot run {}", command.as_std().get_program().display()))?;
        let stdin = child.stdin.take().context("no stdin")?;
        let stdout = child.stdout.take().context("no stdout")?;
        Ok(Self { child, stdin, answers: BufReader::new(stdout).lines() })
    }

    /// Awaits that it has synced.
    pub(super) async fn synced(&mut self) -> Result<Usage> {
        usage(&self.answer().await?)
    }

    /// Has it do something, and tell what it has used until then.
    pub(super) async fn after(&mut self, command: &str) -> Result<Usage> {
        usage(&self.told(command).await?)
    }

    /// Has it do something.
    pub(super) async fn told(&mut self, command: &str) -> Result<Value> {
        self.stdin.write_all(format!("{command}\n").as_bytes()).await?;
        self.answer().await.with_context(|| format!("told to: {command}"))
    }

    /// Ends it.
    pub(super) async fn end(self) -> Result<()> {
        let Self { mut child, stdin, .. } = self;
        drop(stdin);
        let status = tokio::time::timeout(PATIENCE, child.wait()).await.context("it does not end")??;
        ensure!(status.success(), "it ended with {status}");
        Ok(())
    }

    async fn answer(&mut self) -> Result<Value> {
        let line =
            tokio::time::timeout(PATIENCE, self.answers.next_line()).await.context("it says nothing")??;
        let line = line.context("it has ended")?;
        serde_json::from_str(&line).with_context(|| format!("not what was expected: {line}"))
    }
}

fn usage(answer: &Value) -> Result<Usage> {
    let number = |name: &str| answer[name].as_f64().with_context(|| format!("no {name} in {answer}"));
    let count = |name: &str| answer[name].as_u64().with_context(|| format!("no {name} in {answer}"));
    Ok(Usage {
        wall: number("wall_ns")? / 1e9,
        cpu: number("cpu_ns")? / 1e9,
        rss: number("rss_bytes")?,
        peak: number("peak_bytes")?,
        objects: count("objects")?,
        updates: count("updates")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_used_is_read() {
        let answer = json!({
            "wall_ns": 2_500_000_000u64, "cpu_ns": 500_000_000, "rss_bytes": 10, "peak_bytes": 20, "objects": 3,
            "updates": 4,
        });
        let expected = Usage { wall: 2.5, cpu: 0.5, rss: 10.0, peak: 20.0, objects: 3, updates: 4 };
        assert_eq!(usage(&answer).unwrap(), expected);
        assert!(usage(&json!({ "wall_ns": 1 })).is_err());
    }
}
