//! What only happens on a terminal: progress, colours, and a terminal that stands still.

use std::ffi::CString;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use anyhow::Result;
use kube_informer_apiserver::faults::{Match, Request};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;

use crate::harness::{Place, blocking, output};
use crate::heard::Heard;
use crate::running::{Running, kube_informer, text};

/// A command on a terminal of its own.
pub(crate) fn start(command: Command) -> Running {
    start_sized(command, 0)
}

/// The same where the terminal has so many columns, or does not say it.
pub(crate) fn start_sized(mut command: Command, columns: u16) -> Running {
    let terminal = Terminal::new(columns);
    command.stdin(terminal.open()).stdout(terminal.open()).stderr(terminal.open());
    Running::on(Heard::of(terminal.screen), command)
}

/// The same where stdout goes elsewhere, into the pipe that the command has.
fn start_piped(mut command: Command) -> Running {
    let terminal = Terminal::new(0);
    command.stdin(terminal.open()).stderr(terminal.open());
    Running::beside(Heard::of(terminal.screen), command)
}

/// The same where the terminal is the one that controls the command, as in a window; and its keyboard.
fn start_typed(command: &Command) -> (Running, File) {
    let terminal = Terminal::new(0);
    let keyboard = File::from(terminal.screen.try_clone().unwrap());
    // It becomes the command itself, under the same id.
    let mut window = Command::new("setsid");
    window.arg("--ctty").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => window.env(name, value),
            None => window.env_remove(name),
        };
    }
    window.stdin(terminal.open()).stdout(terminal.open()).stderr(terminal.open());
    (Running::on(Heard::of(terminal.screen), window), keyboard)
}

struct Terminal {
    screen: OwnedFd,
    /// For those who write to it.
    name: CString,
}

impl Terminal {
    fn new(columns: u16) -> Self {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&screen, size).unwrap();
        let name = ptsname(&screen, Vec::new()).unwrap();
        Self { screen, name }
    }

    /// A handle for a command. Those of other tests have none of them, and the command has the only ones: when it ends,
    /// there is nothing more to read.
    fn open(&self) -> Stdio {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        Stdio::from(rustix::fs::open(&self.name, flags, Mode::empty()).unwrap())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_have_colours_on_a_terminal_unless_somebody_wants_none() -> Result<()> {
    let place = Place::embedded().await?;
    place.config_map("one", json!({})).await?;
    for (no_color, term, color, coloured) in [
        (None, "xterm", "auto", true),
        (None, "dumb", "auto", false),
        (None, "", "auto", false),
        (Some("1"), "xterm", "auto", false),
        (Some(""), "xterm", "auto", true),
        (None, "xterm", "never", false),
        (Some("1"), "dumb", "always", true),
    ] {
        let mut command = place.command(&format!("watch cm -l app=test -o name --color {color}"));
        command.env("TERM", term);
        if let Some(value) = no_color {
            command.env("NO_COLOR", value);
        }
        let mut terminal = start(command);
        blocking(|| terminal.shows("configmap/one"));
        place
            .merge(
                &place.path("configmaps/one"),
                &json!({ "data": { "t": color, "n": no_color, "e": term } }),
            )
            .await?;
        place
            .merge(
                &place.path("configmaps/one"),
                &json!({ "data": { "x": format!("{no_color:?}{term}{color}") } }),
            )
            .await?;
        let seen = blocking(|| terminal.shows("~ configmap/one"));
        assert_eq!(
            seen.contains("\x1b[33m~ configmap/one\x1b[0m"),
            coloured,
            "{no_color:?} {term:?} {color}: {seen:?}"
        );
        terminal.signal("-INT");
        assert_eq!(blocking(|| terminal.code()), Some(130));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_controller_has_the_colours_of_changes() -> Result<()> {
    let place = Place::embedded().await?;
    let path = place.path("apps/v1/deployments");
    let labels = json!({ "app": "web" });
    let template = json!({
        "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "main", "image": "nginx:1" }] },
    });
    let spec = json!({ "replicas": 1, "selector": { "matchLabels": labels }, "template": template });
    for (no_color, color, coloured) in [
        (None, "auto", true),
        (Some("1"), "auto", false),
        (Some("1"), "always", true),
        (None, "never", false),
    ] {
        let mut command = place.command(&format!("controller deployments --color {color}"));
        if let Some(value) = no_color {
            command.env("NO_COLOR", value);
        }
        let mut terminal = start(command);
        blocking(|| terminal.shows("Deployments that are there: 0"));
        place.post(&path, &json!({ "metadata": { "name": "web" }, "spec": spec })).await?;
        blocking(|| terminal.shows(" + Deployment"));
        place.merge(&format!("{path}/web"), &json!({ "spec": { "replicas": 5 } })).await?;
        blocking(|| terminal.shows("replicas 1→5"));
        place.delete(&format!("{path}/web")).await?;
        blocking(|| terminal.shows(" - Deployment"));
        terminal.signal("-INT");
        let seen = blocking(|| {
            assert_eq!(terminal.code(), Some(130));
            terminal.screen()
        });
        for (code, sign) in [(32, '+'), (33, '~'), (31, '-')] {
            let line = seen.lines().find(|line| line.contains(&format!(" {sign} Deployment"))).unwrap();
            let is_coloured =
                line.starts_with(&format!("\x1b[{code}m")) && line.trim_end().ends_with("\x1b[0m");
            assert_eq!(is_coloured, coloured, "{no_color:?} {color}: {line:?}");
        }
    }
    Ok(())
}

#[test]
fn the_demo_has_colours_on_a_terminal_and_ends_at_ctrl_c() {
    for no_color in [false, true] {
        let mut command = kube_informer(&["demo", "--speed", "10"]);
        if no_color {
            command.env("NO_COLOR", "1");
        }
        let mut terminal = start(command);
        terminal.shows("what the informers see:");
        // What is there has no colour, what comes has.
        terminal.shows("= Deployment");
        let came = if no_color { "+ Pod " } else { "\x1b[32m+ " };
        terminal.shows(came);
        terminal.signal("-INT");
        assert_eq!(terminal.code(), Some(130));
        let seen = terminal.screen();
        assert_eq!(seen.contains('\x1b'), !no_color, "{seen:?}");
        assert!(seen.ends_with("nothing is left behind\r\n"), "{seen:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_in_objects_is_shown_and_never_obeyed() -> Result<()> {
    let place = Place::embedded().await?;
    // An 8-bit sequence, a title for the window, a line from right to left, one that is written over; and what we write
    // ourselves: what hides all that follows, a colour, and another line instead of this one.
    let nasty = "a\u{9b}2J b\u{1b}]0;x\u{7} c\u{202e}d e\rf\u{1b}[8m\u{1b}[31m\r\u{1b}[Kg";
    let obeyed = ["\u{9b}", "\u{1b}]", "\u{7}", "\u{202e}", "e\rf", "\u{1b}[8m", "\u{1b}[31m", "\r\u{1b}[Kg"];
    let about = json!({ "kind": "Pod", "name": "web", "namespace": place.namespace });
    let event = json!({
        "metadata": { "name": "e" }, "involvedObject": about, "reason": "r", "type": "Normal", "message": nasty,
    });
    place.post(&place.path("events"), &event).await?;
    place.config_map("one", json!({ "k": nasty })).await?;
    for args in [
        &["get", "events"][..],
        &["get", "cm", "one", "-o", "json"],
        &["get", "cm", "one", "-o", "yaml"],
        &["get", "cm", "one", "-o", "jsonpath={.data.k}"],
        &["get", "cm", "one", "-o", "custom-columns=K:.data.k"],
        &["watch", "events", "--timeout", "0"],
        &["watch", "cm/one", "-o", "jsonpath={.data.k}", "--timeout", "0"],
        &["watch", "cm/one", "-o", "jsonpath={.data.k}", "--timeout", "0", "--color", "always"],
        &["watch", "cm/one", "-o", "yaml", "--timeout", "0"],
        &["watch", "cm/one", "-o", "custom-columns=K:.data.k", "--timeout", "0"],
        &["watch", "cm/one", "--until", "jsonpath={.data.k}=x", "--timeout", "0"],
        &["wait", "cm/one", "--for", "jsonpath={.data.k}=x", "--timeout", "0"],
    ] {
        let mut terminal = start(place.command_of(args));
        let seen = blocking(|| {
            terminal.code();
            terminal.screen()
        });
        for obeyed in obeyed {
            assert!(!seen.contains(obeyed), "{args:?}: {obeyed:?} in {seen:?}");
        }
        assert!(seen.contains("2J b") || seen.contains("a..."), "{args:?}: {seen:?}");
    }
    // What was changed, too.
    let mut terminal = start(place.command("watch cm/one -o diff"));
    blocking(|| terminal.shows("what changes follows"));
    place.merge(&place.path("configmaps/one"), &json!({ "data": { "k": format!("{nasty}!") } })).await?;
    let seen = blocking(|| terminal.shows("!\""));
    for obeyed in obeyed {
        assert!(!seen.contains(obeyed), "{obeyed:?} in {seen:?}");
    }
    // In a pipe it is what there is.
    let piped = output(place.command_of(&["get", "cm", "one", "-o", "jsonpath={.data.k}"])).await;
    assert_eq!(text(&piped.stdout), format!("{nasty}!"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminal_that_is_closed_ends_it_as_ctrl_c_does() -> Result<()> {
    let place = Place::embedded().await?;
    place.config_map("one", json!({})).await?;
    // Nothing changes, so it writes nothing; and something does that it has to write.
    for changes in [false, true] {
        let mut terminal = start(place.command("watch cm -l app=test -o name"));
        blocking(|| terminal.shows("configmap/one"));
        terminal.close_stdout();
        if changes {
            place.config_map("two", json!({})).await?;
        }
        assert_eq!(blocking(|| terminal.code()), Some(130), "{changes}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_reading_shows_how_far_it_is_and_leaves_nothing_behind() -> Result<()> {
    let place = Place::embedded().await?;
    place.config_map("one", json!({})).await?;
    for command in [
        "get cm one -o name",
        "watch cm -l app=test -o name",
        "wait cm -l app=test --for create --timeout 100s",
    ] {
        let stalled = place.server().unwrap().faults().on(Match::any().path_contains("/configmaps")).stall();
        let mut terminal = start(place.command(command));
        let seen = blocking(|| terminal.shows("reading configmaps: 0 objects"));
        assert!(seen.starts_with("\r\x1b[K"), "{seen:?}");
        stalled.release();
        let seen = blocking(|| terminal.shows("configmap/one"));
        let (_, after) = seen.rsplit_once("objects").unwrap();
        let (_, after) = after.split_once(')').unwrap();
        assert!(after.trim_start_matches("\r\x1b[K").trim_start().starts_with("configmap/one"), "{seen:?}");
        assert!(after.starts_with("\r\x1b[K"), "the line is gone: {seen:?}");
        place.server().unwrap().faults().heal();
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_far_it_is_goes_to_the_terminal_and_the_objects_into_the_pipe() -> Result<()> {
    let place = Place::embedded().await?;
    place.config_map("one", json!({})).await?;
    for (command, expected) in [
        ("get cm/one -o name", "configmap/one\n"),
        ("watch cm/one -o name --until delete", "  configmap/one\n~ configmap/one\n- configmap/one\n"),
    ] {
        let stalled = place.server().unwrap().faults().on(Match::any().path_contains("/configmaps")).stall();
        let mut piped = start_piped(place.command(command));
        blocking(|| piped.notes("reading configmaps: 0 objects"));
        stalled.release();
        blocking(|| piped.shows("configmap/one"));
        if command.starts_with("watch") {
            place.merge(&place.path("configmaps/one"), &json!({ "data": { "a": "1" } })).await?;
            blocking(|| piped.shows("~ configmap/one"));
            place.delete(&place.path("configmaps/one")).await?;
        }
        let (printed, said) = blocking(|| {
            assert_eq!(piped.code(), Some(0), "{command}");
            (piped.screen(), piped.said())
        });
        assert_eq!(printed, expected, "without colours, and without anything else");
        assert!(said.starts_with("\r\x1b[Kreading configmaps: 0 objects"), "{said:?}");
        // The terminal has its colours all the same.
        let (_, last) = said.rsplit_once("\r\x1b[K").unwrap();
        let met = format!("\x1b[1;33mConfigMap {}/one: delete is met\x1b[0m\r\n", place.namespace);
        assert_eq!(last, if command.starts_with("watch") { &met } else { "" }, "{said:?}");
        place.server().unwrap().faults().heal();
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_that_is_typed_ends_it_with_130() -> Result<()> {
    let place = Place::embedded().await?;
    place.config_map("one", json!({})).await?;
    let (mut watch, mut keyboard) = start_typed(&place.command("watch cm -l app=test -o name"));
    blocking(|| watch.shows("configmap/one"));
    keyboard.write_all(b"\x03")?;
    assert_eq!(blocking(|| watch.code()), Some(130));
    // Also while there is nothing to see yet.
    let _stalled = place.server().unwrap().faults().on(Match::any().path_contains("/configmaps")).stall();
    for command in ["get cm", "watch cm", "wait cm --all --for delete --timeout 100s"] {
        let (mut terminal, mut keyboard) = start_typed(&place.command(command));
        blocking(|| terminal.shows("reading configmaps:"));
        keyboard.write_all(b"\x03")?;
        assert_eq!(blocking(|| terminal.code()), Some(130), "{command}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_count_as_they_come() -> Result<()> {
    let place = Place::embedded().await?;
    for name in ["one", "two", "three"] {
        place.config_map(name, json!({})).await?;
    }
    let listed = Match::any().path_contains("/configmaps");
    let _stalled = place.server().unwrap().faults().on(listed).stall_after_events(2);
    for command in ["get cm", "wait cm --all --for delete --timeout 100s"] {
        let mut terminal = start(place.command(command));
        // A moment before, it does not know how many there are.
        blocking(|| terminal.shows("2 of 3 objects"));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_far_it_is_stands_in_one_row_and_is_gone_after_ctrl_c() -> Result<()> {
    let place = Place::embedded().await?;
    let _stalled = place.server().unwrap().faults().on(Match::any().path_contains("/configmaps")).stall();
    for command in ["get cm", "wait cm --all --for delete --timeout 100s"] {
        let mut terminal = start_sized(place.command(command), 20);
        blocking(|| terminal.shows("reading configmaps:"));
        terminal.signal("-INT");
        let seen = blocking(|| {
            assert_eq!(terminal.code(), Some(130));
            terminal.screen()
        });
        assert!(seen.split("\r\x1b[K").all(|row| row.chars().count() < 20), "{seen:?}");
        assert!(seen.ends_with("\r\x1b[K"), "{seen:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_once_or_twice_ends_what_a_terminal_that_stands_still_holds_up() -> Result<()> {
    // That the second one does not wait is told apart where the end is made, in `output`: from here, only time tells.
    for signals in [1, 2] {
        let place = Place::embedded().await?;
        for number in 0..40 {
            place.config_map(&format!("map-{number}"), json!({ "filler": "x".repeat(5000) })).await?;
        }
        // Nobody reads the screen: it is full after some kilobytes.
        let mut terminal = start(place.command("watch cm -o yaml"));
        let requests = place.server().unwrap().faults().requests();
        requests.wait_for(Request::is_watch).await?;
        for _ in 0..signals {
            terminal.signal("-INT");
        }
        assert_eq!(blocking(|| terminal.code()), Some(130));
    }
    Ok(())
}
