//! The overlays that the READMEs show for the manifests: kustomize takes them as they stand there, beside a clone.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use kube_informer_testbed::binaries;

use crate::harness::blocking;
use crate::running::{finish, text};

/// The YAML of a README that is an overlay.
fn overlay(readme: &str) -> &str {
    let blocks = readme.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut overlays = blocks.filter(|block| block.starts_with("resources:"));
    let overlay = overlays.next().expect("the README has an overlay");
    assert_eq!(overlays.next(), None, "there is another one");
    overlay
}

/// What a key of rendered manifests is, wherever it has a word beside it.
fn values<'r>(rendered: &'r str, key: &str) -> BTreeSet<&'r str> {
    let pairs = rendered.lines().filter_map(|line| line.trim_start_matches([' ', '-']).split_once(": "));
    pairs.filter(|(name, _)| *name == key).map(|(_, value)| value).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_overlays_of_the_documents_can_be_rendered() {
    let kubectl = kube_informer_testbed::require!(binaries::kubectl().await);
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (name, namespace) in [("kube-informer-cli", "kube-informer"), ("kube-informer-elasti", "elasti")] {
        let folder = tempfile::tempdir().unwrap();
        let clone = folder.path().join("kube-informer/crates").join(name).join("manifests");
        fs::create_dir_all(&clone).unwrap();
        for file in fs::read_dir(crates.join(name).join("manifests")).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), clone.join(file.file_name())).unwrap();
        }
        let readme = fs::read_to_string(crates.join(name).join("README.md")).unwrap();
        let beside = folder.path().join("overlay");
        fs::create_dir(&beside).unwrap();
        // As it stands there, and where somebody has named another namespace.
        for place in [namespace, "elsewhere"] {
            let line = |place: &str| format!("\nnamespace: {place}\n");
            let text_of = overlay(&readme).replace(&line(namespace), &line(place));
            fs::write(beside.join("kustomization.yaml"), text_of).unwrap();
            let mut command = Command::new(&kubectl);
            command.arg("kustomize").arg(&beside).env("KUBERC", "off");
            let output = blocking(|| finish(command));
            let (rendered, said) = (text(&output.stdout), text(&output.stderr));
            assert!(output.status.success() && said.is_empty(), "{name}: {said}");
            let image = ["registry.example.com/kube-informer:v1"];
            assert_eq!(values(&rendered, "image"), BTreeSet::from(image), "{rendered}");
            assert_eq!(values(&rendered, "namespace"), BTreeSet::from([place]), "{rendered}");
        }
    }
}
