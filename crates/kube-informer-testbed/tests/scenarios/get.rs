//! Get: forms of the answer, versions, what is missing.

use anyhow::Result;
use http::Method;

use crate::harness::{Api, config_map, deployment, pod, scenarios};

scenarios![
    an_object_is_read_in_all_its_forms,
    a_table_may_hold_no_object_or_all_of_it,
    a_missing_object_is_not_found,
    an_object_is_read_at_a_version_or_later,
    a_head_request_is_a_get_without_a_body,
    accept_picks_the_first_form_that_is_served,
];

const PARTIAL: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

async fn an_object_is_read_in_all_its_forms(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    api.post("pods", &pod("a")).await?.code(201)?;
    api.post("apps/v1:deployments", &deployment("a")).await?.code(201)?;
    for path in ["configmaps/a", "pods/a", "apps/v1:deployments/a"] {
        api.get(path).await?.code(200)?;
        api.get_as(path, PARTIAL).await?.code(200)?;
        api.get_as(path, TABLE).await?.code(200)?;
    }
    Ok(())
}

async fn a_table_may_hold_no_object_or_all_of_it(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    for include in ["None", "Metadata", "Object", "", "Nonsense"] {
        api.get_as(&format!("configmaps/a?includeObject={include}"), TABLE).await?;
    }
    Ok(())
}

async fn a_missing_object_is_not_found(api: &Api) -> Result<()> {
    api.get("configmaps/a").await?.refused(404, "NotFound")?;
    api.get_as("configmaps/a", TABLE).await?.refused(404, "NotFound")?;
    api.get("apps/v1:deployments/a").await?.refused(404, "NotFound")?;
    api.get("apps/v1:deployments/a/scale").await?.refused(404, "NotFound")?;
    api.get("apps/v1:deployments/a/status").await?.refused(404, "NotFound")?;
    api.get("/api/v1/nodes/no-such-node").await?.refused(404, "NotFound")?;
    Ok(())
}

async fn an_object_is_read_at_a_version_or_later(api: &Api) -> Result<()> {
    let made = api.post("configmaps", &config_map("a")).await?.code(201)?;
    api.get(&format!("configmaps/a?resourceVersion={}", made.version())).await?.code(200)?;
    api.get("configmaps/a?resourceVersion=").await?.code(200)?;
    api.get("configmaps/a?resourceVersion=nonsense").await?;
    api.get("configmaps/a?resourceVersion=-1").await?;
    api.get("configmaps/missing?resourceVersion=nonsense").await?;
    Ok(())
}

async fn a_head_request_is_a_get_without_a_body(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    api.send(Method::HEAD, "configmaps/a", &[], "").await?;
    api.send(Method::HEAD, "configmaps", &[], "").await?;
    api.send(Method::HEAD, "configmaps/b", &[], "").await?;
    Ok(())
}

async fn accept_picks_the_first_form_that_is_served(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    for accept in [
        "*/*",
        "application/json;as=Table;v=v9;g=meta.k8s.io, application/json",
        "text/html, application/json",
        "application/json;q=0.5, text/plain",
        "application/json;as=Nonsense;v=v1;g=meta.k8s.io, */*",
        "application/json;pretty=1",
    ] {
        api.get_as("configmaps/a", accept).await?;
    }
    api.get_as("configmaps/a", "").await?;
    Ok(())
}
