//! What each limiter answers.

use super::*;

fn millis(limiter: &mut impl RateLimiter<u32>, key: u32, times: usize) -> Vec<u128> {
    let now = Instant::now();
    (0..times).map(|_| limiter.delay(&key, now).as_millis()).collect()
}

#[test]
fn exponential_waits_double_up_to_the_longest_and_stay_there() {
    let mut limiter = Exponential::default();
    let waits = millis(&mut limiter, 1, 200);
    assert_eq!(waits[..5], [5, 10, 20, 40, 80]);
    assert_eq!(waits[16..19], [327_680, 655_360, 1_000_000]);
    assert!(waits[19..].iter().all(|wait| *wait == 1_000_000), "no overflow begins anew");
    assert_eq!(limiter.failures(&1), 200);
    assert_eq!(millis(&mut limiter, 2, 1), [5], "each key has its own count");
    limiter.forget(&1);
    assert_eq!((limiter.failures(&1), limiter.failures(&2)), (0, 1));
    assert_eq!(millis(&mut limiter, 1, 2), [5, 10]);
}

#[test]
fn no_duration_is_too_long_to_be_doubled() {
    let mut limiter = Exponential::new(Duration::MAX, Duration::MAX);
    let now = Instant::now();
    assert!((0..40).all(|_| limiter.delay(&1, now) == Duration::MAX));
}

#[test]
fn fast_tries_come_before_slow_ones() {
    let mut limiter = FastSlow::new(Duration::from_millis(5), Duration::from_secs(10), 3);
    assert_eq!(millis(&mut limiter, 1, 5), [5, 5, 5, 10_000, 10_000]);
    limiter.forget(&1);
    assert_eq!(millis(&mut limiter, 1, 1), [5]);
}

#[test]
fn promise_17_a_bucket_gives_its_burst_at_once_and_the_rest_at_its_rate() {
    let mut bucket = TokenBucket::new(Duration::from_millis(100), 3);
    assert_eq!(millis(&mut bucket, 1, 5), [0, 0, 0, 100, 200], "those who wait stand in line");
    let mut now = Instant::now();
    let mut bucket = TokenBucket::new(Duration::from_millis(100), 3);
    let mut take = |after: u64| {
        now += Duration::from_millis(after);
        bucket.delay(&1, now).as_millis()
    };
    assert_eq!([take(0), take(0), take(0), take(0)], [0, 0, 0, 100]);
    assert_eq!([take(200), take(0)], [0, 100], "two came, one of them was taken before");
    assert_eq!([take(10_000), take(0), take(0), take(0)], [0, 0, 0, 100], "it holds no more than the burst");
}

#[test]
fn a_bucket_without_end_has_one() {
    let mut bucket = TokenBucket::new(Duration::MAX, u32::MAX);
    assert!(millis(&mut bucket, 1, 10).iter().all(|wait| *wait <= LONGEST_MILLIS));
    let mut bucket = TokenBucket::new(Duration::ZERO, 0);
    assert_eq!(millis(&mut bucket, 1, 3), [0, 0, 0]);
}

const LONGEST_MILLIS: u128 = 366 * 24 * 60 * 60 * 1000;

#[test]
fn the_most_patient_of_several_wins_and_all_are_asked() {
    let exponential = Exponential::new(Duration::from_millis(5), Duration::from_secs(1));
    let bucket = TokenBucket::new(Duration::from_millis(12), 1);
    let mut limiter = MaxOf::new().and(exponential).and(bucket);
    assert_eq!(millis(&mut limiter, 1, 4), [5, 12, 24, 40]);
    assert_eq!((limiter.failures(&1), limiter.remembered().keys), (4, 1));
    limiter.forget(&1);
    assert_eq!((limiter.failures(&1), limiter.remembered().keys), (0, 0));
    assert_eq!(millis(&mut MaxOf::new(), 1, 1), [0]);
}

#[test]
fn a_limit_on_the_wait_cuts_it() {
    let mut limiter = AtMost::new(Duration::from_millis(15), Exponential::default());
    assert_eq!(millis(&mut limiter, 1, 4), [5, 10, 15, 15]);
    assert_eq!(limiter.failures(&1), 4);
}

#[test]
fn the_standard_limiter_is_that_of_client_go() {
    let mut limiter = standard();
    let now = Instant::now();
    let waits: Vec<_> = (0..102_u32).map(|key| limiter.delay(&key, now).as_millis()).collect();
    assert!(waits[..100].iter().all(|wait| *wait == 5));
    assert_eq!(waits[100..], [100, 200]);
}

#[test]
fn no_more_failing_keys_are_remembered_than_the_limit_and_the_oldest_goes() {
    let mut limiter = Exponential::default().failing_keys(3);
    for key in [1, 2, 3, 1] {
        millis(&mut limiter, key, 1);
    }
    assert_eq!(limiter.remembered(), Remembered { keys: 3, let_go: 0 });
    // It was 2 that failed longest ago.
    millis(&mut limiter, 4, 1);
    let counts = [1, 2, 3, 4].map(|key| limiter.failures(&key));
    assert_eq!(counts, [2, 0, 1, 1]);
    assert_eq!(limiter.remembered(), Remembered { keys: 3, let_go: 1 });
    for key in 0..10_000 {
        millis(&mut limiter, key, 1);
    }
    assert_eq!(limiter.remembered(), Remembered { keys: 3, let_go: 10_000 });
    limiter.forget(&9_999);
    assert_eq!(limiter.remembered().keys, 2);
}
