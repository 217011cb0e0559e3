//! Who is to answer for a service, by what is known of its target and of its pods.
//!
//! The pods answer (`serve`) if the target is to have replicas, has some, says which pods are its own, and at least one of
//! these is ready and stays. Otherwise the resolver does (`proxy`).
//!
//! Nothing is decided by what may be old. That the pods answer is decided only by what is live in whole; that the resolver
//! does, by one thing that is live and speaks against the pods. Where neither can be said, what was decided before stays.

use super::scale_target::ScaleTarget;
use crate::api::Mode;

/// What is known of the target and its pods.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    /// The target; `Err` says why it cannot be read.
    pub(super) target: Result<Option<&'a ScaleTarget>, &'a str>,
    /// Whether what is known of the target is what the server has.
    pub(super) target_is_live: bool,
    /// How many of its pods are ready and stay.
    pub(super) ready_pods: usize,
    /// Whether what is known of the pods is what the server has.
    pub(super) pods_are_live: bool,
    /// Whether the target was there before.
    pub(super) was_there: bool,
    /// What was decided before.
    pub(super) before: Option<Mode>,
}

/// What speaks against the pods.
enum Against {
    /// Something about the target.
    Target(String),
    /// Something about the pods.
    Pods(String),
    /// It cannot be told.
    Unclear(String),
}

/// Who is to answer, and why; `None` where nothing can be said yet.
pub(super) fn decide(facts: &Facts<'_>) -> Option<(Mode, String)> {
    let kept = |what: &str| {
        let mode = facts.before?;
        Some((mode, format!("{mode}, as it was before: {what}")))
    };
    match against(facts) {
        None if facts.target_is_live && facts.pods_are_live => {
            let pods = match facts.ready_pods {
                1 => "1 pod is ready".to_owned(),
                count => format!("{count} pods are ready"),
            };
            Some((Mode::Serve, pods))
        }
        None if facts.target_is_live => kept("what is known of its pods may be old"),
        None => kept("what is known of the target may be old"),
        Some(Against::Target(why)) if facts.target_is_live => Some((Mode::Proxy, why)),
        Some(Against::Target(why)) => kept(&format!("{why}, but that may be old")),
        // Whatever the target says meanwhile: nobody is there who could answer.
        Some(Against::Pods(why)) if facts.pods_are_live => Some((Mode::Proxy, why)),
        Some(Against::Pods(why)) => kept(&format!("{why}, but that may be old")),
        Some(Against::Unclear(why)) if facts.before.is_some() => kept(&why),
        Some(Against::Unclear(why)) => Some((Mode::Proxy, why)),
    }
}

fn against(facts: &Facts<'_>) -> Option<Against> {
    let target = match facts.target {
        Err(why) => return Some(Against::Unclear(format!("the target cannot be read: {why}"))),
        Ok(None) => {
            let why = if facts.was_there { "the target is gone" } else { "the target is not there" };
            return Some(Against::Target(why.to_owned()));
        }
        Ok(Some(target)) => target,
    };
    if target.spec_replicas <= 0 {
        return Some(Against::Target("the target is to have no replicas".to_owned()));
    }
    if target.status_replicas <= 0 {
        return Some(Against::Target("the target has no replicas yet".to_owned()));
    }
    let Some(selector) = &target.selector else {
        return Some(Against::Target(
            "the target does not say which pods are its own: it has no selector".to_owned(),
        ));
    };
    if facts.ready_pods == 0 {
        return Some(Against::Pods(format!("no pod with {selector} is ready")));
    }
    None
}

#[cfg(test)]
mod tests {
    use kube_informer::object::Uid;

    use super::*;

    fn target(spec_replicas: i64, status_replicas: i64, selector: Option<&str>) -> ScaleTarget {
        ScaleTarget {
            spec_replicas,
            status_replicas,
            selector: selector.map(|text| text.parse().unwrap()),
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
            uid: Uid::from("u"),
        }
    }

    fn facts(target: Option<&ScaleTarget>, ready_pods: usize) -> Facts<'_> {
        Facts {
            target: Ok(target),
            target_is_live: true,
            ready_pods,
            pods_are_live: true,
            was_there: false,
            before: None,
        }
    }

    #[test]
    fn pods_answer_only_if_everything_is_there() {
        for (spec, status, selector, ready, mode, why) in [
            (1, 1, Some("app=web"), 1, Mode::Serve, "1 pod is ready"),
            (3, 1, Some("app=web"), 2, Mode::Serve, "2 pods are ready"),
            (0, 1, Some("app=web"), 1, Mode::Proxy, "the target is to have no replicas"),
            (-1, 1, Some("app=web"), 1, Mode::Proxy, "the target is to have no replicas"),
            (1, 0, Some("app=web"), 1, Mode::Proxy, "the target has no replicas yet"),
            (1, 1, None, 1, Mode::Proxy, "no selector"),
            (1, 1, Some("app=web"), 0, Mode::Proxy, "no pod with app=web is ready"),
        ] {
            let target = target(spec, status, selector);
            let (decision, text) = decide(&facts(Some(&target), ready)).unwrap();
            assert_eq!(decision, mode, "{target:?} {ready}");
            assert!(text.contains(why), "{text}");
        }
    }

    #[test]
    fn a_target_that_is_not_there_is_told_from_one_that_is_gone() {
        assert_eq!(decide(&facts(None, 0)), Some((Mode::Proxy, "the target is not there".to_owned())));
        let gone = Facts { was_there: true, before: Some(Mode::Serve), ..facts(None, 3) };
        assert_eq!(decide(&gone), Some((Mode::Proxy, "the target is gone".to_owned())));
    }

    #[test]
    fn what_cannot_be_read_changes_nothing() {
        let unreadable = |before| Facts { target: Err("odd"), before, ..facts(None, 1) };
        assert_eq!(decide(&unreadable(None)).unwrap().0, Mode::Proxy);
        for before in [Mode::Serve, Mode::Proxy] {
            let (mode, why) = decide(&unreadable(Some(before))).unwrap();
            assert_eq!(mode, before);
            assert!(why.contains("odd"), "{why}");
        }
    }

    /// All combinations: what is old alone never switches anything, and never decides anything first.
    #[test]
    fn nothing_is_decided_by_what_may_be_old() {
        let (up, down) = (target(1, 1, Some("app=web")), target(0, 0, Some("app=web")));
        for before in [None, Some(Mode::Serve), Some(Mode::Proxy)] {
            for (target_is_live, pods_are_live) in
                [(true, true), (true, false), (false, true), (false, false)]
            {
                for (target, ready) in
                    [(Some(&up), 1), (Some(&up), 0), (Some(&down), 1), (Some(&down), 0), (None, 1)]
                {
                    let facts = Facts { target_is_live, pods_are_live, before, ..facts(target, ready) };
                    let decided = decide(&facts).map(|(mode, _)| mode);
                    let plain = if target == Some(&up) && ready > 0 { Mode::Serve } else { Mode::Proxy };
                    let is_sure = match plain {
                        Mode::Serve => target_is_live && pods_are_live,
                        Mode::Proxy if target == Some(&up) => pods_are_live,
                        Mode::Proxy => target_is_live,
                    };
                    assert_eq!(decided, if is_sure { Some(plain) } else { before }, "{facts:?}");
                }
            }
        }
    }
}
