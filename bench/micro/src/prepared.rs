//! The objects of one resource in one encoding, at each stage of their way.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::{Result, ensure};
use bytes::Bytes;
use kube_informer::encoding::{Codec, Encoding, Rules};
use kube_informer::object::{Intake, Object, Packing, ViewBudget};

use crate::data::{self, Resource};

/// The objects of one resource in one encoding.
pub(crate) struct Prepared {
    pub(crate) codec: Codec,
    /// The part of the body that is measured.
    pub(crate) body: Vec<u8>,
    /// The objects as they arrive.
    pub(crate) arrived: Vec<Bytes>,
    /// What is stored of each: checked, cut, not packed.
    pub(crate) stored: Vec<Vec<u8>>,
    /// The objects, not packed; no view is kept.
    pub(crate) plain: Vec<Object>,
    /// The objects, packed; no view is kept.
    pub(crate) packed: Vec<Object>,
    /// The one that packed them.
    pub(crate) intake: Rc<RefCell<Intake>>,
}

impl Prepared {
    pub(crate) fn new(resource: Resource, encoding: Encoding) -> Result<Self> {
        let (api_version, kind) = resource.kind();
        let codec = Codec::new(encoding, api_version, kind, Rules::default())?;
        let body = resource.body(encoding)?;
        let mut training = data::objects(&body, encoding)?;
        let arrived = training.split_off(training.len() / 2);
        let body = data::after(&body, encoding, training.len())?.to_owned();

        let mut intake = Intake::new(codec.clone()).views(ViewBudget::None);
        for object in &training {
            intake.object(object)?;
        }
        intake.settle();
        ensure!(intake.stats().dictionary > 0, "{} train no dictionary", resource.name());
        let mut unpacked = Intake::new(codec.clone()).views(ViewBudget::None).packing(Packing::Off);
        let (mut stored, mut plain, mut packed) = (Vec::new(), Vec::new(), Vec::new());
        for object in &arrived {
            let mut bytes = Vec::new();
            codec.ingest(object, &mut bytes)?;
            stored.push(bytes);
            plain.push(unpacked.object(object)?);
            packed.push(intake.object(object)?);
        }
        let intake = Rc::new(RefCell::new(intake));
        Ok(Self { codec, body, arrived, stored, plain, packed, intake })
    }
}
