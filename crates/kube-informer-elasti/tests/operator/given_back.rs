//! What is not looked after any more is given back: targets wake, and redirects stay until somebody answers.

use std::time::Duration;

use anyhow::Result;
use kube_informer::controller::Request;
use kube_informer::manager::Manager;
use kube_informer_elasti::operator::{Operator, SleepError};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::{Answer, Events, Match, Verb};
use serde_json::{Value, json};

use crate::harness::{SOON, Stage, on_both};

on_both! {
    a_target_that_was_named_before_is_woken_at_the_end,
    a_service_that_was_named_before_is_answered_at_the_end,
    a_server_that_does_not_say_what_it_has_does_not_end_a_restore,
    a_former_target_is_woken_though_the_server_failed_once,
    a_former_target_that_cannot_be_woken_keeps_nothing_from_the_next,
    a_former_target_and_service_are_looked_at_however_long_the_server_fails,
    a_former_target_that_may_not_be_woken_is_woken_when_it_may,
    a_former_target_that_may_never_be_woken_is_given_up,
    of_too_many_former_targets_the_oldest_is_given_up_and_said,
    what_an_older_one_takes_over_is_woken_though_nobody_knew_of_it,
    a_redirect_goes_though_somebody_took_its_note_away,
    one_whose_spec_lacks_something_now_is_given_back,
    one_that_yields_now_is_given_back,
    a_target_is_woken_to_all_its_replicas_at_once,
    pods_that_answer_go_on_where_the_target_is_mistyped,
    the_end_of_one_takes_nothing_from_the_next,
    the_older_of_two_is_woken_whoever_is_known_first,
    a_finalizer_that_is_refused_is_said,
    an_end_that_is_forbidden_is_said,
    a_redirect_follows_the_resolver_whatever_is_wrong_with_the_spec,
    what_is_named_no_more_is_given_back_though_the_new_service_is_missing,
    a_headless_service_is_not_put_to_sleep_and_says_why,
}

/// It depends on how a server writes its events.
mod alone {
    use super::a_slice_that_was_just_deleted_is_made_anew;

    crate::harness::on_embedded! { a_slice_that_was_just_deleted_is_made_anew }
}

async fn asleep(stage: &Stage, name: &str) -> Result<()> {
    stage.app(name, 0).await?;
    stage.mode(name, "proxy").await;
    stage.redirected(name, &stage.resolver.addresses()).await;
    Ok(())
}

async fn a_target_that_was_named_before_is_woken_at_the_end(mut stage: Stage) -> Result<()> {
    asleep(&stage, "web").await?;
    stage.stateful_set("set", 0).await?;
    stage.retire().await;
    let other = json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "set" });
    stage.merge(&stage.elasti_path("web"), &json!({ "spec": { "scaleTargetRef": other } })).await?;
    stage.delete(&stage.elasti_path("web")).await?;
    stage.operate().await?;
    stage.gone(&stage.elasti_path("web")).await;
    stage.replicas("deployments/web", 1).await;
    stage.gone(&stage.slice_path("web")).await;
    stage.close().await
}

async fn a_service_that_was_named_before_is_answered_at_the_end(mut stage: Stage) -> Result<()> {
    asleep(&stage, "web").await?;
    stage.kubelet.delay(Duration::from_secs(2));
    stage.retire().await;
    stage.merge(&stage.elasti_path("web"), &json!({ "spec": { "service": "nobody" } })).await?;
    stage.delete(&stage.elasti_path("web")).await?;
    let clients = stage.clients("web");
    stage.operate().await?;
    stage.gone(&stage.elasti_path("web")).await;
    stage.replicas("deployments/web", 1).await;
    let (answered, lost) = clients.stop().await;
    assert!(lost.is_empty() && answered > 0, "{} of {answered} were lost: {lost:#?}", lost.len());
    stage.gone(&stage.slice_path("web")).await;
    stage.close().await
}

async fn a_server_that_does_not_say_what_it_has_does_not_end_a_restore(mut stage: Stage) -> Result<()> {
    asleep(&stage, "web").await?;
    stage.retire().await;
    // As an operator before has left it: nothing is noted.
    let nothing = json!({ "metadata": { "annotations": { "elasti.truefoundry.com/scale-target": null } } });
    stage.merge(&stage.private_path("web"), &nothing).await?;
    stage.delete(&stage.elasti_path("web")).await?;
    let proxy = stage.proxy().await?;
    let fault = proxy
        .on(Match::any().when(|request| {
            matches!(request.path.as_str(), "/apis" | "/api")
                || request.path.starts_with("/apis/apps/v1") && !request.path.contains("/namespaces/")
        }))
        .times(4)
        .answer(Answer::unavailable());
    stage.operate_behind(&proxy).await?;
    stage.gone(&stage.elasti_path("web")).await;
    assert!(fault.applied() > 0);
    stage.replicas("deployments/web", 1).await;
    stage.close().await
}

async fn a_former_target_is_woken_though_the_server_failed_once(mut stage: Stage) -> Result<()> {
    asleep(&stage, "web").await?;
    stage.deployment("second", 0).await?;
    let proxy = stage.operate_through_proxy().await?;
    let fault = proxy
        .on(Match::any().verb(Verb::Update).path_contains("/web/scale"))
        .times(2)
        .answer(Answer::internal_error());
    let second = json!({ "spec": { "scaleTargetRef": { "name": "second" } } });
    stage.merge(&stage.elasti_path("web"), &second).await?;
    stage.replicas("deployments/web", 1).await;
    assert_eq!(fault.applied(), 2);
    stage.close().await
}

fn noted(note: &'static str) -> impl Fn(&Value) -> bool {
    move |private| private["metadata"]["annotations"]["elasti.truefoundry.com/scale-target"] == note
}

async fn a_former_target_that_cannot_be_woken_keeps_nothing_from_the_next(mut stage: Stage) -> Result<()> {
    asleep(&stage, "web").await?;
    stage.deployment("second", 0).await?;
    let proxy = stage.operate_through_proxy().await?;
    proxy
        .on(Match::any().verb(Verb::Update).path_contains("/deployments/web/scale"))
        .answer(Answer::internal_error());
    let second = json!({ "spec": { "scaleTargetRef": { "name": "second" } } });
    stage.merge(&stage.elasti_path("web"), &second).await?;
    let both = noted("apps/v1/deployments/web,apps/v1/deployments/second");
    stage.until("both are noted", &stage.private_path("web"), both).await;
    stage.condition("web", "Ready", "False", "WriteFailed").await;
    // All else is done.
    stage.resolver.scale(2).await?;
    stage.redirected("web", &stage.resolver.addresses()).await;
    stage.operator().wake(&stage.namespace, "web").await?;
    stage.replicas("deployments/second", 1).await;
    stage
        .until("its target is told of", &stage.elasti_path("web"), |elasti| elasti["status"]["replicas"] == 1)
        .await;
    stage.operator().put_to_sleep(&stage.namespace, "web").await?;
    stage.replicas("deployments/second", 0).await;
    proxy.heal();
    stage.replicas("deployments/web", 1).await;
    let one = noted("apps/v1/deployments/second");
    stage.until("one is noted", &stage.private_path("web"), one).await;
    stage.close().await
}

async fn a_former_target_and_service_are_looked_at_however_long_the_server_fails(
    mut stage: Stage,
) -> Result<()> {
    asleep(&stage, "web").await?;
    stage.deployment("second", 0).await?;
    stage.service("second", json!({ "app": "second" })).await?;
    let proxy = stage.operate_through_proxy().await?;
    let fault = proxy
        .on(Match::any().verb(Verb::Update).path_contains("/deployments/web/scale"))
        .answer(Answer::internal_error());
    let second = json!({ "spec": { "service": "second", "scaleTargetRef": { "name": "second" } } });
    stage.merge(&stage.elasti_path("web"), &second).await?;
    stage.redirected("second", &stage.resolver.addresses()).await;
    // More often than it would be tried in that time if each time were twice as far from the one before.
    eventually("it is tried again", SOON, async || (fault.applied() > 30).then_some(())).await;
    proxy.heal();
    stage.replicas("deployments/web", 1).await;
    stage.gone(&stage.slice_path("web")).await;
    stage.gone(&stage.private_path("web")).await;
    stage.condition("web", "Ready", "True", "Reconciled").await;
    stage.close().await
}

async fn a_former_target_that_may_not_be_woken_is_woken_when_it_may(mut stage: Stage) -> Result<()> {
    asleep(&stage, "web").await?;
    stage.deployment("second", 0).await?;
    let proxy = stage.operate_through_proxy().await?;
    let fault = proxy.on(Match::any().path_contains("/deployments/web/scale")).answer(Answer::forbidden());
    let second = json!({ "spec": { "scaleTargetRef": { "name": "second" } } });
    stage.merge(&stage.elasti_path("web"), &second).await?;
    let said = stage.condition("web", "Ready", "False", "Forbidden").await;
    assert!(said["message"].as_str().unwrap().contains("allow the operator to get and update"), "{said:#}");
    let both = noted("apps/v1/deployments/web,apps/v1/deployments/second");
    stage.until("both are noted", &stage.private_path("web"), both).await;
    let tried = fault.applied();
    eventually("it is tried again", SOON, async || (fault.applied() > tried).then_some(())).await;
    proxy.heal();
    stage.replicas("deployments/web", 1).await;
    let one = noted("apps/v1/deployments/second");
    stage.until("one is noted", &stage.private_path("web"), one).await;
    stage.close().await
}

async fn a_former_target_that_may_never_be_woken_is_given_up(mut stage: Stage) -> Result<()> {
    asleep(&stage, "web").await?;
    stage.deployment("second", 0).await?;
    stage.retire().await;
    let proxy = stage.proxy().await?;
    let mut settings = stage.settings();
    settings.restore_deadline = Duration::from_secs(1);
    stage.operate_behind_as_said(&proxy, settings).await?;
    let scaled = || Match::any().path_contains("/deployments/web/scale");
    // Who is not known now may be in a moment.
    let unknown = proxy.on(scaled()).answer(Answer::status(401, "Unauthorized", "who is it"));
    let second = json!({ "spec": { "scaleTargetRef": { "name": "second" } } });
    stage.merge(&stage.elasti_path("web"), &second).await?;
    stage.condition("web", "Ready", "False", "WriteFailed").await;
    let tried = unknown.applied();
    eventually("it is tried for longer", SOON, async || (unknown.applied() > tried + 3).then_some(())).await;
    let both = noted("apps/v1/deployments/web,apps/v1/deployments/second");
    stage.until("both are noted", &stage.private_path("web"), both).await;
    proxy.on(scaled()).answer(Answer::forbidden());
    unknown.remove();
    let one = noted("apps/v1/deployments/second");
    stage.until("one is noted", &stage.private_path("web"), one).await;
    stage.condition("web", "Ready", "True", "Reconciled").await;
    let said = stage.event("web", "Forbidden").await;
    assert!(said["note"].as_str().unwrap().contains("web is not the target any more"), "{said:#}");
    stage.close().await
}

async fn of_too_many_former_targets_the_oldest_is_given_up_and_said(mut stage: Stage) -> Result<()> {
    asleep(&stage, "web").await?;
    stage.retire().await;
    let note = |from: u32| {
        let old = (from..8).map(|number| format!("apps/v1/deployments/old-{number},"));
        format!("{}apps/v1/deployments/web", old.collect::<String>())
    };
    let key = "elasti.truefoundry.com/scale-target";
    let noted = json!({ "metadata": { "annotations": { key: note(0) } } });
    stage.merge(&stage.private_path("web"), &noted).await?;
    let proxy = stage.proxy().await?;
    proxy.on(Match::any().path_contains("/deployments/old-")).answer(Answer::internal_error());
    stage.operate_behind(&proxy).await?;
    let said = stage.event("web", "TooManyTargets").await;
    assert!(said["note"].as_str().unwrap().contains("old-0 may still sleep"), "{said:#}");
    let kept = |private: &Value| private["metadata"]["annotations"][key] == note(1);
    stage.until("the others are noted", &stage.private_path("web"), kept).await;
    stage.close().await
}

async fn what_an_older_one_takes_over_is_woken_though_nobody_knew_of_it(mut stage: Stage) -> Result<()> {
    asleep(&stage, "a-web").await?;
    asleep(&stage, "y-web").await?;
    asleep(&stage, "z-web").await?;
    stage.retire().await;
    stage.merge(&stage.elasti_path("a-web"), &json!({ "spec": { "service": "z-web" } })).await?;
    stage.operate().await?;
    stage.condition("z-web", "Ready", "False", "Conflict").await;
    stage.replicas("deployments/z-web", 1).await;
    // Another target of the same name is another one, also where the older one cannot do anything yet.
    let other = json!({ "service": "y-web",
        "scaleTargetRef": { "apiVersion": "example.com/v1", "kind": "Unicorn", "name": "y-web" } });
    stage.merge(&stage.elasti_path("a-web"), &json!({ "spec": other })).await?;
    stage.condition("y-web", "Ready", "False", "Conflict").await;
    stage.replicas("deployments/y-web", 1).await;
    stage.close().await
}

async fn a_redirect_goes_though_somebody_took_its_note_away(mut stage: Stage) -> Result<()> {
    asleep(&stage, "web").await?;
    stage.retire().await;
    stage.delete(&stage.private_path("web")).await?;
    stage.merge(&stage.elasti_path("web"), &json!({ "spec": { "service": "nobody" } })).await?;
    stage.operate().await?;
    stage.condition("web", "ServiceFound", "False", "NotFound").await;
    stage.replicas("deployments/web", 1).await;
    stage.gone(&stage.slice_path("web")).await;
    stage.close().await
}

async fn one_whose_spec_lacks_something_now_is_given_back(stage: Stage) -> Result<()> {
    asleep(&stage, "web").await?;
    asleep(&stage, "nameless").await?;
    stage.kubelet.delay(Duration::from_secs(2));
    let nameless = json!({ "spec": { "scaleTargetRef": { "name": "" } } });
    stage.merge(&stage.elasti_path("nameless"), &nameless).await?;
    stage.merge(&stage.elasti_path("web"), &json!({ "spec": { "service": "" } })).await?;
    let clients = stage.clients("web");
    for name in ["web", "nameless"] {
        stage.condition(name, "Ready", "False", "Incomplete").await;
        stage.replicas(&format!("deployments/{name}"), 1).await;
        stage.gone(&stage.slice_path(name)).await;
        stage.gone(&stage.private_path(name)).await;
    }
    let (answered, lost) = clients.stop().await;
    assert!(lost.is_empty() && answered > 0, "{} of {answered} were lost: {lost:#?}", lost.len());
    for name in ["web", "nameless"] {
        stage.delete(&stage.elasti_path(name)).await?;
        stage.gone(&stage.elasti_path(name)).await;
    }
    stage.close().await
}

async fn one_that_yields_now_is_given_back(stage: Stage) -> Result<()> {
    asleep(&stage, "a-web").await?;
    asleep(&stage, "z-web").await?;
    stage.merge(&stage.elasti_path("z-web"), &json!({ "spec": { "service": "a-web" } })).await?;
    stage.condition("z-web", "Ready", "False", "Conflict").await;
    stage.replicas("deployments/z-web", 1).await;
    stage.gone(&stage.slice_path("z-web")).await;
    stage.gone(&stage.private_path("z-web")).await;
    // The older one is as it was.
    stage.redirected("a-web", &stage.resolver.addresses()).await;
    stage.replicas("deployments/a-web", 0).await;
    stage.delete(&stage.elasti_path("z-web")).await?;
    stage.gone(&stage.elasti_path("z-web")).await;
    stage.redirected("a-web", &stage.resolver.addresses()).await;
    stage.close().await
}

/// Nobody finds it half awake, and takes that for what it should be.
async fn a_target_is_woken_to_all_its_replicas_at_once(mut stage: Stage) -> Result<()> {
    asleep(&stage, "web").await?;
    asleep(&stage, "edited").await?;
    stage.deployment("second", 0).await?;
    let proxy = stage.operate_through_proxy().await?;
    for name in ["web", "edited"] {
        stage.merge(&stage.elasti_path(name), &json!({ "spec": { "minTargetReplicas": 3 } })).await?;
    }
    stage.delete(&stage.elasti_path("web")).await?;
    let second = json!({ "spec": { "scaleTargetRef": { "name": "second" } } });
    stage.merge(&stage.elasti_path("edited"), &second).await?;
    stage.gone(&stage.elasti_path("web")).await;
    for name in ["web", "edited"] {
        stage.replicas(&format!("deployments/{name}"), 3).await;
        let path = stage.path(&format!("apps/v1/deployments/{name}/scale"));
        let writes = proxy.requests().count(|each| each.verb() == Verb::Update && each.path == path);
        assert_eq!(writes, 1, "{name}");
    }
    stage.close().await
}

async fn pods_that_answer_go_on_where_the_target_is_mistyped(stage: Stage) -> Result<()> {
    stage.deployment("web", 1).await?;
    stage.service("web", json!({ "app": "web" })).await?;
    stage.replicas("deployments/web", 1).await;
    eventually("pods answer", SOON, async || stage.ask("web").await.ok()).await;
    let clients = stage.clients("web");
    stage.elasti("web", "web", ("apps/v1", "Deployment", "wbe")).await?;
    stage.condition("web", "TargetFound", "False", "NotFound").await;
    stage.condition("web", "Redirected", "False", "PodsAnswer").await;
    assert!(stage.find(&stage.slice_path("web")).await.is_none());
    let (answered, lost) = clients.stop().await;
    assert!(lost.is_empty(), "{} of {answered} were lost: {lost:#?}", lost.len());
    assert_eq!(stage.resolver.kept(), 0);
    // When nobody answers any more, requests are kept.
    stage.scale("deployments/web", 0).await?;
    stage.mode("web", "proxy").await;
    stage.redirected("web", &stage.resolver.addresses()).await;
    stage.close().await
}

async fn the_end_of_one_takes_nothing_from_the_next(mut stage: Stage) -> Result<()> {
    asleep(&stage, "a-web").await?;
    stage.deployment("z", 0).await?;
    stage.elasti("z-web", "a-web", ("apps/v1", "Deployment", "z")).await?;
    stage.condition("z-web", "Ready", "False", "Conflict").await;
    stage.retire().await;
    stage.delete(&stage.elasti_path("a-web")).await?;
    // The next one was first after the start, and has taken over.
    let next = stage.get(&stage.elasti_path("z-web")).await?["metadata"]["uid"].clone();
    let owner = json!([{ "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService", "name": "z-web",
        "uid": next, "controller": true, "blockOwnerDeletion": true }]);
    let taken = json!({ "metadata": { "ownerReferences": owner } });
    stage.merge(&stage.slice_path("a-web"), &taken).await?;
    stage.merge(&stage.private_path("a-web"), &taken).await?;
    let before = stage.get(&stage.slice_path("a-web")).await?["metadata"]["uid"].clone();
    stage.operate().await?;
    stage.gone(&stage.elasti_path("a-web")).await;
    stage.replicas("deployments/a-web", 1).await;
    stage.condition("z-web", "Ready", "True", "Reconciled").await;
    let after = stage.get(&stage.slice_path("a-web")).await?["metadata"]["uid"].clone();
    assert_eq!(after, before, "it was deleted, and made anew");
    stage.close().await
}

/// The cache is not told that the slice went.
async fn a_slice_that_was_just_deleted_is_made_anew(mut stage: Stage) -> Result<()> {
    asleep(&stage, "web").await?;
    stage.retire().await;
    let proxy = stage.proxy().await?;
    let name = kube_informer_elasti::names::resolver_slice("web");
    let untold =
        proxy.on(Match::watch().path_contains("/endpointslices")).drop_events(Events::deleted().named(name));
    stage.operate_behind(&proxy).await?;
    let before = stage.get(&stage.slice_path("web")).await?["metadata"]["uid"].clone();
    stage.scale("deployments/web", 1).await?;
    stage.mode("web", "serve").await;
    stage.gone(&stage.slice_path("web")).await;
    stage.scale("deployments/web", 0).await?;
    stage.mode("web", "proxy").await;
    let slice = stage.redirected("web", &stage.resolver.addresses()).await;
    assert_ne!(slice["metadata"]["uid"], before);
    assert_eq!(untold.events(), 1);
    stage.close().await
}

async fn the_older_of_two_is_woken_whoever_is_known_first(mut stage: Stage) -> Result<()> {
    asleep(&stage, "a-web").await?;
    stage.deployment("z", 0).await?;
    stage.elasti("z-web", "a-web", ("apps/v1", "Deployment", "z")).await?;
    stage.condition("z-web", "Ready", "False", "Conflict").await;
    stage.retire().await;
    let factory = Stage::factory(stage.kubeconfig()).await?;
    let operator = Operator::new(stage.settings(), &factory, &Manager::new(&factory));
    factory.start();
    factory.synced(SOON).await?;
    // It has looked at the younger one only, so far.
    let younger = operator.informer().get(&stage.namespace, "z-web").unwrap();
    operator.directory().set(&Request::from(&younger), &*younger.view()?, None);
    let woken = operator.wake(&stage.namespace, "a-web").await?;
    assert_eq!(woken.elasti.name(), "a-web");
    stage.replicas("deployments/a-web", 1).await;
    stage.replicas("deployments/z", 0).await;
    factory.shutdown().await;
    stage.close().await
}

async fn a_finalizer_that_is_refused_is_said(mut stage: Stage) -> Result<()> {
    stage.retire().await;
    let proxy = stage.proxy().await?;
    for (name, answer) in [
        ("forbidden", Answer::forbidden()),
        ("rejected", Answer::status(422, "Invalid", "spec.x: Required value")),
    ] {
        proxy.on(Match::any().verb(Verb::Patch).path(stage.elasti_path(name))).answer(answer);
    }
    stage.operate_behind(&proxy).await?;
    stage.app("forbidden", 0).await?;
    stage.app("rejected", 0).await?;
    let said = stage.condition("forbidden", "Ready", "False", "Forbidden").await;
    assert!(said["message"].as_str().unwrap().contains("allow the operator"), "{said:#}");
    let said = stage.condition("rejected", "Ready", "False", "Rejected").await;
    assert!(said["message"].as_str().unwrap().contains("Required value"), "{said:#}");
    stage.event("forbidden", "Forbidden").await;
    stage.event("rejected", "Rejected").await;
    proxy.heal();
    stage.condition("forbidden", "Ready", "True", "Reconciled").await;
    stage.condition("rejected", "Ready", "True", "Reconciled").await;
    stage.close().await
}

async fn an_end_that_is_forbidden_is_said(mut stage: Stage) -> Result<()> {
    asleep(&stage, "web").await?;
    let proxy = stage.operate_through_proxy().await?;
    proxy.on(Match::any().verb(Verb::Delete).path_contains("/endpointslices/")).answer(Answer::forbidden());
    stage.delete(&stage.elasti_path("web")).await?;
    let said = stage.condition("web", "Ready", "False", "Forbidden").await;
    assert!(said["message"].as_str().unwrap().contains("delete services and endpointslices"), "{said:#}");
    stage.event("web", "Forbidden").await;
    proxy.heal();
    stage.gone(&stage.elasti_path("web")).await;
    stage.close().await
}

async fn a_redirect_follows_the_resolver_whatever_is_wrong_with_the_spec(mut stage: Stage) -> Result<()> {
    asleep(&stage, "web").await?;
    let unicorn = json!({ "apiVersion": "example.com/v9", "kind": "Unicorn" });
    stage.merge(&stage.elasti_path("web"), &json!({ "spec": { "scaleTargetRef": unicorn } })).await?;
    stage.condition("web", "TargetFound", "False", "UnknownKind").await;
    stage.resolver.scale(2).await?;
    stage.redirected("web", &stage.resolver.addresses()).await;
    // Somebody else wakes the pods: then they answer.
    stage.scale("deployments/web", 1).await?;
    stage.mode("web", "serve").await;
    stage.gone(&stage.slice_path("web")).await;
    stage.close().await
}

async fn what_is_named_no_more_is_given_back_though_the_new_service_is_missing(stage: Stage) -> Result<()> {
    asleep(&stage, "web").await?;
    stage.kubelet.delay(Duration::from_secs(2));
    stage.merge(&stage.elasti_path("web"), &json!({ "spec": { "service": "nobody" } })).await?;
    let clients = stage.clients("web");
    stage.condition("web", "ServiceFound", "False", "NotFound").await;
    stage.replicas("deployments/web", 1).await;
    stage.gone(&stage.slice_path("web")).await;
    let (answered, lost) = clients.stop().await;
    assert!(lost.is_empty() && answered > 0, "{} of {answered} were lost: {lost:#?}", lost.len());
    stage.close().await
}

async fn a_headless_service_is_not_put_to_sleep_and_says_why(stage: Stage) -> Result<()> {
    stage.stateful_set("db", 1).await?;
    let spec = json!({ "clusterIP": "None", "selector": { "app": "db" }, "ports": [{ "port": 5432 }] });
    stage.post(&stage.path("services"), &json!({ "metadata": { "name": "db" }, "spec": spec })).await?;
    stage.elasti("db", "db", ("apps/v1", "StatefulSet", "db")).await?;
    stage.mode("db", "serve").await;
    match stage.operator().put_to_sleep(&stage.namespace, "db").await {
        Err(SleepError::NotRedirected { why, .. }) => assert!(why.contains("is headless"), "{why}"),
        other => panic!("{other:?}"),
    }
    stage.replicas("statefulsets/db", 1).await;
    stage.scale("statefulsets/db", 0).await?;
    let said = stage.condition("db", "Redirected", "False", "Headless").await;
    assert!(said["message"].as_str().unwrap().contains("name a Service with a cluster IP"), "{said:#}");
    stage.condition("db", "Ready", "False", "Headless").await;
    stage.event("db", "Headless").await;
    // Whoever asked the resolver there would find nobody.
    assert!(stage.find(&stage.slice_path("db")).await.is_none());
    stage.close().await
}
