//! What was measured, as tables: against the targets, for the document; and as it is, for who sits there.

use std::fmt::Write as _;

use super::{CASES, Case, Contestant, Measured, Options, What};
use crate::bench::rounds::{ratio, verdict};

/// Not slower.
const TARGET: f64 = 1.0;

/// What the document says.
pub(super) fn section(measured: &Measured, options: &Options) -> String {
    let table = ratios(measured, &options.keys);
    let (rounds, often) = (options.rounds, options.rounds * super::OFTENER);
    format!(
        "Medians of {rounds} rounds, and of {often} with up to {} keys. Not more than 1 is to be reached.\n\n{table}",
        super::FEW
    )
}

/// Ours in relation to others', in the wall's time and in the processor's, and in memory.
fn ratios(measured: &Measured, sizes: &[usize]) -> String {
    let mut table =
        "| work | keys | of client-go's time | CPU | | memory | of kube-runtime's time | CPU | | memory |\n\
                     |---|---|---|---|---|---|---|---|---|---|\n"
            .to_owned();
    for case in &CASES {
        for keys in sizes {
            let cells = |other| against(measured, case, *keys, other);
            let (client_go, kube_runtime) = (cells(Contestant::ClientGo), cells(Contestant::KubeRuntime));
            let _ = writeln!(table, "| {} | {keys} | {client_go} | {kube_runtime} |", case.work);
        }
    }
    table
}

/// The ratios of the times, whether they are what they should be, and that of the memory.
fn against(measured: &Measured, case: &Case, keys: usize, other: Contestant) -> String {
    let found =
        |what| measured.ratio(&(Contestant::Ours, case.name, keys, what), &(other, case.name, keys, what));
    let (wall, cpu) = (found(What::Wall), found(What::Cpu));
    let judged = |found| verdict(found, Some(TARGET));
    let said = match (judged(wall), judged(cpu)) {
        (_, cpu) if case.waits => cpu,
        ("missed", "met") => "missed in time",
        ("met", "missed") => "missed in CPU",
        (_, cpu) => cpu,
    };
    let shown = |found: Option<f64>| found.map_or("–".to_owned(), ratio);
    let wall = if case.waits { "–".to_owned() } else { shown(wall) };
    let memory = found(What::Peak).filter(|_| keys > super::FEW);
    format!("{wall} | {} | {said} | {}", shown(cpu), shown(memory))
}

/// All medians, in nanoseconds per key and in megabytes. Not for documents: they are of one machine.
pub(super) fn medians(measured: &Measured, sizes: &[usize]) -> String {
    let mut table = "| ns per key | keys |".to_owned();
    for contestant in Contestant::ALL {
        let _ = write!(table, " {contestant:?} | CPU | MB |");
    }
    let _ = writeln!(table, "\n|---|---|{}", "---|---|---|".repeat(Contestant::ALL.len()));
    for case in &CASES {
        for keys in sizes {
            let _ = write!(table, "| {} | {keys} |", case.name);
            for contestant in Contestant::ALL {
                for (what, scale) in [(What::Wall, 1.0), (What::Cpu, 1.0), (What::Peak, 1e6)] {
                    let median = measured.median(&(contestant, case.name, *keys, what));
                    let shown = median.map_or("–".to_owned(), |value| format!("{:.0}", value / scale));
                    let _ = write!(table, " {shown} |");
                }
            }
            table.push('\n');
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of what took us so long and so much, and others one of each.
    fn lines(name: &'static str, keys: usize, wall: f64, cpu: f64, peak: f64) -> Vec<String> {
        let mut measured = Measured::default();
        for (what, value) in [(What::Wall, wall), (What::Cpu, cpu), (What::Peak, peak)] {
            measured.add((Contestant::Ours, name, keys, what), value);
            measured.add((Contestant::ClientGo, name, keys, what), 1.0);
        }
        ratios(&measured, &[keys]).lines().skip(2).map(str::to_owned).collect()
    }

    #[test]
    fn a_target_is_met_in_time_and_on_the_processor() {
        let line = |wall, cpu| lines("steady", 10, wall, cpu, 1.0).swap_remove(3);
        let begin = "| get, done, add again, all others pending | 10 |";
        assert_eq!(line(0.5, 0.25), format!("{begin} 0.50 | 0.25 | met | – | – | – |  | – |"));
        assert_eq!(line(1.5, 0.25), format!("{begin} 1.50 | 0.25 | missed in time | – | – | – |  | – |"));
        assert_eq!(line(0.5, 1.25), format!("{begin} 0.50 | 1.25 | missed in CPU | – | – | – |  | – |"));
        assert_eq!(line(1.5, 1.25), format!("{begin} 1.50 | 1.25 | missed | – | – | – |  | – |"));
    }

    #[test]
    fn where_keys_wait_for_their_time_the_wall_is_not_asked() {
        let line = lines("delayed", 10, 9.0, 0.5, 1.0).swap_remove(4);
        let begin = "| add after up to 10 ms, one worker gets all | 10 |";
        assert_eq!(line, format!("{begin} – | 0.50 | met | – | – | – |  | – |"));
    }

    #[test]
    fn memory_stands_in_the_table_where_there_are_many_keys() {
        let line = lines("forget", 1_000_000, 0.5, 0.5, 0.7).swap_remove(6);
        assert_eq!(line, "| forget what failed | 1000000 | 0.50 | 0.50 | met | 0.70 | – | – |  | – |");
    }
}
