//! `modules`: every `.rs` file belongs to a target.
//!
//! From each target's root, `mod x;` lines are followed the way rustc does: beside a
//! root or a `mod.rs`, else in the folder named after the file; `#[path = "…"]` from the
//! file's own folder. A `mod x;` inside of an inline module is looked for in that
//! module's folder. `// tidy: not-a-module WHY` in the first lines of a file excepts it
//! (sources that a test compiles itself, for instance).

use std::collections::BTreeSet;

use super::lex;
use super::{Finding, Tree};

pub(super) fn check(tree: &Tree, roots: &[&str]) -> Vec<Finding> {
    let mut reached = BTreeSet::new();
    for root in roots {
        follow(tree, root, folder(root), &mut reached);
    }
    tree.with_extension("rs")
        .filter(|(path, text)| !reached.contains(*path) && !excepted(text))
        .map(|(path, _)| {
            Finding::new("modules", path, 0, "no `mod` line leads to this file: it is never compiled")
        })
        .collect()
}

fn excepted(text: &str) -> bool {
    let mut why = text.lines().take(5).filter_map(|line| line.split_once("// tidy: not-a-module"));
    why.any(|(_, why)| !why.trim().is_empty())
}

fn follow(tree: &Tree, file: &str, children: &str, reached: &mut BTreeSet<String>) {
    let Some(text) = tree.get(file) else { return };
    if !reached.insert(file.to_owned()) {
        return;
    }
    for declared in declarations(text) {
        if let Some(path) = &declared.path {
            let path = join(folder(file), path);
            // rustc treats such a file like a `mod.rs`.
            follow(tree, &path, folder(&path), reached);
            continue;
        }
        let stem = declared.inline.iter().fold(children.to_owned(), |at, name| join(&at, name));
        let stem = join(&stem, &declared.name);
        let (plain, nested) = (format!("{stem}.rs"), format!("{stem}/mod.rs"));
        let path = if tree.has(&plain) { plain } else { nested };
        follow(tree, &path, &stem, reached);
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Declaration {
    name: String,
    path: Option<String>,
    /// The inline modules around it, outermost first.
    inline: Vec<String>,
}

/// The `mod x;` lines of a source. As rustfmt leaves them: one to a line.
fn declarations(text: &str) -> Vec<Declaration> {
    let mut found = Vec::new();
    // Inline modules around the line, and the depth of braces at which each one ends.
    let mut inline: Vec<(String, usize)> = Vec::new();
    let mut depth = 0_usize;
    let mut path = None;
    for (line, raw) in lex::lines(text).iter().zip(text.lines()) {
        let code = line.code.trim();
        if code.starts_with("#[path") {
            path = raw.split('"').nth(1).map(str::to_owned);
        } else if let Some((name, end)) = mod_line(code) {
            if end == ';' {
                let inline = inline.iter().map(|(name, _)| name.clone()).collect();
                found.push(Declaration { name: name.to_owned(), path: path.take(), inline });
            } else if !code.contains('}') {
                inline.push((name.to_owned(), depth));
            }
        }
        if !code.starts_with("#[") && !code.is_empty() {
            path = None;
        }
        depth += code.matches('{').count();
        depth = depth.saturating_sub(code.matches('}').count());
        while inline.last().is_some_and(|(_, at)| depth <= *at) {
            inline.pop();
        }
    }
    found
}

/// `pub(crate) mod name;` → (`name`, `;`).
fn mod_line(code: &str) -> Option<(&str, char)> {
    let code = match code.strip_prefix("pub") {
        Some(rest) => match rest.strip_prefix('(') {
            Some(rest) => rest.split_once(')')?.1.trim_start(),
            None => rest.trim_start(),
        },
        None => code,
    };
    let rest = code.strip_prefix("mod ")?.trim_start();
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '#')?;
    let (name, rest) = rest.split_at(end);
    let end = rest.trim_start().chars().next().filter(|c| matches!(c, ';' | '{'))?;
    Some((name.strip_prefix("r#").unwrap_or(name), end))
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Joins and takes out `.` and `..`.
pub(super) fn join(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreached(files: &[(&str, &str)], roots: &[&str]) -> Vec<String> {
        check(&Tree::of(files), roots).into_iter().map(|finding| finding.path).collect()
    }

    #[test]
    fn a_file_without_a_mod_line_is_found() {
        let files = [
            ("a/src/lib.rs", "pub(crate) mod one;\n// mod three;\n"),
            ("a/src/one.rs", "mod two;"),
            ("a/src/one/two.rs", ""),
            ("a/src/one/lost.rs", ""),
            ("a/src/three.rs", ""),
        ];
        assert_eq!(unreached(&files, &["a/src/lib.rs"]), ["a/src/one/lost.rs", "a/src/three.rs"]);
    }

    #[test]
    fn targets_paths_and_mod_rs_are_followed() {
        let files = [
            ("a/tests/watch.rs", "mod common;\n#[cfg(x)]\n#[path = \"../shared/b.rs\"]\nmod b;\n"),
            ("a/tests/common/mod.rs", "mod deep;"),
            ("a/tests/common/deep.rs", ""),
            ("a/shared/b.rs", "mod c;"),
            ("a/shared/c.rs", ""),
        ];
        assert_eq!(unreached(&files, &["a/tests/watch.rs"]), <[String; 0]>::default());
    }

    #[test]
    fn modules_inside_of_inline_modules_are_followed() {
        let files = [
            ("a/lib.rs", "mod x {\n    mod y;\n}\nmod z;\n"),
            ("a/x/y.rs", ""),
            ("a/z.rs", ""),
            ("a/y.rs", ""),
        ];
        assert_eq!(unreached(&files, &["a/lib.rs"]), ["a/y.rs"]);
    }

    #[test]
    fn an_exception_needs_a_reason() {
        let files =
            [("a.rs", "// tidy: not-a-module compiled by a test\n"), ("b.rs", "// tidy: not-a-module\n")];
        assert_eq!(unreached(&files, &[]), ["b.rs"]);
    }

    #[test]
    fn paths_are_joined() {
        assert_eq!(join("a/b", "../c.rs"), "a/c.rs");
        assert_eq!(join("", "./c.rs"), "c.rs");
    }
}
