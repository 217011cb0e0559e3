//! A kubeconfig for the server. Written as JSON, which every YAML reader takes.
//!
//! It holds credentials: the file that [`write`] makes is its owner's alone, whatever was there before, and is there as
//! a whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The contents of a kubeconfig that reaches `url`.
pub(crate) fn kubeconfig(url: &str, ca_pem: Option<&str>, token: Option<&str>) -> Value {
    let mut cluster = json!({ "server": url });
    if let Some(ca) = ca_pem {
        cluster["certificate-authority-data"] = STANDARD.encode(ca).into();
    }
    // Over TLS kubectl asks for a name and a password where it has nothing to show; without tokens, any is taken.
    let token = token.or_else(|| ca_pem.map(|_| "anybody"));
    let user = token.map_or_else(|| json!({}), |token| json!({ "token": token }));
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "kube-informer", "cluster": cluster }],
        "users": [{ "name": "kube-informer", "user": user }],
        "contexts": [{
            "name": "kube-informer",
            "context": { "cluster": "kube-informer", "user": "kube-informer", "namespace": "default" },
        }],
        "current-context": "kube-informer",
    })
}

/// Puts a file with this text in the place of whatever file was there; a link is replaced, not followed.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(refused(ErrorKind::IsADirectory, "it is a directory")),
        // What is renamed onto a device or a pipe takes its place for everyone.
        Ok(found) if !found.is_file() => return Err(refused(ErrorKind::InvalidInput, "it is not a file")),
        _ => {}
    }
    let (mut file, temporary) = beside(path)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one to tell.
        let _: io::Result<()> = fs::remove_file(&temporary);
    }
    written
}

/// A new file beside another, on the same file system, that only its owner can read.
fn beside(path: &Path) -> io::Result<(File, PathBuf)> {
    /// More than leftovers of others with the same process id.
    const ATTEMPTS: u32 = 64;
    let name = path.file_name().ok_or_else(|| refused(ErrorKind::InvalidInput, "it has no name"))?;
    let mut options = OpenOptions::new();
    // Never one that is there already: who made it may have it open.
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut attempt = 0;
    loop {
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}-{attempt}", std::process::id()));
        let temporary = path.with_file_name(hidden);
        match options.open(&temporary) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && attempt < ATTEMPTS => attempt += 1,
            opened => return opened.map(|file| (file, temporary)),
        }
    }
}

fn refused(kind: ErrorKind, why: &str) -> io::Error {
    io::Error::new(kind, why)
}

#[cfg(test)]
mod tests;
