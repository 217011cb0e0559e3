//! How long the compiler takes for a program that reads one typed kind, in each of two ways: everything that it depends
//! on is compiled, only the program itself is not.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, ensure};

/// One program in one profile.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) program: &'static str,
    pub(super) profile: &'static str,
    pub(super) took: Duration,
    /// The same program without the decoding.
    pub(super) nothing: Duration,
}

const NOTHING: &str = "leaf-nothing";
const PROGRAMS: [&str; 2] = ["leaf-serde-json", "leaf-view"];

/// How often each is compiled; the least time counts.
const TIMES: usize = 2;

pub(super) fn measure(root: &Path) -> Result<Vec<Compiled>> {
    let mut compiled = Vec::new();
    for profile in ["dev", "release"] {
        // All dependencies, before the clock runs.
        compile(root, profile, NOTHING)?;
        let least = |program: &str| -> Result<Duration> {
            let mut least = Duration::MAX;
            for _ in 0..TIMES {
                least = least.min(compile(root, profile, program)?);
            }
            Ok(least)
        };
        let nothing = least(NOTHING)?;
        for program in PROGRAMS {
            compiled.push(Compiled { program, profile, took: least(program)?, nothing });
        }
    }
    Ok(compiled)
}

fn compile(root: &Path, profile: &str, program: &str) -> Result<Duration> {
    eprintln!("==> compiling {program}, {profile}");
    // Something that is new each time, or cargo would find that there is nothing to do.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos();
    let start = Instant::now();
    let status = Command::new(crate::cargo())
        .args(["rustc", "--quiet", "--package", "kube-informer-leaf", "--features", "leaf"])
        .args(["--profile", profile, "--bin", program, "--", "-C", &format!("metadata=fresh{now}")])
        .env("CARGO_INCREMENTAL", "0")
        .current_dir(root)
        .status()?;
    ensure!(status.success(), "{program} does not compile: {status}");
    Ok(start.elapsed())
}
