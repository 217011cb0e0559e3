//! `kube-informer watch`: what changes, for as long as somebody looks.
//!
//! - It begins with what there is. Then comes what changes, each change once, in order per object.
//! - It reconnects for ever, once it was connected. That it is stale is said, and that it is live again; what was missed
//!   meanwhile is shown as soon as it is known.
//! - A terminal that is too slow holds up nobody. Changes that it misses are counted and marked as a gap; after it, each
//!   object that is another is shown once, as it is now.
//! - What a template makes nothing of is a note that says which object it is, and why; the others are shown.
//! - Data goes to stdout, all else to stderr.

mod doubts;
mod pulse;
mod story;
mod until;
mod view;

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use anyhow::bail;
use kube_informer::encoding::ManagedFields;
use kube_informer::informer::{Delivery, Event, Events, Scope};
use kube_informer::object::Object;
use kube_informer_apiserver::print::Printer;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::cluster::{ClusterArgs, SelectArgs};
use crate::condition::{self, Condition};
use crate::existence::Asker;
use crate::interrupt::{Ended, Interrupt};
use crate::output::{Closed, Lines, Output, Page};
use crate::progress::Progress;
use crate::reading::{self, Depth, Reading};
use crate::show::Format;
use crate::show::table::Cells;
use crate::style::{Style, Tone, When};
use crate::target::TargetArgs;
use crate::time::duration;
use crate::usage::Usage;
use doubts::Doubts;
use pulse::Pulse;
use story::{Story, Told};
use until::Until;
use view::{Marks, View};

/// Show what changes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    target: TargetArgs,
    /// How it is printed: table, wide, json, yaml, name, diff, jsonpath=TEMPLATE, custom-columns=HEADER:PATH,…
    #[arg(short, long, value_name = "FORMAT", default_value = "table", value_parser = Format::of_changes)]
    output: Format,
    /// Only what changes from now on, not what there is
    #[arg(long)]
    watch_only: bool,
    /// Tables without headers
    #[arg(long)]
    no_headers: bool,
    /// ADDED, MODIFIED or DELETED instead of the signs + ~ -: in a column, or with jsonpath as {.type}, beside {.object}; not with diff
    #[arg(long)]
    output_watch_events: bool,
    /// Keep metadata.managedFields in json and yaml; templates have them anyway
    #[arg(long)]
    show_managed_fields: bool,
    /// End as soon as one of the objects meets this: condition=NAME[=VALUE], jsonpath=PATH[=VALUE], create, delete
    #[arg(long, value_name = "CONDITION")]
    until: Option<Condition>,
    /// End after this time, such as 30s or 1m30s: with exit code 0, or with 1 where --until was waited for; 0 looks once
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// Colours: on terminals, unless NO_COLOR is set; or always, or never
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: When,
    #[command(flatten)]
    select: SelectArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

const HELP: &str = "\
What is printed:
  table, wide  what there is, then a line for each change: + it came, ~ it changed, - it is gone
  json         a record per line: {\"type\":\"ADDED\",\"object\":{...}}, also MODIFIED, DELETED; what there was
               at the beginning has \"initial\":true, then comes SYNCED; GAP where changes were left out, STALE
               and LIVE where the server cannot be seen and can be again
  yaml         the same, a document per record
  diff         what changed, old -> new, by path; containers and such by their names
  jsonpath     what the template makes of each object, in a line, after the signs + ~ -; with --output-watch-events
               there are none, and it is a template of {\"type\":\"ADDED\",\"object\":{...}}, as in kubectl
  custom-columns=HEADER:PATH,...  a table of what you choose

That it is stale, and gaps, are always said on stderr, too. It reconnects for ever once it was connected; a server that
is not there at the beginning is an error.

Examples:
  kube-informer watch pods                                  as `kubectl get -w`, with marks, and it does not end
  kube-informer watch deploy,pods -n shop -n web -o diff    what changes in two namespaces
  kube-informer watch job/import --until condition=Complete --timeout 10m
  kube-informer watch pods -A -o json --watch-only | jq -r 'select(.type==\"DELETED\") | .object.metadata.name'

Exit codes: 0 done, or the reader has seen enough; 1 error, or --until was not met in time; 2 wrong arguments;
130 Ctrl-C: a second one does not wait for the terminal.";

/// Changes that wait for a slow terminal; what comes beyond them is a gap.
const BACKLOG: usize = 4096;

/// How often it is looked after how it goes.
const TICK: Duration = Duration::from_millis(200);

pub(crate) async fn run(args: Args) -> anyhow::Result<Ended> {
    if args.output_watch_events && matches!(args.output, Format::Diff) {
        return Err(Usage::new("-o diff says in words what happened: leave out --output-watch-events").into());
    }
    let mut interrupt = Interrupt::install()?;
    let mut output = Output::start()?;
    let lines = output.lines();
    let mut until = Until::new(args.until.clone());
    let over = async {
        match args.timeout {
            Some(time) if !time.is_zero() => tokio::time::sleep(time).await,
            _ => std::future::pending().await,
        }
    };
    let ended = tokio::select! {
        watched = watch(&args, &mut until, lines) => match watched {
            // How that came to be, the output knows.
            Err(error) if error.is::<Closed>() => Ok(Ended::Done),
            watched => watched.map(|()| Ended::Done),
        },
        () = over => until.late(args.timeout.unwrap_or_default()).map(|()| Ended::Done),
        () = interrupt.wait() => Ok(Ended::Interrupted),
        closed = output.closed() => return closed,
    };
    output.conclude(interrupt.wait(), ended, std::future::ready(())).await
}

/// Shows what changes; ends when there is nothing more to wait for.
async fn watch(args: &Args, until: &mut Until, lines: Lines) -> anyhow::Result<()> {
    let cluster = args.cluster.connect(&args.select).await?;
    let targets = args.target.resolve(&cluster)?;
    let fields = match args.output {
        // What is waited for has to be there to be seen.
        _ if args.show_managed_fields || condition::fields(&args.until) == ManagedFields::Keep => {
            ManagedFields::Keep
        }
        Format::Diff => ManagedFields::Writers,
        // Templates choose by themselves, as kubectl's do.
        Format::Template(_) | Format::Chosen(_) => ManagedFields::Keep,
        _ => ManagedFields::Cut,
    };
    let depth =
        if args.output.is_name() && args.until.is_none() { Depth::Names } else { Depth::Everything(fields) };
    let readings = Reading::begin(&cluster, targets, depth)?;
    let marks = if args.output_watch_events { Marks::Words } else { Marks::Signs };
    let mut view = View::new(args.output.clone(), marks, !args.no_headers, Style::stdout(args.color));
    let doubts = args.select.selects().then(|| Doubts::new(Asker::new(&cluster)));
    let (pulse, style) = (Pulse::new(&readings), Style::stderr(args.color));
    let mut watch = Watch { readings, pulse, lines, style, doubts };

    // What there is.
    let looks_once = args.timeout.is_some_and(|time| time.is_zero());
    let mut progress = Progress::new(watch.lines.clone(), &cluster);
    let readings = watch.readings.clone();
    let synced = tokio::select! {
        synced = reading::synced(&readings, looks_once.then_some(cluster.patience), &mut progress) => synced,
        never = watch.listen(&view) => never,
    };
    progress.clear().await;
    synced?;
    if let Format::Chosen(columns) = &args.output {
        readings.iter().for_each(|_| view.add_table(Cells::Chosen(columns.clone()), false, String::new()));
    } else if args.output.is_table() {
        let prefixes = reading::prefixes(&watch.readings);
        for (reading, prefix) in readings.iter().zip(prefixes) {
            let printer = match reading.printer(&cluster).await {
                Ok(printer) => printer,
                Err(unknown) => {
                    watch.note(&unknown.note()).await?;
                    Printer::plain()
                }
            };
            view.add_table(Cells::Printer(printer), reading.shows_namespaces, prefix);
        }
    } else {
        readings.iter().for_each(|reading| view.add(reading.resource()));
    }
    let (sender, receiver) = mpsc::channel(1);
    let (mut stories, mut there) = (Vec::new(), Vec::new());
    // All kinds before the first is shown: what comes after the first line that somebody reads is a change.
    for (at, reading) in readings.iter().enumerate() {
        let mut told = Vec::new();
        for informer in &reading.informers {
            let mut events = informer.subscribe().delivery(Delivery::Every(BACKLOG)).name("watch").events();
            let mut story = Story::default();
            told.extend(beginning(&mut events, &mut story).await);
            if let (Scope::Object { namespace, name }, true) = (informer.scope(), story.is_empty()) {
                until.missing();
                let missing = reading::not_found(reading.resource(), namespace, name);
                watch.note(&format!("{missing}: it is shown when it comes")).await?;
            }
            tokio::spawn(forward(events, (at, stories.len()), sender.clone()));
            stories.push(story);
        }
        there.push(told);
    }
    for (at, told) in there.iter().enumerate() {
        if !args.watch_only {
            let mut page = Page::painted(watch.lines.clone());
            for piece in view.beginning(at, told) {
                match piece {
                    Ok(text) => page.add(&text).await?,
                    Err(unshown) => {
                        page.flush().await?;
                        watch.note(&unshown.to_string()).await?;
                    }
                }
            }
            page.flush().await?;
        }
        watch.begun(&view, at, told.len()).await?;
        for object in told {
            until.there(object)?;
        }
    }
    if !args.watch_only && there.iter().all(Vec::is_empty) && view.hides_nothing() {
        let types: Vec<String> = readings
            .iter()
            .filter(|reading| reading.target.names.is_empty())
            .map(|reading| reading.resource().to_string())
            .collect();
        if !types.is_empty() {
            let place = if readings.iter().all(|reading| reading.resource().namespaced) {
                format!(" {}", cluster.describe_place())
            } else {
                String::new()
            };
            watch.note(&format!("no {}{place}: what comes is shown", types.join(", "))).await?;
        }
    }
    drop(there);
    drop(sender);
    if looks_once && !until.is_met() {
        return until.late(Duration::ZERO);
    }
    if !until.is_met() {
        watch.follow(receiver, &mut stories, &mut view, until).await?;
    }
    if let Some(met) = until.met() {
        watch.note(met).await?;
    }
    Ok(())
}

/// Who prints, and what is known about how it goes.
struct Watch {
    readings: Vec<Reading>,
    pulse: Pulse,
    lines: Lines,
    style: Style,
    /// Where objects are chosen: then it may have to be asked whether one is gone.
    doubts: Option<Doubts>,
}

impl Watch {
    /// Tells what changes, until that is over.
    async fn follow(
        &mut self,
        mut events: mpsc::Receiver<((usize, usize), Event)>,
        stories: &mut [Story],
        view: &mut View,
        until: &mut Until,
    ) -> anyhow::Result<()> {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                _ = tick.tick() => self.say_how_it_goes(view).await?,
                // Before the changes, which may not end.
                last = gone(&mut self.doubts) => {
                    until.told(&Told::Deleted { last, certain: true })?;
                    if until.is_met() {
                        return Ok(());
                    }
                }
                event = events.recv() => match event {
                    Some(((at, story), event)) => {
                        let Some(story) = stories.get_mut(story) else { continue };
                        for told in story.hear(event) {
                            self.tell(at, &told, view).await?;
                            if self.is_doubtful(at, &told, until) {
                                continue;
                            }
                            until.told(&told)?;
                            if until.is_met() {
                                return Ok(());
                            }
                        }
                    }
                    None => bail!("nothing is watched any more"),
                },
            }
        }
    }

    /// Whether something that is told as deleted may only have left the selection, where it matters: then that is asked.
    fn is_doubtful(&mut self, at: usize, told: &Told, until: &Until) -> bool {
        let (Told::Deleted { last, .. }, Some(doubts)) = (told, &mut self.doubts) else { return false };
        let Some(reading) = self.readings.get(at).filter(|_| until.waits_for_deletion()) else {
            return false;
        };
        doubts.raise(at, reading.resource(), last);
        true
    }

    async fn tell(&mut self, at: usize, told: &Told, view: &mut View) -> anyhow::Result<()> {
        if let Told::Gap { missed } = told {
            let what = self.resource(at);
            self.note(&format!(
                "gap: {missed} changes of {what} were not shown, they came faster than they could be printed; \
                 what is different now follows"
            ))
            .await?;
        }
        match view.told(at, told) {
            Ok(text) => self.lines.print_painted(text).await?,
            Err(unshown) => self.note(&unshown.to_string()).await?,
        }
        Ok(())
    }

    /// Says how it goes until it is dropped.
    async fn listen(&mut self, view: &View) -> anyhow::Result<()> {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            self.say_how_it_goes(view).await?;
        }
    }

    async fn say_how_it_goes(&mut self, view: &View) -> anyhow::Result<()> {
        for beat in self.pulse.take(&self.readings) {
            self.note(&beat.to_string()).await?;
            self.lines.print_painted(view.beat(&beat)).await?;
        }
        Ok(())
    }

    /// Says that what there was has been shown.
    async fn begun(&mut self, view: &View, at: usize, count: usize) -> anyhow::Result<()> {
        let what = self.resource(at);
        if let Some(note) = view.begun_note(&what, count) {
            self.note(&note).await?;
        }
        Ok(self.lines.print_painted(view.begun(&what, count)).await?)
    }

    /// A line on stderr.
    async fn note(&self, text: &str) -> Result<(), Closed> {
        self.lines.note_painted(format!("{}\n", self.style.paint(Tone::Warning, text))).await
    }

    fn resource(&self, at: usize) -> String {
        self.readings.get(at).map(|reading| reading.resource().to_string()).unwrap_or_default()
    }
}

/// Waits for an object that is gone for sure.
async fn gone(doubts: &mut Option<Doubts>) -> Object {
    match doubts {
        Some(doubts) => doubts.gone().await,
        None => std::future::pending().await,
    }
}

/// What there is, as it is told first.
async fn beginning(events: &mut Events<Value>, story: &mut Story) -> Vec<Object> {
    loop {
        let polled = {
            let mut next = pin!(events.next());
            std::future::poll_fn(|context| Poll::Ready(next.as_mut().poll(context))).await
        };
        match polled {
            Poll::Ready(Some(event)) => drop(story.hear(event)),
            Poll::Ready(None) => break,
            Poll::Pending if events.is_synced() => break,
            Poll::Pending => tokio::task::yield_now().await,
        }
    }
    story.objects()
}

/// Hands on what one informer tells. It waits where nobody takes it, and what comes meanwhile waits in the registration.
async fn forward(
    mut events: Events<Value>,
    place: (usize, usize),
    sender: mpsc::Sender<((usize, usize), Event)>,
) {
    while let Some(event) = events.next().await {
        if sender.send((place, event)).await.is_err() {
            break;
        }
    }
}
