use std::path::Path;

use super::*;

#[test]
fn the_tests_bring_the_control_plane() {
    assert!(Step::value_variants().iter().all(|step| wanted(*step, &[])));
    assert!(wanted(Step::ControlPlane, &[Step::Tests]));
    assert!(wanted(Step::ControlPlane, &[Step::Fmt, Step::Load]));
    assert!(!wanted(Step::ControlPlane, &[Step::Fmt]));
    assert!(!wanted(Step::Clippy, &[Step::Tests]));
}

#[test]
fn every_step_says_what_it_is() {
    for step in Step::value_variants() {
        assert!(!step.name().is_empty() && !step.about().is_empty(), "{step:?}");
    }
    assert_eq!(Step::DocTests.name(), "doc-tests");
}

/// A package with one test of each kind, in a folder of its own.
struct Sample(PathBuf);

impl Sample {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("xtask-sample-{name}-{}", std::process::id()));
        let sample = Sample(root);
        sample.file("Cargo.toml", "[package]\nname = \"sample\"\nedition = \"2024\"\n\n[workspace]\n");
        sample.file(
            "src/lib.rs",
            r#"
            //! A sample.

            /// ```
            /// assert_eq!(sample::one(), 1);
            /// ```
            pub fn one() -> u32 { 1 }

            #[test]
            fn passes() {}

            #[test]
            fn fails() { panic!("on purpose") }

            #[test]
            #[ignore = "needs a moon"]
            fn ignored() {}

            #[test]
            fn skips() {
                let file = std::env::var_os("KUBE_INFORMER_SKIP_FILE").unwrap();
                std::fs::write(file, "SKIP sample::skips: needs the sun\n").unwrap();
            }
            "#,
        );
        sample.file("tests/dies.rs", "#[test]\nfn dies() { std::process::abort() }\n");
        sample.file("tests/later.rs", "#[test]\nfn still_runs() {}\n");
        sample
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn run(&self) -> Run {
        Run {
            root: self.0.clone(),
            full: false,
            report: Report::new(false),
            skips: SkipFile::create_in(&self.0).unwrap(),
            server: RealServer::default(),
        }
    }
}

impl Drop for Sample {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn report(root: &Sample, step: Step) -> String {
    let mut run = root.run();
    run.steps(&[step]).await;
    run.report.render()
}

/// What real cargo and real libtest print is read as it is meant.
#[tokio::test]
async fn passed_failed_ignored_skipped_and_dead_tests_are_told_apart() {
    let sample = Sample::new("tests");
    let mut run = sample.run();
    run.step(Step::Tests).await.unwrap();
    let text = run.report.render();
    assert_eq!(text.lines().last(), Some("2 passed, 2 failed, 2 skipped"), "{text}");
    for line in [
        "  sample ignored: needs a moon",
        "  sample::skips: needs the sun",
        "  sample fails: failed, see above",
        "  dies: ended without a test result",
    ] {
        assert!(text.lines().any(|found| found == line), "{line:?} is not in:\n{text}");
    }

    let mut run = sample.run();
    run.step(Step::DocTests).await.unwrap();
    let text = run.report.render();
    assert_eq!(text.lines().last(), Some("1 passed, 0 failed, 0 skipped"), "{text}");
}

#[tokio::test]
async fn bad_formatting_fails_and_the_other_steps_are_named_as_left_out() {
    let sample = Sample::new("fmt");
    let text = report(&sample, Step::Fmt).await;
    let others = Step::value_variants().len() - 1;
    let last = format!("0 passed, 1 failed, {others} skipped");
    assert_eq!(text.lines().last(), Some(last.as_str()), "{text}");
    assert!(text.contains("\n  clippy: not asked for (--only)\n"), "{text}");
}

#[tokio::test]
async fn what_takes_long_is_left_out_unless_everything_is_asked_for() {
    let sample = Sample::new("bench");
    let mut run = sample.run();
    run.step(Step::Load).await.unwrap();
    run.step(Step::Bench).await.unwrap();
    let text = run.report.render();
    assert!(text.contains("\n  load: takes long; only with --full\n"), "{text}");
    assert!(text.contains("\n  bench: compiles a lot; only with --full\n"), "{text}");
    assert_eq!(text.lines().last(), Some("0 passed, 0 failed, 2 skipped"), "{text}");
}

#[tokio::test]
async fn a_step_that_cannot_even_start_fails() {
    let sample = Sample::new("gone");
    let mut run = sample.run();
    run.root = Path::new("/nowhere/at/all").to_owned();
    run.steps(&[Step::Docs]).await;
    assert!(!run.report.ok());
}

#[tokio::test]
async fn the_commands_of_documents_are_run() {
    let sample = Sample::new("commands");
    sample.file(
        "README.md",
        "<!-- test: run -->\n```sh\ntest -f Cargo.toml\n```\n\
         <!-- test: run -->\n```sh\nfalse\n```\n\
         <!-- test: skip: it takes a year -->\n```sh\nsleep 31536000\n```\n\
         <!-- test: run with control plane -->\n```sh\nfalse\n```\n",
    );
    let mut run = sample.run();
    run.step(Step::Commands).await.unwrap();
    let text = run.report.render();
    assert_eq!(text.lines().last(), Some("1 passed, 1 failed, 2 skipped"), "{text}");
    assert!(text.contains("  README.md:6 `false`: exit status: 1\n"), "{text}");
    assert!(text.contains("  README.md:10 `sleep 31536000`: it takes a year\n"), "{text}");
}

#[tokio::test]
async fn every_mistake_in_a_document_fails_and_the_others_are_played() {
    let sample = Sample::new("mistakes");
    let run_block = "<!-- test: run -->\n```sh\ntrue\n```\n";
    sample.file("A.md", &format!("{run_block}<!-- test: runs -->\n```sh\ntrue\n```\n```sh\ntrue\n```\n"));
    sample.file("B.md", run_block);
    let mut run = sample.run();
    run.step(Step::Commands).await.unwrap();
    let text = run.report.render();
    assert_eq!(text.lines().last(), Some("1 passed, 2 failed, 0 skipped"), "{text}");
    assert!(text.contains("  A.md:6: `test: runs`") && text.contains("  A.md:9: "), "{text}");
}

#[tokio::test]
async fn the_binary_is_built_before_blocks_that_want_it_and_only_for_those() {
    let commands = async |sample: &Sample| {
        let mut run = sample.run();
        run.step(Step::Commands).await.unwrap();
        run.report.render()
    };
    let sample = Sample::new("binary");
    sample.file(
        "README.md",
        "<!-- test: run -->\n```sh\ntrue\n```\n<!-- test: skip: no -->\n```sh\ncargo run --release\n```\n",
    );
    let text = commands(&sample).await;
    assert_eq!(text.lines().last(), Some("1 passed, 0 failed, 1 skipped"), "{text}");

    sample.file("README.md", "<!-- test: run -->\n```sh\ntrue --release\n```\n");
    let text = commands(&sample).await;
    assert_eq!(text.lines().last(), Some("2 passed, 0 failed, 0 skipped"), "{text}");

    sample.file("src/lib.rs", "no Rust");
    let text = commands(&sample).await;
    assert_eq!(text.lines().last(), Some("1 passed, 1 failed, 0 skipped"), "{text}");
    assert!(text.contains("  cargo build --release: exit status: 101\n"), "{text}");
}
