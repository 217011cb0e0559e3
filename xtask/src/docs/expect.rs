//! Whether output is what a document says it is.

/// Finds expected lines in output as it comes.
#[derive(Debug)]
pub(super) struct Expect<'a> {
    missing: &'a [String],
}

impl<'a> Expect<'a> {
    pub(super) fn new(lines: &'a [String]) -> Self {
        let mut expect = Expect { missing: lines };
        expect.pass_ellipses();
        expect
    }

    pub(super) fn line(&mut self, line: &str) {
        if let Some((first, rest)) = self.missing.split_first()
            && matches(first.trim(), line.trim())
        {
            self.missing = rest;
            self.pass_ellipses();
        }
    }

    /// The first line that has not come.
    pub(super) fn missing(&self) -> Option<&'a str> {
        self.missing.first().map(String::as_str)
    }

    fn pass_ellipses(&mut self) {
        while let Some((first, rest)) = self.missing.split_first()
            && first.trim() == "…"
        {
            self.missing = rest;
        }
    }
}

/// Whether `line` is `pattern`, in which `…` stands for anything.
pub(super) fn matches(pattern: &str, line: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('…') else {
        return pattern == line;
    };
    let Some(rest) = line.strip_prefix(head) else {
        return false;
    };
    rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| matches(tail, &rest[at..]))
}
