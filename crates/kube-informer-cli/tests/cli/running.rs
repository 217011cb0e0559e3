//! A command that runs, and its lines.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

pub(crate) fn kube_informer(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kube-informer"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_remove("KUBE_INFORMER_TOKEN").env_remove("RUST_LOG").env_remove("NO_COLOR");
    command
}

pub(crate) fn run(args: &[&str]) -> Output {
    kube_informer(args).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A running command and its lines; killed if the test fails.
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) lines: Option<BufReader<ChildStdout>>,
}

impl Running {
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::of(kube_informer(args))
    }

    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let lines = child.stdout.take().map(BufReader::new);
        Self { child, lines }
    }

    /// Reads until a line has this in it.
    pub(crate) fn line(&mut self, part: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(
                self.lines.as_mut().unwrap().read_line(&mut line).unwrap(),
                0,
                "it ended before it printed {part:?}"
            );
            if line.contains(part) {
                return line;
            }
        }
    }

    pub(crate) fn terminate(mut self) -> Option<i32> {
        self.signal("-TERM");
        self.code()
    }

    /// How it ended, once it has.
    pub(crate) fn code(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// What it has said on stderr, once it has ended.
    pub(crate) fn said(&mut self) -> String {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has usually ended; then there is nothing to kill.
        let _: std::io::Result<()> = self.child.kill();
        let _: std::io::Result<_> = self.child.wait();
    }
}
