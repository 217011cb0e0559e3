//! `man`: a page for each command.

use crate::running::{run, text};

#[test]
fn the_first_page_goes_to_stdout() {
    let output = run(&["man"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let page = text(&output.stdout);
    assert!(page.contains(".TH kube-informer 1") && page.contains("kube\\-informer\\-wait(1)"), "{page}");
}

#[test]
fn there_is_a_page_for_every_command_that_man_can_read() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("share/man1");
    let output = run(&["man", "--dir", dir.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let written = text(&output.stdout);
    let help = text(&run(&["--help"]).stdout);
    for name in ["wait", "demo", "controller", "controller-deployments", "completion", "man"] {
        let page = dir.join(format!("kube-informer-{name}.1"));
        let text = std::fs::read_to_string(&page).unwrap();
        assert!(text.contains(".SH SYNOPSIS") && text.contains(".SH OPTIONS"), "{name}: {text:.300}");
        assert!(written.contains(page.to_str().unwrap()), "{written}");
    }
    assert_eq!(written.lines().count(), std::fs::read_dir(&dir).unwrap().count());
    assert!(help.contains("  man "), "{help}");
    let wait = std::fs::read_to_string(dir.join("kube-informer-wait.1")).unwrap();
    for word in ["fail\\-on", "jsonpath", "condition=Ready", "Exit codes"] {
        assert!(wait.contains(word), "{word} in {wait}");
    }
    // What man and its formatter think of them.
    let page = dir.join("kube-informer-wait.1");
    let read =
        std::process::Command::new("man").args(["--warnings=all", "-Tutf8", "-P", "cat"]).arg(&page).output();
    match read {
        Ok(read) if read.status.success() && !read.stdout.is_empty() => {
            assert_eq!(text(&read.stderr), "");
            assert!(text(&read.stdout).contains("End at once, with exit code 3"), "{}", text(&read.stdout));
        }
        _ => {
            let test = "there_is_a_page_for_every_command_that_man_can_read";
            kube_informer_testbed::skip::skip_missing(test, "man", "apt install man-db groff");
        }
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let output = run(&["man", "--dir", "/proc/nowhere"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("/proc/nowhere") && said.lines().count() == 1, "{said}");
}
