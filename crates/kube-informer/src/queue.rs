//! The way from the reflectors to the cache: first in, first out, and never more than so many bytes.
//!
//! - What one sender puts in comes out in that order, each once.
//! - Senders wait while the queue is full, in the order in which they came. What is heavier than the whole queue waits
//!   until it is empty, and goes alone.
//! - The receiver takes what there is, as one batch. What it has taken no longer counts.
//! - When all senders are gone, the receiver gets the rest, and then nothing. When the receiver is gone, senders are told.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Semaphore, mpsc};

/// Makes a queue for so many bytes.
pub(crate) fn queue<T>(limit: usize) -> (Sender<T>, Receiver<T>) {
    let limit = u32::try_from(limit.clamp(1, Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
    let (items, taken) = mpsc::unbounded_channel();
    let gauge = Arc::new(Gauge { room: Semaphore::new(limit as usize), limit, length: AtomicUsize::new(0) });
    (Sender { items, gauge: Arc::clone(&gauge) }, Receiver { items: taken, gauge })
}

/// Puts in. A clone puts into the same queue.
#[derive(Debug)]
pub(crate) struct Sender<T> {
    items: mpsc::UnboundedSender<(T, u32)>,
    gauge: Arc<Gauge>,
}

/// Takes out. There is one.
#[derive(Debug)]
pub(crate) struct Receiver<T> {
    items: mpsc::UnboundedReceiver<(T, u32)>,
    gauge: Arc<Gauge>,
}

/// How full a queue is.
#[derive(Debug)]
pub(crate) struct Gauge {
    room: Semaphore,
    limit: u32,
    length: AtomicUsize,
}

/// Nobody takes anything out any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed;

impl Gauge {
    /// Items in it.
    pub(crate) fn length(&self) -> usize {
        self.length.load(Ordering::Relaxed)
    }

    /// Bytes in it.
    pub(crate) fn bytes(&self) -> usize {
        (self.limit as usize).saturating_sub(self.room.available_permits())
    }
}

impl<T> Sender<T> {
    /// Puts an item of so many bytes in, as soon as there is room.
    pub(crate) async fn send(&self, item: T, bytes: usize) -> Result<(), Closed> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.gauge.limit);
        let room = self.gauge.room.acquire_many(bytes).await.map_err(|_| Closed)?;
        self.gauge.length.fetch_add(1, Ordering::Relaxed);
        self.items.send((item, bytes)).map_err(|_| Closed)?;
        room.forget();
        Ok(())
    }

    /// How full it is.
    pub(crate) fn gauge(&self) -> Arc<Gauge> {
        Arc::clone(&self.gauge)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self { items: self.items.clone(), gauge: Arc::clone(&self.gauge) }
    }
}

impl<T> Receiver<T> {
    /// What there is, at least one item and at most `most`; nothing when all senders are gone. Nothing is lost if it is
    /// dropped before it is ready.
    pub(crate) async fn batch(&mut self, most: usize) -> Vec<T> {
        let mut taken = Vec::new();
        let count = self.items.recv_many(&mut taken, most.max(1)).await;
        let bytes: usize = taken.iter().map(|(_, bytes)| *bytes as usize).sum();
        self.gauge.length.fetch_sub(count, Ordering::Relaxed);
        self.gauge.room.add_permits(bytes);
        taken.into_iter().map(|(item, _)| item).collect()
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.gauge.room.close();
    }
}

#[cfg(test)]
mod tests;
