//! Runs blocks, each where it belongs, and says what came of it.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use anyhow::Context as _;
use kube_informer_testbed::binaries::{self, Unavailable};
use tokio::process::Command;
use tokio::sync::oneshot;

use super::expect::Expect;
use super::ground::{self, Ground, Programs};
use super::ports::Ports;
use super::{Action, Block, Place};
use crate::process::{self, Ended};

/// What came of a block.
#[derive(Debug)]
pub(crate) enum Outcome {
    Passed,
    /// And why.
    Failed(String),
    /// For want of a program that it calls.
    LeftOut(Unavailable),
}

/// Programs that blocks may call, and that not everyone has; kubectl can be built.
const CALLED: [&str; 2] = ["curl", "openssl"];

/// Where all blocks are run.
#[derive(Debug)]
pub(crate) struct Stage {
    root: PathBuf,
    /// For each block.
    limit: Duration,
    /// The binary, once it is built.
    binary: Option<PathBuf>,
}

impl Stage {
    /// In the repository at `root`; each block may take as long as `limit`.
    pub(crate) fn new(root: &Path, limit: Duration) -> Self {
        Self { root: root.to_owned(), limit, binary: None }
    }

    /// With a program that takes the binary's place.
    #[cfg(test)]
    pub(super) fn with_binary(mut self, binary: PathBuf) -> Self {
        self.binary = Some(binary);
        self
    }

    /// Runs a block, and others beside it; there is an outcome for each.
    pub(crate) async fn play(&mut self, scene: &[Block]) -> Vec<Outcome> {
        let all = |outcome: &dyn Fn() -> Outcome| scene.iter().map(|_| outcome()).collect();
        let kubectl = match tools(scene).await {
            Ok(kubectl) => kubectl,
            Err(unavailable) => return all(&|| Outcome::LeftOut(unavailable.clone())),
        };
        let outcomes = match self.played(scene, kubectl).await {
            Ok(outcomes) => outcomes,
            Err(error) => return all(&|| Outcome::Failed(format!("{error:#}"))),
        };
        let outcome = |why: Option<String>| why.map_or(Outcome::Passed, Outcome::Failed);
        outcomes.into_iter().map(outcome).collect()
    }

    /// Why each of them failed, if it did.
    async fn played(
        &mut self,
        scene: &[Block],
        kubectl: Option<PathBuf>,
    ) -> anyhow::Result<Vec<Option<String>>> {
        let Some((Block { action: Action::Run { place, .. }, .. }, _)) = scene.split_first() else {
            anyhow::bail!("nothing to run");
        };
        let binary = match place {
            Place::Installed | Place::Embedded | Place::Demo => Some(self.binary().await?),
            Place::Here | Place::ControlPlane | Place::OtherTerminal => None,
        };
        let mut ports = Ports::default();
        let scene = scene.iter().map(|block| exchanged(block, &mut ports)).collect::<Result<Vec<_>, _>>()?;
        let ground = Ground::prepare(&self.root, *place, &Programs { binary, kubectl }).await?;
        let outcomes = self.on(&ground, &scene).await;
        let cleared = ground.clear().await;
        let mut outcomes = outcomes?;
        if let (Err(error), Some(first)) = (cleared, outcomes.first_mut()) {
            first.get_or_insert(format!("{error:#}"));
        }
        Ok(outcomes)
    }

    async fn on(&self, ground: &Ground, scene: &[Block]) -> anyhow::Result<Vec<Option<String>>> {
        let Some((first, beside)) = scene.split_first() else {
            return Ok(Vec::new());
        };
        let limit = self.limit * u32::try_from(scene.len())?;
        let in_other_terminals = async {
            let mut outcomes = Vec::new();
            for block in beside {
                println!("--- in another terminal, beside it:");
                let (outcome, _) =
                    run(ground.shell(&block.script), block, self.limit, std::future::ready(())).await?;
                outcomes.push(outcome);
            }
            anyhow::Ok(outcomes)
        };
        let (outcome, others) = run(ground.shell(&first.script), first, limit, in_other_terminals).await?;
        let mut outcomes = vec![outcome];
        outcomes.extend(others.transpose()?.unwrap_or_default());
        // The first one has ended too early.
        outcomes.resize(scene.len(), Some("what it was to run beside has ended".to_owned()));
        Ok(outcomes)
    }

    /// The one that people have who tried the first command of the README: nothing more is built for it.
    async fn binary(&mut self) -> anyhow::Result<PathBuf> {
        if let Some(binary) = &self.binary {
            return Ok(binary.clone());
        }
        let root = self.root.clone();
        let build = move || crate::build::program(&root, &["--release"], "kube-informer");
        let binary = tokio::task::spawn_blocking(build).await??;
        Ok(self.binary.insert(binary).clone())
    }
}

/// Runs a block's shell; why it failed, if it did. `meanwhile` begins when the output is there of a block that is run until
/// then, which is told to end when `meanwhile` is over.
async fn run<T>(
    shell: Command,
    block: &Block,
    limit: Duration,
    meanwhile: impl Future<Output = T>,
) -> anyhow::Result<(Option<String>, Option<T>)> {
    let mut expect = Expect::new(&block.output);
    let (shown, is_shown) = oneshot::channel::<()>();
    let (stop, is_over) = oneshot::channel::<()>();
    let mut shown = block.is_until_output().then_some(shown);
    let (ended, others) = {
        let mut running = pin!(process::stream_until(
            shell,
            limit,
            |line| {
                expect.line(line);
                if expect.missing().is_none()
                    && let Some(shown) = shown.take()
                {
                    // Whoever does not listen has ended.
                    let _ = shown.send(());
                }
                ControlFlow::Continue(())
            },
            async {
                // Nobody sends: it is dropped.
                let _ = is_over.await;
            },
        ));
        let others = async {
            match is_shown.await {
                Ok(()) => meanwhile.await,
                // Nothing is waited for but the end.
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            ended = &mut running => (ended, None),
            others = others => {
                drop(stop);
                (running.await, Some(others))
            }
        }
    };
    let ended = ended.context("cannot run a document's command")?;
    let why = match (&ended, expect.missing()) {
        (ended, Some(line)) => Some(format!("its output lacks the line `{line}` ({ended})")),
        (Ended::Exit(_), None) if block.is_until_output() => None,
        (ended, None) => (!ended.ok()).then(|| ended.to_string()),
    };
    Ok((why, others))
}

/// The block with ports that are free.
fn exchanged(block: &Block, ports: &mut Ports) -> anyhow::Result<Block> {
    let script = ports.exchanged(&block.script)?;
    let output = block.output.iter().map(|line| ports.exchanged(line)).collect::<Result<_, _>>()?;
    Ok(Block { line: block.line, script, action: block.action.clone(), output })
}

/// Whether all programs that blocks call are there; kubectl may be elsewhere than on the `PATH`.
async fn tools(scene: &[Block]) -> Result<Option<PathBuf>, Unavailable> {
    let calls = |name: &str| {
        let is_part = |c: char| c.is_alphanumeric() || "-_./".contains(c);
        scene.iter().any(|block| block.script.split(|c| !is_part(c)).any(|word| word == name))
    };
    if let Some(name) = CALLED.into_iter().find(|name| calls(name) && !ground::is_on_path(name)) {
        return Err(Unavailable::installable(name, "install the system's package of that name"));
    }
    if calls("kubectl") { binaries::kubectl().await.map(Some) } else { Ok(None) }
}
