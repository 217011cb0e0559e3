//! Who takes part where caches are compared, and as which program.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::process::Command;

use super::running::Running;

/// Who takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Contestant {
    /// client-go's shared informer over pods, in protobuf.
    ClientGo,
    /// kube-runtime's watcher and reflector over pods.
    KubeRuntime,
    /// Our informer over pods, as it comes.
    Ours,
    /// The same, where changes may wait a moment for others.
    OursGathered,
    /// The same with one handler and with ten, by turns.
    OursTenHandlers,
    /// The same with closures, which may block, and have threads for that.
    OursClosures,
    /// The same with one handler, and all views kept.
    OursAllViews,
    /// No informer: what the server sends of pods is read and dropped, over our connection.
    Bytes,
    /// client-go's dynamic informer over custom resources.
    ClientGoDynamic,
    /// kube-runtime over the same, as `DynamicObject`.
    KubeRuntimeDynamic,
    /// Our informer over the same.
    OursDynamic,
    /// No informer: the same as [`Bytes`](Self::Bytes) of custom resources, in JSON.
    BytesDynamic,
    /// Our informer over custom resources, and it is read; not one of those that take turns.
    OursDynamicReads,
    /// The same, not read, where changes may wait a moment for others; neither.
    OursDynamicGathered,
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
    /// To follow updates, reading metadata, with one handler and with ten, by turns.
    FollowByHandlers,
    /// To follow updates in both ways.
    Follow,
    /// To be read.
    BeRead,
    /// To sync, and to follow updates.
    Read,
    /// To sync, to follow in both ways, to be read.
    Everything,
}

impl Contestant {
    /// All of them, in the order of their turns: those that are compared stand side by side.
    pub(super) const ALL: [Self; 15] = [
        Self::ClientGo,
        Self::KubeRuntime,
        Self::Ours,
        Self::OursGathered,
        Self::OursTenHandlers,
        Self::OursClosures,
        Self::OursAllViews,
        Self::Bytes,
        Self::ClientGoDynamic,
        Self::KubeRuntimeDynamic,
        Self::OursDynamic,
        Self::BytesDynamic,
        Self::ClientGoIdle,
        Self::KubeRuntimeIdle,
        Self::OursIdle,
    ];

    /// Those that keep pods as their types, ours last.
    pub(super) const TYPED: [Self; 3] = [Self::ClientGo, Self::KubeRuntime, Self::Ours];

    /// Those that keep custom resources, ours last.
    pub(super) const DYNAMIC: [Self; 3] =
        [Self::ClientGoDynamic, Self::KubeRuntimeDynamic, Self::OursDynamic];

    /// What it is called in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ClientGo => "client-go, typed",
            Self::KubeRuntime => "kube-runtime, typed",
            Self::Ours => "kube-informer",
            Self::OursGathered => "kube-informer, changes wait up to 50 ms for others",
            Self::OursTenHandlers => "kube-informer, ten handlers",
            Self::OursClosures => "kube-informer, ten closures, which may block",
            Self::OursAllViews => "kube-informer, all views kept",
            Self::Bytes => "what is sent, read and dropped",
            Self::ClientGoDynamic => "client-go, dynamic",
            Self::KubeRuntimeDynamic => "kube-runtime, `DynamicObject`",
            Self::OursDynamic => "kube-informer, custom resources",
            Self::BytesDynamic => "what is sent of custom resources, read and dropped",
            Self::OursDynamicReads => "kube-informer, custom resources, read",
            Self::OursDynamicGathered => {
                "kube-informer, custom resources, changes wait up to 50 ms for others"
            }
            Self::ClientGoIdle => "client-go, idle",
            Self::KubeRuntimeIdle => "kube-runtime, idle",
            Self::OursIdle => "kube-informer, idle",
        }
    }

    /// Whose it is.
    pub(super) fn maker(self) -> &'static str {
        let name = self.name();
        name.split_once(',').map_or(name, |(maker, _)| maker)
    }

    /// What is asked of it.
    pub(super) fn task(self) -> Task {
        match self {
            Self::ClientGo | Self::KubeRuntime | Self::Ours => Task::Everything,
            Self::OursTenHandlers | Self::OursClosures => Task::FollowByHandlers,
            Self::OursGathered => Task::Follow,
            Self::Bytes => Task::Read,
            Self::OursAllViews | Self::OursDynamicReads => Task::BeRead,
            Self::ClientGoDynamic
            | Self::KubeRuntimeDynamic
            | Self::OursDynamic
            | Self::OursDynamicGathered
            | Self::BytesDynamic => Task::SyncCustomResources,
            Self::ClientGoIdle | Self::KubeRuntimeIdle | Self::OursIdle => Task::Idle,
        }
    }

    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::ClientGo | Self::KubeRuntime | Self::Ours | Self::OursTenHandlers => &["typed"],
            Self::OursGathered => &["typed", "--gather", "50", "--every"],
            Self::OursClosures => &["typed", "--closures"],
            Self::OursAllViews => &["typed", "--all-views"],
            Self::Bytes => &["bytes"],
            Self::ClientGoDynamic | Self::KubeRuntimeDynamic | Self::OursDynamic => &["dynamic"],
            Self::BytesDynamic => &["bytes-dynamic"],
            Self::OursDynamicReads => &["dynamic", "--reads"],
            Self::OursDynamicGathered => &["dynamic", "--gather", "50", "--every"],
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
    /// The folder of those around the contestants.
    tools: PathBuf,
}

/// How contestants are compiled, unless it is to be quick.
pub(super) const DIST: &str = "dist";

impl Programs {
    /// Builds them; the contestants by a profile of cargo's. What is around them is the same for all, and need not be fast.
    pub(super) fn build(root: &Path, profile: &str) -> Result<Self> {
        const OURS: &str = "bench-sync-kube-informer";
        const KUBE_RUNTIME: &str = "bench-sync-kube-runtime";
        const WRITER: &str = "bench-sync-writer";
        let package = ["--package", "kube-informer-bench-sync"];
        let contestants = ["--profile", profile, "--bin", OURS, "--bin", KUBE_RUNTIME];
        let ours = crate::build::program(root, &[&package[..], &contestants].concat(), OURS)?;
        let kube_runtime = ours.with_file_name(KUBE_RUNTIME);
        let tools = ["--release", "--bin", WRITER, "--bin", "bench-sync-server", "--bin", "bench-sync-proxy"];
        let writer = crate::build::program(root, &[&package[..], &tools].concat(), WRITER)?;
        let tools = writer.parent().context("a program that is in no folder")?.to_owned();
        let client_go = tools.join("bench-sync-client-go");
        eprintln!("==> go build, in bench/peers");
        let output = client_go.to_str().context("the path of the target folder is not UTF-8")?;
        crate::kinds::go(&root.join("bench/peers"), &["build", "-trimpath", "-o", output, "."])?;
        Ok(Self { client_go, kube_runtime, ours, tools })
    }

    /// One of the programs around the contestants, by its name.
    pub(super) fn tool(&self, name: &str) -> Command {
        Command::new(self.folder().join(name))
    }

    /// Where those around the contestants are.
    pub(super) fn folder(&self) -> &Path {
        &self.tools
    }

    fn of(&self, contestant: Contestant) -> &Path {
        use Contestant as C;
        match contestant {
            C::ClientGo | C::ClientGoDynamic | C::ClientGoIdle => &self.client_go,
            C::KubeRuntime | C::KubeRuntimeDynamic | C::KubeRuntimeIdle => &self.kube_runtime,
            C::Ours
            | C::OursGathered
            | C::OursTenHandlers
            | C::OursClosures
            | C::OursAllViews
            | C::Bytes
            | C::OursDynamic
            | C::BytesDynamic
            | C::OursDynamicReads
            | C::OursDynamicGathered
            | C::OursIdle => &self.ours,
        }
    }

    /// Starts a contestant.
    pub(super) fn start(&self, contestant: Contestant, kubeconfig: &Path) -> Result<Running> {
        Running::start(self.command(contestant, kubeconfig, &[])?)
    }

    /// How a contestant is started, by itself or by another program that is put before it. All get as many threads as the
    /// machine has processors, which is what each would take by itself.
    pub(super) fn command(
        &self,
        contestant: Contestant,
        kubeconfig: &Path,
        before: &[&str],
    ) -> Result<Command> {
        let threads = std::thread::available_parallelism()?.to_string();
        let program = self.of(contestant);
        let mut command = match before {
            [] => Command::new(program),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
        };
        command.args(contestant.arguments()).env("KUBECONFIG", kubeconfig);
        as_it_comes(&mut command, &threads);
        Ok(command)
    }
}

/// Nothing in the environment sways a contestant: its runtime, allocator and features are as they come, with so many threads.
pub(super) fn as_it_comes(command: &mut Command, threads: &str) {
    let sways = ["GOGC", "GOMEMLIMIT", "GODEBUG", "GLIBC_TUNABLES", "LD_PRELOAD"];
    for (name, _) in std::env::vars_os() {
        let is_so = |name: &str| {
            sways.contains(&name) || name.starts_with("MALLOC_") || name.starts_with("KUBE_FEATURE_")
        };
        if name.to_str().is_some_and(is_so) {
            command.env_remove(&name);
        }
    }
    command.env("GOMAXPROCS", threads).env("TOKIO_WORKER_THREADS", threads);
    // Its default of this release.
    command.env("KUBE_FEATURE_WatchListClient", "true");
}
