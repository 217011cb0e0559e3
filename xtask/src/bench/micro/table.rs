//! What was measured, as tables.

use std::fmt::Write as _;

use super::compile::Compiled;

/// What everything is a ratio of.
const BASE: &str = "serde_json/typed";

/// One case.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measured {
    pub(super) name: String,
    pub(super) target: Option<f64>,
    /// Nanoseconds per object.
    pub(super) least: f64,
    pub(super) median: f64,
    pub(super) instructions: Option<f64>,
}

/// What is kept of one resource, in bytes per object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Size {
    pub(super) name: String,
    pub(super) arrived: f64,
    pub(super) stored: f64,
    pub(super) packed: f64,
}

/// A case in relation to the base.
struct Ratios {
    least: f64,
    median: f64,
    instructions: Option<f64>,
}

/// The cases that have a target.
pub(super) fn targets(measured: &[Measured]) -> String {
    let mut table = "| case | time | instructions | target | |\n|---|---|---|---|---|\n".to_owned();
    for (case, ratios) in with_ratios(measured) {
        let Some(target) = case.target else { continue };
        let (time, count) = (ratio(ratios.least), ratios.instructions.map_or("–".to_owned(), ratio));
        let verdict = verdict(&ratios, target);
        let _ = writeln!(table, "| `{}` | {time} | {count} | ≤ {target} | {verdict} |", case.name);
    }
    table
}

fn verdict(ratios: &Ratios, target: f64) -> &'static str {
    match (ratios.least <= target, ratios.instructions.is_none_or(|count| count <= target)) {
        (true, true) => "met",
        (false, true) => "missed in time",
        (true, false) => "missed in instructions",
        (false, false) => "missed",
    }
}

/// All cases but those of packing.
pub(super) fn views(measured: &[Measured]) -> String {
    let mut table =
        "| case | time, least | time, median | instructions | µs, least |\n|---|---|---|---|---|\n"
            .to_owned();
    for (case, ratios) in with_ratios(measured).filter(|(case, _)| !is_packing(&case.name)) {
        let count = ratios.instructions.map_or("–".to_owned(), ratio);
        let (least, median, time) = (ratio(ratios.least), ratio(ratios.median), micros(case.least));
        let _ = writeln!(table, "| `{}` | {least} | {median} | {count} | {time} |", case.name);
    }
    table
}

/// What packing costs and saves, of each resource.
pub(super) fn packing(measured: &[Measured], sizes: &[Size]) -> String {
    let mut table =
        "| objects | bytes arrived | cut | packed | of cut | pack, µs | unpack, µs | pack | unpack |\n\
                     |---|---|---|---|---|---|---|---|---|\n"
            .to_owned();
    let cases: Vec<(&Measured, Ratios)> = with_ratios(measured).collect();
    for size in sizes {
        let find = |what: &str| cases.iter().find(|(case, _)| case.name == format!("{what}/{}", size.name));
        let (Some((pack, pack_ratio)), Some((unpack, unpack_ratio))) = (find("pack"), find("unpack")) else {
            continue;
        };
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {:.0} % | {} | {} | {} | {} |",
            size.name,
            size.arrived,
            size.stored,
            size.packed,
            100.0 * size.packed / size.stored,
            micros(pack.least),
            micros(unpack.least),
            ratio(pack_ratio.least),
            ratio(unpack_ratio.least),
        );
    }
    table
}

/// What the compiler takes.
pub(super) fn compile(compiled: &[Compiled]) -> String {
    let mut table = "| program | profile | s | s without the decoding |\n|---|---|---|---|\n".to_owned();
    for each in compiled {
        let (took, nothing) = (each.took.as_secs_f64(), each.nothing.as_secs_f64());
        let _ = writeln!(table, "| `{}` | {} | {took:.1} | {nothing:.1} |", each.program, each.profile);
    }
    table
}

fn is_packing(name: &str) -> bool {
    name.starts_with("pack/") || name.starts_with("unpack/")
}

fn with_ratios(measured: &[Measured]) -> impl Iterator<Item = (&Measured, Ratios)> {
    let base = measured.iter().find(|case| case.name == BASE);
    measured.iter().filter_map(move |case| {
        let base = base?;
        let instructions = case.instructions.zip(base.instructions).map(|(count, base)| count / base);
        Some((
            case,
            Ratios { least: case.least / base.least, median: case.median / base.median, instructions },
        ))
    })
}

/// Three figures, however small.
fn ratio(ratio: f64) -> String {
    match ratio {
        10.0.. => format!("{ratio:.0}"),
        1.0.. => format!("{ratio:.2}"),
        0.1.. => format!("{ratio:.3}"),
        _ => format!("{ratio:.4}"),
    }
}

fn micros(nanos: f64) -> String {
    match nanos {
        10_000.0.. => format!("{:.0}", nanos / 1e3),
        1_000.0.. => format!("{:.1}", nanos / 1e3),
        _ => format!("{:.3}", nanos / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str, target: Option<f64>, nanos: f64, instructions: Option<f64>) -> Measured {
        Measured { name: name.to_owned(), target, least: nanos, median: nanos * 2.0, instructions }
    }

    #[test]
    fn a_target_is_met_in_time_and_in_instructions() {
        let cases = [
            case(BASE, None, 1000.0, Some(10.0)),
            case("a", Some(0.5), 400.0, Some(4.0)),
            case("b", Some(0.5), 600.0, Some(4.0)),
            case("c", Some(0.5), 400.0, Some(6.0)),
            case("d", Some(0.5), 600.0, Some(6.0)),
            case("e", Some(0.5), 400.0, None),
        ];
        let table = targets(&cases);
        let lines: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "| `a` | 0.400 | 0.400 | ≤ 0.5 | met |",
                "| `b` | 0.600 | 0.400 | ≤ 0.5 | missed in time |",
                "| `c` | 0.400 | 0.600 | ≤ 0.5 | missed in instructions |",
                "| `d` | 0.600 | 0.600 | ≤ 0.5 | missed |",
                "| `e` | 0.400 | – | ≤ 0.5 | met |",
            ]
        );
    }

    #[test]
    fn packing_stands_in_a_table_of_its_own() {
        let cases = [
            case(BASE, None, 10_000.0, None),
            case("pack/pods/json", None, 5_000.0, None),
            case("unpack/pods/json", None, 1_000.0, None),
        ];
        let size = Size { name: "pods/json".to_owned(), arrived: 12_000.0, stored: 6_000.0, packed: 600.0 };
        let table = packing(&cases, &[size]);
        let row = "| pods/json | 12000 | 6000 | 600 | 10 % | 5.0 | 1.0 | 0.500 | 0.100 |";
        assert_eq!(table.lines().last(), Some(row));
        assert_eq!(views(&cases).lines().count(), 3);
    }
}
