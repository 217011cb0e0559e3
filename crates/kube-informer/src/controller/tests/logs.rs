//! What is said when something goes wrong: who, which key, why, and how often.

use super::*;
use crate::said::Lines;

#[tokio::test(start_paused = true)]
async fn what_goes_wrong_is_said_with_controller_key_reason_and_how_often() {
    let (lines, _said) = Lines::of("controller");
    let mut pods = Hand::new(Scope::All);
    let (reconciler, mut heard) = tell(async |context: Context<Value>| match context.request().name() {
        "fails" if context.failures() < 3 => Err("the disk is full".into()),
        "panics" if context.failures() == 0 => panic!("out of range"),
        "hangs" if context.failures() == 0 => std::future::pending().await,
        "odd" => Err(terminal("no such class").into()),
        _ => Ok(Action::done()),
    });
    let running = run(controller(&pods).name("web").workers(4).timeout(Duration::from_secs(100)), reconciler);
    pods.list(&[("fails", 1), ("hangs", 1), ("odd", 1), ("panics", 1)], 1);
    heard.some(9).await;
    heard.nothing().await;
    running.stop().await.unwrap();
    let lines = lines.all();
    for parts in [
        &["controller=web key=d/fails", "error=\"the disk is full\"", "failures=1", "again=5ms"][..],
        &["controller=web key=d/fails", "error=\"the disk is full\"", "failures=3", "again=20ms"],
        &["controller=web key=d/panics", "it panicked: out of range", "failures=1"],
        &["controller=web key=d/hangs", "takes more than 60s"],
        &["controller=web key=d/hangs", "it took longer than 100s and was dropped", "failures=1"],
        &["controller=web key=d/odd", "terminal error: no such class", "not tried again"],
    ] {
        let said = lines.iter().any(|line| parts.iter().all(|part| line.contains(part)));
        assert!(said, "nothing says {parts:?}: {lines:#?}");
    }
    assert_eq!(lines.len(), 7, "{lines:#?}");
}
