//! The binary as people use it: what it prints, how it ends, what it says about wrong input.

#![allow(clippy::unwrap_used, reason = "a panic in what a test calls is the failure report, too")]

// A command that runs, a cluster for it, and who connects to it.
mod client;
mod harness;
mod heard;
mod running;

// `apiserver`: what it serves, and how it ends.
mod apiserver;

// `controller deployments`, and who is connected to it.
mod controller;

// `elasti`: its words. What it does is in tests of its own.
mod elasti;

// `serve`: readiness, the end, and what is applied to a cluster; overlays of that, and of the operator's.
mod overlays;
mod serve;
mod serve_manifests;

// `demo`: the whole product, and what is left of it.
mod demo;
mod traces;

// `get` and `watch`: what is asked for, what is printed, and what is said about wrong input.
mod bad_input;
mod consistent;
mod forms;
mod get;
mod kubeconfigs;
mod marks;
mod progress;
mod target;
mod terminal;
mod watch;

// `wait`, and how it ends.
mod wait;

// What both ask the server, and what each command logs.
mod doubts;
mod logging;

// What shells, manuals and kubectl make of it.
mod completion;
mod examples;
mod man;
mod plugin;

use running::{run, text};

#[test]
fn wrong_arguments_are_explained_with_exit_code_2() {
    for (args, expected) in [
        (&["demo", "--duration", "soon"][..], "such as 30s"),
        (&["demo", "--speed", "0"], "above 0"),
        (&["demo", "--seed", "abc"], "such as 7"),
        (&["get", "pods", "-w"], "use `watch`"),
        (&["get", "pods", "--watch"], "use `watch`"),
        (&["get", "pods", "--sort-by", ".metadata.name"], "pipe it through sort"),
        (&["watch", "pods", "--show-labels"], "custom-columns"),
        (&["apiserver", "--listen", "here"], "as 127.0.0.1:8080"),
        (&["apiserver", "--token", ""], "must not be empty"),
        (&["apiserver", "--watch-window", "0"], "above 0"),
        (&["apiserver", "--speed", "10"], "give --simulate, too"),
        (&["apiserver", "--seed", "7"], "give --simulate, too"),
        (&["watch", "pods", "-o", "diff", "--output-watch-events"], "leave out --output-watch-events"),
        (&["demo", "--sped", "2"], "--speed"),
        (&["controller"], "Usage"),
        (&["controller", "pods"], "unrecognized subcommand"),
        (&["controller", "deployments", "--listen", "localhost:0"], "as 127.0.0.1:8080"),
        (&["serve", "pods", "--listen", ":8080"], "give --token-file FILE"),
        (&["serve", "pods", "--listen", "8080"], "or :8080 for every address"),
        (&["controller", "deployments", "-n", "A b"], "is no name of a namespace"),
        (&["controller", "deployments", "--workers", "0"], "from 1 to 1000"),
        (&["serve"], "<TYPE>"),
        (&["serve", "pods/web"], "is no type of objects"),
        (&["serve", "pods", "-n", "A b"], "is no name of a namespace"),
        (&["serve", "pods", "--allow-origin", "dash"], "is no origin"),
        (&["elasti", "--watch-namespace", "A b"], "is no name"),
        (&["elasti", "--metrics-bind-address", "8080"], "as 127.0.0.1:8080 or :8080"),
        (&["elasti", "--wake-bind-address", "here"], "--wake-bind-address"),
        (&["elasti", "--resolver-proxy-port", "0"], "from 1 to 65535"),
        (&["elasti", "--leader-elect=maybe"], "--leader-elect"),
        (&["elasti", "--leader-elect-lease-duration", "long"], "such as 30s"),
        (&["wach"], "unrecognized subcommand"),
        (&[], "Usage"),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(expected), "{args:?}: {}", text(&output.stderr));
    }
}
