//! How `cargo xtask bench` talks with a contestant.
//!
//! Once its cache is in sync and its handlers have seen every object of it, a contestant prints what it has used, as one
//! line of JSON: [`Usage`](crate::usage::Usage). Then every line of its stdin is a command, answered with one line:
//!
//! | command | what it does before it answers | answer |
//! |---|---|---|
//! | `usage` | nothing | usage |
//! | `free` | gives memory back that the language's runtime, or the C library, holds for later | usage |
//! | `await N` | waits until its first handler has seen N updates in all, a minute at most | usage |
//! | `whole` | from now on its handlers read whole objects, not their metadata alone | usage |
//! | `handlers N` | has so many handlers from now on, which have seen every object; the first one stays | usage |
//! | `reads` | reads its cache in three ways, for a second each | [`ReadTimes`](crate::reads::ReadTimes) |
//! | `readers N` | so many threads read its cache, in four ways, for a second each | [`ReaderTimes`](crate::reads::ReaderTimes) |
//! | `since T` | from now on its first handler looks for [`stamps`](crate::stamps), and those of T and later count | usage |
//! | `fresh N` | waits until N stamps were seen that count, a minute at most | usage |
//! | `ages` | nothing | the age of each stamp that counted since it was asked last: `{"ages_ns": […]}` |
//! | `objects` | nothing | how many objects its cache has now: `{"objects": N}` |
//!
//! The end of stdin ends it. Whatever goes wrong ends it, too, with a message on stderr.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::json;

use crate::reads::Reads;
use crate::seen::Seen;
use crate::usage::Usage;

/// A contestant whose cache is in sync, and whose handlers have seen every object of it.
pub struct Contestant {
    /// How many objects it had then.
    pub objects: usize,
    /// How many it has now.
    pub count: Box<dyn Fn() -> usize>,
    /// What its handlers see.
    pub seen: Arc<Seen>,
    /// Has so many handlers; none where that cannot be changed.
    pub handlers: Option<Box<dyn Fn(usize) -> Result<()>>>,
    /// How it is read; none where reads are not measured. Made when it is wanted: until then, nothing is kept for it.
    pub reads: Option<Box<dyn Fn() -> Result<Reads>>>,
}

impl Contestant {
    /// One without a cache.
    #[must_use]
    pub fn idle() -> Self {
        Self { objects: 0, count: Box::new(|| 0), seen: Arc::default(), handlers: None, reads: None }
    }

    /// Does what it is told until stdin ends. The process began at `start`.
    ///
    /// # Errors
    ///
    /// Where a command is none, or cannot be done, or nobody listens.
    pub fn serve(&self, start: Instant, commands: impl BufRead, mut answers: impl Write) -> Result<()> {
        answer(&mut answers, &self.usage(start)?)?;
        for command in commands.lines() {
            let command = command?;
            let mut words = command.split_whitespace();
            match (words.next(), words.next()) {
                (Some("usage"), None) => {}
                (Some("free"), None) => give_back(),
                (Some("await"), Some(updates)) => self.seen.updates.wait(updates.parse()?),
                (Some("whole"), None) => self.seen.read_whole_objects(),
                (Some("since"), Some(nanos)) => self.seen.stamps.want_since(nanos.parse()?),
                (Some("fresh"), Some(stamps)) => self.seen.stamps.fresh.wait(stamps.parse()?),
                (Some("handlers"), Some(count)) => {
                    let have =
                        self.handlers.as_ref().context("this contestant's handlers stay as they are")?;
                    have(count.parse()?)?;
                }
                (Some("reads"), None) => {
                    answer(&mut answers, &self.reads()?.measure())?;
                    continue;
                }
                (Some("readers"), Some(readers)) => {
                    answer(&mut answers, &self.reads()?.measure_with(readers.parse()?))?;
                    continue;
                }
                (Some("ages"), None) => {
                    answer(&mut answers, &json!({ "ages_ns": self.seen.stamps.take_ages() }))?;
                    continue;
                }
                (Some("objects"), None) => {
                    answer(&mut answers, &json!({ "objects": (self.count)() }))?;
                    continue;
                }
                _ => bail!("no such command: {command:?}"),
            }
            answer(&mut answers, &self.usage(start)?)?;
        }
        Ok(())
    }

    fn reads(&self) -> Result<Reads> {
        self.reads.as_ref().context("this contestant's reads are not measured")?()
    }

    fn usage(&self, start: Instant) -> Result<Usage> {
        let (updates, fresh) = (self.seen.updates.get(), self.seen.stamps.fresh.get());
        Ok(Usage { objects: self.objects, updates, fresh, ..Usage::since(start)? })
    }
}

/// Has the allocator give back what is free. Our informer does that by itself, a moment after it was worth it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn give_back() {
    // SAFETY: it may be called at any time, by any thread, and takes the allocator's own locks.
    #[expect(unsafe_code, reason = "there is no other way to ask")]
    let _ = unsafe { libc::malloc_trim(0) };
}

/// Other allocators see to it by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn give_back() {}

/// One line of JSON.
///
/// # Errors
///
/// Where nobody listens.
pub fn answer(answers: &mut impl Write, line: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *answers, line)?;
    answers.write_all(b"\n")?;
    Ok(answers.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn answers(contestant: &Contestant, commands: &str) -> Result<Vec<Value>> {
        let mut out = Vec::new();
        contestant.serve(Instant::now(), commands.as_bytes(), &mut out)?;
        out.split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| Ok(serde_json::from_slice(line)?))
            .collect()
    }

    #[test]
    fn every_command_is_answered_and_so_is_none() {
        let contestant = Contestant { objects: 7, ..Contestant::idle() };
        contestant.seen.updates.add();
        let answers = answers(&contestant, "usage\nawait 1\nwhole\nfree\n").unwrap();
        assert_eq!(answers.len(), 5);
        assert!(answers.iter().all(|answer| answer["objects"] == 7 && answer["updates"] == 1));
        assert!(answers.iter().all(|answer| answer["rss_bytes"].as_u64() > Some(0)));
        assert!(contestant.seen.whole());
    }

    #[test]
    fn stamps_that_count_are_told_with_their_ages() {
        let contestant = Contestant { count: Box::new(|| 9), ..Contestant::idle() };
        contestant.seen.stamps.want_since(1);
        contestant.seen.stamps.saw(Some("5"));
        let answers = answers(&contestant, "fresh 1\nages\nobjects\nsince 7\n").unwrap();
        assert_eq!(answers[1]["fresh"], 1);
        assert_eq!(answers[2]["ages_ns"].as_array().map(Vec::len), Some(1));
        assert_eq!(answers[3]["objects"], 9);
        assert_eq!(answers[4]["fresh"], 0);
    }

    #[test]
    fn what_it_cannot_do_ends_it() {
        assert!(answers(&Contestant::idle(), "readers 8\n").is_err());
        assert!(answers(&Contestant::idle(), "reads\n").is_err());
        assert!(answers(&Contestant::idle(), "await\n").is_err());
        assert!(answers(&Contestant::idle(), "handlers 10\n").is_err());
        assert!(answers(&Contestant::idle(), "dance\n").is_err());
    }
}
