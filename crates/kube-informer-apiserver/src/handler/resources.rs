//! The verbs over HTTP: from method, path, query and body to the calls of [`crate::api`].

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::at::{At, Shape};
use super::{Asked, Handler, Reply};
use crate::admission;
use crate::api::{Deleted, Part, WriteOptions, text};
use crate::auth::User;
use crate::body::Body;
use crate::crd;
use crate::kinds::Resource;
use crate::listing::{self, Reader};
use crate::negotiate::Answer;
use crate::object::{Form, Stored};
use crate::registry::bucket_of;
use crate::render;
use crate::request::Target;
use crate::status::{ApiError, FieldError};
use crate::watch::{self, WatchForm, WatchRequest};

/// A watch without a timeout ends after this long.
const LONGEST_WATCH: Duration = Duration::from_secs(30 * 60);

impl Handler {
    pub(super) async fn resource(&self, asked: &Asked<'_>, target: &Target) -> Result<Reply, ApiError> {
        let found = self.api.registry.find(&target.group, &target.version, &target.plural);
        let nowhere = || self.nowhere(&target.group, ApiError::unknown_path());
        let resource = found.ok_or_else(nowhere)?;
        let (custom, in_namespace) = (resource.custom.is_some(), !target.namespace.is_empty());
        let of_one = !target.name.is_empty() || !target.subresource.is_empty();
        // What is in a namespace without a name: built-in resources ask for the name, custom ones are nowhere.
        if resource.namespaced && !in_namespace && of_one && (custom || !target.nameless_namespace) {
            return Err(nowhere());
        }
        if !resource.namespaced && (in_namespace || target.nameless_namespace) {
            return Err(nowhere());
        }
        if custom && target.nameless_namespace && asked.method != Method::GET {
            return Err(nowhere());
        }
        if matches!(target.name.as_str(), "." | "..") {
            let name = &target.name;
            return Err(ApiError::bad_request(format!(
                "Name parameter invalid: {name:?}: may not be '{name}'"
            )));
        }
        let at = At { asked, target, resource };
        let mut reply = self.verb(&at).await?;
        // A version that its definition calls deprecated.
        reply.warnings.extend(at.resource.custom.iter().flat_map(|custom| custom.warnings.iter().cloned()));
        if at.resource.is("", "endpoints") {
            let warning = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
            reply.warnings.push(warning.to_owned());
        }
        Ok(reply)
    }

    async fn verb(&self, at: &At<'_>) -> Result<Reply, ApiError> {
        let (asked, target) = (at.asked, at.target);
        if !at.target.subresource.is_empty() {
            return self.subresource(at).await;
        }
        let only_posted = at.resource.custom.is_none() && at.resource.verbs == ["create"];
        if only_posted && !target.name.is_empty() {
            return Err(ApiError::unknown_path());
        }
        // One object is watched through its collection, or by the old path; here the parameter means nothing.
        let watch = at.target.watch || target.name.is_empty() && asked.query.flag("watch");
        let verb = match (asked.method, target.name.is_empty()) {
            (&Method::GET, _) if watch => "watch",
            (&Method::GET, true) => "list",
            (&Method::GET, false) => "get",
            (&Method::POST, true) if at.resource.namespaced && target.is_outside_namespaces() => {
                return Err(ApiError::method_not_allowed());
            }
            (&Method::POST, true) => "create",
            (&Method::PUT, false) => "update",
            (&Method::PATCH, false) => "patch",
            (&Method::DELETE, false) => "delete",
            (&Method::DELETE, true) if at.resource.namespaced == target.is_outside_namespaces() => {
                return Err(ApiError::method_not_allowed());
            }
            (&Method::DELETE, true) => "deletecollection",
            _ => return Err(ApiError::method_not_allowed()),
        };
        // A definition on its way out shows fewer verbs, but takes all on what exists.
        if resource_lacks(&at.resource, verb) {
            return Err(ApiError::method_not_allowed());
        }
        at.check_form(match verb {
            "watch" => Shape::Events,
            "list" | "deletecollection" => Shape::List,
            // Reviews: what is only ever posted is shown in no table.
            "create" if resource_lacks(&at.resource, "get") => Shape::Posted,
            _ => Shape::Object,
        })?;
        if !target.name.is_empty() {
            at.check_namespace()?;
        }
        match verb {
            "watch" => self.watch(at).await,
            "list" => self.list(at).await,
            "get" => self.get(at).await,
            "create" => self.create(at),
            "update" => self.update(at, Part::Whole),
            "patch" => self.patch(at, Part::Whole),
            "delete" => self.delete(at),
            _ => self.delete_collection(at).await,
        }
    }

    async fn get(&self, at: &At<'_>) -> Result<Reply, ApiError> {
        let stored = self.read(at).await?;
        at.reply(200, &stored)
    }

    async fn read(&self, at: &At<'_>) -> Result<Arc<Stored>, ApiError> {
        let version = at.asked.query.get("resourceVersion");
        if let Some(version) = listing::version(version)? {
            listing::reach(&self.api, version).await?;
        }
        self.api.get(&at.resource, &at.target.namespace, &at.target.name)
    }

    async fn list(&self, at: &At<'_>) -> Result<Reply, ApiError> {
        let selection = listing::selection(&at.resource, &at.target.namespace, "", &at.asked.query)?;
        let page =
            listing::page(&self.api, &at.resource, &selection, &at.asked.query, Reader::Client).await?;
        let mut meta = page.meta();
        if at.resource.custom.is_some() && meta.get("continue").is_none() && at.answer()? == Answer::Object {
            // Lists of custom objects are written by other code there.
            meta["continue"] = "".into();
        }
        let body = render::list(&at.resource, page.objects, &meta, at.answer()?, at.table_form()?);
        Ok(Reply::body(200, body))
    }

    async fn watch(&self, at: &At<'_>) -> Result<Reply, ApiError> {
        let query = &at.asked.query;
        let selection = listing::selection(&at.resource, &at.target.namespace, &at.target.name, query)?;
        let start = match listing::start(&self.api, query).await {
            Ok(start) => start,
            // The real server has begun to answer by the time it gives up waiting.
            Err(error) if error.code == 504 => {
                return Ok(Reply::body(200, Body::whole(watch::error_frame(&error))));
            }
            Err(error) => return Err(error),
        };
        let timeout = query.number("timeoutSeconds")?.and_then(|s| u64::try_from(s).ok()).filter(|s| *s > 0);
        let form = match at.answer()? {
            Answer::Table(_) => WatchForm::Table(at.table_form()?),
            // The real server finds out at the first event that it is none, and ends.
            Answer::Metadata { list: true, .. } => return Ok(Reply::body(200, Body::whole(""))),
            Answer::Metadata { version, .. } => WatchForm::Shared(Form::Metadata(version)),
            _ => WatchForm::Shared(Form::Object),
        };
        let watch = self.api.watch(WatchRequest {
            bucket: bucket_of(&at.resource),
            resource: Arc::clone(&at.resource),
            selection,
            start,
            form,
            bookmarks: query.flag("allowWatchBookmarks"),
            timeout: timeout.map_or(LONGEST_WATCH, Duration::from_secs),
            bookmark_interval: self.settings.bookmark_interval,
        });
        let frames = futures_util::stream::unfold(watch, |mut watch| async move {
            let frame = watch.next().await?;
            Some((frame, watch))
        });
        Ok(Reply { compressible: false, ..Reply::body(200, Body::stream(frames)) })
    }

    fn create(&self, at: &At<'_>) -> Result<Reply, ApiError> {
        at.check_media()?;
        let options = at.write_options("CreateOptions")?;
        let validation = at.field_validation("CreateOptions")?;
        let (mut object, mut warnings) = admission::read(&at.resource, at.asked.body, validation)?;
        warnings.extend(admission::deduplicate_owners(&mut object));
        warnings.extend(crate::validation::name_warning(&at.resource, &object));
        if admission::is_definition(&at.resource) {
            warnings.extend(crd::warnings_of_definition(&object, None));
        }
        if at.resource.custom.is_some() && !at.resource.verbs.iter().any(|v| v == "create") {
            let why = "create not allowed while custom resource definition is terminating";
            let name = text(&object, "/metadata/name");
            return Err(ApiError::forbidden(&at.resource.group, &at.resource.plural, name, why));
        }
        if at.resource.is("", "bindings") {
            at.check_namespace()?;
            let (pods, name) = (self.api.resource("", "pods")?, text(&object, "/metadata/name").to_owned());
            return Ok(Reply::value(
                201,
                &self.api.bind(&pods, &at.target.namespace, &name, &object, &options)?,
            ));
        }
        if resource_lacks(&at.resource, "get") {
            let review = self.review(&at.resource, object, &at.asked.user, &options.manager);
            return at.reply_value(201, review);
        }
        let stored = self.api.create(&at.resource, &at.target.namespace, object, &options)?;
        Ok(at.reply(201, &stored)?.with_warnings(warnings))
    }

    fn update(&self, at: &At<'_>, part: Part) -> Result<Reply, ApiError> {
        at.check_media()?;
        let options = at.write_options("UpdateOptions")?;
        let validation = at.field_validation("UpdateOptions")?;
        let (object, read_warnings) = admission::read(&at.resource, at.asked.body, validation)?;
        let mut warnings = Vec::new();
        let (namespace, name) = (&at.target.namespace, &at.target.name);
        let (stored, created) = self.api.update(&at.resource, namespace, name, part, &options, |old| {
            warnings.clone_from(&read_warnings);
            if admission::is_definition(&at.resource) {
                warnings.extend(crd::warnings_of_definition(&object, old));
            }
            Ok(object.clone())
        })?;
        Ok(at.reply(if created { 201 } else { 200 }, &stored)?.with_warnings(warnings))
    }

    fn patch(&self, at: &At<'_>, part: Part) -> Result<Reply, ApiError> {
        let options = WriteOptions { patch: true, ..at.write_options("PatchOptions")? };
        let validation = at.field_validation("PatchOptions")?;
        let patch = at.read_patch()?;
        let mut warnings = Vec::new();
        let (namespace, name) = (&at.target.namespace, &at.target.name);
        let schema = at.resource.schema.as_ref();
        let (stored, _) = self.api.update(&at.resource, namespace, name, part, &options, |object| {
            let Some(object) = object else {
                return Err(ApiError::not_found(&at.resource.group, &at.resource.plural, name));
            };
            let mut new = patch.apply(object, schema)?;
            let mut unknown = patch.unknown_fields();
            check_custom_type(&at.resource, name, &new)?;
            let patched = new.clone();
            let unreadable = |why: &str| ApiError::unreadable_patch(&patched, why);
            admission::check_type(&at.resource, &new)
                .map_err(|error| unreadable(admission::why_not(&error.message)))?;
            unknown.extend(admission::conform(&at.resource, &mut new).map_err(|error| match error.code {
                400 if at.resource.custom.is_none() => unreadable(admission::why_not(&error.message)),
                _ => error,
            })?);
            warnings = admission::complain(&at.resource, unknown, validation)
                .map_err(|error| unreadable(admission::why_not(&error.message)))?;
            Ok(new)
        })?;
        Ok(at.reply(200, &stored)?.with_warnings(warnings))
    }

    fn delete(&self, at: &At<'_>) -> Result<Reply, ApiError> {
        let options = at.delete_options()?;
        let (resource, name) = (&at.resource, &at.target.name);
        match self.api.delete(resource, &at.target.namespace, name, &options)? {
            Deleted::Going(object) => {
                let cascade_asked = options.how.orphan_dependents == Some(false);
                at.reply(if cascade_asked { 202 } else { 200 }, &object)
            }
            Deleted::Gone(object) if returns_deleted_object(resource) => at.reply(200, &object),
            Deleted::Gone(object) => {
                let mut details = json!({ "name": name, "kind": resource.plural, "uid": object.uid });
                if !resource.group.is_empty() {
                    details["group"] = resource.group.clone().into();
                }
                Ok(Reply::value(
                    200,
                    &json!({
                        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                        "details": details,
                    }),
                ))
            }
        }
    }

    async fn delete_collection(&self, at: &At<'_>) -> Result<Reply, ApiError> {
        let query = &at.asked.query;
        let selection = listing::selection(&at.resource, &at.target.namespace, "", query)?;
        let options = at.delete_options()?;
        let page = listing::page(&self.api, &at.resource, &selection, query, Reader::Deletion).await?;
        self.api.delete_all(&at.resource, &page.objects, &options)?;
        let mut meta = page.meta();
        if at.resource.custom.is_some() && meta.get("continue").is_none() {
            meta["continue"] = "".into();
        }
        let body = render::list(&at.resource, page.objects, &meta, at.answer()?, at.table_form()?);
        Ok(Reply::body(200, body))
    }

    async fn subresource(&self, at: &At<'_>) -> Result<Reply, ApiError> {
        let name = at.target.subresource.as_str();
        let declared = at.resource.subresources.iter().find(|s| s.name == name);
        let declared = declared.ok_or_else(|| match &at.resource.custom {
            Some(_) => ApiError::not_found(&at.resource.group, &at.resource.plural, &at.target.name),
            None => ApiError::unknown_path(),
        })?;
        let verb = match *at.asked.method {
            Method::GET => "get",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::POST => "create",
            _ => return Err(ApiError::method_not_allowed()),
        };
        if !declared.verbs.iter().any(|v| v == verb) {
            return Err(ApiError::method_not_allowed());
        }
        at.check_form(if verb == "create" { Shape::Posted } else { Shape::Object })?;
        if at.target.name.is_empty() {
            return Err(match &at.resource.custom {
                None => ApiError::bad_request("name must be provided"),
                Some(_) => ApiError::not_listed(&at.resource),
            });
        }
        at.check_namespace()?;
        match (Part::of(name), verb) {
            (Some(Part::Scale), _) => self.scale(at, verb).await,
            (Some(_), "get") => self.get(at).await,
            (Some(part), "update") => self.update(at, part),
            (Some(part), "patch") => self.patch(at, part),
            (None, "create") => self.post_to(at, name),
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    async fn scale(&self, at: &At<'_>, verb: &str) -> Result<Reply, ApiError> {
        if verb == "get" {
            let stored = self.read(at).await?;
            let scale = self.api.scale(&at.resource, &stored)?;
            return match at.answer()? {
                Answer::Table(_) => {
                    Ok(Reply::value(200, &render::scale(&at.resource, scale, at.table_form()?)))
                }
                _ => at.reply_value(200, scale),
            };
        }
        let options = at.write_options("UpdateOptions")?;
        let options = WriteOptions { patch: verb == "patch", ..options };
        let patch = if verb == "patch" { Some(at.read_patch()?) } else { None };
        let (namespace, name) = (&at.target.namespace, &at.target.name);
        let scale = self.api.set_scale(&at.resource, namespace, name, &options, |current| match &patch {
            Some(patch) => {
                let mut scale = patch.apply(current, None)?;
                let schema = crate::kinds::kind("autoscaling", "v1", "Scale");
                let patched = scale.clone();
                let decoded = schema.map_or(Ok(()), |schema| schema.decode(&mut scale).map(|_| ()));
                decoded.map_err(|why| ApiError::unreadable_patch(&patched, &why))?;
                Ok(scale)
            }
            None => {
                let mut scale = admission::read_kind("autoscaling", "v1", "Scale", at.asked.body)?;
                crate::api::identify(&at.resource, namespace, name, &mut scale)?;
                Ok(scale)
            }
        })?;
        at.reply_value(200, scale)
    }

    fn post_to(&self, at: &At<'_>, name: &str) -> Result<Reply, ApiError> {
        let options = at.write_options("CreateOptions")?;
        let (namespace, of) = (&at.target.namespace, &at.target.name);
        let body = |group, version, kind| admission::read_kind(group, version, kind, at.asked.body);
        match (at.resource.plural.as_str(), name) {
            ("pods", "binding") => {
                let binding = body("", "v1", "Binding")?;
                if text(&binding, "/metadata/name") != of {
                    return Err(ApiError::bad_request("name in URL does not match name in Binding object"));
                }
                Ok(Reply::value(201, &self.api.bind(&at.resource, namespace, of, &binding, &options)?))
            }
            ("pods", "eviction") => {
                let eviction = body("policy", "v1", "Eviction")?;
                Ok(Reply::value(
                    201,
                    &self.api.evict(&at.resource, namespace, of, &eviction, options.dry_run)?,
                ))
            }
            ("serviceaccounts", "token") => {
                let request = body("authentication.k8s.io", "v1", "TokenRequest")?;
                self.api.get(&at.resource, namespace, of)?;
                let uid = self.api.get(&at.resource, namespace, of)?.uid.clone();
                let user = User::service_account(namespace, of, &uid);
                let mut request =
                    self.service_account_token(namespace, of, request, &options.manager, user)?;
                request["metadata"]["uid"] = uid.into();
                at.reply_value(201, request)
            }
            _ => Err(ApiError::method_not_allowed()),
        }
    }
}

/// A patch must not make another kind of a custom object.
fn check_custom_type(resource: &Resource, name: &str, object: &Value) -> Result<(), ApiError> {
    let (kind, version) = (text(object, "/kind"), text(object, "/apiVersion"));
    let expected = resource.api_version();
    let error = match () {
        () if resource.custom.is_none() => return Ok(()),
        () if kind != resource.kind => {
            FieldError::invalid("kind", kind, format!("must be {}", resource.kind))
        }
        () if version != expected => {
            FieldError::invalid("apiVersion", version, format!("must be {expected}"))
        }
        () => return Ok(()),
    };
    Err(ApiError::invalid(&resource.group, kind, name, &[error]))
}

/// Reviews can only be created, for one. Custom objects can be done everything with.
fn resource_lacks(resource: &Resource, verb: &str) -> bool {
    resource.custom.is_none() && !resource.verbs.iter().any(|v| v == verb)
}

/// The last state of these kinds is the answer to their deletion; of others it is a `Status`.
fn returns_deleted_object(resource: &Resource) -> bool {
    const CORE: [&str; 8] = [
        "namespaces",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "resourcequotas",
        "serviceaccounts",
        "services",
    ];
    resource.group.is_empty() && CORE.contains(&resource.plural.as_str())
        || resource.group == "storage.k8s.io"
}
