//! Time as the wall and as the processor see it.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Adds up what is measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stopwatch {
    wall: Duration,
    cpu: Duration,
}

/// Something that goes on.
#[derive(Debug)]
#[must_use]
pub struct Lap {
    wall: Instant,
    cpu: Duration,
}

impl Stopwatch {
    /// Something begins.
    pub fn start() -> Lap {
        Lap { cpu: cpu(), wall: Instant::now() }
    }

    /// It is over.
    pub fn stop(&mut self, lap: Lap) {
        self.wall += lap.wall.elapsed();
        self.cpu += cpu().saturating_sub(lap.cpu);
    }

    /// What it took, all together.
    #[must_use]
    pub fn wall(&self) -> Duration {
        self.wall
    }

    /// What all threads of the process took, the kernel's work for them included.
    #[must_use]
    pub fn cpu(&self) -> Duration {
        self.cpu
    }
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}
