//! The recorded bodies of watches, and what is in them.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use kube_informer::encoding::Encoding;
use kube_informer::wire::{WatchFrame, WatchFrames};

/// What was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Two containers, a full status, three writers: 12 KB of JSON.
    Pods,
    /// One container, Helm's labels.
    Deployments,
    /// A page of YAML.
    ConfigMaps,
    /// A certificate and its key.
    Secrets,
    /// A custom resource with a status. JSON only.
    Gadgets,
}

/// More than any event has.
const LIMIT: usize = 4 << 20;

/// As large as chunks of a fast body get; most events lie within one.
const CHUNK: usize = 64 * 1024;

/// The more of a body that is packed the less; this one is all of any.
const LARGEST_BODY: usize = 16 << 20;

impl Resource {
    /// All of them, each in every encoding that it has.
    pub const ALL: [(Self, Encoding); 9] = [
        (Self::Pods, Encoding::Json),
        (Self::Pods, Encoding::Protobuf),
        (Self::Deployments, Encoding::Json),
        (Self::Deployments, Encoding::Protobuf),
        (Self::ConfigMaps, Encoding::Json),
        (Self::ConfigMaps, Encoding::Protobuf),
        (Self::Secrets, Encoding::Json),
        (Self::Secrets, Encoding::Protobuf),
        (Self::Gadgets, Encoding::Json),
    ];

    /// The plural name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pods => "pods",
            Self::Deployments => "deployments",
            Self::ConfigMaps => "configmaps",
            Self::Secrets => "secrets",
            Self::Gadgets => "gadgets",
        }
    }

    /// API version and kind.
    #[must_use]
    pub fn kind(self) -> (&'static str, &'static str) {
        match self {
            Self::Pods => ("v1", "Pod"),
            Self::Deployments => ("apps/v1", "Deployment"),
            Self::ConfigMaps => ("v1", "ConfigMap"),
            Self::Secrets => ("v1", "Secret"),
            Self::Gadgets => ("load.kube-informer.dev/v1", "Gadget"),
        }
    }

    fn packed_body(self, encoding: Encoding) -> Option<&'static [u8]> {
        Some(match (self, encoding) {
            (Self::Pods, Encoding::Json) => include_bytes!("../data/pods.json.zst"),
            (Self::Pods, Encoding::Protobuf) => include_bytes!("../data/pods.pb.zst"),
            (Self::Deployments, Encoding::Json) => include_bytes!("../data/deployments.json.zst"),
            (Self::Deployments, Encoding::Protobuf) => include_bytes!("../data/deployments.pb.zst"),
            (Self::ConfigMaps, Encoding::Json) => include_bytes!("../data/configmaps.json.zst"),
            (Self::ConfigMaps, Encoding::Protobuf) => include_bytes!("../data/configmaps.pb.zst"),
            (Self::Secrets, Encoding::Json) => include_bytes!("../data/secrets.json.zst"),
            (Self::Secrets, Encoding::Protobuf) => include_bytes!("../data/secrets.pb.zst"),
            (Self::Gadgets, Encoding::Json) => include_bytes!("../data/gadgets.json.zst"),
            _ => return None,
        })
    }

    /// The whole body of the recorded watch.
    ///
    /// # Errors
    ///
    /// Where the resource has no such encoding.
    pub fn body(self, encoding: Encoding) -> Result<Vec<u8>> {
        let packed = self.packed_body(encoding).context("it is not recorded in this encoding")?;
        Ok(zstd::bulk::decompress(packed, LARGEST_BODY)?)
    }
}

/// The name of an encoding, as in the names of cases.
#[must_use]
pub fn name(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Json => "json",
        Encoding::Protobuf => "protobuf",
        _ => "other",
    }
}

/// The objects of a body.
///
/// # Errors
///
/// Where the body is not that of a watch.
pub fn objects(body: &[u8], encoding: Encoding) -> Result<Vec<Bytes>> {
    let mut frames = WatchFrames::new(encoding, LIMIT);
    frames.push(Bytes::copy_from_slice(body));
    let mut objects = Vec::new();
    while let Some(frame) = frames.next_frame() {
        match frame? {
            WatchFrame::Object { object, .. } => objects.push(object),
            WatchFrame::Bookmark { .. } => {}
            frame => bail!("the recorded watch has {frame:?}"),
        }
    }
    frames.finish()?;
    Ok(objects)
}

/// What follows the first events of a body.
///
/// # Errors
///
/// Where the body is shorter.
pub fn after(body: &[u8], encoding: Encoding, events: usize) -> Result<&[u8]> {
    let mut rest = body;
    for _ in 0..events {
        let end = match (encoding, rest) {
            (Encoding::Protobuf, [a, b, c, d, ..]) => 4 + u32::from_be_bytes([*a, *b, *c, *d]) as usize,
            _ => 1 + rest.iter().position(|byte| *byte == b'\n').context("the body is too short")?,
        };
        rest = rest.get(end..).context("the body is too short")?;
    }
    Ok(rest)
}

/// A watch that never ends: the same body again and again, in chunks that are cut anywhere.
pub struct Stream {
    frames: WatchFrames,
    chunks: Vec<Bytes>,
    next: usize,
}

impl Stream {
    /// A stream of this body.
    #[must_use]
    pub fn new(body: &[u8], encoding: Encoding) -> Self {
        let chunks = body.chunks(CHUNK).map(Bytes::copy_from_slice).collect();
        Self { frames: WatchFrames::new(encoding, LIMIT), chunks, next: 0 }
    }

    /// The next object.
    ///
    /// # Panics
    ///
    /// Where the body is not that of a watch.
    pub fn object(&mut self) -> Bytes {
        loop {
            match self.frames.next_frame() {
                Some(Ok(WatchFrame::Object { object, .. })) => return object,
                Some(Ok(WatchFrame::Bookmark { .. })) => {}
                Some(other) => panic!("the recorded watch has {other:?}"),
                None => {
                    self.frames.push(self.chunks[self.next].clone());
                    self.next = (self.next + 1) % self.chunks.len();
                }
            }
        }
    }
}
