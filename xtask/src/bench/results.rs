//! The parts of `bench/RESULTS.md` that benchmarks write: what stands between two comments.
//!
//! A section that is not in the document yet is put into it, with what is to be said about it, in its place among the
//! others. Text outside of the comments is never changed: people write it.

use std::path::Path;

use anyhow::{Context, Result};

use super::all::SECTIONS;

/// The place of a benchmark in the document.
#[derive(Debug)]
pub(super) struct Section {
    /// As in `cargo xtask bench NAME`.
    pub(super) name: &'static str,
    pub(super) heading: &'static str,
    /// What stands above the tables: what is measured, and how.
    pub(super) about: &'static str,
}

const END: &str = "<!-- end of what it writes -->\n";

/// What comes after all that is written here.
const LAST: &str = "## What one object costs\n";

/// Puts what a benchmark has found into its section.
pub(super) fn write(root: &Path, section: &Section, text: &str) -> Result<()> {
    let path = root.join("bench/RESULTS.md");
    let document = std::fs::read_to_string(&path).context("cannot read bench/RESULTS.md")?;
    let document = put(&document, &SECTIONS, section, text)?;
    std::fs::write(&path, document).context("cannot write bench/RESULTS.md")?;
    eprintln!("written to bench/RESULTS.md");
    Ok(())
}

/// The document with this between the comments of a section.
fn put(document: &str, order: &[&Section], section: &Section, text: &str) -> Result<String> {
    let begin = begin(section);
    let text = text.trim_end();
    if let Some((before, rest)) = document.split_once(&begin) {
        let (_, after) = rest.split_once(END).with_context(|| format!("bench/RESULTS.md has no {END:?}"))?;
        return Ok(format!("{before}{begin}\n{text}\n\n{END}{after}"));
    }
    let Section { name, heading, about } = section;
    let new = format!(
        "## {heading}\n\n<!-- test: skip: takes minutes, and its results depend on the machine -->\n```sh\n\
         cargo xtask bench {name}\n```\n\n{}\n\n{begin}\n{text}\n\n{END}",
        about.trim()
    );
    Ok(match place(document, order, section) {
        Some((before, after)) => format!("{before}{new}\n{after}"),
        None => format!("{}\n\n{new}", document.trim_end()),
    })
}

/// What comes before a section that is not there, and what after it: the first of those that have their place there.
fn place<'a>(document: &'a str, order: &[&Section], section: &Section) -> Option<(&'a str, &'a str)> {
    let following = order.iter().skip_while(|other| other.name != section.name).skip(1);
    let headings = following.map(|other| format!("## {}\n", other.heading)).chain([LAST.to_owned()]);
    let at = headings.filter_map(|heading| heading_at(document, &heading)).min()?;
    document.split_at_checked(at)
}

fn heading_at(document: &str, heading: &str) -> Option<usize> {
    let at = document.find(&format!("\n{heading}"))?;
    Some(at + 1)
}

fn begin(section: &Section) -> String {
    format!("<!-- written by: cargo xtask bench {} -->\n", section.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Section = Section { name: "a", heading: "Anna", about: "About a." };
    const B: Section = Section { name: "b", heading: "Bea", about: "About b." };
    const C: Section = Section { name: "c", heading: "Cleo", about: "About c." };
    const ORDER: [&Section; 3] = [&A, &B, &C];

    fn put(document: &str, section: &Section, text: &str) -> String {
        super::put(document, &ORDER, section, text).unwrap()
    }

    #[test]
    fn only_what_stands_between_the_comments_is_replaced() {
        let of = |one: &str, other: &str| {
            let (a, b) = (begin(&A), begin(&B));
            format!("# A\n\n{a}\n{one}\n\n{END}\nB\n\n{b}\n{other}\n\n{END}")
        };
        assert_eq!(put(&of("old", "old"), &A, "new\n"), of("new", "old"));
        assert_eq!(put(&of("old", "old"), &B, "new"), of("old", "new"));
        assert!(super::put(&begin(&A), &ORDER, &A, "new").is_err());
    }

    #[test]
    fn a_section_that_is_not_there_gets_its_place() {
        let start = "# Costs\n\nWords.\n\n## What one object costs\n\nLittle.\n";
        let with_c = put(start, &C, "c c");
        let with_all = put(&put(&with_c, &A, "a a"), &B, "b b");
        let headings: Vec<&str> = with_all.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(headings, ["## Anna", "## Bea", "## Cleo", "## What one object costs"]);
        assert!(with_all.contains("cargo xtask bench b\n```\n\nAbout b.\n\n<!-- written by"), "{with_all}");
        assert!(with_all.ends_with("Little.\n"));
        assert_eq!(put(&with_all, &B, "b b"), with_all);
        assert!(put("# Costs\n", &A, "a").ends_with(END));
    }

    #[test]
    fn all_sections_have_names_and_headings_of_their_own() {
        for (at, section) in SECTIONS.iter().enumerate() {
            let others = SECTIONS.iter().skip(at + 1);
            assert!(others.clone().all(|other| other.name != section.name), "{}", section.name);
            assert!(others.clone().all(|other| other.heading != section.heading), "{}", section.heading);
        }
    }
}
