//! Reads a pod through an object's typed view, which is compiled for both encodings.

use std::io::Read as _;

use k8s_openapi::api::core::v1::Pod;
use kube_informer::encoding::{Codec, Encoding, Rules};
use kube_informer::object::{Intake, Object};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    let codec = Codec::new(Encoding::Protobuf, "v1", "Pod", Rules::default())?;
    let object: Object<Pod> = Intake::new(codec).object(&bytes)?.cast();
    let pod = object.view()?;
    println!("{:?}", pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()));
    Ok(())
}
