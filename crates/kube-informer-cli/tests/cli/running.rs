//! A command that runs, and its lines.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

pub(crate) fn kube_informer(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kube-informer"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_remove("KUBE_INFORMER_TOKEN").env_remove("RUST_LOG");
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
        let mut child = kube_informer(args).spawn().unwrap();
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
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let status = self.child.wait().unwrap();
        status.code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has usually ended; then there is nothing to kill.
        let _: std::io::Result<()> = self.child.kill();
        let _: std::io::Result<_> = self.child.wait();
    }
}
