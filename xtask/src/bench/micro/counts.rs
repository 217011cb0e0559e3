//! Instructions per object, counted by callgrind.
//!
//! One process runs all cases, one after the other. Callgrind collects only within `bench_measured` and writes what it
//! has collected each time that `bench_case` is left: one file per case, nothing of the preparations in it.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// How often each case is run under it.
const TIMES: usize = 128;

/// Instructions per object, of each case; `None` where valgrind is missing.
pub(super) fn count(binary: &Path, cases: usize) -> Result<Option<Vec<f64>>> {
    let version = Command::new("valgrind").arg("--version").output();
    if !version.is_ok_and(|output| output.status.success()) {
        eprintln!("left out: instruction counts need valgrind; install it with: apt-get install -y valgrind");
        return Ok(None);
    }
    eprintln!("==> valgrind --tool=callgrind: {cases} cases");
    let folder = binary.with_file_name("callgrind");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).context("cannot remove the last counts")?;
    }
    std::fs::create_dir_all(&folder)?;
    let out = folder.join("out");
    let status = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet", "--collect-atstart=no", "--compress-strings=no"])
        .args(["--toggle-collect=*bench_measured*", "--dump-after=*bench_case*"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(binary)
        .args(["count", &TIMES.to_string()])
        .stdout(Stdio::null())
        .status()?;
    ensure!(status.success(), "valgrind: {status}");
    let each = |number: usize| {
        let file = folder.join(format!("out.{number}"));
        let text = std::fs::read_to_string(&file).with_context(|| format!("no {}", file.display()))?;
        let total = total(&text).with_context(|| format!("no total in {}", file.display()))?;
        Ok(total as f64 / TIMES as f64)
    };
    let counts: Vec<f64> = (1..=cases).map(each).collect::<Result<_>>()?;
    eprintln!("the profile of each case, in their order: {}.N", out.display());
    Ok(Some(counts))
}

/// What a profile sums up to.
fn total(profile: &str) -> Option<u64> {
    let line = profile.lines().find_map(|line| line.strip_prefix("totals: "))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_a_profile_is_found() {
        assert_eq!(total("version: 1\nevents: Ir\n\nfn=(1)\n1 5\n\ntotals: 1234\n"), Some(1234));
        assert_eq!(total("version: 1\n"), None);
    }
}
