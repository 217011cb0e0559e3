use super::*;
use crate::eventually::eventually;

const PATIENCE: Duration = Duration::from_secs(20);

fn shell(script: &str, dir: &tempfile::TempDir) -> Launch {
    Launch::new("sh", "/bin/sh", dir.path().join("log")).args(["-c", script])
}

#[test]
fn a_process_outlives_the_thread_that_asked_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let launch = shell("exec sleep 60", &dir);
    let mut process = std::thread::spawn(move || launch.spawn().unwrap()).join().unwrap();
    // The death signal, if there were one, is sent before `join` returns.
    assert!(process.identity().is_alive());
    assert!(process.exited().unwrap().is_none());
}

#[tokio::test]
async fn a_dropped_process_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let process = shell("exec sleep 60", &dir).spawn().unwrap();
    let identity = process.identity();
    drop(process);
    assert!(!identity.is_alive());
}

#[tokio::test]
async fn a_process_deaf_to_sigterm_is_killed_after_the_deadline() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = shell("trap '' TERM; echo deaf; while :; do sleep 0.1; done", &dir).spawn().unwrap();
    eventually("it is deaf", PATIENCE, async || process.logged().contains("deaf").then_some(())).await;
    let status = process.stop(Duration::from_millis(100)).await.unwrap();
    assert!(status.to_string().contains('9'), "{status}");
}

#[tokio::test]
async fn a_paused_process_stands_still_until_resumed_and_can_be_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = shell("exec sleep 60", &dir).spawn().unwrap();
    process.pause().await.unwrap();
    assert_eq!(ProcStat::of(process.id()).unwrap().state, 'T');
    process.resume().unwrap();
    let state = async || ProcStat::of(process.id()).filter(|stat| stat.state != 'T');
    eventually("it goes on", PATIENCE, state).await;
    process.pause().await.unwrap();
    let status = process.stop(PATIENCE).await.unwrap();
    assert!(status.to_string().contains("15"), "{status}");
}

#[tokio::test]
async fn a_failure_quotes_the_command_and_the_end_of_its_own_log() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("log"), "from an earlier run\n").unwrap();
    let mut process = shell("seq 1 100; exit 3", &dir).spawn().unwrap();
    let status = process.wait().unwrap();
    let failure = process.failure(&format!("ended with {status}")).to_string();
    assert!(failure.contains("exit status: 3") && failure.contains("seq 1 100; exit 3"), "{failure}");
    assert!(failure.ends_with("99\n    100") && !failure.contains("earlier run"), "{failure}");
}

#[tokio::test]
async fn an_identity_never_reaches_another_process() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = shell("exec sleep 60", &dir).spawn().unwrap();
    let stranger = Identity { start_time: process.identity().start_time + 1, ..process.identity() };
    assert!(!stranger.is_alive());
    stranger.stop(PATIENCE).await.unwrap();
    assert!(process.exited().unwrap().is_none());
}

#[tokio::test]
async fn a_detached_process_left_running_is_ended_by_its_identity() {
    let dir = tempfile::tempdir().unwrap();
    let process = shell("exec sleep 60", &dir).lifetime(Lifetime::Detached).spawn().unwrap();
    let identity = process.identity();
    process.leave_running();
    assert!(identity.is_alive());
    identity.stop(PATIENCE).await.unwrap();
    assert!(!identity.is_alive());
}
