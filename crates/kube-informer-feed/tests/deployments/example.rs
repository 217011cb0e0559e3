//! The example, run as people run it.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::Result;
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::task::block_in_place;
use tokio_tungstenite::tungstenite::Message;

use crate::harness::{Place, SOON, on_both, web};

on_both! {
    the_example_tells_everyone_who_is_connected,
}

/// The example that runs; killed if the test fails.
struct Example {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Example {
    fn run(place: &Place) -> Self {
        let mut command = Command::new(built());
        command.env("KUBECONFIG", &place.kubeconfig).env_remove("KUBERNETES_SERVICE_HOST");
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// Reads until a line has this in it.
    fn line(&mut self, part: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "it ended before it printed {part:?}");
            if line.contains(part) {
                return line;
            }
        }
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        // It has usually ended; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn built() -> PathBuf {
    kube_informer_testbed::examples::example("kube-informer-feed", "deployment_controller").unwrap()
}

async fn the_example_tells_everyone_who_is_connected(place: Place) -> Result<()> {
    place.create("web", web("1.4")).await?;
    let (mut example, url) = block_in_place(|| {
        let mut example = Example::run(&place);
        let line = example.line("connect to ws://");
        (example, line.trim().trim_start_matches("connect to ").to_owned())
    });
    let mut clients = Vec::new();
    for _ in 0..3 {
        let (mut socket, _) = tokio_tungstenite::connect_async(&url).await?;
        tokio::time::timeout(SOON, heard(&mut socket, |message| message["op"] == "snap.end")).await?;
        clients.push(socket);
    }
    let both = json!({ "spec": { "replicas": 5, "template": { "spec": { "containers": web("1.5") } } } });
    place.merge("web", &both).await?;
    for socket in &mut clients {
        // On a server that is shared, others change, too; where there are controllers, so does the status.
        let ours =
            |message: &Value| message["obj"]["ns"] == place.namespace && message["class"][0] == "scale";
        let change = tokio::time::timeout(SOON, heard(socket, ours)).await?;
        assert_eq!(change["summary"], "replicas 1→5; image web 1.4→1.5");
        assert_eq!(change["type"], "MODIFIED");
    }
    let clients = tokio::spawn(async move {
        for mut socket in clients {
            heard(&mut socket, |message| message["op"] == "bye").await;
            while socket.next().await.is_some_and(|message| message.is_ok()) {}
        }
    });
    block_in_place(|| {
        example.line(&format!("{}/web replicas 1→5; image web 1.4→1.5", place.namespace));
        let id = example.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        example.line("changes were told");
        assert!(example.child.wait().unwrap().success());
    });
    clients.await?;
    Ok(())
}

/// As a cluster ends what runs in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_ends_in_order_when_it_is_terminated() -> Result<()> {
    let place = Place::embedded().await?;
    let (mut example, url) = block_in_place(|| {
        let mut example = Example::run(&place);
        let line = example.line("connect to ws://");
        (example, line.trim().trim_start_matches("connect to ").to_owned())
    });
    let (mut socket, _) = tokio_tungstenite::connect_async(&url).await?;
    // It runs: whoever waited was told what there is.
    tokio::time::timeout(SOON, heard(&mut socket, |message| message["op"] == "snap.end")).await?;
    let id = example.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status()?.success());
    tokio::time::timeout(SOON, heard(&mut socket, |message| message["op"] == "bye")).await?;
    while socket.next().await.is_some_and(|message| message.is_ok()) {}
    block_in_place(|| {
        example.line("changes were told");
        assert!(example.child.wait().unwrap().success());
    });
    Ok(())
}

async fn heard<S>(socket: &mut S, wanted: impl Fn(&Value) -> bool) -> Value
where
    S: StreamExt<Item = Result<Message, tokio_tungstenite::tungstenite::Error>> + Unpin,
{
    loop {
        if let Message::Text(text) = socket.next().await.expect("the connection is open").unwrap() {
            let message: Value = serde_json::from_str(&text).unwrap();
            if wanted(&message) {
                return message;
            }
        }
    }
}
