//! The pieces of work that are measured, each per object.
//!
//! A name says what is done, to what, from where: `typed/protobuf/packed` is a typed view of an object that came as
//! protobuf and is kept packed. What a case makes is dropped within it, as whoever looks at an object once does.

use std::hint::black_box;
use std::rc::Rc;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::encoding::{Encoding, Pointer};
use kube_informer::object::{Intake, Object, ViewBudget};
use prost::Message;
use serde::Deserialize;
use serde_json::Value;
use sonic_rs::JsonValueTrait;

use crate::data::{self, Resource, Stream};
use crate::prepared::Prepared;

/// One piece of work.
pub struct Case {
    /// What it is.
    pub name: String,
    /// How much of [`BASE`]'s cost it may have.
    pub target: Option<f64>,
    work: Box<dyn FnMut(usize)>,
}

/// What is kept of the objects of one resource.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// What the objects are.
    pub resource: Resource,
    /// How they are written.
    pub encoding: Encoding,
    /// Bytes of an object as it arrives, on average.
    pub arrived: usize,
    /// Without its managed fields.
    pub stored: usize,
    /// Packed.
    pub packed: usize,
}

/// What everything is measured against: serde_json into `k8s_openapi`'s pod, without the managed fields.
pub const BASE: &str = "serde_json/typed";

/// Two fields out of a hundred.
#[derive(Debug, Deserialize)]
struct Narrow<'a> {
    #[serde(borrow)]
    spec: NarrowSpec<'a>,
    #[serde(borrow)]
    status: NarrowStatus<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NarrowSpec<'a> {
    node_name: &'a str,
}

#[derive(Debug, Deserialize)]
struct NarrowStatus<'a> {
    phase: &'a str,
}

impl Narrow<'_> {
    fn len(&self) -> usize {
        self.spec.node_name.len() + self.status.phase.len()
    }
}

const POINTER: &str = "/spec/nodeName";

/// Nothing that was recorded is broken: it was checked when it was prepared.
const WHOLE: &str = "what was recorded can be read";

impl Case {
    /// Does it so many times.
    pub fn run(&mut self, times: usize) {
        (self.work)(times);
    }

    fn new(name: impl Into<String>, work: impl FnMut(usize) + 'static) -> Self {
        Self { name: name.into(), target: None, work: Box::new(work) }
    }

    fn target(mut self, target: f64) -> Self {
        self.target = Some(target);
        self
    }
}

/// A case that is given the number of an object.
fn each(
    name: impl Into<String>,
    prepared: &Rc<Prepared>,
    mut work: impl FnMut(&Prepared, usize) + 'static,
) -> Case {
    let prepared = Rc::clone(prepared);
    let mut next = 0;
    Case::new(name, move |times| {
        for _ in 0..times {
            work(&prepared, next);
            next = (next + 1) % prepared.arrived.len();
        }
    })
}

/// All cases, the base first, and what is kept of each resource.
///
/// # Errors
///
/// Where what was recorded cannot be read.
pub fn all() -> Result<(Vec<Case>, Vec<Sizes>)> {
    let mut cases = Vec::new();
    let mut packing = Vec::new();
    let mut sizes = Vec::new();
    for (resource, encoding) in Resource::ALL {
        let prepared = Rc::new(Prepared::new(resource, encoding)?);
        sizes.push(sizes_of(&prepared, resource, encoding));
        if resource == Resource::Pods {
            if encoding == Encoding::Json {
                cases.extend(peers_of_json(&prepared));
            } else {
                cases.extend(peers_of_protobuf(&prepared));
            }
            cases.extend(arrival(&prepared, encoding)?);
            cases.extend(views(&prepared, encoding)?);
            cases.extend(hot(&prepared, encoding)?);
        }
        packing.extend(pack(&prepared, resource, encoding));
    }
    cases.extend(packing);
    Ok((cases, sizes))
}

fn sizes_of(prepared: &Prepared, resource: Resource, encoding: Encoding) -> Sizes {
    let count = prepared.arrived.len();
    let mean = |sum: usize| sum / count;
    Sizes {
        resource,
        encoding,
        arrived: mean(prepared.arrived.iter().map(bytes::Bytes::len).sum()),
        stored: mean(prepared.stored.iter().map(Vec::len).sum()),
        packed: mean(prepared.packed.iter().map(|object| object.size().0).sum()),
    }
}

/// Others, of the same pods: without managed fields, and as they arrive.
fn peers_of_json(pods: &Rc<Prepared>) -> Vec<Case> {
    vec![
        each(BASE, pods, |pods, at| {
            black_box(serde_json::from_slice::<Pod>(&pods.stored[at]).expect(WHOLE));
        }),
        each("serde_json/typed-uncut", pods, |pods, at| {
            black_box(serde_json::from_slice::<Pod>(&pods.arrived[at]).expect(WHOLE));
        }),
        each("serde_json/narrow", pods, |pods, at| {
            black_box(serde_json::from_slice::<Narrow<'_>>(&pods.stored[at]).expect(WHOLE).len());
        }),
        each("serde_json/value", pods, |pods, at| {
            black_box(serde_json::from_slice::<Value>(&pods.stored[at]).expect(WHOLE));
        }),
        each("sonic-rs/typed", pods, |pods, at| {
            black_box(sonic_rs::from_slice::<Pod>(&pods.stored[at]).expect(WHOLE));
        }),
        each("sonic-rs/narrow", pods, |pods, at| {
            black_box(sonic_rs::from_slice::<Narrow<'_>>(&pods.stored[at]).expect(WHOLE).len());
        }),
        each("sonic-rs/value", pods, |pods, at| {
            black_box(sonic_rs::from_slice::<sonic_rs::Value>(&pods.stored[at]).expect(WHOLE));
        }),
        each("sonic-rs/pointer", pods, |pods, at| {
            let value = sonic_rs::get(&pods.stored[at][..], ["spec", "nodeName"]).expect(WHOLE);
            black_box(value.as_str().map(str::len));
        }),
    ]
}

fn peers_of_protobuf(pods: &Rc<Prepared>) -> Vec<Case> {
    vec![each("prost/typed", pods, |pods, at| {
        black_box(k8s_pb::api::core::v1::Pod::decode(&pods.stored[at][..]).expect(WHOLE));
    })]
}

/// From the body of a watch to objects that are kept, and each stage alone.
fn arrival(pods: &Rc<Prepared>, encoding: Encoding) -> Result<Vec<Case>> {
    let name = data::name(encoding);
    let target = if encoding == Encoding::Json { 2.0 } else { 0.5 };
    let mut stream = Stream::new(&pods.body, encoding);
    let whole = {
        let intake = Rc::clone(&pods.intake);
        // Objects are replaced by their next version: what they share stays shared.
        let mut kept = pods.packed.clone();
        let mut next = 0;
        let mut stream = Stream::new(&pods.body, encoding);
        Case::new(format!("arrive/{name}"), move |times| {
            let mut intake = intake.borrow_mut();
            for _ in 0..times {
                kept[next] = intake.object(&stream.object()).expect(WHOLE);
                next = (next + 1) % kept.len();
            }
        })
    };
    let frame = Case::new(format!("arrive/{name}/frame"), move |times| {
        for _ in 0..times {
            black_box(stream.object());
        }
    });
    let mut stored = Vec::new();
    let ingest = each(format!("arrive/{name}/scan-and-cut"), pods, move |pods, at| {
        black_box(pods.codec.ingest(&pods.arrived[at], &mut stored).expect(WHOLE));
    });
    let mut intake = Intake::new(pods.codec.clone()).packing(kube_informer::object::Packing::Off);
    let mut kept = pods.plain.clone();
    let plain = each(format!("arrive/{name}/object-unpacked"), pods, move |pods, at| {
        kept[at] = intake.object(&pods.arrived[at]).expect(WHOLE);
    });
    Ok(vec![whole.target(target), frame, ingest, plain])
}

/// Everything that can be asked of one object, from plain bytes and from packed ones.
fn views(pods: &Rc<Prepared>, encoding: Encoding) -> Result<Vec<Case>> {
    let name = data::name(encoding);
    let protobuf = encoding == Encoding::Protobuf;
    let typed = each(format!("typed/{name}/plain"), pods, |pods, at| {
        black_box(pods.codec.view::<Pod>(&pods.stored[at]).expect(WHOLE));
    });
    let narrow = each(format!("narrow/{name}/plain"), pods, |pods, at| {
        black_box(pods.codec.view::<Narrow<'_>>(&pods.stored[at]).expect(WHOLE).len());
    });
    let pointer = Pointer::parse(POINTER)?;
    let objects: Vec<Object<Pod>> = pods.packed.iter().map(Object::cast).collect();
    Ok(vec![
        if protobuf { typed.target(1.0) } else { typed },
        each(format!("typed/{name}/packed"), pods, move |_, at| {
            black_box(objects[at].view().expect(WHOLE));
        }),
        if protobuf { narrow.target(0.04) } else { narrow },
        each(format!("narrow/{name}/packed"), pods, |pods, at| {
            let length =
                pods.packed[at].read(|stored| stored.view::<Narrow<'_>>().map(|narrow| narrow.len()));
            black_box(length.expect(WHOLE).expect(WHOLE));
        }),
        each(format!("value/{name}/plain"), pods, |pods, at| {
            black_box(pods.codec.view::<Value>(&pods.stored[at]).expect(WHOLE));
        }),
        each(format!("value/{name}/packed"), pods, |pods, at| {
            black_box(pods.packed[at].view().expect(WHOLE));
        }),
        each(format!("pointer/{name}/plain"), pods, move |pods, at| {
            black_box(pods.codec.pointer::<String>(&pods.stored[at], &pointer).expect(WHOLE));
        }),
        each(format!("pointer/{name}/packed"), pods, |pods, at| {
            black_box(pods.packed[at].pointer::<String>(POINTER).expect(WHOLE));
        }),
        each(format!("to-json/{name}/plain"), pods, |pods, at| {
            black_box(pods.codec.json(&pods.stored[at]).expect(WHOLE));
        }),
        each(format!("to-json/{name}/packed"), pods, |pods, at| {
            black_box(pods.packed[at].json().expect(WHOLE));
        }),
    ])
}

/// What is there already.
fn hot(pods: &Rc<Prepared>, encoding: Encoding) -> Result<Vec<Case>> {
    let name = data::name(encoding);
    let mut intake = Intake::new(pods.codec.clone()).views(ViewBudget::All);
    let objects: Vec<Object<Pod>> =
        pods.arrived.iter().map(|bytes| Ok(intake.object(bytes)?.cast())).collect::<Result<_>>()?;
    for object in &objects {
        object.view()?;
    }
    Ok(vec![
        each(format!("hot/{name}/view"), pods, move |_, at| {
            black_box(objects[at].view().expect(WHOLE));
        }),
        each(format!("hot/{name}/label"), pods, |pods, at| {
            black_box(pods.packed[at].labels().get("app.kubernetes.io/name"));
        }),
        each(format!("hot/{name}/key"), pods, |pods, at| {
            black_box(pods.packed[at].key());
        }),
    ])
}

fn pack(prepared: &Rc<Prepared>, resource: Resource, encoding: Encoding) -> Vec<Case> {
    let name = format!("{}/{}", resource.name(), data::name(encoding));
    vec![
        each(format!("pack/{name}"), prepared, |prepared, at| {
            black_box(prepared.intake.borrow_mut().repack(&prepared.plain[at]));
        }),
        each(format!("unpack/{name}"), prepared, |prepared, at| {
            black_box(prepared.packed[at].read(|stored| stored.bytes().len()).expect(WHOLE));
        }),
    ]
}

#[cfg(test)]
mod tests;
