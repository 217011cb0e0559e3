//! `cargo xtask kinds`: the built-in kinds as data for the embedded API server.
//!
//! Joins three sources of one pinned Kubernetes release: discovery (what is served), OpenAPI v3 (list
//! types, merge keys, defaults, what is required) and the Go types themselves (`tools/kinds`: pointers,
//! `omitempty`, names in decode errors). The result is one compressed JSON document, which
//! `kube-informer-apiserver` reads at its first use. It is committed; `--check` tells whether it is
//! what the pinned release gives.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};

/// What is served, in no order: discovery gives the order.
const SERVED: &[(&str, &str)] = &[
    ("", "v1"),
    ("admissionregistration.k8s.io", "v1"),
    ("apiextensions.k8s.io", "v1"),
    ("apiregistration.k8s.io", "v1"),
    ("apps", "v1"),
    ("authentication.k8s.io", "v1"),
    ("authorization.k8s.io", "v1"),
    ("autoscaling", "v2"),
    ("batch", "v1"),
    ("coordination.k8s.io", "v1"),
    ("discovery.k8s.io", "v1"),
    ("events.k8s.io", "v1"),
    ("networking.k8s.io", "v1"),
    ("node.k8s.io", "v1"),
    ("policy", "v1"),
    ("rbac.authorization.k8s.io", "v1"),
    ("scheduling.k8s.io", "v1"),
    ("storage.k8s.io", "v1"),
];

/// Kinds that requests or answers hold without being resources.
const EXTRA: &[(&str, &str, &str)] = &[
    ("", "v1", "DeleteOptions"),
    ("", "v1", "Status"),
    ("", "v1", "WatchEvent"),
    ("autoscaling", "v1", "Scale"),
];

const FILE: &str = "crates/kube-informer-apiserver/data/kinds.json.zz";

/// Writes the data, or with `check` compares it with what is committed.
pub(crate) fn run(check: bool) -> Result<()> {
    let root = crate::root();
    let text = generate(&root)?;
    let path = root.join(FILE);
    if check {
        let committed = std::fs::read(&path).with_context(|| format!("reading {FILE}"))?;
        let mut old = String::new();
        flate2::read::ZlibDecoder::new(committed.as_slice())
            .read_to_string(&mut old)
            .with_context(|| format!("unpacking {FILE}"))?;
        // Compared unpacked: another version of the compressor may find other bytes for the same text.
        ensure!(old == text, "{FILE} is not what the pinned release gives; run `cargo xtask kinds`");
        println!("{FILE} is up to date");
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(text.as_bytes())?;
    let packed = packer.finish()?;
    std::fs::write(&path, &packed).with_context(|| format!("writing {FILE}"))?;
    println!("{FILE}: {} bytes, {} unpacked", packed.len(), text.len());
    Ok(())
}

fn generate(root: &Path) -> Result<String> {
    let module = root.join("e2e/control-plane");
    let release = PathBuf::from(go(&module, &["list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes"])?.trim());
    let types: Value = serde_json::from_str(&go(&module, &["run", "../../tools/kinds/main.go"])?)
        .context("reading what tools/kinds prints")?;
    let served = served(&release)?;
    let schemas = schemas(&release)?;
    let mut table = Table { go: &types, openapi: &schemas, index: BTreeMap::new(), rows: Vec::new() };
    for group in &served {
        for resource in &group.resources {
            for kind in resource.kinds(&group.name, &group.version) {
                table.root(&kind)?;
            }
        }
    }
    for (group, version, kind) in EXTRA {
        table.root(&format!("{group}/{version}/{kind}"))?;
    }
    let groups: Vec<Value> = served.iter().map(Group::to_json).collect();
    // One row per line, so that a text diff of two releases can be read.
    let mut text = String::from("{\"groups\":[\n");
    text.push_str(&lines(&groups));
    text.push_str("\n],\"types\":[\n");
    text.push_str(&lines(&table.rows));
    text.push_str("\n]}\n");
    Ok(text)
}

fn lines(rows: &[Value]) -> String {
    rows.iter().map(Value::to_string).collect::<Vec<_>>().join(",\n")
}

/// What a Go command prints, run in the folder of a module.
pub(crate) fn go(folder: &Path, args: &[&str]) -> Result<String> {
    let output = Command::new("go").args(args).current_dir(folder).output().context("running go")?;
    if !output.status.success() {
        bail!("go {} failed:\n{}", args.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn read(path: &Path) -> Result<Value> {
    let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("parsing {}", path.display()))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn array<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// One served group version.
struct Group {
    name: String,
    version: String,
    resources: Vec<Resource>,
}

struct Resource {
    row: Map<String, Value>,
    kind: String,
    /// `group/version/kind` of each subresource.
    subresources: BTreeSet<String>,
}

impl Group {
    fn to_json(&self) -> Value {
        let resources: Vec<&Map<String, Value>> = self.resources.iter().map(|r| &r.row).collect();
        json!({ "group": self.name, "version": self.version, "resources": resources })
    }
}

impl Resource {
    fn kinds(&self, group: &str, version: &str) -> Vec<String> {
        let own = format!("{group}/{version}/{}", self.kind);
        [own.clone(), format!("{own}List")].into_iter().chain(self.subresources.iter().cloned()).collect()
    }
}

/// The served group versions in discovery's order: the core group first.
fn served(release: &Path) -> Result<Vec<Group>> {
    let mut out = vec![group(release, "", "v1")?];
    let all = read(&release.join("api/discovery/aggregated_v2.json"))?;
    for item in array(&all, "items") {
        let name = text(&item["metadata"], "name");
        for version in array(item, "versions") {
            let version = text(version, "version");
            if SERVED.contains(&(name, version)) {
                out.push(group(release, name, version)?);
            }
        }
    }
    ensure!(out.len() == SERVED.len(), "the release does not serve all of {SERVED:?}");
    Ok(out)
}

/// Reads one `APIResourceList`: unlike aggregated discovery it holds the storage version hashes.
fn group(release: &Path, name: &str, version: &str) -> Result<Group> {
    let file = if name.is_empty() { format!("api__{version}") } else { format!("apis__{name}__{version}") };
    let list = read(&release.join(format!("api/discovery/{file}.json")))?;
    let mut resources: Vec<Resource> = Vec::new();
    for entry in array(&list, "resources") {
        let mut row = Map::new();
        match text(entry, "name").split_once('/') {
            None => {
                row.insert("name".into(), entry["name"].clone());
                for key in ["singularName", "kind", "shortNames", "categories", "verbs", "storageVersionHash"]
                {
                    if !entry[key].is_null() {
                        row.insert(key.into(), entry[key].clone());
                    }
                }
                if entry["namespaced"] == true {
                    row.insert("namespaced".into(), true.into());
                }
                let kind = text(entry, "kind").to_owned();
                resources.push(Resource { row, kind, subresources: BTreeSet::new() });
            }
            Some((plural, subresource)) => {
                let Some(parent) = resources.last_mut().filter(|r| r.row["name"] == plural) else {
                    bail!("{plural}/{subresource} does not follow its resource");
                };
                row.insert("name".into(), subresource.into());
                for key in ["group", "version", "kind", "verbs"] {
                    if !entry[key].is_null() {
                        row.insert(key.into(), entry[key].clone());
                    }
                }
                let (group, version) = if entry["version"].is_null() {
                    (name, version)
                } else {
                    (text(entry, "group"), text(entry, "version"))
                };
                parent.subresources.insert(format!("{group}/{version}/{}", text(entry, "kind")));
                let list = parent.row.entry("subresources").or_insert_with(|| json!([]));
                if let Some(list) = list.as_array_mut() {
                    list.push(Value::Object(row));
                }
            }
        }
    }
    Ok(Group { name: name.to_owned(), version: version.to_owned(), resources })
}

/// All component schemas of the release's OpenAPI v3 documents.
fn schemas(release: &Path) -> Result<BTreeMap<String, Value>> {
    let mut out = BTreeMap::new();
    for entry in std::fs::read_dir(release.join("api/openapi-spec/v3"))? {
        let mut document = read(&entry?.path())?;
        if let Some(Value::Object(all)) = document.pointer_mut("/components/schemas").map(Value::take) {
            out.extend(all);
        }
    }
    Ok(out)
}

/// The types that the served kinds reach, each once, in the order they are met.
struct Table<'a> {
    go: &'a Value,
    openapi: &'a BTreeMap<String, Value>,
    index: BTreeMap<String, usize>,
    rows: Vec<Value>,
}

impl Table<'_> {
    /// Adds a kind. Kinds without a schema (options of connect requests) are left out.
    fn root(&mut self, kind: &str) -> Result<()> {
        let Some(name) = self.go["kinds"][kind].as_str() else {
            // `PodList` exists, `TokenReviewList` does not.
            ensure!(kind.ends_with("List"), "no Go type for {kind}");
            return Ok(());
        };
        let name = name.to_owned();
        if !self.openapi.contains_key(&name) {
            return Ok(());
        }
        let index = self.add(&name)?;
        let parts: Vec<&str> = kind.splitn(3, '/').collect();
        if let Some(row) = self.rows[index].as_object_mut() {
            let kinds = row.entry("kinds").or_insert_with(|| json!([]));
            if let Some(kinds) = kinds.as_array_mut().filter(|k| !k.contains(&json!(parts))) {
                kinds.push(json!(parts));
            }
        }
        Ok(())
    }

    fn add(&mut self, name: &str) -> Result<usize> {
        if let Some(&index) = self.index.get(name) {
            return Ok(index);
        }
        let index = self.rows.len();
        self.index.insert(name.to_owned(), index);
        self.rows.push(Value::Null);
        let (go, openapi) = (self.go, self.openapi);
        let source = &go["types"][name];
        let schema = openapi.get(name).with_context(|| format!("{name} is not in OpenAPI"))?;
        let mut row = Map::new();
        row.insert("name".into(), name.into());
        row.insert("go".into(), source["go"].clone());
        if source["custom"] == true {
            row.insert("custom".into(), true.into());
        }
        if schema["x-kubernetes-map-type"] == "atomic" {
            row.insert("atomic".into(), true.into());
        }
        if !array(schema, "required").is_empty() {
            row.insert("required".into(), schema["required"].clone());
        }
        let mut fields = Vec::new();
        for field in array(source, "fields") {
            let property = &schema["properties"][text(field, "name")];
            ensure!(!property.is_null(), "{name}.{} is not in OpenAPI", text(field, "name"));
            fields.push(self.field(field, property)?);
        }
        if !fields.is_empty() {
            row.insert("fields".into(), fields.into());
        }
        self.rows[index] = Value::Object(row);
        Ok(index)
    }

    fn field(&mut self, field: &Value, property: &Value) -> Result<Value> {
        let mut row = Map::new();
        row.insert("n".into(), field["name"].clone());
        row.insert("t".into(), self.place(&field["type"])?);
        let bits = u8::from(field["type"]["pointer"] == true)
            | u8::from(field["omitEmpty"] == true) << 1
            | u8::from(field["omitZero"] == true) << 2;
        if bits != 2 {
            row.insert("o".into(), bits.into());
        }
        match array(field, "numbers") {
            [] => {}
            [one] => drop(row.insert("p".into(), one.clone())),
            _ => drop(row.insert("p".into(), field["numbers"].clone())),
        }
        if !field["via"].is_null() {
            let via: Vec<&str> = array(field, "via").iter().filter_map(Value::as_str).collect();
            row.insert("via".into(), via.join(".").into());
        }
        for (from, to) in [
            ("x-kubernetes-patch-merge-key", "key"),
            ("x-kubernetes-patch-strategy", "patch"),
            ("x-kubernetes-list-type", "list"),
            ("x-kubernetes-list-map-keys", "keys"),
            ("x-kubernetes-map-type", "map"),
        ] {
            if !property[from].is_null() {
                row.insert(to.into(), property[from].clone());
            }
        }
        // Zero values are noise of the generator: they are what Go's absent fields are anyway.
        let zero = [json!(""), json!(0), json!(false), json!({}), json!([]), Value::Null];
        if !zero.contains(&property["default"]) {
            row.insert("d".into(), property["default"].clone());
        }
        Ok(Value::Object(row))
    }

    /// A type: a row number, `"string"`, `"string:v1.Protocol"` (with its Go name where that differs),
    /// or `[list or map, element, Go name where it is another, true if it is a message in protobuf]`.
    fn place(&mut self, place: &Value) -> Result<Value> {
        let (kind, go) = (text(place, "kind"), text(place, "go"));
        Ok(match kind {
            "ref" => self.add(text(place, "ref"))?.into(),
            "list" | "map" => {
                let elem = &place["elem"];
                let star = if elem["pointer"] == true { "*" } else { "" };
                let prefix = if kind == "list" { "[]" } else { "map[string]" };
                let mut parts = vec![Value::from(kind), self.place(elem)?];
                if go != format!("{prefix}{star}{}", text(elem, "go")) {
                    parts.push(go.into());
                }
                if place["wrapped"] == true {
                    parts.push(true.into());
                }
                ensure!(star.is_empty(), "{go}: elements that are pointers are not foreseen");
                parts.into()
            }
            "bytes" if go == "[]uint8" => kind.into(),
            _ if kind == go => kind.into(),
            _ => format!("{kind}:{go}").into(),
        })
    }
}
