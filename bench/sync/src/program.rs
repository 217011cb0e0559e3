//! A program of a benchmark as its tests have it: told by lines, answering with lines of JSON.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// A program that is told what to do. Dropped, it is killed.
#[derive(Debug)]
pub struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    /// Starts it, with a kubeconfig to find the server by.
    ///
    /// # Errors
    ///
    /// Where there is no such program.
    pub fn start(program: &str, arguments: &[&str], kubeconfig: &Path) -> Result<Self> {
        let mut child = Command::new(program)
            .args(arguments)
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().context("no stdout")?;
        let stdin = child.stdin.take();
        Ok(Self { child, stdin, lines: BufReader::new(stdout).lines() })
    }

    /// The next line that it prints.
    ///
    /// # Errors
    ///
    /// Where it has ended, or the line is not JSON.
    pub fn said(&mut self) -> Result<Value> {
        let line = self.lines.next().context("it has ended")??;
        serde_json::from_str(&line).with_context(|| format!("not JSON: {line}"))
    }

    /// What it answers to a command.
    ///
    /// # Errors
    ///
    /// Where it has ended, or the answer is not JSON.
    pub fn told(&mut self, command: &str) -> Result<Value> {
        writeln!(self.stdin.as_mut().context("no stdin")?, "{command}")?;
        self.said().with_context(|| command.to_owned())
    }

    /// Nothing more is told: it ends, and must have been content.
    ///
    /// # Errors
    ///
    /// Where it was not.
    pub fn end(mut self) -> Result<()> {
        drop(self.stdin.take());
        let status = self.child.wait()?;
        ensure!(status.success(), "it ended with {status}");
        Ok(())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended, or it is to.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
