//! `pods/eviction`: a deletion that a disruption budget may forbid.
//!
//! The one budget that selects the pod is looked at, and one of the disruptions that it allows is taken from
//! it, before the pod is deleted; nothing is taken for an eviction that is refused. Who gives disruptions back
//! is a controller, here as on the real server.

use std::sync::Arc;

use serde_json::{Value, json};

use super::delete::check_preconditions;
use super::subresource::{Part, set_condition, success};
use super::{Api, DeleteOptions, WriteOptions, seconds, text};
use crate::kinds::Resource;
use crate::object::Stored;
use crate::selector::LabelSelector;
use crate::status::{ApiError, Cause, Details};

const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
const SEVERAL: &str =
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
/// More evictions than this wait for the controller of budgets at most.
const UNCONFIRMED: usize = 2000;

impl Api {
    /// Evicts a pod.
    pub(crate) fn evict(
        &self,
        pods: &Arc<Resource>,
        namespace: &str,
        name: &str,
        eviction: &Value,
        dry_run: bool,
    ) -> Result<Value, ApiError> {
        if text(eviction, "/metadata/name") != name {
            return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
        }
        let mut options = DeleteOptions::read(eviction.get("deleteOptions"))?;
        options.dry_run |= dry_run;
        let pod = self.get(pods, namespace, name)?;
        let budget = self.budget_of(&pod)?;
        if let Some(budget) = &budget {
            check(&budget.value())?;
        }
        check_preconditions(pods, &pod, &options)?;
        if !options.dry_run {
            if let Some(budget) = budget {
                self.take_from(&budget, name)?;
            }
            if !pod.deleting {
                self.amend(pods, &pod, |pod| {
                    set_condition(pod, "DisruptionTarget", "True");
                    let conditions = pod.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
                    if let Some(condition) = conditions.and_then(|all| all.last_mut()) {
                        condition["reason"] = "EvictionByEvictionAPI".into();
                        condition["message"] = "Eviction API: evicting".into();
                    }
                });
            }
        }
        let options = DeleteOptions { version: None, ..options };
        self.delete(pods, namespace, name, &options)?;
        Ok(success(201))
    }

    /// The budget that has a say in the eviction of a pod.
    fn budget_of(&self, pod: &Stored) -> Result<Option<Arc<Stored>>, ApiError> {
        let object = pod.value();
        // Budgets are for pods that run and are not on their way out.
        let running = !matches!(text(&object, "/status/phase"), "Pending" | "Succeeded" | "Failed");
        if pod.deleting || !running || pod.labels.is_empty() {
            return Ok(None);
        }
        let budgets = self.resource("policy", "poddisruptionbudgets")?;
        let mut selecting = self.list(&budgets, &pod.namespace).objects.into_iter().filter(|budget| {
            budget.value().pointer("/spec/selector").is_some_and(|selector| {
                LabelSelector::from_json(selector).is_ok_and(|all| all.matches(&pod.labels))
            })
        });
        match (selecting.next(), selecting.next()) {
            (Some(_), Some(_)) => Err(ApiError::unforeseen(SEVERAL)),
            (Some(budget), None) if !is_ready(&object) && spares_unready(&budget.value()) => Ok(None),
            (budget, _) => Ok(budget),
        }
    }

    /// Takes a disruption from a budget, for a pod.
    fn take_from(&self, budget: &Stored, pod: &str) -> Result<(), ApiError> {
        let budgets = self.resource("policy", "poddisruptionbudgets")?;
        let missing = || ApiError::not_found("policy", "poddisruptionbudgets", &budget.name);
        let options = WriteOptions { manager: "kube-apiserver".into(), patch: true, ..Default::default() };
        self.update(&budgets, &budget.namespace, &budget.name, Part::Status, &options, |budget| {
            let mut budget = budget.cloned().ok_or_else(missing)?;
            check(&budget)?;
            let now = seconds(jiff::Timestamp::now());
            let left = number(&budget, "/status/disruptionsAllowed") - 1;
            budget["status"]["disruptionsAllowed"] = left.into();
            budget["status"]["disruptedPods"][pod] = now.clone().into();
            if left == 0 {
                exhaust(&mut budget, &now);
            }
            Ok(budget)
        })?;
        Ok(())
    }
}

/// The condition of a budget that allows no disruption any more.
fn exhaust(budget: &mut Value, now: &str) {
    let observed = number(budget, "/status/observedGeneration");
    let mut condition = json!({ "type": "DisruptionAllowed", "status": "False", "lastTransitionTime": now,
        "observedGeneration": observed, "reason": "InsufficientPods", "message": "" });
    match &mut budget["status"]["conditions"] {
        Value::Array(all) => match all.iter_mut().find(|c| text(c, "/type") == "DisruptionAllowed") {
            Some(old) => {
                if old["status"] == "False" {
                    condition["lastTransitionTime"] = old["lastTransitionTime"].clone();
                }
                *old = condition;
            }
            None => all.push(condition),
        },
        none => *none = json!([condition]),
    }
}

/// Whether a budget allows a disruption.
fn check(budget: &Value) -> Result<(), ApiError> {
    let name = text(budget, "/metadata/name");
    let refused = |message: String| {
        let mut error = ApiError::new(429, "TooManyRequests", REFUSED);
        let causes = vec![Cause { reason: "DisruptionBudget", field: String::new(), message }];
        error.details = Some(Box::new(Details { causes, ..Default::default() }));
        error
    };
    if number(budget, "/status/observedGeneration") < number(budget, "/metadata/generation") {
        let message = format!("The disruption budget {name} is still being processed by the server.");
        return Err(ApiError { retry_after: Some(10), ..refused(message) });
    }
    let unconfirmed = budget.pointer("/status/disruptedPods").and_then(Value::as_object);
    if unconfirmed.is_some_and(|pods| pods.len() > UNCONFIRMED) {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(ApiError::forbidden("policy", "poddisruptionbudget", name, why));
    }
    if number(budget, "/status/disruptionsAllowed") > 0 {
        return Ok(());
    }
    let (healthy, desired) =
        (number(budget, "/status/currentHealthy"), number(budget, "/status/desiredHealthy"));
    Err(refused(match healthy <= desired {
        true => {
            format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
        }
        false => format!("The disruption budget {name} does not allow evicting pods currently"),
    }))
}

/// Whether pods that are not ready may be evicted whatever the budget says.
fn spares_unready(budget: &Value) -> bool {
    let (healthy, desired) =
        (number(budget, "/status/currentHealthy"), number(budget, "/status/desiredHealthy"));
    text(budget, "/spec/unhealthyPodEvictionPolicy") == "AlwaysAllow" || healthy >= desired && desired > 0
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|c| text(c, "/type") == "Ready" && text(c, "/status") == "True")
}

fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}
