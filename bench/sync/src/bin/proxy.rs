//! Stands between a contestant and the server, and ends its watch with 410 when it is told to.
//!
//! Called with the kubeconfig of the server and the file that gets the kubeconfig of the proxy. It is a program by
//! itself, and compiled as fast as it gets: all that a contestant reads goes through it. Every line of stdin is a command,
//! answered with one line of JSON: how many watches were `open`. Watches are not compressed: it has to look into them.
//!
//! | command | what it does |
//! |---|---|
//! | `deaf` | from now on nothing that happens comes through the watches that are open |
//! | `gone` | tells the watches that are open that their version is too old (410), and ends them |

use std::io::BufRead as _;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use kube_informer_bench_sync::protocol::answer;
use kube_informer_testbed::kubeconfig::Access;
use kube_informer_testbed::proxy::{Answer, Config, Events, Match, Proxy};
use serde_json::json;

fn main() -> Result<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [server, own] = &arguments[..] else { bail!("usage: KUBECONFIG KUBECONFIG_OF_PROXY") };
    let runtime = tokio::runtime::Runtime::new()?;
    let proxy = runtime.block_on(async {
        let server = Access::read(server).await?;
        Config::new(&server).add_credentials().start().await
    })?;
    Access::anonymous(proxy.url()).write(own).context("cannot write the kubeconfig of the proxy")?;
    // It drops nothing, and is there from the beginning: the server is asked not to compress what such a fault looks into.
    proxy.on(Match::watch()).drop_events(Events::all().when(|_| false));
    let mut answers = std::io::stdout().lock();
    answer(&mut answers, &json!({ "open": 0 }))?;
    for command in std::io::stdin().lock().lines() {
        let open = runtime.block_on(told(&proxy, command?.trim()))?;
        answer(&mut answers, &json!({ "open": open }))?;
    }
    Ok(())
}

async fn told(proxy: &Proxy, command: &str) -> Result<usize> {
    let open = proxy.requests().open().iter().filter(|request| request.is_watch()).count();
    match command {
        // They stay so until they end: what happened and has not come yet does not come either.
        "deaf" => drop(proxy.on_open(Match::watch()).drop_events(Events::all())),
        "gone" => {
            let gone = proxy.on_open(Match::watch()).error_event(Answer::gone());
            if open > 0 {
                gone.wait_applied(open as u64).await;
            }
        }
        _ => bail!("no such command: {command:?}"),
    }
    Ok(open)
}
