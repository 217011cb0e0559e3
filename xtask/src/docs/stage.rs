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
use crate::process::{self, Bounds};

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
    /// How long what is told to end may take for it; ample, on a busy machine, too.
    patience: Duration,
    /// The binary, once it is built.
    binary: Option<PathBuf>,
}

impl Stage {
    /// In the repository at `root`; each block may take as long as `limit`.
    pub(crate) fn new(root: &Path, limit: Duration) -> Self {
        Self { root: root.to_owned(), limit, patience: Duration::from_secs(60), binary: None }
    }

    /// With a program that takes the binary's place.
    #[cfg(test)]
    pub(super) fn with_binary(mut self, binary: PathBuf) -> Self {
        self.binary = Some(binary);
        self
    }

    /// With less time for what is told to end.
    #[cfg(test)]
    pub(super) fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
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
        let ground = Ground::prepare(&self.root, *place, &Programs { binary, kubectl }).await?;
        let outcomes = self.terminals(&ground, scene, &mut Ports::default()).await;
        let cleared = ground.clear(self.patience).await;
        let mut outcomes = outcomes?;
        let failed = outcomes.iter().position(Option::is_some);
        let (of, more) = match cleared {
            Ok(log) => (failed, log),
            Err(error) => (Some(failed.unwrap_or_default()), Some(format!("{error:#}"))),
        };
        if let (Some(of), Some(more)) = (of, more) {
            let why = outcomes[of].get_or_insert_default();
            *why = [why.as_str(), &more]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join("\n");
        }
        Ok(outcomes)
    }

    /// Runs blocks one after the other; one that goes on does so until those after it have ended.
    async fn terminals(
        &self,
        ground: &Ground,
        blocks: &[Block],
        ports: &mut Ports,
    ) -> anyhow::Result<Vec<Option<String>>> {
        let Some((block, rest)) = blocks.split_first() else {
            return Ok(Vec::new());
        };
        if block.is_beside() {
            println!("--- in another terminal, beside it:");
        }
        let goes_on = block.is_until_output();
        let turns = if goes_on { u32::try_from(blocks.len())? } else { 1 };
        let bounds = Bounds { limit: self.limit * turns, clean_up: self.patience, alone: true };
        // As late as possible: a port that was free need not stay so.
        let block = ground.exchanged(block, ports)?;
        let mut others = Box::pin(self.terminals(ground, rest, ports));
        let (outcome, beside) = run(ground.shell(&block.script), &block, bounds, &mut others).await?;
        let mut outcomes = vec![outcome];
        match beside {
            Some(beside) => outcomes.extend(beside?),
            None if !goes_on => outcomes.extend(others.await?),
            // It has ended too early.
            None => outcomes.resize(blocks.len(), Some("what it was to run beside has ended".to_owned())),
        }
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
    bounds: Bounds,
    meanwhile: impl Future<Output = T>,
) -> anyhow::Result<(Option<String>, Option<T>)> {
    let mut expect = Expect::new(&block.output);
    let (shown, is_shown) = oneshot::channel::<()>();
    let (stop, is_over) = oneshot::channel::<()>();
    let mut shown = block.is_until_output().then_some(shown);
    let (ended, others) = {
        let mut running = pin!(process::stream_until(
            shell,
            bounds,
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
        (ended, None) => (!ended.ok()).then(|| ended.to_string()),
    };
    Ok((why, others))
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

#[cfg(test)]
mod tests;
