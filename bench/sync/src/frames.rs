//! Counts the frames of a watch in protobuf, looking at their first bytes only.
//!
//! A frame is its length, in four bytes, and so many bytes. They come in pieces of any size.

/// Where in the stream a counter is.
#[derive(Debug, Default)]
pub struct Frames {
    length: [u8; 4],
    known: usize,
    rest: usize,
    /// How the frame begins: with its event's type, and how long that is.
    begin: Vec<u8>,
    /// The frame, where it is a small one: a bookmark is.
    small: Vec<u8>,
}

/// What the end of a frame was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// That of an object that is new to the watch.
    Added,
    /// That of an object that has changed, or is gone.
    Changed,
    /// That of the bookmark after the last object that was there at the beginning.
    AllSent,
}

/// How events begin that are bookmarks, and those of an object that is new to the watch.
const BOOKMARK: &[u8] = b"\x0a\x08B";
const ADDED: &[u8] = b"\x0a\x05A";

/// A bookmark has no more than this, and an object that is measured has more.
const SMALL: usize = 600;

/// The annotation of the bookmark.
const END: &[u8] = b"k8s.io/initial-events-end";

impl Frames {
    /// Takes what has come, and tells of every frame that ends in it. Bookmarks within a watch are no news.
    pub fn take(&mut self, mut bytes: &[u8], mut ended: impl FnMut(Frame)) {
        while !bytes.is_empty() {
            if self.known < self.length.len() {
                let part = bytes.len().min(self.length.len() - self.known);
                self.length[self.known..self.known + part].copy_from_slice(&bytes[..part]);
                self.known += part;
                bytes = &bytes[part..];
                self.rest = u32::from_be_bytes(self.length) as usize;
                continue;
            }
            let part = bytes.len().min(self.rest);
            self.begin.extend(bytes[..part].iter().take(ADDED.len() - self.begin.len()));
            if (u32::from_be_bytes(self.length) as usize) < SMALL {
                self.small.extend_from_slice(&bytes[..part]);
            }
            bytes = &bytes[part..];
            self.rest -= part;
            if self.rest == 0 {
                let is_end = self.small.windows(END.len()).any(|window| window == END);
                if is_end {
                    ended(Frame::AllSent);
                } else if self.begin != BOOKMARK {
                    ended(if self.begin == ADDED { Frame::Added } else { Frame::Changed });
                }
                self.known = 0;
                self.begin.clear();
                self.small.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_counted_however_they_are_cut() {
        let mut stream = Vec::new();
        let added = [ADDED, &[7; 5000]].concat();
        let end = [BOOKMARK, b"OOKMARK", END].concat();
        let bookmark = [BOOKMARK, b"OOKMARK"].concat();
        let changed = [b"\x0a\x08MODIFIED", &[7; 900][..]].concat();
        for frame in [&added, &bookmark, &changed, &end, &changed, &added] {
            stream.extend_from_slice(&u32::try_from(frame.len()).unwrap().to_be_bytes());
            stream.extend_from_slice(frame);
        }
        for size in [1, 3, 7, 4096, stream.len()] {
            let (mut frames, mut ended) = (Frames::default(), Vec::new());
            stream.chunks(size).for_each(|piece| frames.take(piece, |frame| ended.push(frame)));
            let all = [Frame::Added, Frame::Changed, Frame::AllSent, Frame::Changed, Frame::Added];
            assert_eq!(ended, all, "in {size}");
        }
    }
}
