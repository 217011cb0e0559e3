//! What is logged to stderr: how much `-v` makes it, and `RUST_LOG` where there is none.

use anyhow::Result;
use serde_json::json;

use crate::harness::{Place, blocking, output};
use crate::running::{Running, text};

/// The levels of what was logged, from the worst.
fn levels(said: &str) -> Vec<&'static str> {
    let logged = |level: &&str| said.lines().any(|line| line.contains(&format!("Z {level:>5} ")));
    ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"].into_iter().filter(logged).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_v_shows_more() -> Result<()> {
    let place = Place::embedded().await?;
    place.config_map("one", json!({})).await?;
    for (more, expected) in [
        ("", &[][..]),
        (" -v", &[]),
        (" -vv", &["INFO"]),
        (" -vvv", &["INFO", "DEBUG"]),
        (" -vvvv", &["INFO", "DEBUG", "TRACE"]),
    ] {
        let output = place.run(&format!("wait cm/one --for create{more}")).await;
        assert_eq!(text(&output.stdout), "configmap/one condition met\n", "{}", text(&output.stderr));
        assert_eq!(levels(&text(&output.stderr)), expected, "{more}: {}", text(&output.stderr));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_v_shows_what_is_odd_and_that_it_is_over() -> Result<()> {
    let place = Place::embedded().await?;
    place.config_map("one", json!({})).await?;
    let (proxy, file) = place.proxy().await?;
    let mut watch = Running::of(place.command_through(&file, &["watch", "cm/one", "-o", "name", "-v"]));
    blocking(|| watch.line("one"));
    proxy.go_down().await;
    let odd = blocking(|| watch.note("watching does not work"));
    assert_eq!(levels(&odd), ["WARN"], "{odd}");
    proxy.accept_connections().await;
    let over = blocking(|| watch.note("watching works again"));
    assert_eq!(levels(&over), ["INFO"], "{over}");
    assert!(over.contains("configmaps"), "{over}");
    watch.signal("-INT");
    assert_eq!(blocking(|| watch.code()), Some(130));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_rust_log_leaves_it_as_it_is() -> Result<()> {
    let place = Place::embedded().await?;
    let (proxy, file) = place.proxy().await?;
    let mut command = place.command_through(&file, &["serve", "configmaps"]);
    command.env("RUST_LOG", "");
    let mut served = Running::of(command);
    blocking(|| served.line("ready: "));
    proxy.go_down().await;
    // Which `error` alone would not let through.
    let odd = blocking(|| served.note("watching does not work"));
    assert_eq!(levels(&odd), ["WARN"], "{odd}");
    served.signal("-TERM");
    assert_eq!(blocking(|| served.code()), Some(0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rust_log_counts_where_there_is_no_v() -> Result<()> {
    let place = Place::embedded().await?;
    place.config_map("one", json!({})).await?;
    for (filter, more, expected) in [
        ("info", "", &["INFO"][..]),
        ("kube_informer=debug,info", "", &["INFO", "DEBUG"]),
        ("off", " -vv", &["INFO"]),
        ("error", " -vvv", &["INFO", "DEBUG"]),
        ("trace", " -vv", &["INFO"]),
        ("no=such=filter", "", &[]),
    ] {
        let mut command = place.command(&format!("wait cm/one --for create{more}"));
        command.env("RUST_LOG", filter);
        let output = output(command).await;
        assert_eq!(levels(&text(&output.stderr)), expected, "{filter}{more}: {}", text(&output.stderr));
    }
    Ok(())
}
