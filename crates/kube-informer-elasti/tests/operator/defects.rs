//! The list of what KubeElasti did wrong names tests that there are, and that are run.

use std::path::{Path, PathBuf};

/// How many there are.
const ALL: usize = 26;

/// Where the tests of a name may be, but for the test's own name at its end.
fn files(module: &str) -> Vec<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (first, rest) = module.split_once("::").unwrap_or((module, ""));
    let folder = match first {
        "operator" | "ops" => format!("kube-informer-elasti/tests/{first}"),
        "elasti" => "kube-informer-cli/tests/elasti".to_owned(),
        "manager" => "kube-informer/tests/manager".to_owned(),
        "kube_informer" => "kube-informer/src".to_owned(),
        "kube_informer_elasti" => "kube-informer-elasti/src".to_owned(),
        other => panic!("nobody knows where {other} is"),
    };
    let path = |module: &str| crates.join(&folder).join(format!("{}.rs", module.replace("::", "/")));
    // Unit tests may stand in a file of their own, or at the end of what they are about.
    [Some(rest), rest.strip_suffix("::tests")].into_iter().flatten().map(path).collect()
}

/// Whether a file has a test: with an attribute, or named in a list of those that are run on both servers.
fn has_test(text: &str, name: &str) -> bool {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let is_defined = |line: &str| line.contains(&format!("fn {name}("));
    let Some(at) = lines.iter().position(|line| is_defined(line)) else { return false };
    let attributes = lines.iter().take(at).rev().take_while(|line| line.starts_with("#["));
    let is_listed = |line: &str| {
        let mut words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        words.any(|word| word == name) && !line.contains(&format!("{name}("))
    };
    attributes.into_iter().any(|line| line.contains("test")) || lines.iter().any(|line| is_listed(line))
}

#[test]
fn every_defect_names_tests_that_are_run() {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("DEFECTS.md");
    let list = std::fs::read_to_string(list).unwrap();
    let rows = list.lines().filter_map(|line| {
        let cells: Vec<_> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
        Some((cells.first()?.parse::<usize>().ok()?, *cells.last()?))
    });
    let rows: Vec<_> = rows.collect();
    let numbers: Vec<_> = rows.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=ALL).collect::<Vec<_>>());
    for (number, tests) in rows {
        // Between backquotes is every second part.
        let tests: Vec<_> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "{number} is shown by nothing");
        for test in tests {
            let (module, name) = test.rsplit_once("::").unwrap();
            let found = files(module)
                .iter()
                .any(|file| std::fs::read_to_string(file).is_ok_and(|text| has_test(&text, name)));
            assert!(found, "{number}: there is no test {test} that is run");
        }
    }
}

#[test]
fn a_test_that_is_not_run_is_none() {
    let text = "
        on_both! {
            listed,
        }
        async fn listed(stage: Stage) {}
        other_list!(also, last);
        async fn last(stage: Stage) {}
        async fn forgotten(stage: Stage) {}
        /// Words.
        #[tokio::test]
        async fn alone() {}
    ";
    assert!(["listed", "last", "alone"].iter().all(|name| has_test(text, name)));
    assert!(!has_test(text, "forgotten") && !has_test(text, "missing"));
}
