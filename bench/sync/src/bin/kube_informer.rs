//! Our informer as a contestant, with its defaults.
//!
//! `typed` keeps pods, `dynamic` the custom resource; `idle` connects and does nothing; `bytes` reads what the server sends
//! of pods, with the same connection, and drops it: no informer over HTTP and TLS can do with less; `bytes-dynamic` does so
//! with the custom resource. There is one handler, and more where that is asked for; the first one counts. They are
//! asynchronous, as the others' are: they do not block. With `--closures` they are closures, which may, and have threads for
//! that. With `--gather MS`, changes may wait so long for others; with `--every`, two of one object do not become one. `--all-views` keeps every decoded pod, as the others do. `--reads` lets the custom resource be read, too, by name,
//! site and as a whole; the others' is not.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube_client::client::Body;
use kube_informer::cache::{Index, Snapshot};
use kube_informer::factory::{Factory, InformerBuilder};
use kube_informer::informer::{Delivery, Event, Handler, Informer, Scope};
use kube_informer::object::{Borrowed, Object, ViewBudget};
use kube_informer::resource::Resource;
use kube_informer_bench_sync::frames::{Frame, Frames};
use kube_informer_bench_sync::reads::{Plain, Reads};
use kube_informer_bench_sync::seen::Seen;
use kube_informer_bench_sync::stamps::SENT;
use kube_informer_bench_sync::{Contestant, pods};
use serde_json::Value;

/// Beyond this, it does not get in sync.
const PATIENCE: Duration = Duration::from_secs(600);

/// The index of pods by the node that they run on.
const NODE: &str = "/spec/nodeName";

/// The index of custom resources by their label.
const SITE: &str = "label:site";

fn main() -> Result<()> {
    let start = Instant::now();
    let mut arguments = std::env::args().skip(1);
    let scenario = arguments.next();
    let (mut handlers, mut views, mut reads) = (Handlers::default(), ViewBudget::default(), false);
    let mut gather = Duration::ZERO;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--closures" => handlers.closures = true,
            "--gather" => {
                let millis = arguments.next().context("--gather: for how many milliseconds?")?;
                gather = Duration::from_millis(millis.parse().context("--gather: not a number")?);
            }
            "--every" => handlers.delivery = Delivery::Every(UNTOLD),
            "--all-views" => views = ViewBudget::All,
            "--reads" => reads = true,
            _ => bail!("no such argument: {argument}"),
        }
    }
    // As many workers as $TOKIO_WORKER_THREADS says.
    let runtime = tokio::runtime::Runtime::new()?;
    let contestant = match scenario.as_deref() {
        Some("typed") => runtime.block_on(typed(handlers, views, gather)),
        Some("dynamic") => runtime.block_on(dynamic(handlers, reads, gather)),
        Some("idle") => runtime.block_on(idle()),
        Some("bytes") => floor(&runtime, bytes()),
        Some("bytes-dynamic") => floor(&runtime, bytes_dynamic()),
        _ => bail!(
            "usage: typed | dynamic | idle | bytes | bytes-dynamic, [--closures] [--gather MS] [--every] [--all-views] [--reads]"
        ),
    }?;
    let served = contestant.serve(start, std::io::stdin().lock(), std::io::stdout().lock());
    // Handlers have threads of their own, which are not waited for.
    runtime.shutdown_background();
    served
}

async fn idle() -> Result<Contestant> {
    kube_client::Client::try_default().await?.apiserver_version().await?;
    Ok(Contestant::idle())
}

/// No informer. It is run by one of the workers, as one is.
fn floor(
    runtime: &tokio::runtime::Runtime,
    read: impl Future<Output = Result<(usize, Arc<Seen>)>> + Send + 'static,
) -> Result<Contestant> {
    let (objects, seen) = runtime.block_on(runtime.spawn(read))??;
    Ok(Contestant { objects, seen, ..Contestant::idle() })
}

/// Asks for a watch that begins with a list.
async fn watch(path: &str, accept: &str) -> Result<Body> {
    let client = Factory::try_default().await?.client();
    let query =
        "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let request = http::Request::get(format!("{path}?{query}")).header("accept", accept);
    Ok(client.send(request.body(Body::empty())?).await?.into_body())
}

/// Each event of JSON is a line, and the last one of the list says so.
async fn bytes_dynamic() -> Result<(usize, Arc<Seen>)> {
    let mut body = watch("/apis/load.kube-informer.dev/v1/gadgets", "application/json").await?;
    let (mut objects, mut begin) = (0, Vec::<u8>::new());
    loop {
        let piece = body.frame().await.context("the watch ended")??;
        let mut bytes = piece.data_ref().map_or(&[][..], |bytes| bytes);
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end + 1);
            begin.extend(line.iter().take(BOOKMARK.len() - begin.len()));
            if begin == BOOKMARK {
                return Ok((objects, Arc::default()));
            }
            (objects, bytes) = (objects + 1, rest);
            begin.clear();
        }
        begin.extend(bytes.iter().take(BOOKMARK.len() - begin.len()));
    }
}

/// How the event begins that ends the list.
const BOOKMARK: &[u8] = b"{\"type\":\"BOOKMARK\"";

async fn bytes() -> Result<(usize, Arc<Seen>)> {
    let mut body = watch("/api/v1/pods", "application/vnd.kubernetes.protobuf;stream=watch").await?;
    let (seen, mut frames, mut objects, mut synced) = (Arc::<Seen>::default(), Frames::default(), 0, false);
    while !synced {
        let piece = body.frame().await.context("the watch ended")??;
        let count = |frame| match frame {
            Frame::Added => objects += 1,
            // Of an object that was counted: the server's cache was behind its store when it began.
            Frame::Changed => {}
            Frame::AllSent => synced = true,
        };
        frames.take(piece.data_ref().map_or(&[], |bytes| bytes), count);
    }
    let reader = seen.clone();
    tokio::spawn(async move {
        while let Some(Ok(piece)) = body.frame().await {
            frames.take(piece.data_ref().map_or(&[], |bytes| bytes), |_| reader.updates.add());
        }
    });
    Ok((objects, seen))
}

/// Who is told.
#[derive(Debug, Clone, Copy, Default)]
struct Handlers {
    /// They may block.
    closures: bool,
    delivery: Delivery,
}

/// More than are ever written before all are told.
const UNTOLD: usize = 100_000;

async fn typed(handlers: Handlers, views: ViewBudget, gather: Duration) -> Result<Contestant> {
    let factory = Factory::try_default().await?;
    let informer = factory.configure::<Pod>(Scope::All).views(views).gather(gather).informer();
    informer.add_index(Index::pointer(NODE)?)?;
    let whole = |pod: &Object<Pod>| pod.view().map_or(0, |pod| pods::parts(&pod));
    let (seen, handlers) = synced(&factory, &informer, handlers, whole).await?;
    let (objects, count) = (informer.snapshot().len(), informer.clone());
    let reads = Box::new(move || typed_reads(&informer));
    let count = Box::new(move || count.snapshot().len());
    Ok(Contestant { objects, count, seen, handlers: Some(handlers), reads: Some(reads) })
}

/// Reads that look into typed pods.
fn typed_reads(informer: &Informer<Pod>) -> Result<Reads> {
    let snapshot = informer.snapshot();
    let [one, some, labelled, all, whole] = [(); 5].map(|()| informer.clone());
    Ok(Reads {
        keys: snapshot.list().iter().map(|pod| format!("{}/{}", pod.namespace(), pod.name())).collect(),
        values: snapshot.index_values(NODE)?.map(|(node, _)| node.to_string()).collect(),
        labels: values_of_label(informer, "app"),
        get: Box::new(move |key| {
            let (namespace, name) = key.split_once('/').unwrap_or_default();
            one.with(namespace, name, looked).unwrap_or(0)
        }),
        indexed: Box::new(move |node| {
            some.list().index(NODE, node).map_or(0, |found| found.each().map(looked).sum())
        }),
        list: Box::new(move |()| all.list().each().map(looked).sum()),
        labelled: Box::new(move |app| names_with(&labelled, &format!("app={app}"))),
        snapshot: Box::new(move |()| whole.snapshot().len()),
        plain: None,
    })
}

async fn dynamic(handlers: Handlers, reads: bool, gather: Duration) -> Result<Contestant> {
    let factory = Factory::try_default().await?;
    let gadgets = Resource {
        group: "load.kube-informer.dev".to_owned(),
        version: "v1".to_owned(),
        plural: "gadgets".to_owned(),
        kind: "Gadget".to_owned(),
        namespaced: true,
    };
    let gadgets: InformerBuilder = factory.configure_resource(gadgets, Scope::All);
    let informer = gadgets.gather(gather).informer();
    let fields = |gadget: &Value| gadget.as_object().map_or(0, serde_json::Map::len);
    let whole = move |gadget: &Object| gadget.view().map_or(0, |gadget| fields(&gadget));
    if reads {
        informer.add_index(Index::label("site"))?;
    }
    let (seen, handlers) = synced(&factory, &informer, handlers, whole).await?;
    let (objects, count) = (informer.snapshot().len(), informer.clone());
    let made: Box<dyn Fn() -> Result<Reads>> = Box::new(move || metadata_reads(&informer));
    let (count, reads) = (Box::new(move || count.snapshot().len()), reads.then_some(made));
    Ok(Contestant { objects, count, seen, handlers: Some(handlers), reads })
}

/// Reads that decode nothing.
fn metadata_reads(informer: &Informer<Value>) -> Result<Reads> {
    let snapshot = informer.snapshot();
    let [one, some, labelled, all, whole] = [(); 5].map(|()| informer.clone());
    Ok(Reads {
        keys: snapshot
            .list()
            .iter()
            .map(|gadget| format!("{}/{}", gadget.namespace(), gadget.name()))
            .collect(),
        values: snapshot.index_values(SITE)?.map(|(site, _)| site.to_string()).collect(),
        labels: values_of_label(informer, "team"),
        get: Box::new(move |key| {
            let (namespace, name) = key.split_once('/').unwrap_or_default();
            one.with(namespace, name, |gadget| metadata(&gadget)).unwrap_or(0)
        }),
        indexed: Box::new(move |site| {
            some.list()
                .index(SITE, site)
                .map_or(0, |found| found.each().map(|gadget| metadata(&gadget)).sum())
        }),
        list: Box::new(move |()| all.list().each().map(|gadget| metadata(&gadget)).sum()),
        labelled: Box::new(move |team| names_with(&labelled, &format!("team={team}"))),
        snapshot: Box::new(move |()| whole.snapshot().len()),
        plain: Some(plain_reads(&snapshot)?),
    })
}

/// The same objects in a hash map and in vectors, in the same order: what it costs to look at them is the memory's.
fn plain_reads(snapshot: &Snapshot<Value>) -> Result<Plain> {
    let all: Vec<Object<Value>> = snapshot.list().iter().collect();
    let by_key: HashMap<(String, String), Object<Value>> = all
        .iter()
        .map(|gadget| ((gadget.namespace().to_owned(), gadget.name().to_owned()), gadget.clone()))
        .collect();
    let mut by_site: HashMap<String, Vec<Object<Value>>> = HashMap::new();
    for (site, _) in snapshot.index_values(SITE)? {
        by_site.insert(site.to_string(), snapshot.list().index(SITE, &site)?.iter().collect());
    }
    let sum = |gadgets: &[Object<Value>]| gadgets.iter().map(metadata).sum();
    Ok(Plain {
        get: Box::new(move |key| {
            let (namespace, name) = key.split_once('/').unwrap_or_default();
            by_key.get(&(namespace.to_owned(), name.to_owned())).map_or(0, metadata)
        }),
        indexed: Box::new(move |site| by_site.get(site).map_or(0, |found| sum(found))),
        list: Box::new(move |()| sum(&all)),
    })
}

/// Sets how many handlers there are.
type SetHandlers = Box<dyn Fn(usize) -> Result<()>>;

/// Starts to watch; returns when everything is in the cache, and a handler has seen it. There may be more of them later.
async fn synced<K: Send + 'static>(
    factory: &Factory,
    informer: &Informer<K>,
    handlers: Handlers,
    whole: impl Fn(&Object<K>) -> usize + Copy + Send + Sync + 'static,
) -> Result<(Arc<Seen>, SetHandlers)> {
    let seen = Arc::<Seen>::default();
    let register = {
        let (informer, seen) = (informer.clone(), seen.clone());
        move |counts| {
            let looking = Looking { seen: seen.clone(), counts, whole };
            let subscription = informer.subscribe().delivery(handlers.delivery);
            if !handlers.closures {
                return subscription.handler(looking);
            }
            subscription.on(move |event| match event {
                Event::Added { new, .. } => looking.at_new(&new),
                Event::Updated { new, .. } => looking.at_updated(&new),
                _ => {}
            })
        }
    };
    let first = register(true);
    factory.start();
    factory.synced(PATIENCE).await?;
    first.synced(PATIENCE).await?;
    let (all, runtime) = (RefCell::new(vec![first]), tokio::runtime::Handle::current());
    let set = move |count: usize| {
        let mut all = all.borrow_mut();
        let stay = all.len().min(count.max(1));
        for more in all.split_off(stay) {
            runtime.block_on(more.remove(PATIENCE))?;
        }
        while all.len() < count {
            let one = register(false);
            runtime.block_on(one.synced(PATIENCE))?;
            all.push(one);
        }
        Ok(())
    };
    Ok((seen, Box::new(set)))
}

/// A handler that reads the metadata of every object, and of those that are updated more when that is asked for.
struct Looking<W> {
    seen: Arc<Seen>,
    /// Whether it is the one whose updates count.
    counts: bool,
    whole: W,
}

impl<W> Looking<W> {
    fn at_new<K>(&self, new: &Object<K>) {
        black_box(metadata(new));
    }

    fn at_updated<K>(&self, new: &Object<K>)
    where
        W: Fn(&Object<K>) -> usize,
    {
        let Self { seen, counts, whole } = self;
        if *counts && seen.stamps.wanted() {
            seen.stamps.saw(new.annotation(SENT).ok().flatten().as_deref());
        }
        black_box(metadata(new));
        if seen.whole() {
            black_box(whole(new));
        }
        if *counts {
            seen.updates.add();
        }
    }
}

impl<K, W> Handler<K> for Looking<W>
where
    K: Send + 'static,
    W: Fn(&Object<K>) -> usize + Send + Sync + 'static,
{
    async fn added(&mut self, new: Object<K>, _initial: bool) {
        self.at_new(&new);
    }

    async fn updated(&mut self, _old: Object<K>, new: Object<K>, _resync: bool) {
        self.at_updated(&new);
    }
}

/// The values that a label has, in their order.
fn values_of_label<K>(informer: &Informer<K>, label: &str) -> Vec<String> {
    let objects = informer.list();
    let mut values: Vec<String> =
        objects.iter().filter_map(|object| object.labels().get(label).map(str::to_owned)).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// Looks at the names of what a selector finds.
fn names_with<K>(informer: &Informer<K>, selector: &str) -> usize {
    informer.list().labels(selector).map_or(0, |found| found.iter().map(|object| object.name().len()).sum())
}

fn metadata<K>(object: &Object<K>) -> usize {
    let version = usize::from(object.version().number().is_some());
    object.namespace().len() + object.name().len() + version + object.labels().len()
}

fn looked(pod: Borrowed<'_, Pod>) -> usize {
    pod.look().map_or(0, |pod| pods::containers(&pod))
}
