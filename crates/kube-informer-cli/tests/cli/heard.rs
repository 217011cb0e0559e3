//! What another process says through a pipe or on a screen, read when somebody asks for it and no longer than they wait.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How much of what was said is shown at most.
const SHOWN: usize = 8192;

/// It takes longer than somebody waits.
#[derive(Debug)]
pub(crate) struct TooLate;

/// See the module. Nobody says anything, by default.
#[derive(Default)]
pub(crate) struct Heard {
    /// Where it comes from, until it ends.
    from: Option<File>,
    said: Vec<u8>,
    /// How much of it was asked for.
    taken: usize,
}

impl Heard {
    pub(crate) fn of(from: impl Into<OwnedFd>) -> Self {
        Self { from: Some(File::from(from.into())), ..Self::default() }
    }

    /// The next line that has this in it; nothing if there is none.
    pub(crate) fn line(&mut self, part: &str, until: Instant) -> Result<Option<String>, TooLate> {
        loop {
            while let Some(end) = self.said[self.taken..].iter().position(|byte| *byte == b'\n') {
                let line = String::from_utf8_lossy(&self.said[self.taken..=self.taken + end]).into_owned();
                self.taken += end + 1;
                if line.contains(part) {
                    return Ok(Some(line));
                }
            }
            self.forget();
            if !self.more(until)? {
                return Ok(None);
            }
        }
    }

    /// Everything, as soon as it has this in it.
    pub(crate) fn shows(&mut self, part: &str, until: Instant) -> Result<Option<String>, TooLate> {
        loop {
            let shown = String::from_utf8_lossy(&self.said);
            if shown.contains(part) {
                return Ok(Some(shown.into_owned()));
            }
            if !self.more(until)? {
                return Ok(None);
            }
        }
    }

    /// What was not asked for yet, up to the end.
    pub(crate) fn rest(&mut self, until: Instant) -> Result<Vec<u8>, TooLate> {
        while self.more(until)? {}
        let rest = self.said[self.taken..].to_vec();
        self.taken = self.said.len();
        Ok(rest)
    }

    /// Reads two of them to the end, whichever has something.
    pub(crate) fn both(one: &mut Self, two: &mut Self, until: Instant) -> Result<(), TooLate> {
        loop {
            let open: Vec<&mut Self> =
                [&mut *one, &mut *two].into_iter().filter(|heard| heard.from.is_some()).collect();
            let files: Vec<&File> = open.iter().filter_map(|heard| heard.from.as_ref()).collect();
            if files.is_empty() {
                return Ok(());
            }
            let ready = ready(&files, until)?;
            for (heard, _) in open.into_iter().zip(ready).filter(|(_, is_ready)| *is_ready) {
                heard.read();
            }
        }
    }

    /// Reads what comes next; tells whether there was something.
    fn more(&mut self, until: Instant) -> Result<bool, TooLate> {
        let Some(from) = &self.from else { return Ok(false) };
        ready(&[from], until)?;
        self.read();
        Ok(self.from.is_some())
    }

    fn read(&mut self) {
        let mut bytes = [0; 65536];
        let Some(from) = &mut self.from else { return };
        // A screen that nobody has any more cannot be read: that is its end.
        match from.read(&mut bytes).unwrap_or(0) {
            0 => self.from = None,
            count => self.said.extend_from_slice(&bytes[..count]),
        }
    }

    /// What was asked for long ago is not kept.
    fn forget(&mut self) {
        if let Some(old) = self.taken.checked_sub(16 * SHOWN) {
            self.said.drain(..old + 15 * SHOWN);
            self.taken = SHOWN;
        }
    }
}

/// The end of what was said.
impl fmt::Display for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = self.said.len().saturating_sub(SHOWN);
        f.write_str(&String::from_utf8_lossy(&self.said[from..]))
    }
}

/// Waits until one of them can be read; tells which.
fn ready(files: &[&File], until: Instant) -> Result<Vec<bool>, TooLate> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left =
            Timespec { tv_sec: left.as_secs().try_into().unwrap(), tv_nsec: left.subsec_nanos().into() };
        let mut polled: Vec<PollFd<'_>> =
            files.iter().map(|file| PollFd::new(*file, PollFlags::IN)).collect();
        match poll(&mut polled, Some(&left)) {
            Ok(0) => return Err(TooLate),
            Ok(_) => return Ok(polled.iter().map(|file| !file.revents().is_empty()).collect()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("cannot wait for what is said: {error}"),
        }
    }
}
