//! `kube-informer`: see what is changing in a Kubernetes cluster.
//!
//! Arguments and wiring only. Exit codes: 0 done, 1 failed (one line says what and what to do), 2 wrong
//! arguments, 3 what was not to be is (`wait --fail-on`), 130 ended by Ctrl-C, SIGTERM or the end of the terminal; what runs
//! as a daemon (`serve`, `controller`, the operator) ends in order at the first SIGTERM, with 0.

// How it is called, and how commands end.
mod interrupt;
mod logging;
mod naming;
mod time;
mod usage;

// Which cluster, and what of it.
mod cluster;
mod scope;
mod target;

// What is read of it, and how it goes.
mod progress;
mod reading;

// What can be said about an object.
mod condition;
mod existence;
mod jsonpath;

// How it is shown, and where.
mod output;
mod show;
mod style;

// Who else is told: WebSocket clients, dashboards.
mod door;
mod vitals;

// The commands.
mod apiserver;
mod completion;
mod controller;
mod demo;
mod elasti;
mod get;
mod man;
mod serve;
mod wait;
mod watch;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::interrupt::{Ended, Interrupt};
use crate::naming::Called;
use crate::output::visible;
use crate::usage::Usage;

/// See what is changing in a Kubernetes cluster.
#[derive(Debug, Parser)]
#[command(name = "kube-informer", version, long_version = naming::VERSION.as_str())]
#[command(propagate_version = true)]
struct Args {
    /// Say more on stderr, with each -v a step: errors, what is odd, what it does, what it asks and hears, everything. By
    /// themselves, get, watch and wait say errors, elasti what it does, and the others what is odd; without -v, RUST_LOG
    /// says it in detail
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print what there is, as kubectl does: one consistent state, read through an informer
    Get(get::Args),
    /// Show what there is and what changes, and reconnect for ever
    Watch(watch::Args),
    /// Wait until objects are as they should be
    #[command(long_about = wait::ABOUT, after_long_help = wait::EXAMPLES)]
    Wait(wait::Args),
    /// Run the embedded API server: a Kubernetes API in this process, nothing to install
    #[command(after_long_help = apiserver::EXAMPLES)]
    Apiserver(apiserver::Args),
    /// See what it does: a simulated cluster, a controller, an operator and a feed in this process, and what changes
    #[command(after_long_help = demo::EXAMPLES)]
    Demo(demo::Args),
    /// Run a controller: what changes is printed, and told over WebSocket
    #[command(after_long_help = controller::EXAMPLES)]
    Controller(controller::Args),
    /// Tell WebSocket clients what changes: any resources, with probes and metrics
    #[command(after_long_help = serve::EXAMPLES)]
    Serve(serve::Args),
    /// Run the ElastiService operator: services sleep at zero replicas, and wake when they are asked for
    #[command(after_long_help = elasti::EXAMPLES)]
    Elasti(elasti::Args),
    /// Print what a shell, or kubectl, needs to complete command lines
    #[command(after_long_help = completion::EXAMPLES)]
    Completion(completion::Args),
    /// Write manual pages
    #[command(after_long_help = man::EXAMPLES)]
    Man(man::Args),
}

impl Command {
    /// How much is logged without being asked for.
    fn chattiness(&self) -> u8 {
        match self {
            // What matters, these say themselves.
            Self::Watch(_) | Self::Get(_) | Self::Wait(_) => 0,
            // Of an operator, people read the logs.
            Self::Elasti(_) => 2,
            _ => 1,
        }
    }
}

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let called = Called::by(words.first().map(OsString::as_os_str));
    let commands = naming::commands(Args::command(), called);
    if let Some(words) = to_complete(called, &words) {
        return ended(completion::complete(&commands, &words));
    }
    let parsed = commands.clone().try_get_matches_from(&words);
    let args = match parsed.and_then(|matches| Args::from_arg_matches(&matches)) {
        Ok(args) => args,
        Err(error) => match usage::explain(&error, &commands, &words) {
            Some(why) => return failed(&Usage::new(why).into()),
            // Help and version, with 0; help where a command is missing, with 2.
            None => error.exit(),
        },
    };
    logging::to_stderr(args.command.chattiness(), args.verbose);
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&anyhow::anyhow!("cannot start: {error}")),
    };
    std::panic::set_hook(Box::new(broken));
    let result = runtime.block_on(async {
        match args.command {
            Command::Watch(args) => watch::run(args).await,
            Command::Get(args) => get::run(args).await,
            Command::Wait(args) => wait::run(args).await,
            Command::Apiserver(args) => apiserver::run(args).await,
            Command::Demo(args) => demo::run(args).await,
            Command::Controller(args) => controller::run(args).await,
            Command::Serve(args) => serve::run(args).await,
            Command::Elasti(args) => elasti::run(args).await,
            Command::Completion(args) => completion::run(&args, commands, called),
            Command::Man(args) => man::run(&args, naming::commands(Args::command(), Called::Binary)),
        }
    });
    let code = runtime.block_on(async {
        match result {
            Err(error) => told(&error).await,
            result => ended(result),
        }
    });
    // A login program of a kubeconfig may still run: nobody waits for it any more.
    runtime.shutdown_background();
    code
}

/// The words of a command line that is to be completed. They are no arguments: a flag among them means nothing.
fn to_complete(called: Called, words: &[OsString]) -> Option<Vec<String>> {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    match &words[..] {
        [_, rest @ ..] if called == Called::PluginCompletion => Some(rest.to_vec()),
        [_, first, rest @ ..] if first == "__complete" => Some(rest.to_vec()),
        _ => None,
    }
}

fn ended(result: anyhow::Result<Ended>) -> ExitCode {
    match result {
        Ok(Ended::Done) => ExitCode::SUCCESS,
        Ok(Ended::Late) => ExitCode::FAILURE,
        Ok(Ended::Failed) => ExitCode::from(3),
        Ok(Ended::Interrupted) => ExitCode::from(130),
        Err(error) => failed(&error),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    // Where nobody reads stderr any more, the code says it.
    let _ = std::io::stderr().write_all(line(error).as_bytes());
    code(error)
}

/// The same of a command: Ctrl-C was its own, and has to end it still where stderr stands still.
async fn told(error: &anyhow::Error) -> ExitCode {
    let Ok(mut interrupt) = Interrupt::install() else { return failed(error) };
    tokio::select! {
        () = output::last_words(line(error)) => code(error),
        () = interrupt.wait() => ended(Ok(Ended::Interrupted)),
    }
}

fn line(error: &anyhow::Error) -> String {
    format!("error: {}\n", visible::plain(&one_line(error)))
}

fn code(error: &anyhow::Error) -> ExitCode {
    if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// What must not happen: a line, and no pages. `RUST_BACKTRACE` shows the way there, as always.
fn broken(panic: &std::panic::PanicHookInfo<'_>) {
    if is_told_otherwise(panic) {
        return;
    }
    let payload = panic.payload();
    let why = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let why = why.and_then(|why| why.lines().next()).unwrap_or("it panicked");
    let place =
        panic.location().map(|place| format!(" ({}:{})", place.file(), place.line())).unwrap_or_default();
    let way = std::backtrace::Backtrace::capture();
    let way = match way.status() {
        std::backtrace::BacktraceStatus::Captured => format!("{way}\n"),
        _ => String::new(),
    };
    let hint = "please report it, with what RUST_BACKTRACE=1 shows";
    // Where nobody reads stderr any more, there is nothing more to do.
    let _ = write!(std::io::stderr(), "error: this is a bug: {}{place}; {hint}\n{way}", visible::plain(why));
}

/// Whether it is about a token of a login program that no header can have: tower-http panics there, as nobody has looked at the
/// token before, and the library catches that and says what to do.
fn is_told_otherwise(panic: &std::panic::PanicHookInfo<'_>) -> bool {
    panic.location().is_some_and(|place| place.file().ends_with("/auth/add_authorization.rs"))
}

/// An error with every cause, each once: many errors say what caused them, and have it as their cause, too.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        // What follows in other lines shows a place in a file, as parsers do.
        let cause = cause.lines().next().unwrap_or_default();
        if !line.contains(cause) {
            let colon = if line.is_empty() { "" } else { ": " };
            line = format!("{line}{colon}{cause}");
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn what_a_command_logs_by_itself_is_as_the_help_says() {
        for (line, steps) in [
            ("get pods", 0),
            ("watch pods", 0),
            ("wait pod/a --for create", 0),
            ("apiserver", 1),
            ("demo", 1),
            ("controller deployments", 1),
            ("serve pods", 1),
            ("elasti", 2),
        ] {
            let words = ["kube-informer"].into_iter().chain(line.split(' '));
            assert_eq!(Args::try_parse_from(words).unwrap().command.chattiness(), steps, "{line}");
        }
    }

    /// The words of a command line, as a shell reads it.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
        for c in line.chars() {
            match c {
                c if quote == Some(c) => quote = None,
                '\'' | '"' if quote.is_none() => quote = Some(c),
                ' ' if quote.is_none() => words.push(std::mem::take(&mut word)),
                c => word.push(c),
            }
        }
        words.push(word);
        words.retain(|word| !word.is_empty());
        words
    }

    #[test]
    fn every_command_has_examples_and_they_are_taken() {
        for command in Args::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = command.get_name();
            let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            let (_, examples) = help.split_once("Examples:\n").unwrap_or_else(|| panic!("{name} has none"));
            let examples = examples.replace("\\\n", "");
            let lines = examples.lines().map(str::trim).filter(|line| line.starts_with("kube-informer "));
            let mut count = 0;
            for line in lines {
                // Not what follows in a pipe or goes to a file, and not what is said beside it.
                let ours =
                    line.split(" | ").next().unwrap_or_default().split(" > ").next().unwrap_or_default();
                let ours = ours.split("    ").next().unwrap_or_default();
                if let Err(error) = Args::try_parse_from(words(ours)) {
                    panic!("{line}: {error}");
                }
                count += 1;
            }
            assert!(count > 0, "{name}: {help}");
        }
    }

    #[test]
    fn an_error_is_one_line_and_says_nothing_twice() {
        let cause = std::io::Error::other("no such file\n --> here");
        let said = Err::<(), _>(cause).context("cannot read it: no such file").context("cannot start");
        assert_eq!(one_line(&said.unwrap_err()), "cannot start: cannot read it: no such file");
        let said = Err::<(), _>(std::io::Error::other("the disk is full")).context("cannot write");
        assert_eq!(one_line(&said.unwrap_err()), "cannot write: the disk is full");
    }
}
