use proptest::prelude::*;

use super::*;

impl Entry for (u64, usize) {
    fn bytes(&self) -> usize {
        self.1
    }
}

fn journal(entries: usize, bytes: usize) -> Journal<(u64, usize)> {
    Journal::of(Epoch(0x7f3), Bounds { entries, bytes })
}

fn since(journal: &Journal<(u64, usize)>, seq: u64) -> Result<Vec<u64>, ResumeError> {
    Ok(journal.since(journal.at(seq))?.map(|entry| entry.0).collect())
}

#[test]
fn what_came_after_a_place_is_told_exactly() {
    let mut journal = journal(3, 1_000);
    assert_eq!(since(&journal, 0), Ok(vec![]));
    for _ in 0..5 {
        journal.push(|cursor| (cursor.seq, 1));
    }
    assert_eq!(since(&journal, 5), Ok(vec![]));
    assert_eq!(since(&journal, 3), Ok(vec![4, 5]));
    assert_eq!(since(&journal, 2), Ok(vec![3, 4, 5]));
    assert_eq!(since(&journal, 1), Err(ResumeError::TooOld { oldest: journal.at(2) }));
    assert_eq!(since(&journal, 6), Err(ResumeError::Future { last: journal.at(5) }));
    let other = Cursor { epoch: Epoch(1), seq: 4 };
    assert_eq!(journal.since(other).err(), Some(ResumeError::UnknownEpoch { now: Epoch(0x7f3) }));
}

#[test]
fn the_bytes_are_bounded_even_by_one_entry() {
    let mut journal = journal(100, 10);
    journal.push(|cursor| (cursor.seq, 6));
    journal.push(|cursor| (cursor.seq, 6));
    assert_eq!((journal.len(), journal.bytes()), (1, 6));
    journal.push(|cursor| (cursor.seq, 11));
    assert_eq!((journal.len(), journal.bytes(), journal.oldest().seq), (0, 0, 3));
    assert_eq!(since(&journal, 3), Ok(vec![]));
}

#[test]
fn cursors_are_read_as_they_are_written_and_nothing_else_is() {
    let cursor = Cursor { epoch: Epoch(0x7f3), seq: 18_834 };
    assert_eq!(cursor.to_string(), "7f3:18834");
    assert_eq!("7f3:18834".parse(), Ok(cursor));
    for text in [
        "",
        ":",
        "7f3",
        "7f3:",
        ":1",
        "7f3:-1",
        "+7:1",
        "7F3:1",
        "7f3:1:2",
        "7f3:99999999999999999999",
        " 7:1",
    ] {
        assert_eq!(text.parse::<Cursor>(), Err(ParseCursorError), "{text:?}");
    }
}

#[test]
fn each_start_has_an_epoch_of_its_own() {
    assert_ne!(Epoch::random(), Epoch::random());
}

proptest! {
    #[test]
    fn what_is_told_is_everything_after_or_nothing(
        sizes in prop::collection::vec(0usize..20, 0..60), entries in 0usize..30, bytes in 0usize..200, from in 0u64..70
    ) {
        let mut journal = journal(entries, bytes);
        for size in &sizes {
            journal.push(|cursor| (cursor.seq, *size));
        }
        prop_assert!(journal.len() <= entries && journal.bytes() <= bytes);
        match since(&journal, from) {
            Ok(told) => prop_assert_eq!(told, (from + 1..=sizes.len() as u64).collect::<Vec<_>>()),
            Err(ResumeError::TooOld { oldest }) => prop_assert!(from < oldest.seq),
            Err(ResumeError::Future { .. }) => prop_assert!(from > sizes.len() as u64),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}
