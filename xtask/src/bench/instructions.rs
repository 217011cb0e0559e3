//! Instructions that a contestant executes for a sync, as the processor counts them.
//!
//! `perf` counts them where the kernel and the machine let it: many virtual machines do not. Then nothing is counted, and
//! the table says so.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::contestant::Contestant;
use super::ground::Ground;
use super::running::Running;

const EVENT: &str = "instructions:u";

/// Whether they can be counted here.
pub(super) fn can_be_counted() -> bool {
    let output = Command::new("perf").args(["stat", "-x", ",", "-e", EVENT, "--", "true"]).output();
    output.is_ok_and(|output| counted(&String::from_utf8_lossy(&output.stderr)).is_some())
}

/// Those of a whole process that syncs, and ends.
pub(super) async fn of_sync(ground: &Ground, contestant: Contestant) -> Result<f64> {
    let out = ground.programs.folder().join("bench-instructions");
    let file = out.to_str().context("the path of the target folder is not UTF-8")?;
    let before = ["perf", "stat", "-x", ",", "-o", file, "-e", EVENT, "--"];
    let mut running = Running::start(ground.programs.command(contestant, &ground.kubeconfig(), &before)?)?;
    running.synced().await?;
    running.end().await?;
    read(&out)
}

fn read(file: &Path) -> Result<f64> {
    let text = std::fs::read_to_string(file).context("perf has written nothing")?;
    counted(&text).with_context(|| format!("perf has counted nothing: {text}"))
}

/// The number before the name of the event; where there is no counter, there is a word in its place.
fn counted(text: &str) -> Option<f64> {
    text.lines().filter(|line| line.contains(EVENT)).find_map(|line| line.split(',').next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_is_not_there_counts_nothing() {
        let line = "# started on Mon Nov 16\n\n1234567,,instructions:u,1000000,100.00,,\n";
        assert_eq!(counted(line), Some(1_234_567.0));
        assert_eq!(counted("<not supported>,,instructions:u,0,100.00,,\n"), None);
        assert_eq!(counted(""), None);
    }
}
