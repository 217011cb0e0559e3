//! How `cargo xtask bench sync` talks with a contestant.
//!
//! Once its cache is in sync and its handlers have seen every object of it, a contestant prints what it has used, as one
//! line of JSON: [`Usage`](crate::usage::Usage). Then every line of its stdin is a command, answered with one line:
//!
//! | command | what it does before it answers | answer |
//! |---|---|---|
//! | `usage` | nothing | usage |
//! | `free` | gives memory back that the language's runtime holds for later; nothing in Rust | usage |
//! | `await N` | waits until its first handler has seen N updates in all, a minute at most | usage |
//! | `whole` | from now on its handlers read whole objects, not their metadata alone | usage |
//! | `reads` | reads its cache in three ways, for a second each | [`ReadTimes`](crate::reads::ReadTimes) |
//!
//! The end of stdin ends it. Whatever goes wrong ends it, too, with a message on stderr.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::reads::Reads;
use crate::seen::Seen;
use crate::usage::Usage;

/// A contestant whose cache is in sync, and whose handlers have seen every object of it.
pub struct Contestant {
    /// How many objects it has.
    pub objects: usize,
    /// What its handlers see.
    pub seen: Arc<Seen>,
    /// How it is read; none where reads are not measured.
    pub reads: Option<Reads>,
}

impl Contestant {
    /// One without a cache.
    #[must_use]
    pub fn idle() -> Self {
        Self { objects: 0, seen: Arc::default(), reads: None }
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
                (Some("usage" | "free"), None) => {}
                (Some("await"), Some(updates)) => self.seen.wait(updates.parse()?),
                (Some("whole"), None) => self.seen.read_whole_objects(),
                (Some("reads"), None) => {
                    let reads = self.reads.as_ref().context("this contestant's reads are not measured")?;
                    answer(&mut answers, &reads.measure())?;
                    continue;
                }
                _ => bail!("no such command: {command:?}"),
            }
            answer(&mut answers, &self.usage(start)?)?;
        }
        Ok(())
    }

    fn usage(&self, start: Instant) -> Result<Usage> {
        Ok(Usage { objects: self.objects, updates: self.seen.updates(), ..Usage::since(start)? })
    }
}

fn answer(answers: &mut impl Write, line: &impl Serialize) -> Result<()> {
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
        contestant.seen.update();
        let answers = answers(&contestant, "usage\nawait 1\nwhole\nfree\n").unwrap();
        assert_eq!(answers.len(), 5);
        assert!(answers.iter().all(|answer| answer["objects"] == 7 && answer["updates"] == 1));
        assert!(answers.iter().all(|answer| answer["rss_bytes"].as_u64() > Some(0)));
        assert!(contestant.seen.whole());
    }

    #[test]
    fn what_it_cannot_do_ends_it() {
        assert!(answers(&Contestant::idle(), "reads\n").is_err());
        assert!(answers(&Contestant::idle(), "await\n").is_err());
        assert!(answers(&Contestant::idle(), "dance\n").is_err());
    }
}
