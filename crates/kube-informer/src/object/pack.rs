//! The plain bytes of one resource's objects, kept small.
//!
//! A [`Packer`] takes the plain bytes of one object after the other and gives back what to keep: [`Packed`],
//! which lends the same bytes again to whoever asks, from any thread, for as long as it lives.
//!
//! - Objects of one resource resemble each other. The first of them are kept plain and serve as samples; then a
//!   dictionary is trained, once, at a bounded cost, and what follows is packed with it (zstd, level 1).
//! - Objects of one template, such as the pods of one owner, resemble each other even more. Where they come one after
//!   the other, as in a list, the first is packed as above, and the others keep what tells them from it.
//! - Objects change their looks with time. When they shrink clearly less than the dictionary's first ones did, new
//!   samples are taken, and a new dictionary takes over if it does better on samples that it was not trained
//!   with. Each training makes the next one wait for longer.
//! - Every `Packed` holds what it needs to be read: the dictionary, and the object that it is told from. Those live for
//!   as long as something needs them.
//! - What would not shrink by an eighth stays plain: it costs nothing to read. If nothing shrinks, most objects are
//!   not even tried.
//! - Whether packing succeeds never matters to the caller: what cannot be packed is kept plain.
//!
//! The owner of the objects decides when to spend time: [`Packer::settle`] trains with fewer samples than usual when
//! no more are to be expected soon, [`Packer::repack`] packs again what is kept plain or with an older dictionary.

use std::fmt;
use std::sync::Arc;

mod delta;
mod dictionary;
mod drift;
mod kin;
mod samples;
mod scratch;

use dictionary::{Dictionary, Encoder, Frame, Generations};
use drift::{Drift, Verdict};
use kin::Kin;
use samples::Samples;

/// Whether the bytes of objects are kept packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Packing {
    /// As they came: reading costs nothing, memory is what the objects are large.
    Off,
    /// With zstd and a dictionary per resource: a tenth of the size, some microseconds per object written or
    /// read.
    #[default]
    Zstd,
}

/// Packed bytes that are not what was packed. It means that memory was damaged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnpackError {
    /// The packed bytes cannot be read.
    #[error("packed bytes are damaged: {0}")]
    Damaged(&'static str),
    /// They give more or fewer bytes than were packed.
    #[error("packed bytes give {found} bytes instead of {expected}")]
    Length {
        /// How many bytes were packed.
        expected: usize,
        /// How many came out.
        found: usize,
    },
}

/// Packs the objects of one resource; owned by the one who writes them.
pub(crate) struct Packer {
    state: State,
    generations: Generations,
    /// Objects in a row that did not shrink.
    fruitless: u32,
    stats: PackStats,
}

/// The bytes of one object, as they are kept.
pub(crate) struct Packed {
    /// Empty where the bytes are shared.
    bytes: Box<[u8]>,
    how: How,
}

/// What a [`Packer`] has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PackStats {
    /// Objects that were given to it.
    pub(crate) objects: u64,
    /// How many of those stayed plain.
    pub(crate) kept_plain: u64,
    /// How many of those keep only what tells them from another one.
    pub(crate) kin: u64,
    /// The sum of the objects' sizes before.
    pub(crate) plain_bytes: u64,
    /// The sum of the objects' sizes after.
    pub(crate) packed_bytes: u64,
    /// Trainings of a dictionary, with or without success.
    pub(crate) trainings: u64,
    /// The number of the dictionary in use; 0 before the first.
    pub(crate) generation: u32,
    /// Dictionaries that are alive, because they are in use or something is packed with them.
    pub(crate) live_dictionaries: usize,
}

enum State {
    // ## Off: nothing is ever packed.
    Off,
    // ## Sampling => (Sampling | Packing)
    Sampling(Samples),
    // ## Packing => Packing, with the same dictionary or the next one
    Packing(Box<Active>),
}

/// The dictionary in use, and what is known about how well it does.
struct Active {
    encoder: Encoder,
    kin: Kin,
    drift: Drift,
    /// Being filled while a better dictionary is wanted.
    samples: Option<Samples>,
}

enum How {
    Plain {
        /// What its previous version was told from, as it may be itself.
        kin: Option<Arc<Frame>>,
    },
    /// A frame of its own.
    Zstd { plain_len: u32, dictionary: Arc<Dictionary> },
    /// A frame that others may refer to.
    Shared(Arc<Frame>),
    /// What tells it from another one.
    Kin { plain_len: u32, base: Arc<Frame> },
}

/// Objects smaller than this stay plain: the allocation costs as much.
const SMALL: usize = 64;

/// An object is packed if this part of it is saved; so for what is packed again, and for a new dictionary.
const LEAST_SAVING: usize = 8;

/// After so many objects in a row that did not shrink, only every so-many-th is tried.
const FRUITLESS: u32 = 64;
const TRY_EVERY: u32 = 8;

impl Packer {
    pub(crate) fn new(packing: Packing) -> Self {
        let state = match packing {
            Packing::Off => State::Off,
            Packing::Zstd => State::Sampling(Samples::default()),
        };
        Self { state, generations: Generations::default(), fruitless: 0, stats: PackStats::default() }
    }

    /// The bytes of a new object as they are to be kept.
    pub(crate) fn pack(&mut self, plain: &[u8]) -> Packed {
        self.sample(plain);
        let packed = self.try_pack(plain).unwrap_or_else(|| Packed::plain(plain));
        self.stats.objects += 1;
        self.stats.kept_plain += u64::from(packed.is_plain());
        self.stats.kin += u64::from(matches!(packed.how, How::Kin { .. }));
        self.stats.plain_bytes += plain.len() as u64;
        self.stats.packed_bytes += packed.packed_len() as u64;
        packed
    }

    /// The bytes of a new version of an object: what the previous version was told from, this one can be told from, too.
    pub(crate) fn pack_update(&mut self, previous: &Packed, plain: &[u8]) -> Packed {
        if let State::Packing(active) = &mut self.state {
            active.prepare_update(previous);
        }
        self.pack(plain)
    }

    /// The bytes of a new version of an object as they came, to be [packed later](Self::pack_later): it may not last.
    pub(crate) fn keep(&mut self, previous: Option<&Packed>, plain: &[u8]) -> Packed {
        match &self.state {
            State::Off => Packed::plain(plain),
            // They are samples.
            State::Sampling(_) => self.pack(plain),
            State::Packing(active) => {
                let kin = previous.and_then(|previous| active.base_of(previous)).cloned();
                Packed { bytes: plain.into(), how: How::Plain { kin } }
            }
        }
    }

    /// What was kept as it came, packed; `None` if it is best left as it is.
    pub(crate) fn pack_later(&mut self, kept: &Packed) -> Option<Packed> {
        let (How::Plain { .. }, State::Packing(_)) = (&kept.how, &self.state) else { return None };
        Some(self.pack_update(kept, &kept.bytes)).filter(|packed| !packed.is_plain())
    }

    /// Says that no more objects are to be expected soon: trains the first dictionary with the samples that there
    /// are, if they are enough for one.
    pub(crate) fn settle(&mut self) {
        if let State::Sampling(samples) = &self.state
            && samples.are_enough()
        {
            self.train_first();
        }
    }

    /// Packs again what is kept plain, or with an older dictionary; `None` if it is best left as it is.
    ///
    /// Worth calling for every kept object after the dictionary's number, [`PackStats::generation`], has
    /// changed. Does not count as a new object.
    pub(crate) fn repack(&mut self, packed: &Packed) -> Option<Packed> {
        let State::Packing(active) = &mut self.state else { return None };
        if packed.generation() == active.encoder.generation() {
            return None;
        }
        let (again, _) = packed.unpack(|plain| active.pack(plain)).ok()?;
        active.encoder.trim();
        let again = again?;
        // For a few bytes it is not worth to move what is there.
        (again.packed_len() + again.packed_len() / LEAST_SAVING < packed.packed_len()).then_some(again)
    }

    pub(crate) fn stats(&self) -> PackStats {
        PackStats {
            generation: match &self.state {
                State::Packing(active) => active.encoder.generation(),
                State::Off | State::Sampling(_) => 0,
            },
            live_dictionaries: self.generations.live(),
            ..self.stats
        }
    }

    /// Takes a sample where samples are wanted, and trains where there are enough.
    fn sample(&mut self, plain: &[u8]) {
        match &mut self.state {
            State::Off => {}
            State::Sampling(samples) => {
                samples.add(plain);
                if samples.are_complete() {
                    self.train_first();
                }
            }
            State::Packing(active) => {
                let Some(samples) = &mut active.samples else { return };
                samples.add(plain);
                if samples.are_complete() {
                    self.stats.trainings += 1;
                    active.train_next(&mut self.generations);
                }
            }
        }
    }

    fn train_first(&mut self) {
        let State::Sampling(samples) = &mut self.state else { return };
        self.stats.trainings += 1;
        match samples.train().and_then(|content| Encoder::new(&content, &mut self.generations)) {
            Some(encoder) => {
                let active = Active { encoder, kin: Kin::new(), drift: Drift::new(), samples: None };
                self.state = State::Packing(Box::new(active));
            }
            // Samples that give no dictionary are too small or too much the same thing; others may come.
            None => samples.start_over(),
        }
    }

    fn try_pack(&mut self, plain: &[u8]) -> Option<Packed> {
        let State::Packing(active) = &mut self.state else { return None };
        if self.fruitless >= FRUITLESS && !self.fruitless.is_multiple_of(TRY_EVERY) {
            self.fruitless = self.fruitless.wrapping_add(1).max(FRUITLESS);
            return None;
        }
        let (packed, by_dictionary) = active.pack(plain);
        active.encoder.trim();
        if packed.is_some() {
            self.fruitless = 0;
        } else {
            self.fruitless = self.fruitless.wrapping_add(1);
        }
        if active.samples.is_none() && active.drift.observe(plain.len(), by_dictionary) == Verdict::Worse {
            active.samples = Some(Samples::default());
        }
        packed
    }
}

impl Active {
    /// The object, if it becomes clearly smaller; and how large the dictionary leaves it, or would.
    fn pack(&mut self, plain: &[u8]) -> (Option<Packed>, usize) {
        let Ok(plain_len) = u32::try_from(plain.len()) else { return (None, plain.len()) };
        if plain.len() < SMALL {
            return (None, plain.len());
        }
        let dictionary = Arc::clone(self.encoder.dictionary());
        if let Some(kin::Difference { delta, base, otherwise }) = self.kin.difference(plain, &dictionary) {
            let packed = Packed { bytes: delta.into(), how: How::Kin { plain_len, base } };
            return (Some(packed), otherwise);
        }
        let bytes = match self.encoder.encode(plain) {
            Some(bytes) if bytes.len() <= plain.len() - plain.len() / LEAST_SAVING => bytes,
            _ => return (None, plain.len()),
        };
        let packed = match self.kin.next(plain, bytes, &dictionary) {
            Some(frame) => Packed { bytes: Box::default(), how: How::Shared(frame) },
            None => Packed { bytes: bytes.into(), how: How::Zstd { plain_len, dictionary } },
        };
        (Some(packed), bytes.len())
    }

    /// Takes up the base of an object's previous version, if others need that base in any case. But a previous version
    /// that nothing else needs must not become a base: it is about to go.
    fn prepare_update(&mut self, previous: &Packed) {
        match self.base_of(previous) {
            Some(base) => self.kin.resume(&Arc::clone(base)),
            None if previous.is_plain() => {}
            None if self.kin.is_packed_as(previous.bytes()) => self.kin.forget(),
            None => {}
        }
    }

    /// What a new version of this object may be told from.
    fn base_of<'a>(&self, previous: &'a Packed) -> Option<&'a Arc<Frame>> {
        let base = match &previous.how {
            How::Plain { kin } => kin.as_ref(),
            How::Kin { base, .. } => Some(base),
            How::Shared(base) if Arc::strong_count(base) > 1 + usize::from(self.kin.holds(base)) => {
                Some(base)
            }
            How::Shared(_) | How::Zstd { .. } => None,
        };
        // To be told from a base of an older dictionary would keep that dictionary for ever.
        base.filter(|base| base.generation() == self.encoder.generation())
    }

    /// Trains a new dictionary, and uses it if it is clearly better on the samples that were held out.
    fn train_next(&mut self, generations: &mut Generations) {
        let Some(samples) = self.samples.take() else { return };
        if let Some(content) = samples.train()
            && let Some(mut next) = Encoder::new(&content, generations)
        {
            // Two dictionaries will be alive for a while: that must be worth it.
            let (before, after) =
                (self.encoder.total_size(samples.held_out()), next.total_size(samples.held_out()));
            if after + after / LEAST_SAVING < before {
                self.encoder = next;
                self.kin.forget();
            }
        }
        // Also if the old one stays: how well it does now is what it will be measured against.
        self.drift.trained();
    }
}

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packer").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl Packed {
    fn plain(plain: &[u8]) -> Self {
        Self { bytes: plain.into(), how: How::Plain { kin: None } }
    }

    /// Lends the plain bytes. They are gone after the call; a call inside of a call is fine.
    ///
    /// # Errors
    ///
    /// If the packed bytes were damaged; nothing is called then.
    pub(crate) fn unpack<R>(&self, f: impl FnOnce(&[u8]) -> R) -> Result<R, UnpackError> {
        match &self.how {
            How::Plain { .. } => Ok(f(&self.bytes)),
            How::Zstd { plain_len, dictionary } => scratch::with_buffer(|buffer| {
                dictionary.decode(&self.bytes, *plain_len as usize, buffer)?;
                Ok(f(buffer))
            }),
            How::Shared(frame) => scratch::with_base(frame, f),
            How::Kin { plain_len, base } => scratch::with_buffer(|buffer| {
                scratch::with_base(base, |plain| {
                    delta::decode(plain, &self.bytes, *plain_len as usize, buffer)
                        .map_err(|delta::Damaged| UnpackError::Damaged("a difference that gives no object"))
                })??;
                Ok(f(buffer))
            }),
        }
    }

    /// How many bytes there are to read.
    pub(crate) fn plain_len(&self) -> usize {
        match &self.how {
            How::Plain { .. } => self.bytes.len(),
            How::Zstd { plain_len, .. } | How::Kin { plain_len, .. } => *plain_len as usize,
            How::Shared(frame) => frame.plain_len(),
        }
    }

    /// How many bytes are kept for it, apart from `Packed` itself and what it shares with others. The bytes of an
    /// object that others are told from count for itself alone.
    pub(crate) fn packed_len(&self) -> usize {
        self.bytes().len()
    }

    fn bytes(&self) -> &[u8] {
        match &self.how {
            How::Shared(frame) => frame.bytes(),
            How::Plain { .. } | How::Zstd { .. } | How::Kin { .. } => &self.bytes,
        }
    }

    /// The same for all that may be told from one and the same other object; 0 where there is none.
    pub(crate) fn kinship(&self) -> usize {
        match &self.how {
            How::Plain { kin: Some(base) } | How::Kin { base, .. } => Arc::as_ptr(base).addr(),
            How::Plain { kin: None } | How::Zstd { .. } | How::Shared(_) => 0,
        }
    }

    /// Whether the bytes are kept as they came.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.how, How::Plain { .. })
    }

    /// The number of the dictionary; 0 for none.
    fn generation(&self) -> u32 {
        match &self.how {
            How::Plain { .. } => 0,
            How::Zstd { dictionary, .. } => dictionary.generation(),
            How::Shared(base) | How::Kin { base, .. } => base.generation(),
        }
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packed")
            .field("plain_len", &self.plain_len())
            .field("packed_len", &self.packed_len())
            .field("generation", &self.generation())
            .finish()
    }
}

#[cfg(test)]
mod tests;
