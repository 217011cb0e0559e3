//! The strategies of the built-in kinds as a table.

use self::StatusUpdate::{Free, KeepLabels, KeepMetadata, KeepOwners, Only};
use crate::kinds::Resource;

/// How writes to one kind behave.
#[derive(Debug, Clone, Copy)]
pub(super) struct Traits {
    group: &'static str,
    plural: &'static str,
    /// Create drops the status that was sent, update keeps the stored one.
    pub(super) resets_status: bool,
    pub(super) status_update: StatusUpdate,
    pub(super) generation: Generation,
    pub(super) create_on_update: bool,
    pub(super) unconditional_update: bool,
    pub(super) dependents: Dependents,
}

/// What of `metadata` a status update leaves as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusUpdate {
    /// Labels and annotations can be changed along.
    Free,
    KeepLabels,
    KeepOwners,
    KeepMetadata,
    /// Only the status is taken.
    Only,
}

/// When `metadata.generation` counts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Generation {
    None,
    /// Set to 1 and never changed.
    Once,
    /// Counts changes of these parts.
    Counts(&'static [&'static [&'static str]]),
    /// Counts changes, but only from the first one on.
    Late(&'static [&'static [&'static str]]),
    /// Counts changes of anything but metadata.
    Everything,
}

/// What happens to dependents when a delete does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dependents {
    /// They are collected in the background.
    Delete,
    Orphan,
    /// Nothing depends on such objects: no finalizer is ever added.
    Unsupported,
}

const SPEC: Generation = Generation::Counts(&[&["spec"]]);
const WEBHOOKS: Generation = Generation::Counts(&[&["webhooks"]]);

const fn kind(group: &'static str, plural: &'static str) -> Traits {
    Traits {
        group,
        plural,
        resets_status: false,
        status_update: Free,
        generation: Generation::None,
        create_on_update: false,
        unconditional_update: true,
        dependents: Dependents::Delete,
    }
}

impl Traits {
    const fn status(mut self, update: StatusUpdate) -> Self {
        self.resets_status = true;
        self.status_update = update;
        self
    }

    const fn counts(mut self, generation: Generation) -> Self {
        self.generation = generation;
        self
    }

    const fn create_on_update(mut self) -> Self {
        self.create_on_update = true;
        self
    }

    /// An update must say which version it is made from.
    const fn conditional(mut self) -> Self {
        self.unconditional_update = false;
        self
    }

    const fn dependents(mut self, dependents: Dependents) -> Self {
        self.dependents = dependents;
        self
    }

    /// The row of a kind, or what is common where there is none.
    pub(super) fn of(resource: &Resource) -> Self {
        let common = kind("", "");
        let status = resource.has_subresource("status");
        if resource.custom.is_some() {
            let custom = common.conditional().counts(Generation::Everything);
            return if status { custom.status(Only) } else { custom };
        }
        let row = TABLE.iter().find(|row| resource.is(row.group, row.plural));
        match row {
            Some(row) => *row,
            None if status => common.status(KeepMetadata),
            None => common,
        }
    }
}

const ADMISSION: &str = "admissionregistration.k8s.io";
const FLOW: &str = "flowcontrol.apiserver.k8s.io";
const NETWORKING: &str = "networking.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const RESOURCE: &str = "resource.k8s.io";
const STORAGE: &str = "storage.k8s.io";

const TABLE: &[Traits] = &[
    kind("", "configmaps"),
    kind("", "endpoints").create_on_update(),
    kind("", "events").create_on_update().dependents(Dependents::Unsupported),
    kind("", "limitranges").create_on_update(),
    kind("", "namespaces").status(Free),
    // A node may be created with a status: the kubelet does.
    kind("", "nodes"),
    kind("", "persistentvolumeclaims").status(Free),
    kind("", "persistentvolumes").status(Free),
    kind("", "pods").status(KeepOwners).counts(SPEC),
    kind("", "podtemplates").counts(Generation::Counts(&[&["template"]])),
    kind("", "replicationcontrollers").status(Free).counts(SPEC).dependents(Dependents::Orphan),
    kind("", "resourcequotas").status(Free),
    kind("", "secrets"),
    kind("", "serviceaccounts"),
    kind("", "services").status(Free).create_on_update(),
    kind(ADMISSION, "mutatingadmissionpolicies").counts(SPEC).conditional(),
    kind(ADMISSION, "mutatingadmissionpolicybindings").counts(SPEC).conditional(),
    kind(ADMISSION, "mutatingwebhookconfigurations").counts(WEBHOOKS).conditional(),
    kind(ADMISSION, "validatingadmissionpolicies").status(KeepMetadata).counts(SPEC).conditional(),
    kind(ADMISSION, "validatingadmissionpolicybindings").counts(SPEC).conditional(),
    kind(ADMISSION, "validatingwebhookconfigurations").counts(WEBHOOKS).conditional(),
    kind("apiextensions.k8s.io", "customresourcedefinitions").status(Free).counts(SPEC).conditional(),
    kind("apiregistration.k8s.io", "apiservices").status(KeepMetadata).conditional(),
    kind("apps", "controllerrevisions"),
    kind("apps", "daemonsets").status(Free).counts(SPEC),
    kind("apps", "deployments")
        .status(KeepLabels)
        .counts(Generation::Counts(&[&["spec"], &["metadata", "annotations"]])),
    kind("apps", "replicasets").status(Free).counts(SPEC),
    kind("apps", "statefulsets").status(Free).counts(SPEC),
    kind("autoscaling", "horizontalpodautoscalers").status(Free).counts(SPEC),
    kind("batch", "cronjobs").status(Free).counts(SPEC),
    // The one kind of version 1 that keeps its pods, for reasons of age.
    kind("batch", "jobs").status(Free).counts(SPEC).dependents(Dependents::Orphan),
    kind("certificates.k8s.io", "certificatesigningrequests").status(Free),
    kind("certificates.k8s.io", "clustertrustbundles").conditional(),
    kind("coordination.k8s.io", "leasecandidates").create_on_update().conditional(),
    kind("coordination.k8s.io", "leases").create_on_update().conditional(),
    kind("discovery.k8s.io", "endpointslices").counts(Generation::Counts(&[
        &["addressType"],
        &["endpoints"],
        &["ports"],
        &["metadata", "labels"],
    ])),
    kind("events.k8s.io", "events").create_on_update().dependents(Dependents::Unsupported),
    kind(FLOW, "flowschemas").status(Only).counts(SPEC),
    kind(FLOW, "prioritylevelconfigurations").status(Only).counts(SPEC),
    kind(NETWORKING, "ingressclasses").counts(SPEC),
    kind(NETWORKING, "ingresses").status(Free).counts(SPEC),
    kind(NETWORKING, "ipaddresses"),
    kind(NETWORKING, "networkpolicies").counts(SPEC),
    kind(NETWORKING, "servicecidrs").status(KeepMetadata),
    kind("node.k8s.io", "runtimeclasses").create_on_update().conditional(),
    kind("policy", "poddisruptionbudgets").status(Free).counts(SPEC).conditional(),
    kind(RBAC, "clusterrolebindings").create_on_update(),
    kind(RBAC, "clusterroles").create_on_update(),
    kind(RBAC, "rolebindings").create_on_update(),
    kind(RBAC, "roles").create_on_update(),
    kind(RESOURCE, "deviceclasses").counts(SPEC),
    kind(RESOURCE, "resourceclaims").status(KeepMetadata),
    kind(RESOURCE, "resourceclaimtemplates"),
    kind(RESOURCE, "resourceslices").counts(SPEC),
    kind("scheduling.k8s.io", "priorityclasses").counts(Generation::Once),
    kind(STORAGE, "csidrivers").counts(Generation::Late(&[&["spec"]])).conditional(),
    kind(STORAGE, "csinodes").status(KeepMetadata).conditional(),
    kind(STORAGE, "csistoragecapacities").conditional(),
    kind(STORAGE, "storageclasses"),
    kind(STORAGE, "volumeattachments").status(KeepMetadata).conditional(),
    kind(STORAGE, "volumeattributesclasses"),
];
