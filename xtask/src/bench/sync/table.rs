//! What was measured, as tables: against the targets, for the document; and as it is, for who sits there.

use std::fmt::Write as _;

use super::measured::{Measured, What};
use super::{Options, SECTION};
use crate::bench::contestant::Contestant as C;
use crate::bench::report::Figure;
use crate::bench::rounds::{ratio, verdict};

/// At most so much of the other's.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Target {
    over: f64,
    under: f64,
}

/// One line of the table of ratios.
struct Row {
    work: &'static str,
    what: What,
    /// Whose.
    one: C,
    /// Of whose, and what is to be reached.
    client_go: (C, Option<Target>),
    kube_runtime: (C, Option<Target>),
}

const fn at_most(over: f64, under: f64) -> Option<Target> {
    Some(Target { over, under })
}

/// A line about pods.
const fn pods(
    work: &'static str,
    what: What,
    one: C,
    client_go: Option<Target>,
    kube_runtime: Option<Target>,
) -> Row {
    Row { work, what, one, client_go: (C::ClientGo, client_go), kube_runtime: (C::KubeRuntime, kube_runtime) }
}

/// A line about custom resources.
const fn custom(
    work: &'static str,
    what: What,
    client_go: Option<Target>,
    kube_runtime: Option<Target>,
) -> Row {
    Row {
        work,
        what,
        one: C::OursDynamic,
        client_go: (C::ClientGoDynamic, client_go),
        kube_runtime: (C::KubeRuntimeDynamic, kube_runtime),
    }
}

const ROWS: [Row; 16] = [
    pods("sync: CPU", What::SyncCpu, C::Ours, at_most(1.0, 5.0), at_most(1.0, 7.0)),
    pods("sync: wall time", What::SyncWall, C::Ours, at_most(2.0, 3.0), at_most(1.0, 3.0)),
    pods("sync: peak memory", What::SyncPeak, C::Ours, at_most(1.0, 12.0), at_most(1.0, 18.0)),
    pods("sync: instructions", What::SyncInstructions, C::Ours, None, None),
    pods(
        "update: CPU, metadata is read",
        What::UpdateMetadata,
        C::Ours,
        at_most(1.0, 4.0),
        at_most(1.0, 4.0),
    ),
    pods("update: CPU, all is read", What::UpdateWhole, C::Ours, at_most(1.0, 2.0), at_most(1.0, 2.0)),
    pods(
        "update: CPU, metadata is read, changes wait up to 50 ms for others",
        What::UpdateMetadata,
        C::OursGathered,
        at_most(1.0, 4.0),
        at_most(1.0, 4.0),
    ),
    pods(
        "update: CPU, all is read, changes wait up to 50 ms for others",
        What::UpdateWhole,
        C::OursGathered,
        at_most(1.0, 2.0),
        at_most(1.0, 2.0),
    ),
    custom("custom resources, sync: CPU", What::SyncCpu, at_most(1.0, 6.0), at_most(1.0, 2.0)),
    custom("custom resources, sync: wall time", What::SyncWall, None, None),
    custom("custom resources, sync: peak memory", What::SyncPeak, None, None),
    custom("custom resources, sync: instructions", What::SyncInstructions, None, None),
    pods("read: one pod", What::Get, C::Ours, at_most(1.0, 1.0), at_most(1.0, 1.0)),
    pods("read: the pods of a node", What::Indexed, C::Ours, at_most(1.0, 1.0), at_most(1.0, 1.0)),
    pods(
        "read: all pods, all views kept, by turns",
        What::ListByTurns,
        C::OursAllViews,
        at_most(1.0, 1.0),
        at_most(1.0, 1.0),
    ),
    pods("read: all pods, all views kept, under writes", What::List, C::OursAllViews, None, None),
];

/// What is to be kept per pod at most, in bytes.
const KEPT: f64 = 1024.0;

/// What ten handlers may take of what one takes.
const TEN_HANDLERS: f64 = 1.1;

/// What the document says.
pub(super) fn section(measured: &Measured, options: &Options, pods: usize) -> String {
    let Options { rounds, updates, rate, .. } = options;
    let note = if measured.median(C::Ours, What::SyncInstructions).is_some() {
        ""
    } else {
        " Instructions were not counted: perf has no counter for them on this machine."
    };
    format!(
        "Medians of {rounds} rounds with {pods} pods and as many custom resources, {updates} updates at {rate} per \
         second.{note}\n\n{}\n{}",
        ratios(measured),
        own(measured, pods)
    )
}

/// Every value, for who reads a file.
pub(super) fn figures(measured: &Measured) -> Vec<Figure> {
    let mut figures = Vec::new();
    for contestant in C::ALL {
        for what in WHAT {
            let rounds = measured.values(contestant, what).to_vec();
            if rounds.is_empty() {
                continue;
            }
            let (what, unit) = (what.name(), what.unit());
            let of = contestant.name().to_owned();
            figures.push(Figure { bench: SECTION.name, of, what: what.to_owned(), unit, rounds });
        }
    }
    figures
}

/// Ours in relation to others'.
fn ratios(measured: &Measured) -> String {
    let mut table = "| work | of client-go's | target | | of kube-runtime's | target | |\n\
                     |---|---|---|---|---|---|---|\n"
        .to_owned();
    for row in &ROWS {
        // Not every machine counts them.
        if row.what == What::SyncInstructions && measured.median(row.one, row.what).is_none() {
            continue;
        }
        let cells = |(other, target): (C, Option<Target>)| {
            let found = measured.ratio(row.one, other, row.what);
            let shown = found.map_or("–".to_owned(), ratio);
            let wanted = target.map_or("–".to_owned(), |target| format!("≤ {}", target.text()));
            format!("{shown} | {wanted} | {}", verdict(found, target.map(Target::value)))
        };
        let _ = writeln!(table, "| {} | {} | {} |", row.work, cells(row.client_go), cells(row.kube_runtime));
    }
    table
}

/// What stands for itself.
fn own(measured: &Measured, pods: usize) -> String {
    let kept = |one, idle| measured.kept(one, What::Rss, idle, pods);
    let shown =
        |bytes: Option<f64>| bytes.map_or("–".to_owned(), |bytes| format!("{:.2} KB", bytes / 1024.0));
    let ours = kept(C::Ours, C::OursIdle);
    let mut table = "| | measured | target | |\n|---|---|---|---|\n".to_owned();
    let mut line = |what: &str, value: String, target: &str, verdict: &str| {
        let _ = writeln!(table, "| {what} | {value} | {target} | {verdict} |");
    };
    line("kept per pod", shown(ours), "≤ 1 KB", verdict(ours, Some(KEPT)));
    let viewed = measured.kept(C::OursAllViews, What::RssRead, C::OursIdle, pods);
    line("kept per pod, all views kept, all of them read", shown(viewed), "–", "");
    line("kept per pod by client-go", shown(kept(C::ClientGo, C::ClientGoIdle)), "–", "");
    line("kept per pod by kube-runtime", shown(kept(C::KubeRuntime, C::KubeRuntimeIdle)), "–", "");
    let gadget = kept(C::OursDynamic, C::OursIdle);
    line("kept per custom resource", shown(gadget), "–", "");
    line("kept per custom resource by client-go", shown(kept(C::ClientGoDynamic, C::ClientGoIdle)), "–", "");
    let other = kept(C::KubeRuntimeDynamic, C::KubeRuntimeIdle);
    line("kept per custom resource by kube-runtime", shown(other), "–", "");
    let bare = |one, ours, what| measured.ratio(one, ours, what).map_or("–".to_owned(), ratio);
    let bytes = "what HTTP, TLS and the kernel do without an informer, of ours:";
    line(&format!("{bytes} sync, CPU"), bare(C::Bytes, C::Ours, What::SyncCpu), "–", "");
    line(&format!("{bytes} update, CPU"), bare(C::Bytes, C::Ours, What::UpdateMetadata), "–", "");
    let custom = bare(C::BytesDynamic, C::OursDynamic, What::SyncCpu);
    line(&format!("{bytes} custom resources, sync, CPU"), custom, "–", "");
    for (many, who) in [("closures", C::OursClosures), ("asynchronous handlers", C::OursTenHandlers)] {
        let ten = measured.ten_handlers(who);
        let shown = ten.map_or("–".to_owned(), ratio);
        let what = format!("update: CPU with ten {many}, of that with one");
        line(&what, shown, "≤ 1.1", verdict(ten, Some(TEN_HANDLERS)));
    }
    let closure = measured.ratio(C::OursClosures, C::OursTenHandlers, What::UpdateOneHandler);
    line(
        "update: CPU with a closure, which may block, of that with an asynchronous handler",
        closure.map_or("–".to_owned(), ratio),
        "–",
        "",
    );
    table
}

/// What has a column of its own.
const SHOWN: [What; 10] = [
    What::SyncCpu,
    What::SyncWall,
    What::SyncPeak,
    What::Rss,
    What::UpdateMetadata,
    What::UpdateWhole,
    What::Get,
    What::Indexed,
    What::List,
    What::ListByTurns,
];

/// All of it.
const WHAT: [What; 13] = [
    What::SyncCpu,
    What::SyncWall,
    What::SyncPeak,
    What::SyncInstructions,
    What::Rss,
    What::RssRead,
    What::UpdateMetadata,
    What::UpdateOneHandler,
    What::UpdateWhole,
    What::Get,
    What::Indexed,
    What::List,
    What::ListByTurns,
];

/// All medians, in their units. Not for documents: they are of one machine.
pub(super) fn medians(measured: &Measured, objects: usize) -> String {
    let columns = SHOWN;
    let mut table = "|".to_owned();
    let heads = columns.map(head).join(" | ");
    let _ = writeln!(table, " | {heads} |\n|---|{}", "---|".repeat(columns.len()));
    for contestant in C::ALL {
        let cells = columns.map(|what| {
            measured.median(contestant, what).map_or("–".to_owned(), |value| number(what, value, objects))
        });
        let _ = writeln!(table, "| {} | {} |", contestant.name(), cells.join(" | "));
    }
    table
}

/// One value, said.
pub(super) fn value(what: What, value: f64, objects: usize) -> String {
    format!("{}: {}", head(what), number(what, value, objects))
}

fn head(what: What) -> &'static str {
    match what {
        What::SyncCpu => "sync CPU, s",
        What::SyncWall => "sync wall, s",
        What::SyncPeak => "sync peak, MB",
        What::SyncInstructions => "sync instructions, millions",
        What::Rss => "RSS, MB",
        What::RssRead => "RSS after reads, MB",
        What::UpdateMetadata => "update, metadata, µs",
        What::UpdateOneHandler => "update, one handler of ten, µs",
        What::UpdateWhole => "update, whole, µs",
        What::Get => "get, ns",
        What::Indexed => "node, µs",
        What::List => "list, ns per object",
        What::ListByTurns => "list by turns, ns per object",
        What::Found => "found",
    }
}

fn number(what: What, value: f64, objects: usize) -> String {
    match what {
        What::SyncCpu | What::SyncWall => format!("{value:.2}"),
        What::SyncPeak | What::Rss | What::RssRead | What::SyncInstructions => format!("{:.1}", value / 1e6),
        What::UpdateMetadata | What::UpdateOneHandler | What::UpdateWhole => format!("{:.0}", value * 1e6),
        What::Get => format!("{:.0}", value * 1e9),
        What::Indexed => format!("{:.2}", value * 1e6),
        What::List | What::ListByTurns => format!("{:.1}", value * 1e9 / objects as f64),
        What::Found => format!("{value}"),
    }
}

impl What {
    /// What a file calls it.
    fn name(self) -> &'static str {
        match self {
            Self::SyncCpu => "CPU to sync",
            Self::SyncWall => "wall time to sync",
            Self::SyncPeak => "peak memory until it is in sync",
            Self::SyncInstructions => "instructions to sync",
            Self::Rss => "memory after the sync",
            Self::RssRead => "memory after everything was read",
            Self::UpdateMetadata => "CPU per update, metadata is read",
            Self::UpdateOneHandler => "CPU per update, one handler where there are ten at times",
            Self::UpdateWhole => "CPU per update, all is read",
            Self::Get => "read of one object",
            Self::Indexed => "read of the objects of a node",
            Self::List => "read of all objects",
            Self::ListByTurns => "read of all objects, by turns",
            Self::Found => "found",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::SyncPeak | Self::Rss | Self::RssRead => "B",
            Self::SyncInstructions | Self::Found => "1",
            _ => "s",
        }
    }
}

impl Target {
    fn value(self) -> f64 {
        self.over / self.under
    }

    fn text(self) -> String {
        if self.under == 1.0 { self.over.to_string() } else { format!("{}/{}", self.over, self.under) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row<'a>(table: &'a str, begin: &str) -> &'a str {
        table.lines().find(|line| line.starts_with(begin)).unwrap_or_default()
    }

    #[test]
    fn a_ratio_is_held_against_its_target() {
        let mut measured = Measured::default();
        measured.add(C::Ours, What::SyncCpu, 1.0);
        measured.add(C::ClientGo, What::SyncCpu, 5.0);
        measured.add(C::KubeRuntime, What::SyncCpu, 6.0);
        assert_eq!(
            row(&ratios(&measured), "| sync: CPU"),
            "| sync: CPU | 0.20 | ≤ 1/5 | met | 0.17 | ≤ 1/7 | missed |"
        );
    }

    #[test]
    fn what_was_not_measured_is_neither_met_nor_missed() {
        assert_eq!(
            row(&ratios(&Measured::default()), "| read: one pod"),
            "| read: one pod | – | ≤ 1 |  | – | ≤ 1 |  |"
        );
    }

    #[test]
    fn instructions_stand_in_the_table_where_they_were_counted() {
        let mut measured = Measured::default();
        assert_eq!(row(&ratios(&measured), "| sync: instructions"), "");
        measured.add(C::Ours, What::SyncInstructions, 1e9);
        measured.add(C::ClientGo, What::SyncInstructions, 5e9);
        let expected = "| sync: instructions | 0.20 | – |  | – | – |  |";
        assert_eq!(row(&ratios(&measured), "| sync: instructions"), expected);
        assert_eq!(figures(&measured).len(), 2);
    }

    #[test]
    fn what_is_kept_is_counted_per_object() {
        let mut measured = Measured::default();
        measured.add(C::Ours, What::Rss, 21e6);
        measured.add(C::OursIdle, What::Rss, 11e6);
        measured.add(C::OursTenHandlers, What::UpdateOneHandler, 1.0);
        measured.add(C::OursTenHandlers, What::UpdateMetadata, 1.2);
        let table = own(&measured, 20_000);
        assert_eq!(row(&table, "| kept per pod |"), "| kept per pod | 0.49 KB | ≤ 1 KB | met |");
        let ten = "| update: CPU with ten asynchronous handlers, of that with one | 1.20 | ≤ 1.1 | missed |";
        assert_eq!(row(&table, "| update: CPU with ten asynchronous"), ten);
        let closures = "| update: CPU with ten closures, of that with one | – | ≤ 1.1 |  |";
        assert_eq!(row(&table, "| update: CPU with ten closures"), closures);
    }

    #[test]
    fn views_that_stay_are_told_with_their_price() {
        let mut measured = Measured::default();
        measured.add(C::OursAllViews, What::RssRead, 61e6);
        measured.add(C::OursIdle, What::Rss, 11e6);
        let begin = "| kept per pod, all views kept, all of them read |";
        assert_eq!(row(&own(&measured, 20_000), begin), format!("{begin} 2.44 KB | – |  |"));
        assert_eq!(figures(&measured).len(), 2);
    }

    #[test]
    fn closures_and_bare_bytes_are_ratios_to_ours() {
        let mut measured = Measured::default();
        measured.add(C::OursTenHandlers, What::UpdateOneHandler, 1.0);
        measured.add(C::OursClosures, What::UpdateOneHandler, 1.3);
        measured.add(C::OursDynamic, What::SyncCpu, 2.0);
        measured.add(C::BytesDynamic, What::SyncCpu, 1.0);
        let table = own(&measured, 50);
        let closure = "| update: CPU with a closure, which may block, of that with an asynchronous handler | 1.30 | – |  |";
        assert_eq!(row(&table, "| update: CPU with a closure"), closure);
        let bare = "| what HTTP, TLS and the kernel do without an informer, of ours:";
        let begin = format!("{bare} custom resources, sync, CPU |");
        assert_eq!(row(&table, &begin), format!("{begin} 0.50 | – |  |"));
    }

    #[test]
    fn every_median_has_its_unit() {
        let mut measured = Measured::default();
        measured.add(C::Ours, What::List, 2e-3);
        measured.add(C::Ours, What::UpdateMetadata, 1.11e-4);
        let table = medians(&measured, 20_000);
        let expected = "| kube-informer | – | – | – | – | 111 | – | – | – | 100.0 | – |";
        assert_eq!(row(&table, "| kube-informer |"), expected);
    }
}
