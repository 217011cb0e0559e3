//! What unpacking needs for the moment: a buffer, a decoder, the base that was read last; kept per thread.
//!
//! Buffers are taken and given back, so that unpacking inside of unpacking works. A buffer that grew large is not
//! kept: one huge object must not hold memory in every thread that ever read it.
//!
//! Objects of one template stand side by side, and whoever reads one reads the next one, too: their base is unpacked once.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use zstd::zstd_safe::DCtx;

use super::UnpackError;
use super::dictionary::Frame;

/// Most objects are far smaller; the largest that a server takes are some megabytes.
const KEEP_CAPACITY: usize = 256 * 1024;

/// To read one object takes up to three; this is enough for one inside of another.
const KEEP_BUFFERS: usize = 4;

thread_local! {
    static BUFFERS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    static DECODER: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
    static BASE: RefCell<Option<Base>> = const { RefCell::new(None) };
}

/// A base, unpacked.
struct Base {
    /// It does not keep the frame alive, but no other one gets its address.
    frame: Weak<Frame>,
    plain: Vec<u8>,
}

/// Calls with an empty buffer.
pub(super) fn with_buffer<R>(f: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    // A thread that ends has no buffers any more, and goes without.
    let kept = BUFFERS.try_with(|buffers| buffers.borrow_mut().pop());
    let mut buffer = kept.ok().flatten().unwrap_or_default();
    let result = f(&mut buffer);
    give_back(buffer);
    result
}

fn give_back(mut buffer: Vec<u8>) {
    if buffer.capacity() > KEEP_CAPACITY {
        return;
    }
    buffer.clear();
    // Where it fails, the thread ends, and the buffer with it.
    let _ = BUFFERS.try_with(|buffers| {
        let mut buffers = buffers.borrow_mut();
        if buffers.len() < KEEP_BUFFERS {
            buffers.push(buffer);
        }
    });
}

/// Calls with the plain bytes of a base.
pub(super) fn with_base<R>(frame: &Arc<Frame>, f: impl FnOnce(&[u8]) -> R) -> Result<R, UnpackError> {
    let last = BASE.try_with(|base| base.borrow_mut().take()).ok().flatten();
    let base = match last {
        Some(base) if base.frame.as_ptr() == Arc::as_ptr(frame) => base,
        other => {
            let mut plain = other.map(|base| base.plain).unwrap_or_default();
            plain.clear();
            frame.decode(&mut plain)?;
            Base { frame: Arc::downgrade(frame), plain }
        }
    };
    let result = f(&base.plain);
    if base.plain.capacity() <= KEEP_CAPACITY {
        let _ = BASE.try_with(|kept| *kept.borrow_mut() = Some(base));
    }
    Ok(result)
}

/// Calls with a decoder; `None` if there is no memory for one.
pub(super) fn with_decoder<R>(f: impl FnOnce(&mut DCtx<'static>) -> R) -> Option<R> {
    let kept = DECODER.try_with(|decoder| decoder.borrow_mut().take());
    let mut decoder = kept.ok().flatten().or_else(DCtx::try_create)?;
    let result = f(&mut decoder);
    let _ = DECODER.try_with(|kept| *kept.borrow_mut() = Some(decoder));
    Some(result)
}

/// The capacity that this thread keeps.
#[cfg(test)]
pub(super) fn kept_capacity() -> usize {
    BUFFERS.with(|buffers| buffers.borrow().iter().map(Vec::capacity).sum())
}
