//! How this process is: memory, processor time, open files, threads, in the names that Prometheus' own clients use.
//!
//! Everything is read when it is asked for, from what Linux tells of a process. What another system does not tell is left
//! out, and not made up.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// So many of Linux' ticks are a second, on every architecture that there is a build for.
const TICKS: f64 = 100.0;

/// Shows how this process is, under `process_*`.
pub(crate) fn register(registry: &mut Registry) {
    let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    registry.register_collector(Box::new(Vitals { started }));
}

/// What this process has in memory, in bytes.
pub(crate) fn memory() -> Option<u64> {
    field(&status()?, "VmRSS")?.checked_mul(1024)
}

#[derive(Debug)]
struct Vitals {
    /// When this was asked for first: about when the process was started, in seconds.
    started: f64,
}

impl Collector for Vitals {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let status = status().unwrap_or_default();
        let kilobytes = |name| field(&status, name).map(|count| count as f64 * 1024.0);
        let gauges = [
            ("process_resident_memory_bytes", "What is in memory", kilobytes("VmRSS")),
            ("process_virtual_memory_bytes", "What addresses were given out for", kilobytes("VmSize")),
            ("process_threads", "Threads", field(&status, "Threads").map(|count| count as f64)),
            ("process_open_fds", "Files and sockets that are open", open_files().map(|count| count as f64)),
            ("process_start_time_seconds", "When it was started", Some(self.started)),
        ];
        for (name, help, value) in gauges {
            let Some(value) = value else { continue };
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        if let Some(spent) = processor_time() {
            let counter = ConstCounter::new(spent.as_secs_f64());
            let help = "Processor time, of itself and of the system for it";
            let name = "process_cpu_seconds";
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        Ok(())
    }
}

fn status() -> Option<String> {
    std::fs::read_to_string("/proc/self/status").ok()
}

/// A number in a page such as `/proc/self/status`: `VmRSS:     1234 kB`.
fn field(page: &str, name: &str) -> Option<u64> {
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

fn open_files() -> Option<usize> {
    // The folder that is read is one of them.
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1))
}

fn processor_time() -> Option<Duration> {
    spent(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// The times in `/proc/self/stat`: the 14th and 15th field, of which the second is a name that may have anything in it.
fn spent(stat: &str) -> Option<Duration> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut ticks = rest.split_whitespace().skip(11);
    let (own, system): (u64, u64) = (ticks.next()?.parse().ok()?, ticks.next()?.parse().ok()?);
    Duration::try_from_secs_f64(own.checked_add(system)? as f64 / TICKS).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_what_linux_tells() {
        let page = "Name:\tVmRSS\nVmRSSx:\t1 kB\nVmRSS:\t   1234 kB\nThreads:\t7\n";
        assert_eq!((field(page, "VmRSS"), field(page, "Threads")), (Some(1234), Some(7)));
        assert_eq!(field(page, "VmSize"), None);
        let stat = "12 (a ) b) S 1 12 12 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 7 0 1 2 3";
        assert_eq!(spent(stat), Some(Duration::from_secs(2)));
        for wrong in ["", "12 (a", "12 (a) S", "12 (a) S 1 2 3 4 5 6 7 8 9 10 x y"] {
            assert_eq!(spent(wrong), None, "{wrong}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_page_has_what_dashboards_look_for() {
        let mut registry = Registry::default();
        register(&mut registry);
        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
        for name in [
            "process_resident_memory_bytes ",
            "process_virtual_memory_bytes ",
            "process_threads ",
            "process_open_fds ",
            "process_start_time_seconds ",
            "process_cpu_seconds_total ",
        ] {
            assert!(page.contains(&format!("\n{name}")), "{name} in\n{page}");
        }
        assert!(memory().unwrap() > 1 << 20);
    }
}
