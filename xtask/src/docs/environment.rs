//! What no command of a document may know of: the clusters of whoever runs the tests, their credentials, their settings for
//! kubectl and the operator, and proxies, which need not lead to this machine.

use std::ffi::OsString;
use std::process::Command;

use kube_informer_testbed::process::Launch;

const NAMES: [&str; 2] = ["KUBERC", "KUBE_INFORMER_TOKEN"];

/// How names begin: `KUBECONFIG_E2E`, `KUBERNETES_SERVICE_HOST`, `ELASTI_OPERATOR_PORT`.
const BEGINNINGS: [&str; 3] = ["KUBECONFIG", "KUBERNETES_", "ELASTI_"];

/// Does not pass on what is not the document's.
pub(super) fn clean(command: &mut Command) {
    for name in foreign(std::env::vars_os().map(|(name, _)| name)) {
        command.env_remove(name);
    }
}

/// The same for what is left running.
pub(super) fn cleaned(launch: Launch) -> Launch {
    foreign(std::env::vars_os().map(|(name, _)| name)).fold(launch, Launch::env_remove)
}

fn foreign(names: impl Iterator<Item = OsString>) -> impl Iterator<Item = String> {
    // All of them are ASCII.
    names.filter_map(|name| name.into_string().ok()).filter(|name| {
        NAMES.contains(&name.as_str())
            || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
            || name.to_ascii_uppercase().ends_with("_PROXY")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_credentials_and_proxies_are_not_the_documents() {
        let of_the_user = [
            "KUBECONFIG",
            "KUBECONFIG_E2E",
            "KUBERNETES_SERVICE_HOST",
            "KUBERNETES_SERVICE_PORT",
            "KUBE_INFORMER_TOKEN",
            "KUBERC",
            "ELASTI_OPERATOR_PORT",
            "HTTPS_PROXY",
            "http_proxy",
            "no_proxy",
        ];
        let others = [
            "PATH",
            "HOME",
            "CARGO_HOME",
            "CARGO_TARGET_DIR",
            "KUBE_INFORMER_CACHE",
            "KUBEBUILDER_ASSETS",
            "GOPROXY",
        ];
        let names = of_the_user.iter().chain(&others).map(OsString::from);
        assert_eq!(foreign(names).collect::<Vec<_>>(), of_the_user);
    }
}
