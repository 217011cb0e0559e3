//! Where everything of a control plane lies.
//!
//! A temporary folder lies in `run/` of the cache and is locked by the process that uses it. A process that
//! dies cannot tidy up: the next one to start a control plane removes the folders that nobody holds.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::binaries::cache_dir;

const LOCK: &str = "lock";

/// The files of a control plane.
#[derive(Clone, Debug)]
pub struct Layout {
    dir: PathBuf,
}

/// A folder in use.
#[derive(Debug)]
pub(super) struct Folder {
    layout: Layout,
    /// Held as long as the folder is in use.
    _lock: File,
    temporary: bool,
}

impl Layout {
    /// The layout of the folder `dir`, which need not exist.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// etcd's data.
    #[must_use]
    pub fn etcd_data(&self) -> PathBuf {
        self.dir.join("etcd")
    }

    /// A server's log.
    #[must_use]
    pub fn log(&self, server: &str) -> PathBuf {
        self.dir.join("logs").join(format!("{server}.log"))
    }

    /// A certificate or key.
    #[must_use]
    pub fn pki(&self, file: &str) -> PathBuf {
        self.dir.join("pki").join(file)
    }

    /// A user's kubeconfig.
    #[must_use]
    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        // A user's name may hold anything: `system:serviceaccount:ns:name`, `a/b`.
        let file: String = user
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' })
            .collect();
        self.dir.join("kubeconfigs").join(format!("{file}.json"))
    }

    /// The API server's list of tokens.
    #[must_use]
    pub fn tokens(&self) -> PathBuf {
        self.pki("tokens.csv")
    }

    /// What runs here.
    #[must_use]
    pub fn record(&self) -> PathBuf {
        self.dir.join("control-plane.json")
    }

    pub(super) fn create(&self) -> Result<()> {
        for dir in
            [self.dir.clone(), self.dir.join("logs"), self.dir.join("pki"), self.dir.join("kubeconfigs")]
        {
            fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        }
        Ok(())
    }
}

impl Folder {
    /// Takes `dir`, or a temporary folder.
    pub(super) fn create(dir: Option<&Path>) -> Result<Self> {
        let (dir, temporary) = match dir {
            Some(dir) => (std::path::absolute(dir)?, false),
            None => {
                let runs = cache_dir()?.join("run");
                fs::create_dir_all(&runs).with_context(|| format!("cannot create {}", runs.display()))?;
                sweep(&runs);
                (tempfile::Builder::new().prefix("").tempdir_in(&runs)?.keep(), true)
            }
        };
        let layout = Layout::new(dir);
        layout.create()?;
        let lock = lock(&layout.dir)?;
        Ok(Self { layout, _lock: lock, temporary })
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Leaves the folder behind.
    pub(super) fn keep(mut self) {
        self.temporary = false;
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.temporary {
            // What is left is removed by the next sweep.
            let _ = fs::remove_dir_all(&self.layout.dir);
        }
    }
}

/// Takes the folder for this process.
fn lock(dir: &Path) -> Result<File> {
    let path = dir.join(LOCK);
    if let Ok(lock) = File::open(&path) {
        lock.try_lock().with_context(|| format!("{} belongs to another control plane", dir.display()))?;
        return Ok(lock);
    }
    // It appears under its name when it is locked already, so that no sweep finds it unlocked.
    let new = tempfile::NamedTempFile::new_in(dir).context("cannot create the folder's lock")?;
    new.as_file().try_lock().context("cannot lock a new file")?;
    new.persist_noclobber(&path)
        .with_context(|| format!("{} belongs to another control plane", dir.display()))
}

/// Removes the folders in `runs` that no process holds.
fn sweep(runs: &Path) {
    for entry in fs::read_dir(runs).into_iter().flatten().flatten() {
        // Between a folder's creation and its lock there is a moment without a lock file: it stays.
        if let Ok(lock) = File::open(entry.path().join(LOCK))
            && lock.try_lock().is_ok()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_that_nobody_holds_are_swept() {
        let runs = tempfile::tempdir().unwrap();
        let held = Folder::create(Some(&runs.path().join("held"))).unwrap();
        drop(Folder::create(Some(&runs.path().join("left"))).unwrap());
        fs::create_dir(runs.path().join("new")).unwrap();
        sweep(runs.path());
        assert!(held.layout().dir().exists());
        assert!(runs.path().join("new").exists());
        assert!(!runs.path().join("left").exists());
    }

    #[test]
    fn a_folder_has_one_control_plane_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let _held = Folder::create(Some(dir.path())).unwrap();
        let error = format!("{:#}", Folder::create(Some(dir.path())).unwrap_err());
        assert!(error.contains("belongs to another control plane"), "{error}");
    }

    #[test]
    fn any_user_name_makes_a_file_name() {
        let path = Layout::new("/d").kubeconfig("system:serviceaccount:ns/../x");
        assert_eq!(path, Path::new("/d/kubeconfigs/system_serviceaccount_ns_.._x.json"));
    }
}
