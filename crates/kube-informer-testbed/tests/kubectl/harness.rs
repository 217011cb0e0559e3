//! A server, and a kubectl that knows nothing else.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::LazyLock;
use std::time::Duration;

use kube_informer_apiserver::{Builder, Server};
use kube_informer_testbed::binaries::{self, Unavailable};
use regex::Regex;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// No command of these tests takes as long on any machine.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Kubectl {
    binary: PathBuf,
    home: tempfile::TempDir,
    _server: Server,
}

impl Kubectl {
    /// On a plain server.
    pub(crate) async fn new() -> Result<Self, Unavailable> {
        Self::on(Server::builder()).await
    }

    /// On a server of that make.
    pub(crate) async fn on(server: Builder) -> Result<Self, Unavailable> {
        let binary = binaries::kubectl().await?;
        let server = server.start().await.unwrap();
        let home = tempfile::tempdir().unwrap();
        server.write_kubeconfig(home.path().join("kubeconfig")).unwrap();
        Ok(Self { binary, home, _server: server })
    }

    /// A file that commands can name; they run in its folder.
    pub(crate) fn file(&self, name: &str, text: &str) {
        std::fs::write(self.home.path().join(name), text).unwrap();
    }

    /// A command, its arguments split at spaces.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let home = self.home.path();
        let mut command = Command::new(&self.binary);
        command
            .args(["--kubeconfig", "kubeconfig"])
            .args(arguments.split(' '))
            .current_dir(home)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin")))
            .env("HOME", home)
            .env("KUBECACHEDIR", home.join("cache"))
            .env("KUBERC", "off")
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// What a command that must succeed says.
    pub(crate) async fn ok(&self, arguments: &str) -> String {
        ok(arguments, self.command(arguments)).await
    }

    /// The same in a comparable form; see [`tidy`].
    pub(crate) async fn tidy(&self, arguments: &str) -> String {
        tidy(&self.ok(arguments).await)
    }

    /// What a command that must fail complains of, in a comparable form.
    pub(crate) async fn fails(&self, arguments: &str) -> String {
        let (succeeded, out, err) = finish(arguments, self.command(arguments)).await;
        assert!(!succeeded, "kubectl {arguments} succeeded:\n{out}\n{err}");
        tidy(&err)
    }

    /// What a command says that warns and succeeds: its output, its warnings.
    pub(crate) async fn warned(&self, arguments: &str) -> (String, String) {
        let (succeeded, out, err) = finish(arguments, self.command(arguments)).await;
        assert!(succeeded, "kubectl {arguments}:\n{err}");
        (tidy(&out), tidy(&err))
    }

    /// A command that reads an object from its input.
    pub(crate) async fn feed(&self, input: &str, arguments: &str) -> String {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).await.unwrap();
        drop(stdin);
        let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.unwrap().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {arguments}:\n{err}");
        tidy(&String::from_utf8(output.stdout).unwrap())
    }
}

/// Runs a prepared command, which must succeed.
pub(crate) async fn ok(arguments: &str, command: Command) -> String {
    let (succeeded, out, err) = finish(arguments, command).await;
    assert!(succeeded, "kubectl {arguments}:\n{err}{out}");
    out
}

async fn finish(arguments: &str, mut command: Command) -> (bool, String, String) {
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    let output = output.unwrap_or_else(|_| panic!("kubectl {arguments} did not end")).unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

/// Takes out what differs from run to run and from release to release: column widths, ages, and the
/// namespace that newer kubectls name after a deletion.
pub(crate) fn tidy(output: &str) -> String {
    static AGE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(^| )(\d+[dhms]){1,2}( |$)").unwrap());
    static FROM: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"( deleted) from \S+ namespace$").unwrap());
    let line = |line: &str| {
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = AGE.replace_all(&line, "${1}AGE$3");
        FROM.replace(&line, "$1").into_owned()
    };
    output.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn ages_and_spaces_are_tidied() {
    assert_eq!(tidy("NAME   AGE\na      5s\nb      2m30s  \n"), "NAME AGE\na AGE\nb AGE");
    assert_eq!(tidy("pod \"a\" deleted from default namespace\n"), "pod \"a\" deleted");
}
