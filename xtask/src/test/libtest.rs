//! Reads what `cargo test --no-fail-fast` prints, line by line.
//!
//! The counts come from libtest's `test result:` lines. The names of failed and
//! ignored tests come from the lines above them, as far as those are whole: a test
//! that prints past libtest's capture can tear a line apart, and then the count is
//! right and a name is missing. A test binary that dies before its result line
//! (abort, signal, or a program without libtest) is one failure, named by the binary;
//! a program without libtest that ends well is one pass. One that is killed because it
//! hangs is one failure, too, and says which tests libtest was waiting for.

/// A test and what there is to say about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) why: String,
}

/// What one `cargo test` came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) passed: u64,
    pub(crate) failed: Vec<Named>,
    pub(crate) ignored: Vec<Named>,
}

/// The state while reading; feed it [`line`](Parser::line)s, then [`finish`](Parser::finish).
#[derive(Debug, Default)]
pub(crate) struct Parser {
    summary: Summary,
    binary: Option<Binary>,
}

/// The test binary whose output is being read.
#[derive(Debug, Default)]
struct Binary {
    name: String,
    failed: Vec<Named>,
    ignored: Vec<Named>,
    /// Tests of which libtest says that they take long, and no more.
    running: Vec<String>,
    /// Its result line, or its death, has been seen.
    settled: bool,
}

/// The numbers of one `test result:` line.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Parser {
    pub(crate) fn line(&mut self, line: &str) {
        let trimmed = line.trim();
        if let Some(name) = heading(trimmed) {
            self.close();
            self.binary = Some(Binary { name, ..Binary::default() });
        } else if let Some(counts) = result(trimmed) {
            self.settle(&counts);
        } else if trimmed.starts_with("error: test failed, to rerun pass")
            || trimmed.starts_with("error: doctest failed, to rerun pass")
        {
            self.died();
        } else if let Some((name, outcome)) = test_line(trimmed) {
            self.test(name, outcome);
        } else if let Some(name) = takes_long(trimmed) {
            self.binary.get_or_insert_default().running.push(name.to_owned());
        }
    }

    /// Nothing more comes, because the time was up.
    pub(crate) fn killed(&mut self) {
        self.died();
    }

    /// `success` is the exit status of cargo: a failure that no line told of (code that
    /// does not compile) is one failure.
    pub(crate) fn finish(mut self, success: bool) -> Summary {
        self.close();
        if !success && self.summary.failed.is_empty() {
            self.summary.failed.push(named("cargo test", "failed outside of any test, see above"));
        }
        self.summary
    }

    fn test(&mut self, name: &str, outcome: &str) {
        let binary = self.binary.get_or_insert_default();
        binary.running.retain(|running| running != name);
        if outcome.starts_with("FAILED") {
            binary.failed.push(named(&binary.full(name), "failed, see above"));
        } else if let Some(rest) = outcome.strip_prefix("ignored") {
            let why = rest.trim_start_matches([',', ' ']);
            let why = if why.is_empty() { "ignored without a reason" } else { why };
            binary.ignored.push(named(&binary.full(name), why));
        }
    }

    fn settle(&mut self, counts: &Counts) {
        let binary = self.binary.get_or_insert_default();
        binary.settled = true;
        fill(&mut binary.failed, counts.failed, &binary.name, "a test failed, see above");
        fill(&mut binary.ignored, counts.ignored, &binary.name, "a test was ignored");
        self.summary.passed += counts.passed;
        self.summary.failed.append(&mut binary.failed);
        self.summary.ignored.append(&mut binary.ignored);
    }

    /// The binary failed, or was killed: news only if it gave no result line.
    fn died(&mut self) {
        let Some(binary) = &mut self.binary else { return };
        if binary.settled {
            return;
        }
        binary.settled = true;
        self.summary.failed.append(&mut binary.failed);
        let why = match binary.running.join(", ") {
            none if none.is_empty() => "ended without a test result".to_owned(),
            running => format!("ended without a test result, in {running}"),
        };
        self.summary.failed.push(named(&binary.name, &why));
    }

    /// The next binary begins, or there is none: one that gave no result and did not
    /// fail is a program without libtest that went well.
    fn close(&mut self) {
        if let Some(binary) = self.binary.take()
            && !binary.settled
        {
            self.summary.passed += 1;
            self.summary.failed.extend(binary.failed);
        }
    }
}

impl Binary {
    fn full(&self, test: &str) -> String {
        if self.name.is_empty() { test.to_owned() } else { format!("{} {test}", self.name) }
    }
}

fn named(name: &str, why: &str) -> Named {
    Named { name: name.to_owned(), why: why.to_owned() }
}

/// The result line's count is right; the names may be too few, never too many.
fn fill(names: &mut Vec<Named>, count: u64, binary: &str, why: &str) {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    names.truncate(count);
    while names.len() < count {
        names.push(named(binary, why));
    }
}

/// `Running unittests src/lib.rs (target/debug/deps/foo-0123456789abcdef)` → `foo`;
/// `Doc-tests foo` → `foo (doc)`.
fn heading(line: &str) -> Option<String> {
    if let Some(name) = line.strip_prefix("Doc-tests ") {
        return Some(format!("{name} (doc)"));
    }
    let path = line.strip_prefix("Running ")?.strip_suffix(')')?.rsplit_once('(')?.1;
    let file = path.rsplit(['/', '\\']).next()?;
    Some(file.rsplit_once('-').map_or(file, |(name, _hash)| name).to_owned())
}

/// `test a::b ... ok` → (`a::b`, `ok`).
fn test_line(line: &str) -> Option<(&str, &str)> {
    let (name, outcome) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    Some((name.strip_suffix(" - should panic").unwrap_or(name), outcome))
}

/// `test a::b has been running for over 60 seconds` → `a::b`.
fn takes_long(line: &str) -> Option<&str> {
    Some(line.strip_prefix("test ")?.split_once(" has been running for over ")?.0)
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; …`. A torn line may have text before.
fn result(line: &str) -> Option<Counts> {
    let rest = line.split_once("test result: ")?.1;
    let (_ok, numbers) = rest.split_once(". ")?;
    let count = |word: &str| -> Option<u64> {
        numbers.split(';').find_map(|part| part.trim().strip_suffix(word)?.trim().parse().ok())
    };
    Some(Counts { passed: count("passed")?, failed: count("failed")?, ignored: count("ignored")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(text: &str, success: bool) -> Summary {
        let mut parser = Parser::default();
        text.lines().for_each(|line| parser.line(line));
        parser.finish(success)
    }

    #[test]
    fn results_of_several_binaries_add_up() {
        let text = "
   Compiling foo v0.1.0
     Running unittests src/lib.rs (target/debug/deps/foo-0123456789abcdef)

running 2 tests
test a ... ok
test b::c ... ok

test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

     Running tests/watch.rs (target/debug/deps/watch-0123456789abcdef)

running 1 test
test d ... ignored, needs a moon

test result: ok. 0 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
";
        let summary = summary(text, true);
        assert_eq!(summary.passed, 2);
        assert_eq!(summary.failed, []);
        assert_eq!(summary.ignored, [named("watch d", "needs a moon")]);
    }

    #[test]
    fn failed_tests_are_named() {
        let text = "
     Running unittests src/lib.rs (target/debug/deps/foo-0123456789abcdef)
test a ... ok
test b - should panic ... FAILED
test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

error: test failed, to rerun pass `-p foo --lib`
error: 1 target failed:
    `-p foo --lib`
";
        let summary = summary(text, false);
        assert_eq!(summary.passed, 1);
        assert_eq!(summary.failed, [named("foo b", "failed, see above")]);
    }

    #[test]
    fn a_failure_whose_line_was_torn_still_counts() {
        let text = "
     Running unittests src/lib.rs (target/debug/deps/foo-0123456789abcdef)
test a ... noise of the test itself
FAILED
test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";
        assert_eq!(summary(text, false).failed, [named("foo", "a test failed, see above")]);
    }

    #[test]
    fn a_binary_that_dies_is_one_failure_and_the_next_is_still_read() {
        let text = "
     Running tests/a.rs (target/debug/deps/a-0123456789abcdef)
running 2 tests
test one ... ok
error: test failed, to rerun pass `-p foo --test a`

Caused by:
  process didn't exit successfully: `target/debug/deps/a-0123456789abcdef` (signal: 6, SIGABRT)
     Running tests/b.rs (target/debug/deps/b-0123456789abcdef)
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";
        let summary = summary(text, false);
        assert_eq!(summary.passed, 3);
        assert_eq!(summary.failed, [named("a", "ended without a test result")]);
    }

    #[test]
    fn a_binary_that_hangs_is_one_failure_and_says_in_which_tests() {
        let text = "
     Running tests/a.rs (target/debug/deps/a-0123456789abcdef)
running 3 tests
test one ... ok
test slow has been running for over 60 seconds
test hangs::here has been running for over 60 seconds
test slow ... ok
";
        let mut parser = Parser::default();
        text.lines().for_each(|line| parser.line(line));
        parser.killed();
        let summary = parser.finish(false);
        assert_eq!(summary.passed, 0);
        assert_eq!(summary.failed, [named("a", "ended without a test result, in hangs::here")]);
    }

    #[test]
    fn a_program_without_libtest_counts_as_one() {
        let text = "
     Running benches/split.rs (target/debug/deps/split-0123456789abcdef)
all good
";
        assert_eq!(summary(text, true), Summary { passed: 1, ..Summary::default() });
    }

    #[test]
    fn code_that_does_not_compile_is_a_failure() {
        let text = "error[E0425]: cannot find value `x` in this scope\n";
        assert_eq!(summary(text, false).failed.len(), 1);
    }

    #[test]
    fn doc_tests_are_told_apart() {
        let text = "
   Doc-tests foo

running 1 test
test src/lib.rs - bar (line 3) ... FAILED

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

error: doctest failed, to rerun pass `-p foo --doc`
";
        assert_eq!(
            summary(text, false).failed,
            [named("foo (doc) src/lib.rs - bar (line 3)", "failed, see above")]
        );
    }

    #[test]
    fn a_line_about_results_inside_a_test_is_not_a_result() {
        assert_eq!(result("test result: unknown"), None);
        assert_eq!(result("the test result is fine. 3 passed"), None);
    }
}
