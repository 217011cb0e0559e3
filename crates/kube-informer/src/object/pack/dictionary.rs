//! A dictionary: digested once for packing, by the packer, and once for unpacking, for all readers.
//!
//! Frames are stored without what is known anyway: no checksum, no size, no dictionary number, no magic number. That
//! saves some nine bytes of each object.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zstd::bulk::Compressor;
use zstd::dict::DecoderDictionary;
use zstd::zstd_safe;

use super::UnpackError;
use super::scratch::{with_buffer, with_decoder};

/// Higher levels cost a multiple for some percent (measured with 16 to 112 KB of dictionary).
const LEVEL: i32 = 1;

/// What every frame begins with, and what is therefore not stored.
const MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();

/// An output buffer that grew larger than this is not kept.
const KEEP_CAPACITY: usize = 1024 * 1024;

/// Numbers dictionaries, and counts those that are alive.
#[derive(Default)]
pub(super) struct Generations {
    last: u32,
    live: Arc<AtomicUsize>,
}

/// What objects need to be read again.
pub(super) struct Dictionary {
    generation: u32,
    decoder: DecoderDictionary<'static>,
    live: Arc<AtomicUsize>,
}

/// A packed object that others refer to.
pub(super) struct Frame {
    bytes: Box<[u8]>,
    plain_len: u32,
    dictionary: Arc<Dictionary>,
}

/// Packs with one dictionary.
pub(super) struct Encoder {
    compressor: Compressor<'static>,
    dictionary: Arc<Dictionary>,
    buffer: Vec<u8>,
}

impl Generations {
    pub(super) fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }
}

impl Encoder {
    /// `None` if zstd refuses the dictionary.
    pub(super) fn new(content: &[u8], generations: &mut Generations) -> Option<Self> {
        let mut compressor = Compressor::with_dictionary(LEVEL, content).ok()?;
        compressor.include_checksum(false).ok()?;
        compressor.include_contentsize(false).ok()?;
        compressor.include_dictid(false).ok()?;
        generations.last = generations.last.checked_add(1)?;
        generations.live.fetch_add(1, Ordering::Relaxed);
        let dictionary = Arc::new(Dictionary {
            generation: generations.last,
            decoder: DecoderDictionary::copy(content),
            live: Arc::clone(&generations.live),
        });
        Some(Self { compressor, dictionary, buffer: Vec::new() })
    }

    /// The packed bytes; `None` if it cannot be done.
    pub(super) fn encode(&mut self, plain: &[u8]) -> Option<&[u8]> {
        let bound = zstd_safe::compress_bound(plain.len());
        self.buffer.clear();
        self.buffer.reserve(bound);
        self.compressor.compress_to_buffer(plain, &mut self.buffer).ok()?;
        self.buffer.strip_prefix(&MAGIC)
    }

    /// Lets go of a buffer that one huge object has grown: the next object may be long in coming.
    pub(super) fn trim(&mut self) {
        if self.buffer.capacity() > KEEP_CAPACITY {
            self.buffer = Vec::new();
        }
    }

    /// The capacity that is kept.
    #[cfg(test)]
    pub(super) fn kept_capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// How many bytes these would take.
    pub(super) fn total_size<'a>(&mut self, objects: impl IntoIterator<Item = &'a [u8]>) -> usize {
        objects.into_iter().map(|plain| self.encode(plain).map_or(plain.len(), <[u8]>::len)).sum()
    }

    pub(super) fn dictionary(&self) -> &Arc<Dictionary> {
        &self.dictionary
    }

    pub(super) fn generation(&self) -> u32 {
        self.dictionary.generation
    }
}

impl Dictionary {
    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    /// Fills the buffer with the plain bytes, or says why not.
    pub(super) fn decode(
        &self,
        packed: &[u8],
        plain_len: usize,
        into: &mut Vec<u8>,
    ) -> Result<(), UnpackError> {
        let decoded = with_buffer(|frame| {
            frame.extend_from_slice(&MAGIC);
            frame.extend_from_slice(packed);
            // Whatever the frame says, nothing is written beyond the buffer's capacity.
            into.clear();
            into.reserve_exact(plain_len);
            with_decoder(|decoder| decoder.decompress_using_ddict(into, frame, self.decoder.as_ddict()))
        });
        match decoded {
            None => Err(UnpackError::Damaged("no memory for a decoder")),
            Some(Err(code)) => Err(UnpackError::Damaged(zstd_safe::get_error_name(code))),
            Some(Ok(_)) if into.len() != plain_len => {
                Err(UnpackError::Length { expected: plain_len, found: into.len() })
            }
            Some(Ok(_)) => Ok(()),
        }
    }
}

impl Frame {
    /// `None` if it is too large to be counted.
    pub(super) fn new(bytes: &[u8], plain_len: usize, dictionary: &Arc<Dictionary>) -> Option<Self> {
        let plain_len = u32::try_from(plain_len).ok()?;
        Some(Self { bytes: bytes.into(), plain_len, dictionary: Arc::clone(dictionary) })
    }

    pub(super) fn decode(&self, into: &mut Vec<u8>) -> Result<(), UnpackError> {
        self.dictionary.decode(&self.bytes, self.plain_len(), into)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn plain_len(&self) -> usize {
        self.plain_len as usize
    }

    pub(super) fn generation(&self) -> u32 {
        self.dictionary.generation
    }
}

impl Drop for Dictionary {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }
}
