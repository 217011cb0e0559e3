//! How fast it is beside serde_json. Printed, not judged: `cargo test --release json::tests::speed -- --nocapture`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use serde::de::IgnoredAny;

use super::*;

#[test]
fn the_speed_beside_serde_json_is_printed() {
    let rules = Rules::default();
    let mut out = Vec::new();
    let mut kept = Vec::new();
    ingest(POD, None, &rules, &mut kept).unwrap();
    let pointer = Pointer::parse("/status/phase").unwrap();

    let typed = best(|| serde_json::from_slice::<Pod>(&kept).is_ok());
    let contestants: [(&str, Duration); 5] = [
        ("ingest", best(|| ingest(POD, None, &rules, &mut out).is_ok())),
        ("serde_json IgnoredAny", best(|| serde_json::from_slice::<IgnoredAny>(POD).is_ok())),
        ("metadata again", best(|| metadata(&kept).is_ok())),
        ("seek /status/phase", best(|| seek(&kept, &pointer).is_some())),
        ("UTF-8 check", best(|| std::str::from_utf8(POD).is_ok())),
    ];
    println!("pod of {} bytes, {} kept; typed view of what is kept: {typed:?}", POD.len(), kept.len());
    for (name, time) in contestants {
        println!(
            "{name:>22}: {time:>10?}, {:.3} of the typed view",
            time.as_secs_f64() / typed.as_secs_f64()
        );
    }
}

/// The shortest time of one call, of rounds of many.
fn best(mut call: impl FnMut() -> bool) -> Duration {
    const CALLS: u32 = 200;
    let rounds = if cfg!(debug_assertions) { 1 } else { 200 };
    let round = |_| {
        let start = Instant::now();
        for _ in 0..CALLS {
            assert!(black_box(call()));
        }
        start.elapsed() / CALLS
    };
    (0..rounds).map(round).min().unwrap_or_default()
}
