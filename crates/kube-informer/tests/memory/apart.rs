//! A test in a process of its own, and a server in another one, which writes what it is told to write.

use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use kube_client::Config;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_informer::factory::Factory;
use kube_informer_apiserver::Server;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::http::Endpoint;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

pub(crate) const SOON: Duration = Duration::from_secs(120);

/// In the environment of the process that is the test: that it is.
const ALONE: &str = "KUBE_INFORMER_TEST_ALONE";

/// In the environment of the process that is the server: where its kubeconfig goes.
const SERVER: &str = "KUBE_INFORMER_TEST_SERVER";

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The server's process, which does one thing after the other.
pub(crate) struct Orders(ChildStdin);

/// What it is told to do, by a line each.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Order {
    /// Makes so many config maps, of so many bytes of noise.
    Fill(usize, usize),
    /// Changes the first so many of them, round and round, that often, a thousand times per second.
    Update(usize, usize, usize),
    /// Deletes all.
    Clear,
}

impl Orders {
    pub(crate) fn fill(&mut self, objects: usize, bytes: usize) -> Result<()> {
        Ok(writeln!(self.0, "fill {objects} {bytes}")?)
    }

    pub(crate) fn update(&mut self, objects: usize, bytes: usize, times: usize) -> Result<()> {
        Ok(writeln!(self.0, "update {objects} {bytes} {times}")?)
    }

    pub(crate) fn clear(&mut self) -> Result<()> {
        Ok(writeln!(self.0, "clear")?)
    }
}

impl FromStr for Order {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> Result<Self> {
        let mut words = line.split(' ');
        let what = words.next().context("nothing to do")?;
        let numbers = words.map(str::parse).collect::<Result<Vec<usize>, _>>()?;
        match (what, &numbers[..]) {
            ("fill", [objects, bytes]) => Ok(Self::Fill(*objects, *bytes)),
            ("update", [objects, bytes, times]) => Ok(Self::Update(*objects, *bytes, *times)),
            ("clear", []) => Ok(Self::Clear),
            _ => bail!("{line:?} is not known"),
        }
    }
}

/// Runs a test by its full name, with a factory for the server.
pub(crate) fn alone(test: &str, run: impl AsyncFnOnce(Factory, &mut Orders) -> Result<()>) -> Result<()> {
    if let Some(file) = std::env::var_os(SERVER) {
        return Runtime::new()?.block_on(serve(Path::new(&file)));
    }
    let again = || {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([test, "--exact", "--nocapture"]);
        anyhow::Ok(command)
    };
    if std::env::var_os(ALONE).is_none() {
        let output = again()?.env(ALONE, "true").output()?;
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let said = said(&output.stdout) + &said(&output.stderr);
        // Where no test has that name, nothing fails, either.
        ensure!(output.status.success() && said.contains("1 passed"), "{test}: {said}");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("kubeconfig");
    // It ends when this process does: its stdin is closed then.
    let mut server = again()?.env(SERVER, &file).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    let mut orders = Orders(server.stdin.take().unwrap());
    let outcome = Runtime::new()?.block_on(async {
        let factory = connect(&file).await?;
        run(factory.clone(), &mut orders).await?;
        factory.shutdown().await;
        Ok(())
    });
    drop(orders);
    server.wait()?;
    outcome
}

async fn connect(kubeconfig: &Path) -> Result<Factory> {
    eventually("the server is up", SOON, async || kubeconfig.exists().then_some(())).await;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(Kubeconfig::read_from(kubeconfig)?, &options).await?;
    Ok(Factory::from_config(config).await?)
}

async fn serve(file: &Path) -> Result<()> {
    let server = Server::builder().tls(false).start().await?;
    let made = file.with_extension("made");
    server.write_kubeconfig(&made)?;
    let endpoint = Endpoint::from_kubeconfig(&made).await?;
    std::fs::rename(made, file)?;
    let (order, mut orders) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        std::io::stdin().lock().lines().map_while(Result::ok).try_for_each(|line| order.send(line))
    });
    let mut random = fastrand::Rng::with_seed(5);
    while let Some(order) = orders.recv().await {
        match order.parse()? {
            Order::Fill(objects, bytes) => fill(&endpoint, &mut random, objects, bytes).await?,
            Order::Update(objects, bytes, times) => {
                update(&endpoint, &mut random, objects, bytes, times).await?;
            }
            Order::Clear => {
                endpoint.delete(CONFIG_MAPS).await?.success()?;
            }
        }
    }
    server.shutdown().await;
    Ok(())
}

async fn fill(endpoint: &Endpoint, random: &mut fastrand::Rng, objects: usize, bytes: usize) -> Result<()> {
    let mut writes = JoinSet::new();
    for number in 0..objects {
        let mut object = noise(random, bytes);
        object["metadata"] = json!({ "name": name(number) });
        let endpoint = endpoint.clone();
        writes.spawn(async move { endpoint.post(CONFIG_MAPS, &object).await?.success() });
        some(&mut writes, 16).await?;
    }
    some(&mut writes, 1).await
}

async fn update(
    endpoint: &Endpoint,
    random: &mut fastrand::Rng,
    objects: usize,
    bytes: usize,
    times: usize,
) -> Result<()> {
    let mut writes = JoinSet::new();
    let mut pace = interval(Duration::from_millis(1));
    pace.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for number in 0..times {
        pace.tick().await;
        let (path, patch) = (format!("{CONFIG_MAPS}/{}", name(number % objects)), noise(random, bytes));
        let endpoint = endpoint.clone();
        writes.spawn(async move { endpoint.merge_patch(&path, &patch).await?.success() });
        some(&mut writes, 16).await?;
    }
    some(&mut writes, 1).await
}

/// Waits until fewer than so many writes are on their way.
async fn some<T: 'static>(writes: &mut JoinSet<Result<T>>, most: usize) -> Result<()> {
    while writes.len() >= most {
        writes.join_next().await.unwrap()??;
    }
    Ok(())
}

fn name(number: usize) -> String {
    format!("c-{number}")
}

/// Nothing that could be kept in less.
fn noise(random: &mut fastrand::Rng, bytes: usize) -> Value {
    let noise: String = (0..bytes).map(|_| random.alphanumeric()).collect();
    json!({ "data": { "noise": noise } })
}

/// What this process has in memory, in bytes.
pub(crate) fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.strip_suffix("kB"));
    kilobytes.unwrap().trim().parse::<usize>().unwrap() << 10
}
