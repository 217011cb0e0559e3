//! `elasti`: its help, and what it prints.

use std::process::Command;

use kube_informer_testbed::kubeconfig::Access;

use crate::client::File;
use crate::running::{Running, kube_informer, run, stuck_pipe, text};

#[test]
fn the_help_of_the_operator_names_its_flags_and_variables() {
    let output = run(&["elasti", "--help"]);
    assert_eq!(output.status.code(), Some(0));
    let help = text(&output.stdout);
    for word in [
        "--watch-namespace",
        "--leader-elect",
        "--metrics-bind-address",
        "--health-probe-bind-address",
        "--wake-bind-address",
        "--kubeconfig",
        "ELASTI_OPERATOR_NAMESPACE",
        "ELASTI_OPERATOR_PORT",
        "ELASTI_RESOLVER_NAMESPACE",
        "ELASTI_RESOLVER_SERVICE_NAME",
        "ELASTI_RESOLVER_PROXY_PORT",
        ":8013",
    ] {
        assert!(help.contains(word), "{help}\nlacks {word}");
    }
    assert!(text(&run(&["--help"]).stdout).contains("elasti"));
}

/// The operator, on free ports.
fn operator(kubeconfig: &File) -> Command {
    let mut command = kube_informer(&["elasti", "--kubeconfig", kubeconfig.path()]);
    command.args(["--wake-bind-address=127.0.0.1:0", "--metrics-bind-address=0"]);
    command.arg("--health-probe-bind-address=0");
    command
}

#[test]
fn the_operator_works_and_ends_at_sigterm_though_its_output_is_stuck() {
    let kubeconfig = File::kubeconfig(&Access::anonymous("http://127.0.0.1:1"));
    let (reader, writer) = stuck_pipe(0);
    let mut command = operator(&kubeconfig);
    command.stdout(writer);
    let mut operator = Running::of(command);
    operator.note("refused");
    assert_eq!(operator.terminate(), Some(0));
    drop(reader);
}

#[test]
fn the_operator_ends_in_order_and_says_so_where_its_words_cannot_be_written() {
    let kubeconfig = File::kubeconfig(&Access::anonymous("http://127.0.0.1:1"));
    let mut command = operator(&kubeconfig);
    command.stdout(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    let mut operator = Running::of(command);
    operator.note("error: cannot write to stdout: ");
    assert_eq!(operator.code(), Some(1));
}

#[test]
fn the_operator_goes_on_when_nobody_reads_what_it_prints() {
    let kubeconfig = File::kubeconfig(&Access::anonymous("http://127.0.0.1:1"));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = operator(&kubeconfig);
    command.stdout(writer);
    let mut operator = Running::of(command);
    // It tries, and says what is wrong: so it runs, and its words are behind it.
    operator.note("refused");
    assert_eq!(operator.terminate(), Some(0));
}
