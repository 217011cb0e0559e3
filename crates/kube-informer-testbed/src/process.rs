//! Child processes that end when they should.
//!
//! A [`Process`] writes stdout and stderr to a log file and has one of two lifetimes:
//!
//! - [`Lifetime::WithParent`]: the kernel kills it when this process ends, however it ends (return, panic,
//!   `abort`, SIGKILL). Dropping the handle kills it, too.
//! - [`Lifetime::Detached`]: it gets its own session and outlives this process once
//!   [`Process::leave_running`] was called; until then, dropping the handle still kills it.
//!
//! An [`Identity`] names one process for good: a process id may be given to a stranger later, the pair of
//! process id and start time is not. Signals through an identity go over a pidfd that was checked first, so
//! they never reach a stranger.
//!
//! Not guaranteed: that grandchildren end. The servers started here have none.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, PidfdFlags, Signal};
use serde::{Deserialize, Serialize};

/// How often a condition of another process is looked at.
pub(crate) const POLL: Duration = Duration::from_millis(20);

/// Lines of a log that an error quotes.
const TAIL_LINES: usize = 25;

/// When a process ends without being told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// With this process, at the latest.
    WithParent,
    /// Not at all, once it was left running.
    Detached,
}

/// What to start.
#[derive(Clone, Debug)]
pub struct Launch {
    name: String,
    program: PathBuf,
    args: Vec<String>,
    /// Variables with their values, or to be left out.
    envs: Vec<(String, Option<String>)>,
    current_dir: Option<PathBuf>,
    log: PathBuf,
    lifetime: Lifetime,
}

/// A process that was started here.
#[derive(Debug)]
pub struct Process {
    name: String,
    command: String,
    child: Child,
    identity: Identity,
    log: PathBuf,
    /// Where this process's part of the log begins: restarts append.
    log_start: u64,
    kill_on_drop: bool,
}

/// One process on this machine, told apart from every later one with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The process id.
    pub pid: u32,
    /// Clock ticks between the machine's boot and the start of the process.
    pub start_time: u64,
}

impl Launch {
    /// `program`, called `name` in messages, with its output appended to `log`.
    #[must_use]
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>, log: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            args: Vec::new(),
            envs: Vec::new(),
            current_dir: None,
            log: log.into(),
            lifetime: Lifetime::WithParent,
        }
    }

    /// Appends arguments.
    #[must_use]
    pub fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Adds a variable to the inherited environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.envs.push((name.into(), Some(value.into())));
        self
    }

    /// Takes a variable out of the inherited environment.
    #[must_use]
    pub fn env_remove(mut self, name: impl Into<String>) -> Self {
        self.envs.push((name.into(), None));
        self
    }

    /// Starts it in `dir` instead of the current directory.
    #[must_use]
    pub fn current_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.current_dir = Some(dir.into());
        self
    }

    /// Sets when it ends by itself; with its parent unless told otherwise.
    #[must_use]
    pub fn lifetime(mut self, lifetime: Lifetime) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Starts the process.
    pub fn spawn(self) -> Result<Process> {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)
            .with_context(|| format!("cannot open the log {}", self.log.display()))?;
        let log_start = log.metadata().map_or(0, |metadata| metadata.len());
        let errors = log.try_clone().context("cannot duplicate the log's descriptor")?;

        let mut command = Command::new(&self.program);
        command.args(&self.args).stdin(Stdio::null()).stdout(log).stderr(errors);
        for (name, value) in self.envs {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(dir) = &self.current_dir {
            command.current_dir(dir);
        }
        let line = std::iter::once(self.program.display().to_string())
            .chain(self.args)
            .collect::<Vec<_>>()
            .join(" ");
        let child = spawn_on_lasting_thread(command, self.lifetime)
            .with_context(|| format!("cannot start {}: {line}", self.name))?;
        let Some(identity) = Identity::of(child.id()) else {
            bail!("{} has no entry in /proc: {line}", self.name);
        };
        Ok(Process {
            name: self.name,
            command: line,
            child,
            identity,
            log: self.log,
            log_start,
            kill_on_drop: true,
        })
    }
}

impl Process {
    /// What messages call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.identity.pid
    }

    /// Its process id and start time.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// The file that its output goes to.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Its exit status, if it has ended.
    pub fn exited(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().with_context(|| format!("cannot ask for the status of {}", self.name))
    }

    /// Its exit status, when it has ended by itself. Can be cancelled.
    pub async fn ended(&mut self) -> Result<ExitStatus> {
        loop {
            match self.exited()? {
                Some(status) => return Ok(status),
                None => tokio::time::sleep(POLL).await,
            }
        }
    }

    /// Blocks until it has ended by itself.
    pub fn wait(&mut self) -> Result<ExitStatus> {
        self.child.wait().with_context(|| format!("cannot wait for {}", self.name))
    }

    /// SIGTERM, then SIGKILL once `deadline` has passed. A paused process is resumed so that it can end.
    pub async fn stop(&mut self, deadline: Duration) -> Result<ExitStatus> {
        if let Some(status) = self.exited()? {
            return Ok(status);
        }
        self.signal(Signal::TERM)?;
        self.signal(Signal::CONT)?;
        if let Ok(ended) = tokio::time::timeout(deadline, self.ended()).await {
            return ended;
        }
        tracing::warn!(process = self.name, ?deadline, "did not end after SIGTERM; SIGKILL");
        self.kill()
    }

    /// SIGKILL; returns once it is gone.
    pub fn kill(&mut self) -> Result<ExitStatus> {
        self.child.kill().with_context(|| format!("cannot kill {}", self.name))?;
        self.wait()
    }

    /// SIGSTOP; returns once it stands still: connections stay open and nothing answers.
    pub async fn pause(&mut self) -> Result<()> {
        if let Some(status) = self.exited()? {
            return Err(self.failure(&format!("cannot be paused, it ended with {status}")));
        }
        self.signal(Signal::STOP)?;
        // The signal is delivered some time after the call that sends it.
        while !matches!(ProcStat::of(self.id()), None | Some(ProcStat { state: 'T' | 'Z', .. })) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    /// SIGCONT.
    pub fn resume(&mut self) -> Result<()> {
        if let Some(status) = self.exited()? {
            return Err(self.failure(&format!("cannot be resumed, it ended with {status}")));
        }
        self.signal(Signal::CONT)
    }

    /// Gives up ownership: a detached process goes on after this handle is gone.
    pub fn leave_running(mut self) {
        self.kill_on_drop = false;
    }

    /// What this process (not its predecessors in the same file) has logged, as far as it is text.
    #[must_use]
    pub fn logged(&self) -> String {
        let read = || -> std::io::Result<String> {
            let mut file = File::open(&self.log)?;
            file.seek(SeekFrom::Start(self.log_start))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        read().unwrap_or_else(|error| format!("(the log cannot be read: {error})"))
    }

    /// An error about this process: what happened, the command, the tail of the log.
    #[must_use]
    pub fn failure(&self, what: &str) -> anyhow::Error {
        let logged = self.logged();
        let lines: Vec<&str> = logged.lines().collect();
        let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n    ");
        anyhow::anyhow!(
            "{} {what}\n  command: {}\n  log {}, its end:\n    {tail}",
            self.name,
            self.command,
            self.log.display()
        )
    }

    /// The caller has made sure that the process was not reaped: its id is still its own.
    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal)
            .with_context(|| format!("cannot send {signal:?} to {} ({})", self.name, self.id()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.kill_on_drop {
            // Fails only if it is gone already.
            let _ = self.kill();
        }
    }
}

impl Identity {
    /// The process that has the id `pid` now.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        ProcStat::of(pid).map(|stat| Self { pid, start_time: stat.start_time })
    }

    /// Whether it still runs; a zombie does not.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        ProcStat::of(self.pid)
            .is_some_and(|stat| stat.start_time == self.start_time && !matches!(stat.state, 'Z' | 'X'))
    }

    /// SIGTERM, then SIGKILL once `deadline` has passed; returns once it is gone. Gone already is fine.
    pub async fn stop(&self, deadline: Duration) -> Result<()> {
        for signal in [Signal::TERM, Signal::CONT] {
            self.signal(signal)?;
        }
        if tokio::time::timeout(deadline, self.gone()).await.is_err() {
            self.signal(Signal::KILL)?;
            self.gone().await;
        }
        Ok(())
    }

    async fn gone(&self) {
        while self.is_alive() {
            tokio::time::sleep(POLL).await;
        }
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else {
            bail!("{} is no process id", self.pid);
        };
        // From here on the descriptor means one process. If that is ours, it stays ours.
        let Ok(descriptor) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
            return Ok(());
        };
        if !self.is_alive() {
            return Ok(());
        }
        match rustix::process::pidfd_send_signal(&descriptor, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(error).with_context(|| format!("cannot send {signal:?} to {}", self.pid)),
        }
    }
}

/// The two fields of `/proc/<pid>/stat` that matter here.
struct ProcStat {
    state: char,
    start_time: u64,
}

impl ProcStat {
    fn of(pid: u32) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the command in parentheses and may hold spaces and parentheses itself.
        let (_, rest) = text.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let state = fields.next()?.chars().next()?;
        // `rest` begins at field 3; the start time is field 22.
        let start_time = fields.nth(18)?.parse().ok()?;
        Some(Self { state, start_time })
    }
}

/// Starts `command` from a thread that lives as long as this process.
///
/// The kernel sends the death signal when the *thread* that forked ends, not the process: forked from a test's
/// own thread, a shared server would die with the first test that ends.
fn spawn_on_lasting_thread(mut command: Command, lifetime: Lifetime) -> std::io::Result<Child> {
    type Job = Box<dyn FnOnce() + Send>;
    static SPAWNER: OnceLock<mpsc::Sender<Job>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (jobs, queue) = mpsc::channel::<Job>();
        std::thread::Builder::new()
            .name("spawner".to_owned())
            .spawn(move || queue.into_iter().for_each(|job| job()))
            .expect("a process that cannot start one thread cannot start servers");
        jobs
    });

    prepare(&mut command, lifetime);
    let (reply, answer) = mpsc::channel();
    let job: Job = Box::new(move || drop(reply.send(command.spawn())));
    spawner.send(job).map_err(|_| std::io::Error::other("the thread that starts processes is gone"))?;
    answer.recv().map_err(|_| std::io::Error::other("the thread that starts processes is gone"))?
}

#[allow(unsafe_code)]
fn prepare(command: &mut Command, lifetime: Lifetime) {
    let parent = rustix::process::getpid();
    let between_fork_and_exec = move || -> std::io::Result<()> {
        match lifetime {
            Lifetime::Detached => {
                rustix::process::setsid()?;
            }
            Lifetime::WithParent => {
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                // The parent may have died before the line above: then no signal comes any more.
                if rustix::process::getppid() != Some(parent) {
                    return Err(std::io::ErrorKind::BrokenPipe.into());
                }
            }
        }
        Ok(())
    };
    if lifetime == Lifetime::WithParent {
        // Ctrl-C in a terminal ends the parent; the servers follow it in that order.
        command.process_group(0);
    }
    // SAFETY: between fork and exec only async-signal-safe work is allowed. The closure makes three plain
    // system calls (setsid, prctl, getppid), reads two copied values, and neither allocates nor locks: the
    // error it may build is a bare `ErrorKind`, and rustix's error is a number.
    unsafe {
        command.pre_exec(between_fork_and_exec);
    }
}

#[cfg(test)]
mod tests;
