//! `kube-informer get`: what there is, read once, as `kubectl get` prints it.
//!
//! - Each resource is one consistent state: what its informer has listed, at one version. Of several namespaces, each is one;
//!   and so is each object that is named.
//! - Output is what `kubectl get` prints, byte for byte, for tables, wide ones, json, yaml and names.
//! - Memory: the objects, packed, and the lines of a table; json and yaml are written object by object.
//! - What is named and not there is an error, exit code 1, after what is there was printed.

use anyhow::bail;
use jiff::Timestamp;
use kube_informer::encoding::ManagedFields;
use kube_informer::object::Object;
use kube_informer_apiserver::print::Printer;
use serde_json::Value;

use crate::cluster::{Cluster, ClusterArgs, Place, SelectArgs};
use crate::interrupt::{Ended, Interrupt};
use crate::output::{Closed, Lines, Output, Page};
use crate::progress::Progress;
use crate::reading::served::{Line, Served};
use crate::reading::{self, Depth, Reading};
use crate::show::table::{Cells, Layout, Table};
use crate::show::{self, Format, List, json, yaml};
use crate::target::TargetArgs;

/// Print what there is.
#[derive(Debug, clap::Args)]
#[command(after_long_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    target: TargetArgs,
    /// How it is printed: table, wide, json, yaml, name, jsonpath=TEMPLATE, custom-columns=HEADER:PATH,…
    #[arg(short, long, value_name = "FORMAT", default_value = "table", value_parser = Format::of_state)]
    output: Format,
    /// Tables without headers
    #[arg(long)]
    no_headers: bool,
    /// Keep metadata.managedFields in json and yaml; templates have them anyway
    #[arg(long)]
    show_managed_fields: bool,
    #[command(flatten)]
    select: SelectArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

const HELP: &str = "\
The output is that of `kubectl get`, byte for byte. Each type is one consistent state, however large; with several -n, and
of objects that are named, each of them is.

Examples:
  kube-informer get pods -A -o wide
  kube-informer get deploy/web -o yaml
  kube-informer get deploy,services -n shop -n web          in several namespaces at once
  kube-informer get pods -l app=web -o jsonpath='{.items[*].status.podIP}'

Exit codes: 0 done; 1 error, or something that was named is not there; 2 wrong arguments; 130 Ctrl-C.";

pub(crate) async fn run(args: Args) -> anyhow::Result<Ended> {
    let mut interrupt = Interrupt::install()?;
    let mut output = Output::start()?;
    let lines = output.lines();
    let ended = tokio::select! {
        read = read(&args, lines) => match read {
            // How that came to be, the output knows.
            Err(error) if error.is::<Closed>() => Ok(Ended::Done),
            read => read.map(|()| Ended::Done),
        },
        () = interrupt.wait() => Ok(Ended::Interrupted),
        closed = output.closed() => return closed,
    };
    output.conclude(interrupt.wait(), ended, std::future::ready(())).await
}

async fn read(args: &Args, lines: Lines) -> anyhow::Result<()> {
    let cluster = args.cluster.connect(&args.select).await?;
    let targets = args.target.resolve(&cluster)?;
    let depth = match args.output {
        Format::Name => Depth::Names,
        // Templates choose by themselves, as kubectl's do.
        Format::Template(_) | Format::Chosen(_) => Depth::Everything(ManagedFields::Keep),
        _ if args.show_managed_fields => Depth::Everything(ManagedFields::Keep),
        _ => Depth::Everything(ManagedFields::Cut),
    };
    let readings = Reading::begin(&cluster, targets, depth)?;
    let mut progress = Progress::new(lines.clone(), &cluster);
    let synced = reading::synced(&readings, Some(cluster.patience), &mut progress).await;
    progress.clear().await;
    synced?;
    let mut missing = Vec::new();
    let found: Vec<(&Reading, Vec<Object>)> =
        readings.iter().map(|reading| (reading, reading.objects(&mut missing))).collect();
    print(args, &cluster, &found, &missing, lines).await?;
    if !missing.is_empty() {
        let elsewhere = match readings.iter().any(|reading| reading.resource().namespaced) {
            true => "give another -n, or ",
            false => "",
        };
        bail!("{}: {elsewhere}leave out names to see what there is", missing.join("; "));
    }
    Ok(())
}

async fn print(
    args: &Args,
    cluster: &Cluster,
    found: &[(&Reading, Vec<Object>)],
    missing: &[String],
    lines: Lines,
) -> anyhow::Result<()> {
    let count: usize = found.iter().map(|(_, objects)| objects.len()).sum();
    if count == 0 && !missing.is_empty() {
        return Ok(());
    }
    let mut page = Page::new(lines);
    let objects = found.iter().flat_map(|(_, objects)| objects);
    match &args.output {
        Format::Table { wide } => print_tables(args, cluster, found, *wide, &mut page).await?,
        Format::Chosen(columns) => {
            let objects: Vec<Object> = objects.cloned().collect();
            let mut table = Table::new(Cells::Chosen(columns.clone()), Layout::default());
            let header = table.header();
            if !args.no_headers {
                table.fit(&header);
            }
            let rows = table.rows("", &objects, Timestamp::now())?;
            if !args.no_headers {
                page.add(&table.line(&header)).await?;
            }
            for row in rows {
                page.add(&table.line(&row.cells())).await?;
            }
        }
        Format::Name => {
            for (reading, objects) in found {
                let kind = show::kind(reading.resource());
                for object in objects {
                    page.add(&format!("{kind}/{}\n", object.name())).await?;
                }
            }
        }
        format @ (Format::Json | Format::Yaml) if is_single(found) => {
            for object in objects {
                page.add(&whole(format, &show::document(object)?)).await?;
            }
        }
        Format::Template(template) => {
            let mut documents = objects.map(show::document).collect::<anyhow::Result<Vec<_>>>()?;
            let document = match documents.pop() {
                Some(document) if is_single(found) => document,
                last => {
                    documents.extend(last);
                    show::list(documents)
                }
            };
            let text = template.render(&document);
            let text =
                text.map_err(|error| anyhow::anyhow!("-o jsonpath: {error}; -o json shows what there is"))?;
            page.add(&text).await?;
        }
        format => {
            let mut list = List::new(matches!(format, Format::Yaml));
            for object in objects {
                page.add(&list.item(show::document(object)?)).await?;
            }
            page.add(&list.end()).await?;
        }
    }
    page.flush().await?;
    Ok(())
}

fn whole(format: &Format, document: &Value) -> String {
    match format {
        Format::Yaml => yaml::document(document),
        _ => format!("{}\n", json::pretty(document)),
    }
}

/// Whether one object was asked for, and not a list that has one.
fn is_single(found: &[(&Reading, Vec<Object>)]) -> bool {
    matches!(found, [(reading, _)] if reading.target.names.len() == 1 && reading.informers.len() == 1)
}

async fn print_tables(
    args: &Args,
    cluster: &Cluster,
    found: &[(&Reading, Vec<Object>)],
    wide: bool,
    page: &mut Page,
) -> anyhow::Result<()> {
    let now = Timestamp::now();
    let mut is_first = true;
    // A type of which nothing is there counts where all of it was asked for, and not where what was named is missing.
    let is_asked = |(reading, objects): &&(&Reading, Vec<Object>)| {
        reading.target.names.is_empty() || !objects.is_empty()
    };
    let several = found.iter().filter(is_asked).count() > 1;
    for (reading, objects) in found.iter().filter(|(_, objects)| !objects.is_empty()) {
        let (cells, served) = columns(cluster, reading, page).await?;
        let prefix = if several { format!("{}/", show::kind(reading.resource())) } else { String::new() };
        let layout = Layout { wide, namespaces: reading.shows_namespaces, prefix, event: None };
        let mut table = Table::new(cells, layout);
        let header = (!args.no_headers).then(|| table.header());
        if let Some(header) = &header {
            table.fit(header);
        }
        let rows = match served {
            None => table.rows("", objects, now)?,
            Some(lines) => {
                let arranged = |line: Line| {
                    let cells = table.arrange("", &line.namespace, &line.cells);
                    table.keep(&cells)
                };
                lines.into_iter().map(arranged).collect()
            }
        };
        if let Some(header) = &header {
            if !is_first {
                page.add("\n").await?;
            }
            page.add(&table.line(header)).await?;
        }
        is_first = false;
        for row in rows {
            page.add(&table.line(&row.cells())).await?;
        }
    }
    if is_first {
        page.note(nothing(cluster, found)).await?;
    }
    Ok(())
}

/// The columns of a resource, and its rows where only the server knows how they are made.
async fn columns(
    cluster: &Cluster,
    reading: &Reading,
    page: &mut Page,
) -> Result<(Cells, Option<Vec<Line>>), Closed> {
    let unknown = match reading.printer(cluster).await {
        Ok(printer) => return Ok((Cells::Printer(printer), None)),
        Err(unknown) => unknown,
    };
    match Served::read(cluster, reading).await {
        Ok(Served { heads, rows }) => Ok((Cells::Served(heads), Some(rows))),
        Err(why) => {
            tracing::warn!(resource = %reading.resource(), why, "the server was asked for a table in vain");
            page.note(format!("{}\n", unknown.note())).await?;
            Ok((Cells::Printer(Printer::plain()), None))
        }
    }
}

/// In kubectl's words.
fn nothing(cluster: &Cluster, found: &[(&Reading, Vec<Object>)]) -> String {
    let are_namespaced = found.iter().all(|(reading, _)| reading.resource().namespaced);
    match cluster.place() {
        Place::Namespaces(names) if are_namespaced => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let word = if names.len() == 1 { "namespace" } else { "namespaces" };
            format!("No resources found in {} {word}.\n", names.join(", "))
        }
        _ => "No resources found\n".to_owned(),
    }
}
