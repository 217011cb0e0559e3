//! Every case of the contestants, played with few keys: client-go's, too, where there is Go.

use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};
use kube_informer_bench_queue::Case;
use kube_informer_testbed::skip;
use serde_json::Value;

const OURS: &str = env!("CARGO_BIN_EXE_bench-queue-kube-informer");
const KUBE_RUNTIME: &str = env!("CARGO_BIN_EXE_bench-queue-kube-runtime");
/// Built once, by the first test that comes.
const CLIENT_GO: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/bench-queue-client-go");

const KEYS: usize = 100;
const TIMES: usize = 3;

/// client-go's contestant, where there is Go; a test by itself tells where there is none.
fn client_go() -> Option<&'static str> {
    static BUILT: OnceLock<Option<&str>> = OnceLock::new();
    *BUILT.get_or_init(|| {
        let version = Command::new("go").arg("version").output();
        version.is_ok_and(|output| output.status.success()).then(|| {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../peers");
            let built =
                Command::new("go").args(["build", "-o", CLIENT_GO, "./queue"]).current_dir(folder).status();
            assert!(built.is_ok_and(|status| status.success()), "go build has failed");
            CLIENT_GO
        })
    })
}

/// What a contestant prints of a case.
fn played(contestant: &str, case: Case) -> Result<Value> {
    let output =
        Command::new(contestant).args([case.name(), &KEYS.to_string(), &TIMES.to_string()]).output()?;
    let (line, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{contestant}, {}: {}: {errors}", case.name(), output.status);
    serde_json::from_str(&line).with_context(|| format!("not JSON: {line}"))
}

/// Keys that workers get, and keys that are there at the end, if each is handled once each time.
fn expected(case: Case) -> (usize, usize) {
    let all = TIMES * KEYS;
    match case {
        Case::FillAndDrain | Case::FillAndDrainByFour | Case::Delayed | Case::RateLimited | Case::Forget => {
            (all, 0)
        }
        Case::AddPending => (0, all),
        Case::Steady => (all, all),
    }
}

fn check_figures(contestant: &str, case: Case, answer: &Value) {
    assert_eq!((&answer["case"], &answer["keys"]), (&case.name().into(), &KEYS.into()), "{contestant}");
    for number in ["wall_ns", "cpu_ns", "peak_bytes"] {
        assert!(answer[number].as_f64() > Some(0.0), "{contestant}: {number}: {answer}");
    }
}

#[test]
fn client_go_takes_part() {
    if client_go().is_none() {
        skip::skip_missing("client_go_takes_part", "Go 1.26", "https://go.dev/doc/install");
    }
}

#[test]
fn in_every_case_every_key_is_handled_once_and_no_failure_is_remembered() -> Result<()> {
    for case in Case::ALL {
        let (got, left) = expected(case);
        for contestant in [Some(OURS), client_go()].into_iter().flatten() {
            let answer = played(contestant, case)?;
            check_figures(contestant, case, &answer);
            assert_eq!(
                (&answer["got"], &answer["left"]),
                (&got.into(), &left.into()),
                "{contestant}: {answer}"
            );
            assert_eq!(answer["failing"], 0, "{contestant}: {answer}");
        }
    }
    Ok(())
}

#[test]
fn the_scheduler_plays_what_it_can_and_says_what_it_leaves_out() -> Result<()> {
    for case in Case::ALL {
        let answer = played(KUBE_RUNTIME, case)?;
        match case {
            Case::FillAndDrainByFour | Case::RateLimited | Case::Forget => {
                assert!(answer["left_out"].as_str().is_some_and(|why| !why.is_empty()), "{answer}");
            }
            // It has taken all keys in when it gives the first one, which is all that is asked for.
            Case::AddPending => {
                check_figures(KUBE_RUNTIME, case, &answer);
                assert_eq!(answer["got"], TIMES, "{answer}");
            }
            Case::FillAndDrain | Case::Steady | Case::Delayed => {
                check_figures(KUBE_RUNTIME, case, &answer);
                assert_eq!(answer["got"], expected(case).0, "{answer}");
            }
        }
    }
    Ok(())
}

#[test]
fn what_is_no_case_is_refused() {
    for contestant in [Some(OURS), Some(KUBE_RUNTIME), client_go()].into_iter().flatten() {
        for arguments in [&["sort", "10"][..], &["steady", "many"], &["steady"], &["steady", "10", "often"]] {
            let output = Command::new(contestant).args(arguments).output().unwrap();
            assert!(!output.status.success() && output.stdout.is_empty(), "{contestant}: {arguments:?}");
        }
    }
}
