//! What unpacking needs for the moment: a buffer and a decoder, kept per thread.
//!
//! Buffers are taken and given back, so that unpacking inside of unpacking works. A buffer that grew large is not
//! kept: one huge object must not hold memory in every thread that ever read it.

use std::cell::RefCell;

use zstd::zstd_safe::DCtx;

/// Most objects are far smaller; the largest that a server takes are some megabytes.
const KEEP_CAPACITY: usize = 256 * 1024;

/// To read one object takes up to three; this is enough for one inside of another.
const KEEP_BUFFERS: usize = 4;

thread_local! {
    static BUFFERS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    static DECODER: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
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
