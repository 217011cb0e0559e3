//! Reads a pod with serde_json.

use std::io::Read as _;

use k8s_openapi::api::core::v1::Pod;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    let pod: Pod = serde_json::from_slice(&bytes)?;
    println!("{:?}", pod.spec.and_then(|spec| spec.node_name));
    Ok(())
}
