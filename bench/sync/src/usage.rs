//! What a process has used up to now, as the kernel counts it.

use std::time::Instant;

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// What a contestant has used, and what it has for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Since the start of its main function.
    pub wall_ns: u128,
    /// The processor's time, the kernel's work for the process included.
    pub cpu_ns: i128,
    /// The memory that it has.
    pub rss_bytes: u64,
    /// The most that it ever had.
    pub peak_bytes: u64,
    /// The objects in its cache.
    pub objects: usize,
    /// The updates that its first handler has seen.
    pub updates: u64,
    /// The stamps that it has seen and that count.
    pub fresh: u64,
}

impl Usage {
    /// Of this process, which began at `start`, without what its cache has.
    ///
    /// # Errors
    ///
    /// Where there is no `/proc`.
    pub fn since(start: Instant) -> Result<Self> {
        let wall_ns = start.elapsed().as_nanos();
        let cpu_ns = cpu_ns();
        let status = std::fs::read_to_string("/proc/self/status").context("cannot read /proc/self/status")?;
        let memory = |name| memory(&status, name).with_context(|| format!("/proc/self/status has no {name}"));
        Ok(Self {
            wall_ns,
            cpu_ns,
            rss_bytes: memory("VmRSS:")?,
            peak_bytes: memory("VmHWM:")?,
            ..Self::default()
        })
    }
}

/// The processor's time of all threads of this process, the kernel's work for them included.
#[must_use]
pub fn cpu_ns() -> i128 {
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    i128::from(cpu.tv_sec) * 1_000_000_000 + i128::from(cpu.tv_nsec)
}

/// A line of a process's status, in bytes.
fn memory(status: &str, name: &str) -> Option<u64> {
    let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = rest.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_status_are_in_kilobytes() {
        let status = "Name:\tx\nVmHWM:\t   34568 kB\nVmRSS:\t       5 kB\n";
        assert_eq!((memory(status, "VmRSS:"), memory(status, "VmHWM:")), (Some(5120), Some(35_397_632)));
        assert_eq!(memory(status, "VmSwap:"), None);
    }

    #[test]
    fn a_process_uses_something() {
        let usage = Usage::since(Instant::now()).unwrap();
        assert!(usage.cpu_ns > 0 && usage.peak_bytes >= usage.rss_bytes && usage.rss_bytes > 0);
    }
}
