//! What a run ran on: the machine, the versions of everything that was measured, the day, and the command.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// See the module.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Machine {
    date: String,
    command: String,
    processor: String,
    processors: usize,
    memory_gb: u64,
    kernel: String,
    /// Programs and libraries, each with its version.
    versions: Vec<(&'static str, String)>,
    /// How many processes wanted a processor in the minute before the run.
    load: Option<f64>,
}

impl Machine {
    /// What can be found out; what cannot is said to be unknown.
    pub(super) fn look(root: &Path) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let in_tree = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
        let or_unknown = |found: Option<String>| found.unwrap_or_else(|| "unknown".to_owned());
        let days = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / 86_400;
        let memory = field(&read("/proc/meminfo"), "MemTotal").and_then(|text| first_number(&text));
        let versions = vec![
            ("rustc", or_unknown(said("rustc", &["--version"]).and_then(|text| word(&text, 1)))),
            ("go", or_unknown(said("go", &["env", "GOVERSION"]).map(|text| text.replacen("go", "", 1)))),
            ("Kubernetes", or_unknown(required(&in_tree("e2e/control-plane/go.mod"), "k8s.io/kubernetes"))),
            ("client-go", or_unknown(required(&in_tree("bench/peers/go.mod"), "k8s.io/client-go"))),
            ("kube-runtime", or_unknown(locked(&in_tree("Cargo.lock"), "kube-runtime"))),
        ];
        Self {
            date: date(days),
            command: command(std::env::args().skip(1)),
            processor: or_unknown(field(&read("/proc/cpuinfo"), "model name")),
            processors: std::thread::available_parallelism().map_or(0, usize::from),
            memory_gb: memory.map_or(0, |kilobytes| kilobytes.div_ceil(1 << 20)),
            kernel: or_unknown(word(&read("/proc/version"), 2)),
            versions,
            load: word(&read("/proc/loadavg"), 0).and_then(|text| text.parse().ok()),
        }
    }

    /// For a document.
    pub(super) fn text(&self) -> String {
        let Self { date, command, processor, processors, memory_gb, kernel, versions, load } = self;
        let versions: Vec<String> =
            versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
        let load = load.map_or(String::new(), |load| format!(" The load was {load} before the run."));
        format!(
            "Run of {date}, `{command}`: {processors} processors ({processor}), {memory_gb} GB, Linux {kernel}; {}.{load}",
            versions.join(", ")
        )
    }

    /// For a program, with how long the run took.
    pub(super) fn json(&self, took: Duration) -> Value {
        let Self { date, command, processor, processors, memory_gb, kernel, versions, load } = self;
        let versions: serde_json::Map<String, Value> =
            versions.iter().map(|(name, version)| ((*name).to_owned(), json!(version))).collect();
        json!({
            "date": date, "command": command, "processor": processor, "processors": processors,
            "memory_gb": memory_gb, "kernel": kernel, "versions": versions, "load": load,
            "seconds": took.as_secs_f64(),
        })
    }
}

/// As people type it; without what is only about files.
fn command(arguments: impl Iterator<Item = String>) -> String {
    let mut shown = "cargo xtask".to_owned();
    let mut arguments = arguments.peekable();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" | "--on" => drop(arguments.next()),
            other if other.starts_with("--json=") || other.starts_with("--on=") => {}
            other => {
                shown.push(' ');
                shown += other;
            }
        }
    }
    shown
}

fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// The text after `name:` in a file of lines.
fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn word(text: &str, at: usize) -> Option<String> {
    text.split_whitespace().nth(at).map(str::to_owned)
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

/// The version of a module that a `go.mod` requires.
fn required(go_mod: &str, module: &str) -> Option<String> {
    let lines = go_mod.lines().map(|line| line.trim().trim_start_matches("require ").trim_start());
    let found = lines.filter_map(|line| line.strip_prefix(module)).find(|rest| rest.starts_with(" v"))?;
    Some(word(found, 0)?.trim_start_matches('v').to_owned())
}

/// The version of a package in a `Cargo.lock`.
fn locked(lock: &str, package: &str) -> Option<String> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name);
    let version = lines.nth(1)?.strip_prefix("version = \"")?;
    Some(version.trim_end_matches('"').to_owned())
}

/// The day so many days after the first one of 1970, by the rules of the Gregorian calendar.
fn date(days: u64) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let (mut year, mut rest) = (1970, days);
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while rest >= 365 + u64::from(leap(year)) {
        rest -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    for (month, length) in MONTHS.iter().zip(lengths) {
        if rest < length {
            return format!("{} {month} {year}", rest + 1);
        }
        rest -= length;
    }
    format!("day {days} after 1 January 1970")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        assert_eq!(date(0), "1 January 1970");
        assert_eq!(date(11_016), "29 February 2000");
        assert_eq!(date(11_017), "1 March 2000");
        assert_eq!(date(20_773), "16 November 2026");
        assert_eq!(date(20_819), "1 January 2027");
    }

    #[test]
    fn the_command_says_nothing_of_files() {
        let given = ["bench", "--quick", "--json", "/x", "sync", "--on=/y", "--rounds", "2"];
        let shown = command(given.into_iter().map(str::to_owned));
        assert_eq!(shown, "cargo xtask bench --quick sync --rounds 2");
    }

    #[test]
    fn versions_are_found_where_they_are_pinned() {
        let go_mod =
            "require (\n\tk8s.io/client-go v0.37.1\n)\nrequire k8s.io/kubernetes v1.37.1 // indirect\n";
        assert_eq!(required(go_mod, "k8s.io/client-go").as_deref(), Some("0.37.1"));
        assert_eq!(required(go_mod, "k8s.io/kubernetes").as_deref(), Some("1.37.1"));
        assert_eq!(required(go_mod, "k8s.io/client").as_deref(), None);
        let lock = "[[package]]\nname = \"kube\"\nversion = \"5.0.0\"\n";
        assert_eq!((locked(lock, "kube").as_deref(), locked(lock, "cube")), (Some("5.0.0"), None));
    }

    #[test]
    fn this_machine_is_described() {
        let machine = Machine::look(&crate::root());
        assert!(machine.processors > 0 && machine.memory_gb > 0, "{machine:?}");
        assert!(!machine.text().contains("unknown") || cfg!(not(target_os = "linux")), "{}", machine.text());
        let json = machine.json(Duration::ZERO);
        assert_eq!(json["versions"]["kube-runtime"].as_str().map(str::is_empty), Some(false));
    }
}
