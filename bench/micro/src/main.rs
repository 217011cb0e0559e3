//! Runs the cases and prints what was measured, as lines of fields between tabs; `cargo xtask bench micro` reads them.

use anyhow::{Context, Result, bail};
use kube_informer_bench::{Case, cases, data};

mod measure;

const USAGE: &str = "time [ROUNDS] | count [TIMES] | sizes | list | run CASE TIMES";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (mut cases, sizes) = cases::all()?;
    match arguments[..] {
        ["time"] => time(&mut cases, 60),
        ["time", rounds] => time(&mut cases, rounds.parse()?),
        ["count"] => measure::count(&mut cases, 128),
        ["count", times] => measure::count(&mut cases, times.parse()?),
        ["list"] => {
            for case in &cases {
                println!(
                    "{}\t{}",
                    case.name,
                    case.target.map(|target| target.to_string()).unwrap_or_default()
                );
            }
        }
        ["sizes"] => {
            for size in &sizes {
                let (resource, encoding) = (size.resource.name(), data::name(size.encoding));
                println!("{resource}/{encoding}\t{}\t{}\t{}", size.arrived, size.stored, size.packed);
            }
        }
        // For a profiler.
        ["run", name, times] => {
            let case = cases.iter_mut().find(|case| case.name == name).context("no such case; see `list`")?;
            measure::bench_measured(case, times.parse()?);
        }
        _ => bail!("usage: {USAGE}"),
    }
    Ok(())
}

fn time(cases: &mut [Case], rounds: usize) {
    let times = measure::time(cases, rounds);
    for (case, time) in cases.iter().zip(times) {
        println!("{}\t{:.1}\t{:.1}", case.name, time.least, time.median);
    }
}
