//! How cases are measured.

use std::hint::black_box;
use std::time::{Duration, Instant};

use kube_informer_bench::Case;

/// What was measured of one case, per object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Time {
    /// The least time, in nanoseconds: the one that was disturbed least.
    pub(crate) least: f64,
    /// The time that half of the rounds took less than.
    pub(crate) median: f64,
}

/// So long does a case run before it is another's turn.
const TURN: Duration = Duration::from_millis(2);

/// How often a case is run before its instructions are counted: buffers grow, tables are filled.
const WARM: usize = 32;

/// Runs all cases in turns, so many rounds, so that what disturbs the machine disturbs them alike.
pub(crate) fn time(cases: &mut [Case], rounds: usize) -> Vec<Time> {
    let batches: Vec<usize> = cases.iter_mut().map(batch).collect();
    let mut taken: Vec<Vec<f64>> = vec![Vec::new(); cases.len()];
    for _ in 0..rounds.max(1) {
        for ((case, batch), taken) in cases.iter_mut().zip(&batches).zip(&mut taken) {
            let start = Instant::now();
            case.run(*batch);
            taken.push(start.elapsed().as_nanos() as f64 / *batch as f64);
        }
    }
    taken.into_iter().map(summary).collect()
}

/// How many times a case is run in one turn.
fn batch(case: &mut Case) -> usize {
    let mut times = WARM;
    loop {
        let start = Instant::now();
        case.run(times);
        if start.elapsed() >= TURN || times >= 1 << 24 {
            return times;
        }
        times *= 2;
    }
}

fn summary(mut taken: Vec<f64>) -> Time {
    taken.sort_unstable_by(f64::total_cmp);
    let at = |index: usize| taken.get(index).copied().unwrap_or_default();
    Time { least: at(0), median: at(taken.len() / 2) }
}

/// Runs each case so many times, for a profiler that collects within [`bench_measured`] and writes what it has after
/// each [`bench_case`]. Callgrind looks for both by their names; it heeds one wish per name.
pub(crate) fn count(cases: &mut [Case], times: usize) {
    for case in cases {
        bench_case(case, times);
    }
}

#[inline(never)]
fn bench_case(case: &mut Case, times: usize) {
    case.run(WARM);
    bench_measured(case, times);
    // Without something to do afterwards, the call would be a jump, and this function would be left before it.
    black_box(case);
}

#[inline(never)]
pub(crate) fn bench_measured(case: &mut Case, times: usize) {
    case.run(times);
    black_box(case);
}
