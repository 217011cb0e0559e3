//! What is left of a `demo` that has ended, in whatever way: no file, no port, no process.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;

use tempfile::TempDir;
use tokio_tungstenite::connect_async;

use crate::client::{op, word};
use crate::running::{Running, kube_informer};

/// A demo that can leave its traces only in one folder, where it listens, and by which sockets.
struct Demo {
    running: Running,
    folder: TempDir,
    addresses: Vec<String>,
    sockets: Vec<String>,
}

/// The sockets that listen on ports of 127.0.0.1, by the numbers that only they have. Where the kernel tells.
fn listening() -> Vec<(u16, String)> {
    // In hexadecimal, as the kernel has it in its memory.
    let local = u32::from_ne_bytes([127, 0, 0, 1]);
    let table = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let socket = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let (address, port) = words.next()?.split_once(':')?;
        let state = words.nth(1)?;
        let (address, port) = (u32::from_str_radix(address, 16).ok()?, u16::from_str_radix(port, 16).ok()?);
        let number = words.nth(5)?.to_owned();
        (state == "0A" && address == local).then_some((port, number))
    };
    table.lines().skip(1).filter_map(socket).collect()
}

impl Demo {
    fn start(more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = kube_informer(&[&["demo", "--speed", "10"], more].concat());
        command.env("TMPDIR", folder.path());
        let mut running = Running::of(command);
        let mut addresses = Vec::new();
        for (part, scheme) in [("Kubernetes API on", "http://"), ("websocat", "ws://"), ("curl", "http://")] {
            let line = running.line(part);
            let address = word(&line, scheme).strip_prefix(scheme).unwrap();
            addresses.push(address.split('/').next().unwrap().to_owned());
        }
        let is_its = |port: u16| addresses.iter().any(|address| address.ends_with(&format!(":{port}")));
        let listening = listening().into_iter();
        let sockets = listening.filter(|(port, _)| is_its(*port)).map(|(_, number)| number).collect();
        Self { running, folder, addresses, sockets }
    }

    /// It is well under way, and has something to leave behind.
    fn is_lively(&mut self) {
        self.running.line("▸ somebody applies an ElastiService");
        for address in &self.addresses {
            TcpStream::connect(address).unwrap();
        }
        let files = fs::read_dir(self.folder.path()).unwrap();
        assert_eq!(files.count(), 1, "the kubeconfig, and nothing else");
        let is_told = Path::new("/proc/self/environ").exists();
        assert_eq!(self.sockets.len(), if is_told { self.addresses.len() } else { 0 });
        let itself: Vec<u32> = is_told.then(|| self.running.child.id()).into_iter().collect();
        assert_eq!(self.processes(), itself, "it starts no process");
    }

    /// It ends so, and there is nothing of it any more.
    #[track_caller]
    fn leaves_nothing(mut self, code: i32) {
        assert_eq!(self.running.code(), Some(code));
        // Whoever else has one of its ports by now has another socket.
        let left: Vec<_> =
            listening().into_iter().filter(|(_, number)| self.sockets.contains(number)).collect();
        assert!(left.is_empty(), "it listens still: {left:?}");
        let files: Vec<_> = fs::read_dir(self.folder.path()).unwrap().collect();
        assert!(files.is_empty(), "{files:?}");
        assert_eq!(self.processes(), Vec::<u32>::new(), "nobody else runs who came from it");
    }

    /// Who has the demo's folder for temporary files: the demo, and whoever it has started. Where the kernel tells.
    fn processes(&self) -> Vec<u32> {
        let mark = format!("TMPDIR={}", self.folder.path().display());
        let own = std::process::id();
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|id| *id != own)
            .filter(|id| {
                let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
                environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
            })
            .collect()
    }
}

#[test]
fn a_demo_that_ends_by_itself_leaves_nothing() {
    Demo::start(&["--duration", "3s"]).leaves_nothing(0);
}

#[test]
fn a_demo_that_is_ended_leaves_nothing() {
    for signal in ["-INT", "-TERM"] {
        let mut demo = Demo::start(&[]);
        demo.is_lively();
        demo.running.signal(signal);
        demo.leaves_nothing(130);
    }
}

#[test]
fn a_demo_whose_terminal_is_closed_leaves_nothing() {
    // Who runs the tests so that they outlast a terminal runs the demo so, too.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    if ignored.is_some_and(|mask| mask & 1 == 0) {
        let mut demo = Demo::start(&[]);
        demo.is_lively();
        demo.running.signal("-HUP");
        demo.leaves_nothing(130);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demo_that_is_ended_twice_leaves_nothing() {
    let demo = tokio::task::block_in_place(|| {
        let mut demo = Demo::start(&[]);
        demo.is_lively();
        demo
    });
    // A request that does not come to its end holds up that of the demo.
    let mut request = TcpStream::connect(&demo.addresses[0]).unwrap();
    let head = "POST /api/v1/namespaces HTTP/1.1\r\nhost: demo\r\ncontent-length: 100\r\n\r\n{";
    request.write_all(head.as_bytes()).unwrap();
    let (mut socket, _) = connect_async(format!("ws://{}/v1/stream", demo.addresses[1])).await.unwrap();
    op(&mut socket, "hello").await;
    demo.running.signal("-INT");
    op(&mut socket, "bye").await;
    // Meanwhile it ends, and has not ended.
    demo.running.signal("-INT");
    tokio::task::block_in_place(|| demo.leaves_nothing(130));
    drop((request, socket));
}
