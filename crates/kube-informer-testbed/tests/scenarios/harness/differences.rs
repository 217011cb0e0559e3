//! What the embedded server deliberately does otherwise.
//!
//! An entry is one path of one scenario. One that does not occur (any more) fails its scenario. Every reason
//! is in the embedded server's `DIFFERENCES.md`.

/// A difference that is meant.
pub(crate) struct Difference {
    pub(crate) scenario: &'static str,
    /// The step and the path in it, as a failed comparison prints them.
    pub(crate) path: &'static str,
    pub(crate) reason: &'static str,
}

const fn at(scenario: &'static str, path: &'static str, reason: &'static str) -> Difference {
    Difference { scenario, path, reason }
}

const NO_YAML: &str = "Bodies and answers are JSON, requests may be protobuf: YAML is not spoken.";
const NO_APPLY: &str = "Server-side apply is refused with 415.";
const REMOVED_VERSIONS: &str = "Types of API versions that Kubernetes has removed are unknown: their objects are refused by another message.";
const ONE_AUTOSCALER: &str = "HorizontalPodAutoscalers are served in `autoscaling/v2` only.";
const NO_USER_ID: &str = "Users of static tokens have no UID.";
const NO_JWT: &str = "Tokens of service accounts are no JWTs: reviews show no credential ID.";
const NO_STRUCTS: &str = "Messages that quote a Go struct show the JSON of the field instead.";
const NO_ZONES: &str = "Time zones of CronJobs are not looked up.";
const NO_PROSE: &str = "Columns of tables have no descriptions.";
const ONE_DECODER: &str =
    "A strategic merge patch that yields no valid object is refused in the words of the JSON decoder.";
const NO_NODE: &str = "`pods/ephemeralcontainers` and `pods/resize` are not served.";
const NUMBERS: &str =
    "Numbers are read by value: messages do not show how they were written, and `-0` is no whole number.";
const KEPT_FIELDS: &str =
    "Fields that only another version of a custom resource knows are stored, and shown by that version.";
const QUIET_REFUSALS: &str = "A patch that is refused gives no warnings about unknown fields.";

const DEPTH: &str = "Objects have no more than 120 levels, with the record of who owns their fields.";
const NO_BYTES: &str = "Bytes of a query that are no text are shown as U+FFFD in messages.";
const EMPTY: &str = "Empty lists and maps are absent ones: messages show them as `null`.";
const FORM_FIRST: &str = "A write whose answer cannot have the form that was asked for is not done.";

/// All of them.
pub(crate) const DIFFERENCES: &[Difference] = &[
    at(
        "each_version_shows_the_fields_of_its_own_schema",
        "04 PATCH UNIQUE.example.com/v2:widgets/a/body/metadata/managedFields/1",
        KEPT_FIELDS,
    ),
    at(
        "each_version_shows_the_fields_of_its_own_schema",
        "04 PATCH UNIQUE.example.com/v2:widgets/a/body/spec/size",
        KEPT_FIELDS,
    ),
    at(
        "each_version_shows_the_fields_of_its_own_schema",
        "05 GET UNIQUE.example.com/v1:widgets/a/body/metadata/managedFields/1",
        KEPT_FIELDS,
    ),
    at(
        "each_version_shows_the_fields_of_its_own_schema",
        "05 GET UNIQUE.example.com/v1:widgets/a/body/spec/size",
        KEPT_FIELDS,
    ),
    at(
        "a_patch_makes_no_other_kind_of_an_object",
        "03 PATCH UNIQUE.example.com/v1:widgets/a/headers/warning",
        QUIET_REFUSALS,
    ),
    at("a_yaml_body_is_taken", "01 POST configmaps/body", NO_YAML),
    at("a_yaml_body_is_taken", "01 POST configmaps/code", NO_YAML),
    at(
        "kind_and_version_of_the_body_may_be_absent_or_must_fit",
        "10 POST apps/v1:deployments?dryRun=All/body/message",
        REMOVED_VERSIONS,
    ),
    at("a_table_describes_its_columns", "every column is described/value", NO_PROSE),
    at(
        "malformed_strategic_patches_are_refused",
        "08 PATCH apps/v1:deployments/a/body/details/causes/0/message",
        ONE_DECODER,
    ),
    at("malformed_strategic_patches_are_refused", "08 PATCH apps/v1:deployments/a/body/message", ONE_DECODER),
    at(
        "malformed_strategic_patches_are_refused",
        "09 PATCH apps/v1:deployments/a/body/details/causes/0/message",
        ONE_DECODER,
    ),
    at("malformed_strategic_patches_are_refused", "09 PATCH apps/v1:deployments/a/body/message", ONE_DECODER),
    at(
        "malformed_strategic_patches_are_refused",
        "15 PATCH apps/v1:deployments/a/body/details/causes/0/message",
        ONE_DECODER,
    ),
    at("malformed_strategic_patches_are_refused", "15 PATCH apps/v1:deployments/a/body/message", ONE_DECODER),
    at(
        "malformed_strategic_patches_are_refused",
        "16 PATCH apps/v1:deployments/a/body/details/causes/0/message",
        ONE_DECODER,
    ),
    at("malformed_strategic_patches_are_refused", "16 PATCH apps/v1:deployments/a/body/message", ONE_DECODER),
    at("server_side_apply_is_answered", "01 PATCH configmaps/a?fieldManager=x/body", NO_APPLY),
    at("server_side_apply_is_answered", "01 PATCH configmaps/a?fieldManager=x/code", NO_APPLY),
    at("patches_of_custom_objects", "04 PATCH UNIQUE.example.com/v1:widgets/a/body/message", NO_APPLY),
    at("patches_of_custom_objects", "05 PATCH UNIQUE.example.com/v1:widgets/a/body/message", NO_APPLY),
    at("an_autoscaler_gets_its_defaults", "in autoscaling/v1/value", ONE_AUTOSCALER),
    at("groups_and_versions_are_listed", "10 GET /apis/autoscaling/body/versions/1", ONE_AUTOSCALER),
    at("groups_and_versions_are_listed", "autoscaling in the list/value/versions/1", ONE_AUTOSCALER),
    at(
        "reviews_are_answered_and_not_stored",
        "01 POST /apis/authentication.k8s.io/v1/selfsubjectreviews/body/status/userInfo/uid",
        NO_USER_ID,
    ),
    at(
        "workloads_are_validated",
        "19 POST apps/v1:statefulsets?dryRun=All&fieldManager=updatestrategy/body/details/causes/0/message",
        NO_STRUCTS,
    ),
    at(
        "workloads_are_validated",
        "19 POST apps/v1:statefulsets?dryRun=All&fieldManager=updatestrategy/body/message",
        NO_STRUCTS,
    ),
    at(
        "workloads_are_validated",
        "33 POST batch/v1:cronjobs?dryRun=All&fieldManager=timezone/body",
        NO_ZONES,
    ),
    at(
        "workloads_are_validated",
        "33 POST batch/v1:cronjobs?dryRun=All&fieldManager=timezone/code",
        NO_ZONES,
    ),
    at(
        "a_token_is_issued_for_a_service_account",
        "06 POST /apis/authentication.k8s.io/v1/tokenreviews/body/status/user/extra",
        NO_JWT,
    ),
    at("parts_that_only_a_node_can_serve", "ephemeralcontainers/value", NO_NODE),
    at("parts_that_only_a_node_can_serve", "resize/value", NO_NODE),
    at("answers_that_are_not_spoken_are_refused", "18 GET configmaps/a/body/message", NO_YAML),
    at("bodies_in_other_formats_are_refused", "14 PUT configmaps/a/body/message", NO_YAML),
    at("numbers_out_of_range_are_refused", "03 POST apps/v1:deployments?dryRun=All/body/message", NUMBERS),
    at("numbers_out_of_range_are_refused", "04 POST apps/v1:deployments?dryRun=All/body/message", NUMBERS),
    at("numbers_out_of_range_are_refused", "07 POST apps/v1:deployments?dryRun=All/body", NUMBERS),
    at("numbers_out_of_range_are_refused", "07 POST apps/v1:deployments?dryRun=All/code", NUMBERS),
    at("numbers_out_of_range_are_refused", "08 POST apps/v1:deployments?dryRun=All/body/message", NUMBERS),
    at("objects_of_many_levels_can_be_changed", "118 levels/value", DEPTH),
    at("objects_of_many_levels_can_be_changed", "122 levels/value", DEPTH),
    at("objects_of_many_levels_can_be_changed", "126 levels/value", DEPTH),
    at("objects_of_many_levels_can_be_changed", "140 levels/value", DEPTH),
    at("objects_of_many_levels_can_be_changed", "1000 levels/value", DEPTH),
    at("objects_of_many_levels_can_be_changed", "grown by a patch/value", DEPTH),
    at("odd_queries_are_refused_or_ignored", "12 GET configmaps?labelSelector=%E4/body/message", NO_BYTES),
    at("odd_queries_are_refused_or_ignored", "14 GET configmaps?limit=%E4/body/message", NO_BYTES),
    at(
        "ingresses_and_their_classes",
        "03 POST networking.k8s.io/v1:ingresses?dryRun=All&fieldManager=rules/body/details/causes/0/message",
        EMPTY,
    ),
    at(
        "ingresses_and_their_classes",
        "03 POST networking.k8s.io/v1:ingresses?dryRun=All&fieldManager=rules/body/message",
        EMPTY,
    ),
    at(
        "nodes_and_volumes_are_cluster_scoped",
        "07 POST /api/v1/persistentvolumes?dryRun=All&fieldManager=capacity/body/details/causes/1/message",
        EMPTY,
    ),
    at(
        "nodes_and_volumes_are_cluster_scoped",
        "07 POST /api/v1/persistentvolumes?dryRun=All&fieldManager=capacity/body/message",
        EMPTY,
    ),
    at("a_form_that_does_not_fit_is_refused_before_the_write", "c exists/value", FORM_FIRST),
    at("a_form_that_does_not_fit_is_refused_before_the_write", "d exists/value", FORM_FIRST),
    at("parts_that_only_a_node_can_serve", "patch of ephemeralcontainers/value", NO_NODE),
    at("parts_that_only_a_node_can_serve", "patch of resize/value", NO_NODE),
];
