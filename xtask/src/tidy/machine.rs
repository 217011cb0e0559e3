//! `machine`: nothing in the repository knows the machine it was written on.
//!
//! No home folder or working folder of a developer, no package mirror, no replaced
//! package source. `tidy: allow-machine WHY` on a line excepts it (a path inside of a
//! container image, for instance).

use super::{Finding, Tree};

/// Folders of people's machines; written apart, or this file would be a finding.
const FOLDERS: [&str; 4] =
    [concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// Parts of host names of package mirrors and proxies.
const MIRRORS: [&str; 8] = [
    concat!("arti", "factory"),
    concat!("jf", "rog."),
    concat!("nex", "us."),
    concat!("proxy.golang", ".org"),
    concat!("go", "proxy."),
    concat!("index.crates", ".io"),
    concat!("static.crates", ".io"),
    concat!("registry.npmjs", ".org"),
];

/// The one place that Rust packages come from.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

const ALLOW: &str = "tidy: allow-machine ";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        for (number, line) in (1..).zip(text.lines()) {
            if line.split_once(ALLOW).is_some_and(|(_, why)| !why.trim().is_empty()) {
                continue;
            }
            if let Some(folder) = FOLDERS.iter().find(|folder| has_folder(line, folder)) {
                findings.push(Finding::new("machine", path, number, format!("a path below {folder}")));
            }
            let lower = line.to_ascii_lowercase();
            if let Some(host) = MIRRORS.iter().find(|host| lower.contains(**host)) {
                findings.push(Finding::new("machine", path, number, format!("the package mirror {host}")));
            }
        }
    }
    findings.extend(sources(tree));
    findings
}

/// An absolute path: one in the middle of a relative path is none.
fn has_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_-./~{}$*>".contains(c))
    })
}

/// Packages come from crates.io, and no configuration says otherwise.
fn sources(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        let lock = path.ends_with("Cargo.lock");
        let config = path.ends_with(".cargo/config.toml");
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if lock && line.starts_with("source = ") && line != format!("source = \"{CRATES_IO}\"") {
                findings.push(Finding::new("machine", path, number, "a package that is not from crates.io"));
            }
            if config && ["[source", "[registr"].iter().any(|table| line.starts_with(table)) {
                findings.push(Finding::new("machine", path, number, "a package source of one machine"));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of(&[(path, text)])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn paths_of_a_machine_are_found() {
        for folder in FOLDERS {
            assert_eq!(found("a.md", &format!("fine\nsee {folder}x")), [2]);
            assert_eq!(found("a.rs", &format!("let p = \"{folder}x\";")), [1]);
            assert_eq!(
                found("a.md", &format!("see net{folder}x and $HOME{folder}x")),
                <[usize; 0]>::default()
            );
            assert_eq!(
                found("a.md", &format!("{folder}x <!-- tidy: allow-machine in the image -->")),
                <[usize; 0]>::default()
            );
            assert_eq!(found("a.md", &format!("{folder}x tidy: allow-machine ")), [1]);
        }
    }

    #[test]
    fn package_mirrors_are_found() {
        for host in MIRRORS {
            assert_eq!(found("go.env", &format!("GOPROXY=https://{host}example")), [1]);
        }
        assert_eq!(found("deploy.yaml", "image: registry.k8s.io/pause:3.10"), <[usize; 0]>::default());
    }

    #[test]
    fn packages_from_elsewhere_are_found() {
        let lock = "[[package]]\nsource = \"git+https://example.com/x\"\n";
        assert_eq!(found("Cargo.lock", lock), [2]);
        assert_eq!(found("Cargo.lock", &format!("source = \"{CRATES_IO}\"\n")), <[usize; 0]>::default());
        assert_eq!(found(".cargo/config.toml", "[alias]\n[source.crates-io]\n"), [2]);
        assert_eq!(found(".cargo/config.toml", "[registries.x]\n"), [1]);
    }
}
