//! `packages`: who may depend on whom, what nobody may, and that every package takes the
//! workspace's lints.
//!
//! Dependencies count in every form (normal, build, development) and through other
//! packages of the workspace.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::{Finding, Tree};

/// A package of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Package {
    name: String,
    /// Its `Cargo.toml`, relative to the root.
    manifest: String,
    /// The source file of each of its targets, relative to the root.
    pub(super) roots: Vec<String>,
    dependencies: Vec<String>,
}

/// (who, on what, why not).
const FORBIDDEN: [(&str, &str, &str); 4] = [
    (
        "kube-informer-apiserver",
        "kube-informer",
        "shared types would hide faults of decoding; it speaks HTTP only",
    ),
    ("kube-informer-testbed", "kube-informer", "what judges the library must not use it"),
    ("kube-informer-apiserver", "kube-informer-testbed", "it is published, the testbed is not"),
    ("kube-informer", "kube-informer-feed", "the feed stands on the library"),
];

/// Asks cargo.
pub(super) fn read(root: &Path) -> anyhow::Result<Vec<Package>> {
    let output = std::process::Command::new(crate::cargo())
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root)
        .output()
        .context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata gave no JSON")?;
    parse(&metadata)
}

fn parse(metadata: &Value) -> anyhow::Result<Vec<Package>> {
    let root = metadata["workspace_root"].as_str().context("cargo metadata names no workspace")?;
    let relative = |path: &Value| -> Option<String> {
        Some(path.as_str()?.strip_prefix(root)?.trim_start_matches(['/', '\\']).replace('\\', "/"))
    };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let packages = list(&metadata["packages"]);
    ensure!(!packages.is_empty(), "cargo metadata names no packages");
    packages
        .iter()
        .map(|package| {
            Ok(Package {
                name: package["name"].as_str().context("a package without a name")?.to_owned(),
                manifest: relative(&package["manifest_path"])
                    .context("a package outside of the workspace")?,
                roots: list(&package["targets"]).iter().filter_map(|t| relative(&t["src_path"])).collect(),
                dependencies: list(&package["dependencies"])
                    .iter()
                    .filter_map(|dependency| Some(dependency["name"].as_str()?.to_owned()))
                    .collect(),
            })
        })
        .collect()
}

pub(super) fn check(tree: &Tree, packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let reached = closure(package, packages);
        for (_, on, why) in
            FORBIDDEN.iter().filter(|(who, on, _)| *who == package.name && reached.contains(on))
        {
            let message = format!("{} depends on {on}: {why}", package.name);
            findings.push(Finding::new("packages", &package.manifest, 0, message));
        }
        let manifest = tree.get(&package.manifest).unwrap_or_default();
        let lints = manifest.split("[lints]").nth(1).unwrap_or_default();
        if lints.trim_start().lines().next().map(|line| line.replace(' ', "")).as_deref()
            != Some("workspace=true")
        {
            let message = "lacks `[lints] workspace = true`";
            findings.push(Finding::new("packages", &package.manifest, 0, message));
        }
    }
    findings.extend(packages.iter().filter_map(|package| readme(tree, package)));
    findings.extend(banned(tree));
    findings
}

/// The README that a package names is there: without it, it cannot be published.
fn readme(tree: &Tree, package: &Package) -> Option<Finding> {
    let manifest = tree.get(&package.manifest)?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("readme"))?;
    let file = line.split('"').nth(1)?;
    let folder = package.manifest.rsplit_once('/').map_or("", |(folder, _)| folder);
    let missing = !tree.has(&super::modules::join(folder, file));
    missing
        .then(|| Finding::new("packages", &package.manifest, 0, format!("names {file}, which is not there")))
}

/// What `deny.toml` bans is not in `Cargo.lock`; cargo-deny would say so too, where it is installed.
fn banned(tree: &Tree) -> Vec<Finding> {
    let deny = tree.get("deny.toml").unwrap_or_default();
    let bans: Vec<&str> =
        deny.lines().filter_map(|line| line.trim().strip_prefix("{ crate = \"")?.split('"').next()).collect();
    let lock = tree.get("Cargo.lock").unwrap_or_default();
    (1..)
        .zip(lock.lines())
        .filter_map(|(number, line)| Some((number, line.strip_prefix("name = \"")?.strip_suffix('"')?)))
        .filter(|(_, name)| bans.contains(name))
        .map(|(number, name)| {
            Finding::new("packages", "Cargo.lock", number, format!("deny.toml bans {name}"))
        })
        .collect()
}

/// All that `package` reaches through packages of the workspace.
fn closure<'a>(package: &'a Package, packages: &'a [Package]) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&Package> = vec![package];
    while let Some(next) = open.pop() {
        for name in &next.dependencies {
            if reached.insert(name.as_str()) {
                open.extend(packages.iter().find(|package| package.name == *name));
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            manifest: format!("{name}/Cargo.toml"),
            roots: Vec::new(),
            dependencies: dependencies.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    const LINTS: &str = "[package]\n\n[lints]\nworkspace = true\n";

    #[test]
    fn a_forbidden_dependency_is_found_even_through_others() {
        let packages = [
            package("kube-informer-apiserver", &["between"]),
            package("between", &["kube-informer"]),
            package("kube-informer", &[]),
        ];
        let tree = Tree::of(&[
            ("kube-informer-apiserver/Cargo.toml", LINTS),
            ("between/Cargo.toml", LINTS),
            ("kube-informer/Cargo.toml", LINTS),
        ]);
        let findings = check(&tree, &packages);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].path, "kube-informer-apiserver/Cargo.toml");
        assert_eq!(check(&tree, &packages[1..]), []);
    }

    #[test]
    fn a_package_without_the_lints_is_found() {
        let tree = Tree::of(&[("a/Cargo.toml", "[package]\n[lints.rust]\n"), ("b/Cargo.toml", LINTS)]);
        let findings = check(&tree, &[package("a", &[]), package("b", &[])]);
        assert_eq!(findings.iter().map(|f| f.path.as_str()).collect::<Vec<_>>(), ["a/Cargo.toml"]);
    }

    #[test]
    fn a_readme_that_is_not_there_is_found() {
        let manifest = format!("{LINTS}\n[package]\nreadme = \"README.md\"\n");
        let package = package("a", &[]);
        assert!(readme(&Tree::of(&[("a/Cargo.toml", &manifest), ("README.md", "")]), &package).is_some());
        assert!(readme(&Tree::of(&[("a/Cargo.toml", &manifest), ("a/README.md", "")]), &package).is_none());
    }

    #[test]
    fn a_banned_package_is_found() {
        let deny = "[bans]\ndeny = [\n    { crate = \"openssl\", reason = \"one TLS\" },\n]\n";
        let lock = "[[package]]\nname = \"openssl\"\n[[package]]\nname = \"openssl-probe\"\n";
        let findings = banned(&Tree::of(&[("deny.toml", deny), ("Cargo.lock", lock)]));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, 2);
    }

    #[test]
    fn what_cargo_says_is_understood() {
        let metadata = serde_json::json!({
            "workspace_root": "/x",
            "packages": [{
                "name": "a",
                "manifest_path": "/x/a/Cargo.toml",
                "targets": [{ "src_path": "/x/a/src/lib.rs" }, { "src_path": "/x/a/tests/b.rs" }],
                "dependencies": [{ "name": "serde" }],
            }],
        });
        let packages = parse(&metadata).unwrap();
        assert_eq!(packages[0].manifest, "a/Cargo.toml");
        assert_eq!(packages[0].roots, ["a/src/lib.rs", "a/tests/b.rs"]);
        assert_eq!(packages[0].dependencies, ["serde"]);
        assert!(parse(&serde_json::json!({ "workspace_root": "/x", "packages": [] })).is_err());
    }

    #[test]
    fn this_workspace_is_read() {
        let packages = read(&crate::root()).unwrap();
        assert!(packages.iter().any(|package| package.name == "xtask"));
    }
}
