use super::*;

fn names(directory: &Path) -> Vec<String> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_file_is_replaced_and_nothing_is_left_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    for text in ["one, which is longer", "two"] {
        write(&path, text).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(names(directory.path()), ["config"]);
    }
}

#[cfg(unix)]
#[test]
fn a_file_is_its_owners_alone_whatever_was_there() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let (path, other) = (directory.path().join("config"), directory.path().join("other"));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    write(&path, "new").unwrap();
    assert_eq!(mode(&path), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    // Whoever has the old one open does not see the new text.
    let mut old = File::open(&path).unwrap();
    write(&path, "secret").unwrap();
    assert_eq!(mode(&path), 0o600);
    assert_eq!(io::read_to_string(&mut old).unwrap(), "new");
    // Nor does what a link leads to get it.
    fs::write(&other, "theirs").unwrap();
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&other, &path).unwrap();
    write(&path, "secret").unwrap();
    assert_eq!(
        (fs::read_to_string(&other).unwrap(), fs::read_to_string(&path).unwrap()),
        ("theirs".into(), "secret".into())
    );
}

#[test]
fn a_directory_is_refused_as_such() {
    let directory = tempfile::tempdir().unwrap();
    let inner = directory.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let mut paths = vec![inner.clone(), inner.join("..")];
    #[cfg(unix)]
    {
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&inner, &link).unwrap();
        paths.push(link);
    }
    for path in paths {
        let error = write(&path, "text").unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::IsADirectory, "it is a directory")
        );
    }
    assert!(names(&inner).is_empty());
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_left_alone() {
    let error = write(Path::new("/dev/null"), "text").unwrap_err();
    assert_eq!(error.to_string(), "it is not a file");
}

#[test]
fn a_leftover_of_another_process_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let leftover = format!(".config.{}-0", std::process::id());
    fs::write(directory.path().join(&leftover), "theirs").unwrap();
    write(&directory.path().join("config"), "ours").unwrap();
    assert_eq!(fs::read_to_string(directory.path().join(&leftover)).unwrap(), "theirs");
    assert_eq!(fs::read_to_string(directory.path().join("config")).unwrap(), "ours");
}

#[test]
fn where_there_is_no_directory_nothing_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let error = write(&directory.path().join("no/such/place"), "text").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(names(directory.path()).is_empty());
}
