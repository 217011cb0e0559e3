//! The machine, or the pod, that this process runs on.

/// Its name, for people: it need not be anybody's, and is not looked up.
pub(crate) fn name() -> String {
    let from_kernel = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let from_environment = || std::env::var("HOSTNAME").ok();
    let found = from_kernel().or_else(from_environment).unwrap_or_default();
    match found.trim() {
        "" => "unknown-host".to_owned(),
        name => name.chars().take(253).collect(),
    }
}
