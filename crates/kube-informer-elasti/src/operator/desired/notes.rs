//! What is noted on objects for whoever comes next: targets that may sleep.
//!
//! A note is read as whatever anybody may have written there: what cannot be a target is none.

use kube_informer::resource::Resource;

use crate::api::ScaleTargetRef;

/// So many targets are noted at most.
pub(in crate::operator) const MOST_NOTED: usize = 8;

/// A target, as it is noted on the private Service.
pub(in crate::operator) fn target_note(resource: &Resource, name: &str) -> String {
    format!("{}/{}/{}/{name}", resource.group, resource.version, resource.plural)
}

/// Whether a reference names a target that was noted. Where it cannot be told, it does not.
pub(in crate::operator) fn is_noted(resource: &Resource, name: &str, reference: &ScaleTargetRef) -> bool {
    let kind = reference.kind.to_lowercase();
    let (group, version) = reference.api_version.split_once('/').unwrap_or(("", &reference.api_version));
    (resource.group.as_str(), resource.version.as_str(), name) == (group, version, reference.name.as_str())
        && !kind.is_empty()
        && resource.plural.starts_with(&kind)
}

/// The target that was noted, if it can be one.
///
/// Who may write to one namespace may write a note, and what it says becomes a path that the operator asks for: letters
/// with a meaning there would lead it to other namespaces.
fn noted_target(note: &str) -> Option<(Resource, String)> {
    let mut parts = note.splitn(4, '/').map(str::to_owned);
    let (group, version, plural, name) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_plain = |part: &str| {
        let fits =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
        part.bytes().all(fits) && !part.starts_with('.') && !part.contains("..")
    };
    let is_complete = !version.is_empty() && !plural.is_empty() && !name.is_empty();
    if !is_complete || ![&group, &version, &plural, &name].into_iter().all(|part| is_plain(part)) {
        return None;
    }
    // Whoever scales it asks by its plural.
    let kind = plural.clone();
    Some((Resource { group, version, plural, kind, namespaced: true }, name))
}

/// What is about to sleep, as it is noted on the ElastiService: the target, and when it was woken last, in microseconds.
pub(in crate::operator) fn sleep_note(target: &str, woken: i64) -> String {
    format!("{target}@{woken}")
}

/// What was noted there, if it can be that. Where the time cannot be read, nothing is known of it.
pub(in crate::operator) fn noted_sleep(note: &str) -> Option<(Resource, String, Option<i64>)> {
    let (target, woken) = note.split_once('@').unwrap_or((note, ""));
    let (resource, name) = noted_target(target)?;
    Some((resource, name, woken.parse().ok()))
}

/// What is noted on the private Service: those that may still sleep, and last the target.
pub(in crate::operator) fn target_notes(notes: &[String]) -> String {
    notes.join(",")
}

/// The targets that were noted there, those that can be some.
pub(in crate::operator) fn noted_targets(notes: &str) -> Vec<(Resource, String)> {
    notes.split(',').filter_map(noted_target).take(MOST_NOTED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_that_was_noted_is_found_again() {
        let deployments = Resource::of::<k8s_openapi::api::apps::v1::Deployment>();
        let note = target_note(&deployments, "web");
        assert_eq!(note, "apps/v1/deployments/web");
        let (resource, name) = noted_target(&note).unwrap();
        assert_eq!((resource.path(Some("x")), &*name), (deployments.path(Some("x")), "web"));
        let (core, _) = noted_target("/v1/replicationcontrollers/a").unwrap();
        assert_eq!(core.path(None), "/api/v1/replicationcontrollers");
        for wrong in ["", "apps/v1/web", "apps/v1//web", "apps//deployments/web", "a/b/c/"] {
            assert!(noted_target(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_note_leads_nowhere_else() {
        let elsewhere = "apps%2fv1%2fnamespaces%2fother%2fdeployments%2fdb%2fscale?";
        for (group, version, plural, name) in [
            (elsewhere, "v1", "x", "y"),
            ("apps", "v1?", "deployments", "web"),
            ("apps", "v1", "deployments#", "web"),
            ("apps", "v1", "deployments", "../../other/deployments/web"),
            ("apps", "v1", "deployments", ".."),
            ("..", "v1", "deployments", "web"),
            ("apps", "v1", "Deployments", "web"),
        ] {
            let note = format!("{group}/{version}/{plural}/{name}");
            assert!(noted_target(&note).is_none(), "{note}");
        }
    }

    #[test]
    fn several_targets_are_noted_and_found_again() {
        let notes = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| format!("apps/v1/deployments/{name}")).collect()
        };
        let found =
            |note: &str| -> Vec<String> { noted_targets(note).into_iter().map(|(_, name)| name).collect() };
        assert_eq!(target_notes(&notes(&["web"])), "apps/v1/deployments/web");
        assert_eq!(found(&target_notes(&notes(&["old", "web"]))), ["old", "web"]);
        assert_eq!(found("apps/v1/deployments/a,nonsense,apps%2f/v1/x/y,apps/v1/deployments/b"), ["a", "b"]);
        assert!(found("").is_empty());
        let many: Vec<_> = (0..20).map(|number| format!("apps/v1/deployments/web-{number}")).collect();
        assert_eq!(found(&target_notes(&many)).len(), MOST_NOTED, "somebody else wrote it");
    }

    #[test]
    fn what_is_about_to_sleep_is_noted_with_when_it_was_woken() {
        let note = sleep_note("apps/v1/deployments/web", 1_700_000_000_000_001);
        assert_eq!(note, "apps/v1/deployments/web@1700000000000001");
        let (resource, name, woken) = noted_sleep(&note).unwrap();
        assert_eq!((&*resource.plural, &*name, woken), ("deployments", "web", Some(1_700_000_000_000_001)));
        for unknown in ["apps/v1/deployments/web", "apps/v1/deployments/web@", "apps/v1/deployments/web@soon"]
        {
            let (_, name, woken) = noted_sleep(unknown).unwrap();
            assert_eq!((&*name, woken), ("web", None), "{unknown}");
        }
        for elsewhere in ["@1", "apps/v1/deployments/../x@1", "apps/v1/deployments/a?b@1"] {
            assert!(noted_sleep(elsewhere).is_none(), "{elsewhere}");
        }
    }

    #[test]
    fn a_reference_names_what_was_noted_or_it_is_not_said() {
        let (resource, name) = noted_target("apps/v1/deployments/web").unwrap();
        let names = |api_version: &str, kind: &str, target: &str| {
            let reference = ScaleTargetRef {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                name: target.to_owned(),
            };
            is_noted(&resource, &name, &reference)
        };
        for kind in ["Deployment", "deployments", "DEPLOYMENT"] {
            assert!(names("apps/v1", kind, "web"), "{kind}");
        }
        assert!(!names("apps/v1", "StatefulSet", "web") && !names("apps/v1", "", "web"));
        assert!(!names("apps/v2", "Deployment", "web") && !names("v1", "Deployment", "web"));
        assert!(!names("apps/v1", "Deployment", "web-2"));
    }
}
