//! When a socket is better asked than listened to, and how often: by what comes, and by how long that may wait.
//!
//! Times and sizes go in, and the lengths of pauses come out; nothing here waits or reads.

use std::time::{Duration, Instant};

use crate::connect::gather::SHORTEST;

/// The shortest pause. The runtime's clock makes up to two of it, and has no shorter one.
pub(super) const PAUSE: Duration = SHORTEST;

/// How much comes is looked at after so long, and so many waits.
pub(super) const LOOK: Duration = Duration::from_millis(4);
pub(super) const WAITS: u32 = 8;

/// In a millisecond, this is much; and this is little.
const MUCH: usize = 32 << 10;
pub(super) const LITTLE: usize = 8 << 10;

/// If something came at so many times while it might have waited twice, it comes often.
pub(super) const OFTEN: u32 = 4;

/// What may come in a pause: a part of what the kernel keeps for a socket, and something between these in any case.
const PART: usize = 4;
const LEAST: usize = 32 << 10;
const MOST: usize = 256 << 10;

/// What came since then, and how often nothing more had.
pub(super) struct Rate {
    pub(super) since: Instant,
    pub(super) came: usize,
    pub(super) waits: u32,
}

/// At how many different times something came since then. The pieces of one event mostly come at one time.
pub(super) struct Often {
    pub(super) since: Instant,
    pub(super) last: Instant,
    pub(super) times: u32,
}

/// How long pauses are.
pub(super) struct Pace {
    length: Duration,
    /// How long nothing has come, and half as long of when something has taken off.
    quiet: Duration,
}

impl Rate {
    pub(super) fn new(now: Instant) -> Self {
        Self { since: now, came: 0, waits: 0 }
    }

    /// There is nothing to read: whether much has come lately.
    pub(super) fn is_much(&mut self, now: Instant) -> bool {
        self.waits += 1;
        let took = now.saturating_duration_since(self.since);
        if self.waits < WAITS || took < LOOK {
            return false;
        }
        let much = self.came as u128 >= MUCH as u128 * took.as_micros() / PAUSE.as_micros();
        *self = Self::new(now);
        much
    }
}

impl Often {
    pub(super) fn new(now: Instant) -> Self {
        Self { since: now, last: now, times: 0 }
    }

    /// Something came, and now there is nothing to read: whether that was so often lately, compared with how long it may
    /// wait.
    pub(super) fn is_often(&mut self, now: Instant, gather: Duration) -> bool {
        if gather.is_zero() {
            return false;
        }
        if now.saturating_duration_since(self.since) > gather * 2 {
            *self = Self { since: now, last: now, times: 1 };
        } else if now.saturating_duration_since(self.last) >= apart(gather) {
            (self.last, self.times) = (now, self.times + 1);
        }
        self.times >= OFTEN
    }
}

/// What comes so long after something else comes at another time.
pub(super) fn apart(gather: Duration) -> Duration {
    (gather / 8).max(PAUSE)
}

impl Pace {
    /// It begins with short pauses: what comes now may be the beginning of much.
    pub(super) fn new() -> Self {
        Self { length: PAUSE, quiet: Duration::ZERO }
    }

    pub(super) fn length(&self) -> Duration {
        self.length
    }

    /// So much came since the last pause: how long the next one is, if nothing may wait. `None` where it is better to be
    /// told.
    pub(super) fn next(&mut self, came: usize) -> Option<Duration> {
        self.length = PAUSE;
        (came >= LITTLE).then_some(self.length)
    }

    /// The same, if what comes may wait so long, and the kernel keeps so many bytes of it. What does not fit there is kept
    /// by the server, which does not do that for long: so pauses become shorter before that, and as short as they can be
    /// where much comes at once.
    pub(super) fn next_within(&mut self, came: usize, gather: Duration, room: usize) -> Option<Duration> {
        let full = (room / PART).clamp(LEAST, MOST);
        if came == 0 {
            self.quiet += self.length;
        } else {
            self.quiet = self.quiet.saturating_sub(self.length / 2);
        }
        if self.quiet >= gather * 2 {
            return None;
        }
        if came >= full + full / 2 {
            self.length = PAUSE;
        } else if came >= full {
            self.length /= 2;
        } else if came < full / 4 {
            self.length *= 2;
        }
        self.length = self.length.clamp(PAUSE, gather.max(PAUSE));
        Some(self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn much_is_what_comes_fast_and_in_many_pieces() {
        let start = Instant::now();
        let after = |piece: usize, pieces: u32, each: Duration| {
            let mut rate = Rate::new(start);
            (1..=pieces).any(|at| {
                rate.came += piece;
                rate.is_much(start + each * at)
            })
        };
        assert!(after(4 << 10, 100, Duration::from_micros(60)), "a list, piece by piece");
        assert!(!after(4 << 10, 100, ms(1)), "a thousand changes per second");
        assert!(!after(1 << 20, 7, ms(4)), "few waits for it");
        assert!(!after(100, 1000, Duration::from_micros(10)), "many pieces of little");
        assert!(!after(4 << 10, 50, Duration::from_micros(60)), "not for long enough to tell");
    }

    #[test]
    fn what_came_long_ago_does_not_count() {
        let start = Instant::now();
        let mut rate = Rate { since: start, came: 10 << 20, waits: WAITS };
        assert!(!rate.is_much(start + Duration::from_secs(60)));
        rate.came += 1 << 10;
        rate.waits = WAITS;
        assert!(!rate.is_much(start + Duration::from_secs(60) + LOOK));
    }

    #[test]
    fn often_is_what_comes_several_times_while_it_might_wait() {
        let start = Instant::now();
        let after = |times: u32, each: Duration, gather: Duration| {
            let mut often = Often::new(start);
            (1..=times).any(|at| often.is_often(start + each * at, gather))
        };
        for gather in [ms(20), ms(50)] {
            assert!(after(20, ms(5), gather), "two hundred changes per second");
            assert!(after(1000, Duration::from_micros(100), gather), "ten thousand");
            assert!(!after(1000, ms(120), gather), "one from time to time");
            assert!(!after(3, ms(5), gather), "too few to tell");
            assert!(!after(20, Duration::from_micros(10), gather), "the pieces of one");
        }
        assert!(!after(1000, ms(5), Duration::ZERO), "nothing may wait");
    }

    #[test]
    fn pieces_of_single_changes_are_not_often() {
        let (start, gather) = (Instant::now(), ms(20));
        let mut often = Often::new(start);
        for change in 1..100 {
            for piece in 0..8 {
                let now = start + ms(50) * change + Duration::from_micros(700) * piece;
                assert!(!often.is_often(now, gather));
            }
        }
    }

    const GATHER: Duration = ms(40);
    const ROOM: usize = 400 << 10;
    const FULL: usize = ROOM / PART;

    /// How long the pause is after some, of which each had brought so much.
    fn after(came: &[usize], room: usize) -> Option<Duration> {
        let mut pace = Pace::new();
        came.iter().map(|came| pace.next_within(*came, GATHER, room)).last().flatten()
    }

    #[test]
    fn pauses_become_as_long_as_allowed_where_little_comes_often() {
        let little = FULL / 4 - 1;
        assert_eq!(after(&[little], ROOM), Some(ms(2)));
        assert_eq!(after(&[little; 3], ROOM), Some(ms(8)));
        assert_eq!(after(&[little; 30], ROOM), Some(GATHER));
        assert_eq!(after(&[FULL / 4; 30], ROOM), Some(PAUSE), "enough for a pause that short");
    }

    #[test]
    fn pauses_become_shorter_before_what_comes_does_not_fit() {
        let long = [1; 10];
        assert_eq!(after(&[&long[..], &[FULL]].concat(), ROOM), Some(GATHER / 2));
        assert_eq!(after(&[&long[..], &[FULL - 1]].concat(), ROOM), Some(GATHER));
        assert_eq!(after(&[&long[..], &[FULL + FULL / 2]].concat(), ROOM), Some(PAUSE), "much at once");
        // The window of a new connection is about half of what the kernel keeps: all that can come is much.
        let new = 128 << 10;
        assert_eq!(after(&[&long[..], &[new / 2]].concat(), new), Some(PAUSE));
        assert_eq!(after(&[&long[..], &[LEAST]].concat(), 0), Some(GATHER / 2), "whatever the kernel says");
        assert_eq!(after(&[&long[..], &[MOST]].concat(), usize::MAX), Some(GATHER / 2));
    }

    #[test]
    fn where_nothing_comes_it_is_better_to_be_told() {
        let long = [1; 10];
        assert_eq!(after(&[&long[..], &[0]].concat(), ROOM), Some(GATHER), "it may be a coincidence");
        assert_eq!(after(&[&long[..], &[0, 0]].concat(), ROOM), None);
        assert_eq!(after(&[&long[..], &[0, 1, 0, 1, 0]].concat(), ROOM), None, "every second pause is empty");
        assert_eq!(after(&[&long[..], &[0, 1, 1, 0, 1, 1, 0]].concat(), ROOM), Some(GATHER));
        assert_eq!(after(&[0; 5], ROOM), Some(ms(32)), "short pauses may be empty");
        assert_eq!(after(&[0; 7], ROOM), None);
    }

    #[test]
    fn who_wants_to_wait_less_waits_less() {
        let mut pace = Pace::new();
        for _ in 0..10 {
            pace.next_within(1, GATHER, ROOM);
        }
        assert_eq!(pace.length(), GATHER);
        assert_eq!(pace.next_within(1, ms(5), ROOM), Some(ms(5)));
        assert_eq!(pace.next(LITTLE), Some(PAUSE));
        assert_eq!(pace.next(LITTLE - 1), None);
    }
}
