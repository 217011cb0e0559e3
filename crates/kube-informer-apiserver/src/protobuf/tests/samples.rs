//! Each kind, filled in completely, in both encodings, as Kubernetes tests its own decoders.
//!
//! The samples are part of the Go modules that the control plane is pinned to, and are read from there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;
use crate::kinds;

/// Modules with samples: name, and where the samples are.
const MODULES: [(&str, &str); 2] =
    [("k8s.io/api", "testdata/HEAD"), ("k8s.io/apiextensions-apiserver", "pkg/apis/testdata/HEAD")];

const THIS: &str = "protobuf::tests::samples::each_kind_reads_the_same_from_protobuf_and_json";

#[test]
fn each_kind_reads_the_same_from_protobuf_and_json() {
    let folders = match MODULES.iter().map(|(module, path)| Ok(folder(module)?.join(path))).collect() {
        Ok::<Vec<PathBuf>, String>(folders) => folders,
        Err(why) => return leave_out(&why),
    };
    let (mut read, mut differences) = (BTreeSet::new(), Vec::new());
    for folder in &folders {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let Some(name) = name.strip_suffix(".json") else { continue };
            if let Some(kind) = of_kind(name) {
                same(&path, &kind, &mut differences);
                read.insert(kind);
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    // The aggregator's module has no samples.
    let missing: Vec<_> = kinds::builtin()
        .iter()
        .map(|r| (r.group.clone(), r.version.clone(), r.kind.clone()))
        .filter(|kind| kind.0 != "apiregistration.k8s.io" && !read.contains(kind))
        .collect();
    assert!(missing.is_empty(), "no samples for {missing:?}");
}

/// `apps.v1.Deployment`, if it is in the table.
fn of_kind(name: &str) -> Option<(String, String, String)> {
    let (rest, kind) = name.rsplit_once('.')?;
    let (group, version) = rest.rsplit_once('.')?;
    let group = if group == "core" { "" } else { group };
    let key = (group.to_owned(), version.to_owned(), kind.to_owned());
    // Events of a watch are only ever sent by servers, and have no envelope.
    (kinds::kinds().contains_key(&key) && kind != "WatchEvent").then_some(key)
}

fn same(path: &Path, (group, version, kind): &(String, String, String), differences: &mut Vec<String>) {
    let schema = kinds::kind(group, version, kind).unwrap();
    let stored = |json: &[u8]| {
        let (mut object, decoded) = schema.decode_slice(json).unwrap();
        assert!(decoded.strict.is_empty(), "{}: {:?}", path.display(), decoded.strict);
        schema.normalise(&mut object);
        object
    };
    let from_json = stored(&std::fs::read(path).unwrap());
    let binary = std::fs::read(path.with_extension("pb")).unwrap();
    match read(&binary) {
        Ok(object) => {
            let from_protobuf = stored(object.to_string().as_bytes());
            let start = format!("{group}/{version} {kind} ");
            compare(&start, &from_json, &from_protobuf, differences);
        }
        Err(error) => differences.push(format!("{}: {}", path.display(), error.message)),
    }
}

/// Where two values differ.
fn compare(path: &str, json: &Value, protobuf: &Value, out: &mut Vec<String>) {
    match (json, protobuf) {
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<_> = a.keys().chain(b.keys()).collect();
            for name in names {
                let of = |map: &Map<String, Value>| map.get(name).cloned().unwrap_or_default();
                compare(&format!("{path}.{name}"), &of(a), &of(b), out);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{index}]"), a, b, out);
            }
        }
        _ if json == protobuf => {}
        _ => out.push(format!("{path}: JSON {json}, protobuf {protobuf}")),
    }
}

/// Where Go keeps a module of the pinned control plane.
fn folder(module: &str) -> Result<PathBuf, String> {
    let control_plane = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../e2e/control-plane");
    let go = Command::new("go")
        .args(["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module])
        .current_dir(&control_plane)
        .output()
        .map_err(|error| format!("Go ({error}) not found; install it with: https://go.dev/dl"))?;
    let dir = String::from_utf8_lossy(&go.stdout).trim().to_owned();
    // A module that was never downloaded has no folder.
    if !go.status.success() || dir.is_empty() {
        let why = String::from_utf8_lossy(&go.stderr).trim().to_owned();
        let how = "cd e2e/control-plane && go mod download";
        return Err(format!("{module} ({why}) not found; install it with: {how}"));
    }
    Ok(dir.into())
}

/// Says that the test did not run, in the form that `cargo xtask test` counts.
fn leave_out(why: &str) {
    use std::io::Write;
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = format!("MISSING kube_informer_apiserver::{THIS}: {why}\n");
    print!("{line}");
    if let Some(file) = std::env::var_os("KUBE_INFORMER_SKIP_FILE").filter(|file| !file.is_empty()) {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(file).unwrap();
        file.write_all(line.as_bytes()).unwrap();
    }
}
