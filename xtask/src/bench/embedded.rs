//! The embedded server as a process of its own, with as many custom resources as are wanted.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::contestant::{Contestant, Programs};
use super::running::Running;

/// See the module. Dropped, it ends.
pub(super) struct Embedded<'a> {
    programs: &'a Programs,
    running: Running,
    kubeconfig: PathBuf,
}

impl<'a> Embedded<'a> {
    pub(super) async fn start(programs: &'a Programs) -> Result<Self> {
        let kubeconfig = programs.folder().join("bench-sync-server.kubeconfig");
        let mut command = programs.tool("bench-sync-server");
        command.arg(&kubeconfig);
        let mut server = Self { programs, running: Running::start(command)?, kubeconfig };
        // Once it has answered, it has written its kubeconfig.
        server.holds(0).await?;
        Ok(server)
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Has it make and delete custom resources until there are so many.
    pub(super) async fn holds(&mut self, objects: usize) -> Result<()> {
        let start = Instant::now();
        let there = self.running.told(&objects.to_string()).await.context("the embedded server")?;
        ensure!(there == objects, "the embedded server has {there} objects, and not {objects}");
        eprintln!("    the embedded server has {objects} in {:.1} s", start.elapsed().as_secs_f64());
        Ok(())
    }

    /// Starts a contestant on it.
    pub(super) fn contestant(&self, contestant: Contestant) -> Result<Running> {
        self.programs.start(contestant, &self.kubeconfig)
    }

    /// Starts the program that stamps its custom resources.
    pub(super) fn writer(&self, objects: usize) -> Result<Running> {
        let mut command = self.programs.tool("bench-sync-writer");
        command.arg(&self.kubeconfig).args(["gadgets", "default", &objects.to_string()]);
        Running::start(command)
    }

    pub(super) async fn end(self) -> Result<()> {
        self.running.end().await.context("the embedded server")
    }
}
