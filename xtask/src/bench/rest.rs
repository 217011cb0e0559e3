//! Waits until the machine has nothing to do: what a server still does for whoever came before is not to be the cost of
//! whoever comes next.

use std::time::Duration;

/// How long it is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// It rests where less than this part of its processors' time is used meanwhile.
const RESTING: f64 = 0.05;

/// How often it is looked at before it counts as one that never rests: others may use it, too.
const LOOKS: usize = 60;

/// See the module. Where the kernel does not say it, nothing is waited for.
pub(super) async fn rest() {
    for _ in 0..LOOKS {
        let Some(before) = used() else { return };
        tokio::time::sleep(LOOK).await;
        let Some(after) = used() else { return };
        if after.part_since(before) < RESTING {
            return;
        }
    }
    eprintln!("    the machine does not rest: others use it, too");
}

/// What of the processors' time was used since the machine started, in the kernel's units.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Used {
    busy: u64,
    all: u64,
}

impl Used {
    fn part_since(self, before: Self) -> f64 {
        let all = self.all.saturating_sub(before.all).max(1);
        self.busy.saturating_sub(before.busy) as f64 / all as f64
    }
}

fn used() -> Option<Used> {
    read(&std::fs::read_to_string("/proc/stat").ok()?)
}

/// The first line of `/proc/stat`: `cpu`, then user, nice, system, idle, waiting for a disk, interrupts, and so on.
fn read(text: &str) -> Option<Used> {
    let mut words = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let times: Vec<u64> = words.by_ref().map_while(|word| word.parse().ok()).collect();
    let idle = times.get(3)? + times.get(4)?;
    // What guests take is part of what users do.
    let all = times.iter().take(8).sum::<u64>();
    Some(Used { busy: all.saturating_sub(idle), all })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_all_but_what_is_idle() {
        let before = read("cpu  100 1 50 1000 9 2 3 4 77 0\ncpu0 1 1 1 1\n").unwrap();
        assert_eq!(before, Used { busy: 160, all: 1169 });
        let after = read("cpu  110 1 50 1089 10 2 3 4 78 0\n").unwrap();
        assert_eq!(after.part_since(before), 0.1);
        assert_eq!(after.part_since(after), 0.0);
        assert_eq!((read(""), read("cpu  1 2 3\n"), read("intr 5\n")), (None, None, None));
    }
}
