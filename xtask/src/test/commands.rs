//! The step `commands`: what the documents tell people to type is typed.
//!
//! The binary that most of it calls is built before, with a limit of its own: what a block may take does not depend on how long
//! a machine compiles. A document that breaks the rules of [`docs`] is not played, and each mistake in it is a failure.

use std::ops::ControlFlow;
use std::time::Duration;

use super::{MINUTE, Run, Step};
use crate::docs::{self, Action, Block, Outcome, Place, Stage};
use crate::{process, tidy};

/// How long the binary may take to be built, from nothing and on a busy machine.
const BUILD: Duration = MINUTE.saturating_mul(30);

impl Run {
    pub(super) async fn commands(&mut self, step: Step) -> anyhow::Result<()> {
        let tree = tidy::Tree::read(&self.root)?;
        let mut documents = Vec::new();
        for (path, text) in tree.with_extension("md") {
            match docs::blocks(text) {
                Ok(blocks) => documents.push((path, blocks)),
                Err(mistakes) => {
                    for mistake in mistakes {
                        self.report.fail(format!("{path}:{}", mistake.line), mistake.message);
                    }
                }
            }
        }
        if documents.iter().any(|(_, blocks)| blocks.iter().any(Block::wants_binary)) {
            self.binary().await?;
        }
        let mut stage = Stage::new(&self.root, step.limit(self.full));
        for (path, blocks) in &documents {
            for scene in docs::scenes(blocks) {
                self.scene(path, scene, &mut stage).await;
            }
        }
        Ok(())
    }

    async fn binary(&mut self) -> anyhow::Result<()> {
        println!("--- cargo build --release");
        let command = self.cargo(&["build", "--release"]);
        let built = process::stream(command, BUILD, |_| ControlFlow::Continue(())).await?;
        if built.ok() {
            self.report.pass(1);
        } else {
            self.report.fail("cargo build --release", built.to_string());
        }
        Ok(())
    }

    async fn scene(&mut self, path: &str, scene: &[Block], stage: &mut Stage) {
        let name = |block: &Block| {
            let command = block.script.lines().next().unwrap_or_default();
            format!("{path}:{} `{command}`", block.line)
        };
        let left_out = scene.first().and_then(|block| match &block.action {
            Action::Skip { why } => Some(why.as_str()),
            Action::Run { place: Place::ControlPlane, .. } => self.server.unavailable(),
            Action::Run { .. } => None,
        });
        if let Some(why) = left_out {
            scene.iter().for_each(|block| self.report.skip(name(block), why));
            return;
        }
        scene.iter().for_each(|block| println!("--- {}", name(block)));
        for (block, outcome) in scene.iter().zip(stage.play(scene).await) {
            match outcome {
                Outcome::Passed => self.report.pass(1),
                Outcome::Failed(why) => self.report.fail(name(block), why),
                Outcome::LeftOut(unavailable) => self.report.unavailable(name(block), &unavailable),
            }
        }
    }
}
