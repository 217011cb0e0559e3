//! What it costs. Printed, not judged:
//! `cargo test --release -p kube-informer --lib workqueue::tests::speed -- --nocapture`.

use super::*;

const KEYS: usize = if cfg!(debug_assertions) { 2_000 } else { 1_000_000 };

#[tokio::test]
async fn the_cost_of_each_operation_is_printed() {
    println!("{KEYS} keys, in a mixed order");
    let name = |at: usize| format!("namespace-{}/web-6d4b75cb6d-{at:07}", at / 1000).into();
    let keys: Vec<Arc<str>> = mixed().into_iter().map(name).collect();
    let queue = WorkQueue::new(Settings::default().limiter(Exponential::default().failing_keys(KEYS)));
    let each = |call: &dyn Fn(Arc<str>)| keys.iter().cloned().for_each(call);

    timed("add", async || each(&|key| queue.add(key))).await;
    timed("add again", async || each(&|key| queue.add(key))).await;
    assert_eq!(queue.len(), KEYS);
    timed("get, done, add", async || {
        for _ in 0..KEYS {
            let key = queue.get().await.unwrap().key().clone();
            queue.add(key);
        }
    })
    .await;
    let drained = async || {
        for _ in 0..KEYS {
            drop(queue.get().await.unwrap());
        }
    };
    timed("get, done", drained).await;
    timed("add after", async || each(&|key| queue.add_after(key, MINUTE))).await;
    timed("add after, earlier", async || each(&|key| queue.add_after(key, Duration::from_nanos(1)))).await;
    timed("get, done, of delayed ones", drained).await;
    timed("add rate limited", async || each(&|key| _ = queue.add_rate_limited(key))).await;
    timed("forget", async || each(&|key| queue.forget(&key))).await;
}

async fn timed(title: &str, call: impl AsyncFnOnce()) {
    let start = std::time::Instant::now();
    call().await;
    println!("{title:<28}{:>8.0} ns", start.elapsed().as_secs_f64() * 1e9 / KEYS as f64);
}

/// All numbers in a mixed order.
fn mixed() -> Vec<usize> {
    let mut places: Vec<usize> = (0..KEYS).collect();
    let mut state = 1_u64;
    for at in (1..KEYS).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        places.swap(at, (state >> 33) as usize % (at + 1));
    }
    places
}
