//! `man`: a page for each command.

use crate::bad_input::one_line;
use crate::running::{run, text};

#[test]
fn the_first_page_goes_to_stdout() {
    let output = run(&["man"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let page = text(&output.stdout);
    assert!(page.contains(".TH kube-informer 1") && page.contains("kube\\-informer\\-wait(1)"), "{page}");
}

/// The commands that a help lists, and theirs, as their pages are called.
fn listed(words: &[&str]) -> Vec<String> {
    let help = text(&run(&[words, &["--help"]].concat()).stdout);
    // The first help lists them by what they are for, the others in one list, where they have any.
    let list = match words {
        [] => help.split("\nOptions:").next(),
        _ => help.split("\nCommands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()),
    };
    let entries = list.unwrap_or_default().lines().filter_map(|line| line.strip_prefix("  "));
    let names = entries.filter(|entry| entry.starts_with(|c: char| c.is_ascii_lowercase()));
    let names = names.filter_map(|entry| entry.split_whitespace().next()).filter(|name| *name != "help");
    names
        .flat_map(|name| {
            let words = [words, &[name]].concat();
            [vec![format!("kube-informer-{}", words.join("-"))], listed(&words)].concat()
        })
        .collect()
}

#[test]
fn there_is_a_page_for_every_command_that_man_can_read() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("share/man1");
    let output = run(&["man", "--dir", dir.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let commands = listed(&[]);
    for known in ["kube-informer-watch", "kube-informer-controller-deployments", "kube-informer-man"] {
        assert!(commands.iter().any(|command| command == known), "the help lists {known}: {commands:?}");
    }
    let mut pages: Vec<_> = commands.iter().map(|command| dir.join(format!("{command}.1"))).collect();
    for page in &pages {
        let name = page.display();
        let text = std::fs::read_to_string(page).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(text.contains(".SH SYNOPSIS") && text.contains(".SH OPTIONS"), "{name}: {text:.300}");
    }
    // There are no others, but for the first page, and it says which it has written.
    pages.push(dir.join("kube-informer.1"));
    pages.sort();
    let mut files: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert_eq!(files, pages);
    let written = text(&output.stdout);
    let mut written: Vec<_> = written.lines().map(std::path::PathBuf::from).collect();
    written.sort();
    assert_eq!(written, pages);
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
fn a_folder_that_cannot_be_made_is_named_with_what_to_do() {
    let output = run(&["man", "--dir", "/proc/nowhere"]);
    assert_eq!(output.status.code(), Some(1));
    one_line(
        &output.stderr,
        &["cannot make the folder /proc/nowhere: ", "give --dir a folder that is yours"],
    );
}
