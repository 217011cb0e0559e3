//! `cargo xtask schema`: what the protobuf messages of the built-in kinds look like in JSON, as a table.
//!
//! `tools/schema` makes it of the Go types of the pinned Kubernetes release, and `kube-informer` compiles it
//! in. It is text, a line per field, so that a diff shows what a release brought. It is committed; `--check`
//! tells whether it is what the pinned release gives.

use anyhow::{Context, Result, ensure};

const FILE: &str = "crates/kube-informer/src/encoding/schema.txt";

/// Writes the table, or with `check` compares it with what is committed.
pub(crate) fn run(check: bool) -> Result<()> {
    let root = crate::root();
    let table = crate::kinds::go(&root.join("e2e/control-plane"), &["run", "../../tools/schema/main.go"])?;
    let path = root.join(FILE);
    if check {
        let committed = std::fs::read_to_string(&path).with_context(|| format!("reading {FILE}"))?;
        ensure!(committed == table, "{FILE} is not what the pinned release gives; run `cargo xtask schema`");
        println!("{FILE} is up to date");
    } else {
        std::fs::write(&path, &table).with_context(|| format!("writing {FILE}"))?;
        println!("{FILE}: {} bytes; {}", table.len(), table.lines().next().unwrap_or_default());
    }
    Ok(())
}
