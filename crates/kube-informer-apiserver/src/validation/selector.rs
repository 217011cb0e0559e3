//! Label selectors, and the templates that they must match.

use serde_json::Value;

use super::at::{At, Errors};
use super::{formats, metadata};
use crate::fields;

/// Checks the parts of a selector. Whether it can be used at all.
pub(super) fn check(selector: &At<'_>, errors: &mut Errors) -> bool {
    let before = errors.len();
    metadata::labels(&selector.get("matchLabels"), errors);
    for expression in selector.get("matchExpressions").items() {
        let (operator, values) = (expression.get("operator"), expression.get("values"));
        match operator.text() {
            "In" | "NotIn" if values.is_empty() => {
                errors.required(&values, "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                errors
                    .forbidden(&values, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.invalid(&operator, "not a valid selector operator"),
        }
        let key = expression.get("key");
        errors.invalid_each(&key, formats::qualified_name(key.text()));
        for value in values.items() {
            errors.invalid_each(&value, formats::label_value(value.text()));
        }
    }
    errors.len() == before
}

/// Says so if the template's labels are not what the selector looks for. No selector matches nothing,
/// an empty one everything.
pub(super) fn check_match(selector: &At<'_>, template: &At<'_>, errors: &mut Errors) {
    let labels = template.walk(&["metadata", "labels"]);
    if !selector.is_set() || !matches(selector.value, labels.value) {
        errors.invalid(&labels, "`selector` does not match template `labels`");
    }
}

fn matches(selector: &Value, labels: &Value) -> bool {
    let label = |key: &str| labels.get(key).and_then(Value::as_str);
    let exact = fields::map(selector, &["matchLabels"]).into_iter().flatten();
    let mut exact = exact.map(|(key, value)| label(key) == value.as_str());
    let expressions = fields::list(selector, &["matchExpressions"]);
    let mut expressions = expressions.iter().map(|expression| {
        let found = label(fields::text(expression, &["key"]));
        let named = found
            .is_some_and(|found| fields::list(expression, &["values"]).iter().any(|value| value == found));
        match fields::text(expression, &["operator"]) {
            "In" => named,
            "NotIn" => !named,
            "Exists" => found.is_some(),
            _ => found.is_none(),
        }
    });
    exact.all(|matched| matched) && expressions.all(|matched| matched)
}
