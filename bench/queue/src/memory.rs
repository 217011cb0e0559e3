//! What a process has of memory, as the kernel counts it.

use anyhow::{Context, Result};

/// The most bytes that this process ever had.
///
/// # Errors
///
/// Where there is no `/proc`.
pub fn peak() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("cannot read /proc/self/status")?;
    most(&status).context("/proc/self/status has no VmHWM")
}

fn most(status: &str) -> Option<u64> {
    let rest = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = rest.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_told_in_bytes() {
        assert_eq!(most("Name:\tx\nVmHWM:\t   34568 kB\nVmRSS:\t       5 kB\n"), Some(35_397_632));
        assert_eq!(most("VmRSS:\t       5 kB\n"), None);
        assert!(peak().unwrap() > 0);
    }
}
