//! A command that runs, and what it says.
//!
//! Whatever is waited for, it is waited for no longer than [`PATIENCE`]: then the command is killed, and the failure shows
//! what it has said.

use std::io::{ErrorKind, PipeReader, PipeWriter, Write as _};
use std::os::fd::AsFd;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::heard::{Heard, TooLate};

/// Long enough for anything on a busy machine; only a test that fails waits for it to pass.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// How often it is looked after another process.
const POLL: Duration = Duration::from_millis(5);

/// How long what a killed command has said may take to come.
const LAST_WORDS: Duration = Duration::from_secs(5);

pub(crate) fn kube_informer(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kube-informer"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
        .env_remove("KUBE_INFORMER_TOKEN")
        .env_remove("RUST_LOG")
        .env_remove("NO_COLOR")
        .env("TERM", "xterm");
    command
}

#[track_caller]
pub(crate) fn run(args: &[&str]) -> Output {
    Running::start(args).output()
}

/// Runs any command to its end.
#[track_caller]
pub(crate) fn finish(mut command: Command) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::of(command).output()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A pipe with room for so many bytes more: who writes others then waits for its reader, who never reads.
pub(crate) fn stuck_pipe(room: usize) -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&vec![b'.'; pipe_size(&writer) - room]).unwrap();
    (reader, writer)
}

/// What a pipe holds.
pub(crate) fn pipe_size(pipe: impl AsFd) -> usize {
    rustix::pipe::fcntl_getpipe_size(pipe).unwrap()
}

/// Another process can only be asked again.
#[expect(clippy::disallowed_methods, reason = "there is no clock to pause in another process")]
fn pause() {
    // tidy: allow-sleep another process can only be asked again
    std::thread::sleep(POLL);
}

/// A running command and what it says; killed if the test fails.
pub(crate) struct Running {
    pub(crate) child: Child,
    stdout: Heard,
    stderr: Heard,
    patience: Duration,
}

impl Running {
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::of(kube_informer(args))
    }

    /// Starts a command. What it says is read where it was given a pipe for it.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().map(Heard::of).unwrap_or_default();
        let stderr = child.stderr.take().map(Heard::of).unwrap_or_default();
        Self { child, stdout, stderr, patience: PATIENCE }
    }

    /// Starts a command on a screen, which is all that it says.
    pub(crate) fn on(screen: Heard, mut command: Command) -> Self {
        let child = command.spawn().unwrap();
        Self { child, stdout: screen, stderr: Heard::default(), patience: PATIENCE }
    }

    /// Starts a command with a screen for what it says on stderr alone.
    pub(crate) fn beside(screen: Heard, command: Command) -> Self {
        let mut running = Self::of(command);
        running.stderr = screen;
        running
    }

    /// Reads until a line of stdout has this in it.
    #[track_caller]
    pub(crate) fn line(&mut self, part: &str) -> String {
        let line = self.stdout.line(part, self.until());
        self.need(line, part)
    }

    /// The same of stderr.
    #[track_caller]
    pub(crate) fn note(&mut self, part: &str) -> String {
        let line = self.stderr.line(part, self.until());
        self.need(line, part)
    }

    /// Reads until this has been on stdout, in a line or not; everything that was there.
    #[track_caller]
    pub(crate) fn shows(&mut self, part: &str) -> String {
        let shown = self.stdout.shows(part, self.until());
        self.need(shown, part)
    }

    /// The same of stderr.
    #[track_caller]
    pub(crate) fn notes(&mut self, part: &str) -> String {
        let shown = self.stderr.shows(part, self.until());
        self.need(shown, part)
    }

    /// All that is on its screen, once it has ended.
    #[track_caller]
    pub(crate) fn screen(&mut self) -> String {
        match self.stdout.rest(self.until()) {
            Ok(rest) => text(&rest),
            Err(TooLate) => self.fail("it does not end"),
        }
    }

    /// What it says from now on is not read: it is told so when it says something.
    pub(crate) fn close_stdout(&mut self) {
        self.stdout = Heard::default();
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    #[track_caller]
    pub(crate) fn terminate(mut self) -> Option<i32> {
        self.signal("-TERM");
        self.code()
    }

    /// How it ended, once it has.
    #[track_caller]
    pub(crate) fn code(&mut self) -> Option<i32> {
        let until = self.until();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            if Instant::now() >= until {
                self.fail("it does not end");
            }
            pause();
        }
    }

    /// Looks until something is so that it makes so.
    #[track_caller]
    pub(crate) fn until_it_is(&mut self, what: &str, mut is: impl FnMut() -> bool) {
        let until = self.until();
        while !is() {
            if let Some(status) = self.child.try_wait().unwrap() {
                self.fail(&format!("it ended with {status} before this was so: {what}"));
            }
            if Instant::now() >= until {
                self.fail(&format!("this never was so: {what}"));
            }
            pause();
        }
    }

    /// What it has said on stderr, once it has ended.
    #[track_caller]
    pub(crate) fn said(&mut self) -> String {
        let rest = self.stderr.rest(self.until());
        match rest {
            Ok(rest) => text(&rest),
            Err(TooLate) => self.fail("it does not end"),
        }
    }

    /// All that it says, and how it ends.
    #[track_caller]
    pub(crate) fn output(mut self) -> Output {
        let until = self.until();
        if Heard::both(&mut self.stdout, &mut self.stderr, until).is_err() {
            self.fail("it does not end");
        }
        self.code();
        let status = self.child.wait().unwrap();
        let [stdout, stderr] = [&mut self.stdout, &mut self.stderr].map(|heard| heard.rest(until).unwrap());
        Output { status, stdout, stderr }
    }

    fn until(&self) -> Instant {
        Instant::now() + self.patience
    }

    #[track_caller]
    fn need(&mut self, found: Result<Option<String>, TooLate>, part: &str) -> String {
        match found {
            Ok(Some(found)) => found,
            Ok(None) => self.fail(&format!("it ended before it said {part:?}")),
            Err(TooLate) => self.fail(&format!("it did not say {part:?} within {:?}", self.patience)),
        }
    }

    /// Ends the test, with all that may help.
    #[track_caller]
    fn fail(&mut self, why: &str) -> ! {
        self.end();
        // Whether it comes to an end or not, what there is is shown.
        let _ = Heard::both(&mut self.stdout, &mut self.stderr, Instant::now() + LAST_WORDS);
        panic!("{why}\n--- stdout\n{}\n--- stderr\n{}", self.stdout, self.stderr);
    }

    fn end(&mut self) {
        match self.child.kill() {
            // It has usually ended; then there is nothing to kill.
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::InvalidInput => {}
            Err(error) => eprintln!("cannot kill {}: {error}", self.child.id()),
        }
        let _: std::io::Result<_> = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

mod tests {
    use super::*;

    /// Says something, and then nothing for ever.
    fn silent() -> Running {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two >&2; exec sleep 100000"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = Running::of(command);
        // However long it takes to come so far: only what never comes is waited for in vain.
        running.shows("one\n");
        let said = running.stderr.shows("two\n", running.until());
        running.need(said, "two");
        running.patience = Duration::from_millis(300);
        running
    }

    fn failure(call: impl FnOnce(&mut Running)) -> String {
        let call = std::panic::AssertUnwindSafe(|| call(&mut silent()));
        let failure = std::panic::catch_unwind(call).unwrap_err();
        failure.downcast_ref::<String>().unwrap().clone()
    }

    #[test]
    fn what_never_comes_is_a_failure_that_shows_what_was_said() {
        for (failure, why) in [
            (failure(|running| drop(running.line("three"))), "it did not say \"three\" within 300ms"),
            (failure(|running| drop(running.note("three"))), "it did not say \"three\" within 300ms"),
            (failure(|running| drop(running.shows("three"))), "it did not say \"three\" within 300ms"),
            (failure(|running| assert_eq!(running.code(), None)), "it does not end"),
            (failure(|running| drop(running.said())), "it does not end"),
            (failure(|running| running.until_it_is("late", || false)), "this never was so: late"),
        ] {
            assert_eq!(failure, format!("{why}\n--- stdout\none\n\n--- stderr\ntwo\n"));
        }
    }

    #[test]
    fn what_ends_too_early_is_a_failure_that_shows_what_was_said() {
        let why = failure(|running| {
            running.patience = PATIENCE;
            running.signal("-KILL");
            running.line("three");
        });
        assert_eq!(why, "it ended before it said \"three\"\n--- stdout\none\n\n--- stderr\ntwo\n");
    }
}
