use super::*;

async fn run(script: &str, limit: Duration, stop_at: &str) -> (Ended, Vec<String>) {
    run_in(script, Bounds::new(limit), stop_at).await
}

async fn run_in(script: &str, bounds: Bounds, stop_at: &str) -> (Ended, Vec<String>) {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    let mut lines = Vec::new();
    let each = |line: &str| {
        lines.push(line.to_owned());
        if line == stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let ended = stream_until(command, bounds, each, std::future::pending()).await.unwrap();
    (ended, lines)
}

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn both_outputs_come_in_order() {
    let (ended, lines) = run("echo a; echo b >&2; printf c", LONG, "").await;
    assert!(ended.ok());
    assert_eq!(lines, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_failed_command_says_how() {
    let (ended, _) = run("exit 3", LONG, "").await;
    assert!(!ended.ok());
    assert_eq!(ended.to_string(), "exit status: 3");
}

#[tokio::test]
async fn a_command_past_its_limit_is_killed_with_its_children() {
    let (ended, lines) = run("sleep 600 & echo $!; wait", Duration::from_millis(300), "").await;
    assert!(matches!(ended, Ended::TimedOut(_)), "{ended}");
    assert!(gone(&lines[0]).await, "the command's child still runs");
}

#[tokio::test]
async fn a_reader_that_has_seen_enough_ends_the_command() {
    let (ended, lines) = run("sleep 600 & echo $!; echo ready; wait", LONG, "ready").await;
    assert!(matches!(ended, Ended::Stopped(_)), "{ended}");
    assert!(gone(&lines[0]).await, "the command's child still runs");
}

#[tokio::test]
async fn a_command_ends_when_the_caller_wants_it_to() {
    let (ready, stop) = tokio::sync::oneshot::channel::<()>();
    let (mut ready, mut child) = (Some(ready), String::new());
    let mut command = Command::new("sh");
    command.args(["-c", "sleep 600 & echo $!; wait"]);
    let each = |line: &str| {
        line.clone_into(&mut child);
        drop(ready.take());
        ControlFlow::Continue(())
    };
    let ended = stream_until(command, Bounds::new(LONG), each, async { drop(stop.await) }).await.unwrap();
    assert!(matches!(ended, Ended::Stopped(_)), "{ended}");
    assert!(gone(&child).await, "the command's child still runs");
}

#[tokio::test]
async fn what_is_ended_has_time_to_clean_up() {
    let script = "f=$(mktemp); trap 'rm $f; exit' TERM; echo $f; echo ready; sleep 600 & wait";
    let (ended, lines) = run(script, LONG, "ready").await;
    assert!(matches!(ended, Ended::Stopped(_)), "{ended}");
    assert!(!std::path::Path::new(&lines[0]).exists(), "{} was left", lines[0]);
}

#[tokio::test]
async fn a_process_left_behind_does_not_hold_the_caller() {
    let (ended, lines) = run("sleep 600 & echo $!", LONG, "").await;
    assert!(ended.ok(), "{ended}");
    let killed = Command::new("sh").args(["-c", &format!("kill {}", lines[0])]).status().await.unwrap();
    assert!(killed.success(), "what a finished command leaves behind is left alone");
}

#[tokio::test]
async fn what_is_left_behind_is_killed_where_nothing_may_be() {
    let (ended, lines) =
        run_in("sleep 600 & echo $!; exit 1", Bounds { alone: true, ..Bounds::new(LONG) }, "").await;
    assert_eq!(ended.to_string(), "exit status: 1");
    assert!(gone(&lines[0]).await, "the command's child still runs");
}

#[tokio::test]
async fn what_does_not_end_when_it_is_told_to_is_killed_and_has_failed() {
    let bounds = Bounds { clean_up: Duration::from_millis(300), ..Bounds::new(LONG) };
    // It ignores the signal itself; its child does, which holds the pipe; its child does, which does not.
    for script in [
        "trap '' TERM; echo $$; echo ready; while :; do sleep 0.1; done",
        "(trap '' TERM; echo ready; while :; do sleep 0.1; done) & echo $!; wait",
        "trap '' TERM; exec 3>&1 >/dev/null 2>&1; echo $$ >&3; echo ready >&3; exec 3>&-; while :; do sleep 0.1; done",
    ] {
        let (ended, lines) = run_in(script, bounds, "ready").await;
        assert!(matches!(ended, Ended::WouldNotEnd(_)), "{script}: {ended}");
        assert!(!ended.ok());
        let process = lines.iter().find(|line| *line != "ready");
        // The child may not have been named before it was to end.
        if let Some(process) = process {
            assert!(gone(process).await, "{script}: it still runs");
        }
    }
}

#[tokio::test]
async fn what_fails_when_it_is_told_to_end_has_failed() {
    for (end, ok) in [("0", true), ("130", true), ("143", true), ("1", false), ("101", false), ("137", false)]
    {
        let script = format!("trap 'exit {end}' TERM; echo ready; while :; do sleep 0.01; done");
        let (ended, _) = run(&script, LONG, "ready").await;
        assert!(matches!(ended, Ended::Stopped(_)), "{ended}");
        assert_eq!(ended.ok(), ok, "{ended}");
    }
    let (ended, _) = run("echo ready; exec sleep 600", LONG, "ready").await;
    assert!(ended.ok(), "{ended}");
    let (ended, _) =
        run("trap 'kill -s SEGV $$' TERM; echo ready; while :; do sleep 0.01; done", LONG, "ready").await;
    assert!(!ended.ok(), "{ended}");
}

#[tokio::test]
async fn what_is_started_after_the_signal_is_told_to_end_as_well() {
    // A shell that waits for its command, and then goes on.
    let script = "trap : TERM; sh -c 'trap : TERM; echo ready; sleep 600; exit 0'; echo $$; exec sleep 600";
    let (ended, _) = run(script, LONG, "ready").await;
    assert!(matches!(ended, Ended::Stopped(_)) && ended.ok(), "{ended}");
}

/// A killed process is gone once it has been collected, which takes a moment.
async fn gone(pid: &str) -> bool {
    let script = format!(
        "for i in $(seq 500); do kill -0 {pid} 2>/dev/null || exit 0; [ -r /proc/{pid}/stat ] && grep -q ') Z ' /proc/{pid}/stat && exit 0; sleep 0.01; done; exit 1"
    );
    Command::new("sh").args(["-c", &script]).status().await.unwrap().success()
}
