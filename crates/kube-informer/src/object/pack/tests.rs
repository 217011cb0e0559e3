use std::sync::Arc;
use std::thread;

use super::scratch::kept_capacity;
use super::{FRUITLESS, How, PackStats, Packed, Packer, Packing, State, UnpackError};

/// Numbers that look random and are the same everywhere.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// An object as a server sends it: mostly what the others of its kind say, too.
fn object(kind: &str, number: u64) -> Vec<u8> {
    let mut rng = Rng(number);
    let mut text = format!(
        r#"{{"metadata":{{"name":"{kind}-{number}","uid":"{:016x}{:016x}"}},"spec":{{"#,
        rng.next(),
        rng.next()
    );
    // What the kind says is not repeated within an object: only a dictionary can know it.
    let mut words = Rng(kind.bytes().map(u64::from).sum());
    for _ in 0..40 {
        text += &format!(r#""{:016x}":"{:016x}-{:04x}","#, words.next(), words.next(), rng.next() as u16);
    }
    text += &format!(r#""node":"node-{}"}}}}"#, rng.next() % 200);
    text.into_bytes()
}

/// An object that was made from a template, with others: only its name and its identifier are its own.
fn replica(template: u64, number: u64) -> Vec<u8> {
    let mut rng = Rng(number);
    let object = String::from_utf8(object("pod", template)).unwrap();
    let (_, rest) = object.split_once(r#","spec""#).unwrap();
    format!(
        r#"{{"metadata":{{"name":"pod-{template}-{number}","uid":"{:016x}{:016x}"}},"spec"{rest}"#,
        rng.next(),
        rng.next()
    )
    .into_bytes()
}

fn packer(kind: &str, objects: u64) -> (Packer, Vec<Packed>) {
    let mut packer = Packer::new(Packing::Zstd);
    let packed = (0..objects).map(|number| packer.pack(&object(kind, number))).collect();
    (packer, packed)
}

fn plain(packed: &Packed) -> Vec<u8> {
    packed.unpack(<[u8]>::to_vec).unwrap()
}

#[test]
fn every_object_is_read_back_as_it_was_before_and_after_training() {
    let (packer, packed) = packer("pod", 600);
    for (number, packed) in (0..).zip(&packed) {
        let expected = object("pod", number);
        assert_eq!(plain(packed), expected);
        assert_eq!(packed.plain_len(), expected.len());
    }
    assert_eq!(packer.stats().generation, 1);
}

#[test]
fn objects_are_plain_until_trained_and_small_afterwards() {
    let (packer, packed) = packer("pod", 600);
    let first = packed.iter().position(|packed| !packed.is_plain()).unwrap();
    assert!((16..=256).contains(&first), "{first}");
    assert!(packed[..first].iter().all(|packed| packed.packed_len() == packed.plain_len()));
    assert!(packed[first..].iter().all(|packed| packed.packed_len() * 4 < packed.plain_len()));
    let stats = packer.stats();
    assert_eq!((stats.objects, stats.kept_plain, stats.trainings), (600, first as u64, 1));
    assert_eq!(stats.packed_bytes, packed.iter().map(|packed| packed.packed_len() as u64).sum::<u64>());
    assert_eq!(stats.plain_bytes, packed.iter().map(|packed| packed.plain_len() as u64).sum::<u64>());
}

#[test]
fn with_packing_off_objects_stay_as_they_came() {
    let mut packer = Packer::new(Packing::Off);
    for number in 0..600 {
        let packed = packer.pack(&object("pod", number));
        assert!(packed.is_plain());
        assert_eq!(plain(&packed), object("pod", number));
        assert!(packer.repack(&packed).is_none());
    }
    packer.settle();
    let PackStats { trainings, generation, live_dictionaries, kept_plain, .. } = packer.stats();
    assert_eq!((trainings, generation, live_dictionaries, kept_plain), (0, 0, 0, 600));
}

#[test]
fn a_cache_that_settles_early_is_packed_with_the_samples_that_there_are() {
    let (mut packer, packed) = packer("pod", 40);
    assert!(packed.iter().all(Packed::is_plain));
    assert!(packer.repack(&packed[0]).is_none(), "nothing to pack with yet");
    packer.settle();
    assert_eq!(packer.stats().generation, 1);
    for (number, early) in (0..).zip(&packed) {
        let again = packer.repack(early).unwrap();
        assert!(again.packed_len() * 4 < again.plain_len());
        assert_eq!(plain(&again), object("pod", number));
        assert!(packer.repack(&again).is_none(), "it is packed with the newest dictionary already");
    }
    assert_eq!(packer.stats().objects, 40, "packing again does not count as a new object");
}

#[test]
fn too_few_samples_to_settle_with_change_nothing() {
    let (mut packer, _) = packer("pod", 10);
    packer.settle();
    assert_eq!((packer.stats().generation, packer.stats().trainings), (0, 0));
}

#[test]
fn samples_that_give_no_dictionary_are_followed_by_others() {
    let mut packer = Packer::new(Packing::Zstd);
    for _ in 0..200 {
        assert!(packer.pack(b"").is_plain());
    }
    let failed = packer.stats();
    assert_eq!((failed.generation, failed.trainings), (0, 1));
    for number in 0..400 {
        packer.pack(&object("pod", number));
    }
    assert!(!packer.pack(&object("pod", 400)).is_plain());
}

#[test]
fn trainings_that_fail_become_rare() {
    let mut packer = Packer::new(Packing::Zstd);
    for _ in 0..50_000 {
        packer.pack(b"");
    }
    let trainings = packer.stats().trainings;
    assert!((5..12).contains(&trainings), "{trainings}");
}

#[test]
fn what_is_small_or_does_not_shrink_stays_plain() {
    let (mut packer, _) = packer("pod", 600);
    let mut rng = Rng(7);
    for bytes in [Vec::new(), b"{}".to_vec(), rng.bytes(63), rng.bytes(64), rng.bytes(10_000)] {
        let packed = packer.pack(&bytes);
        assert!(packed.is_plain(), "{} bytes", bytes.len());
        assert_eq!(plain(&packed), bytes);
        assert!(packer.repack(&packed).is_none());
    }
}

#[test]
fn where_nothing_shrinks_few_objects_are_tried_until_one_does() {
    let (mut packer, _) = packer("pod", 600);
    let mut rng = Rng(7);
    for _ in 0..=2 * FRUITLESS {
        packer.pack(&rng.bytes(500));
    }
    let tried = (0..16).filter(|&number| !packer.pack(&object("pod", number)).is_plain()).count();
    assert!((9..16).contains(&tried), "{tried}: not at once, and from then on all of them");
}

#[test]
fn huge_objects_are_packed_and_leave_no_memory_behind() {
    let (mut packer, packed) = packer("pod", 600);
    let mut huge = object("pod", 1).repeat(1000);
    huge.extend(Rng(3).bytes(100_000));
    let one = packer.pack(&huge);
    assert!(one.packed_len() < huge.len() / 8);
    let State::Packing(active) = &packer.state else { panic!("a dictionary was trained") };
    assert!(active.encoder.kept_capacity() < 1024 * 1024, "{}", active.encoder.kept_capacity());
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(plain(&one), huge);
            assert_eq!(plain(&packed[599]), object("pod", 599));
            assert!(kept_capacity() < 1024 * 1024, "{}", kept_capacity());
        });
    });
}

#[test]
fn objects_can_be_read_inside_of_each_other() {
    let (_, packed) = packer("pod", 600);
    let (a, b, c) = (&packed[400], &packed[401], &packed[402]);
    let all = a.unpack(|a| b.unpack(|b| c.unpack(|c| [a, b, c].map(<[u8]>::to_vec))));
    assert_eq!(all.unwrap().unwrap().unwrap(), [400, 401, 402].map(|number| object("pod", number)));
}

#[test]
fn objects_of_several_templates_can_be_read_inside_of_each_other_and_in_any_order() {
    let (mut packer, _) = packer("pod", 1_000);
    let mut kept = Vec::new();
    for (template, number) in (2_000..2_004).flat_map(|template| (0..4).map(move |number| (template, number)))
    {
        let plain = replica(template, number);
        kept.push((packer.pack(&plain), plain));
    }
    assert!(packer.stats().kin >= 8, "{:?}", packer.stats());
    for (one, plain_one) in &kept {
        for (two, plain_two) in kept.iter().rev() {
            let both = one.unpack(|a| two.unpack(|b| a == *plain_one && b == *plain_two).unwrap()).unwrap();
            assert!(both);
        }
    }
}

#[test]
fn a_base_that_is_gone_is_not_taken_for_the_next_one() {
    let (mut packer, _) = packer("pod", 1_000);
    for template in 2_000..2_100 {
        // Bases come and go, and may get the same place in memory.
        let plains = [replica(template, 1), replica(template, 2)];
        let packed = plains.each_ref().map(|plain| packer.pack(plain));
        for (packed, expected) in packed.iter().zip(&plains) {
            assert_eq!(plain(packed), *expected);
        }
    }
}

#[test]
fn a_reader_that_panics_harms_no_later_one() {
    let (_, packed) = packer("pod", 600);
    let read = || packed[400].unpack(|_| panic!("the reader's own"));
    assert!(std::panic::catch_unwind(read).is_err());
    assert_eq!(plain(&packed[401]), object("pod", 401));
}

#[test]
fn objects_are_read_by_several_threads_at_once() {
    let (_, packed) = packer("pod", 300);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for (number, packed) in (0..).zip(&packed) {
                    assert_eq!(plain(packed), object("pod", number));
                }
            });
        }
    });
}

#[test]
fn objects_that_change_their_looks_get_a_new_dictionary_and_old_ones_stay_readable() {
    let (mut packer, early) = packer("pod", 1000);
    // Enough objects for the pause after the first training, and for new samples.
    let late: Vec<_> = (0..6000).map(|number| packer.pack(&object("quiteAnotherThing", number))).collect();
    let stats = packer.stats();
    assert_eq!((stats.generation, stats.live_dictionaries, stats.trainings), (2, 2, 2));
    let (before, after) = (late[1000].packed_len(), late[5999].packed_len());
    assert!(after * 5 < before * 4, "{after} after {before}");
    for (number, packed) in (0..).zip(&early) {
        assert_eq!(plain(packed), object("pod", number));
    }
    for (number, packed) in (0..).zip(&late) {
        assert_eq!(plain(packed), object("quiteAnotherThing", number));
    }

    let again = packer.repack(&late[1000]).unwrap();
    assert!(again.packed_len() * 5 < before * 4);
    assert_eq!(plain(&again), object("quiteAnotherThing", 1000));
    assert!(packer.repack(&early[999]).is_none(), "the new dictionary does not suit it");

    drop((early, late));
    assert_eq!(packer.stats().live_dictionaries, 1, "a dictionary goes with what was packed with it");
}

#[test]
fn a_dictionary_that_would_do_no_better_is_not_taken() {
    let (mut packer, _) = packer("pod", 1000);
    let mut rng = Rng(1);
    for number in 0..6000 {
        let mut object = object("pod", number);
        object.extend(rng.bytes(300));
        packer.pack(&object);
    }
    let stats = packer.stats();
    assert_eq!((stats.trainings, stats.generation, stats.live_dictionaries), (2, 1, 1));
}

#[test]
fn objects_of_one_template_are_told_from_the_first_of_them() {
    let (mut packer, _) = packer("pod", 150);
    let replicas = |packer: &mut Packer, template: u64| -> Vec<Packed> {
        (0..5).map(|number| packer.pack(&replica(template, number))).collect()
    };
    let alone = packer.pack(&object("pod", 1000)).packed_len();
    for template in 2000..2010 {
        let packed = replicas(&mut packer, template);
        assert!(packed[0].packed_len() + 60 > alone);
        for (number, packed) in (0..).zip(&packed) {
            assert_eq!(plain(packed), replica(template, number));
            assert_eq!(packed.plain_len(), replica(template, number).len());
            assert!(number == 0 || packed.packed_len() * 4 < alone, "{} of {alone}", packed.packed_len());
        }
    }
    assert_eq!(packer.stats().kin, 40);
}

#[test]
fn what_is_told_from_another_stays_readable_without_it() {
    let (mut packer, _) = packer("pod", 150);
    let first = packer.pack(&replica(2000, 0));
    let second = packer.pack(&replica(2000, 1));
    drop((first, packer));
    assert_eq!(plain(&second), replica(2000, 1));
}

#[test]
fn a_new_version_is_told_from_what_the_previous_one_was_told_from() {
    let (mut packer, _) = packer("pod", 150);
    // There is kin, so that the next ones are ready to be shared.
    packer.pack(&replica(1999, 0));
    packer.pack(&replica(1999, 1));
    let first = packer.pack(&replica(2000, 0));
    let second = packer.pack(&replica(2000, 1));
    let third = packer.pack(&replica(2000, 2));
    // Others come between: the last base is another one.
    packer.pack(&object("pod", 3000));
    for (previous, number) in [(&second, 11), (&third, 12), (&first, 10)] {
        packer.pack(&object("pod", 3000 + number));
        let next = packer.pack_update(previous, &replica(2000, number));
        assert!(next.packed_len() < 100, "{}", next.packed_len());
        assert_eq!(plain(&next), replica(2000, number));
    }
}

#[test]
fn what_is_kept_as_it_came_is_packed_later_as_small_as_at_once() {
    let (mut packer, _) = packer("pod", 600);
    packer.pack(&replica(1999, 0));
    packer.pack(&replica(1999, 1));
    packer.pack(&replica(2000, 0));
    let previous = packer.pack(&replica(2000, 1));
    let once = packer.pack_update(&previous, &replica(2000, 11));
    // Version after version, none of them packed.
    let mut kept = packer.keep(Some(&previous), &replica(2000, 2));
    for number in 3..=11 {
        kept = packer.keep(Some(&kept), &replica(2000, number));
        assert!(kept.is_plain());
        assert_eq!(plain(&kept), replica(2000, number));
    }
    packer.pack(&object("pod", 3000));
    let packed = packer.pack_later(&kept).unwrap();
    assert_eq!((packed.packed_len(), plain(&packed)), (once.packed_len(), replica(2000, 11)));
    assert!(packer.pack_later(&packed).is_none(), "it is packed");
    let small = packer.keep(None, b"{}");
    assert!(packer.pack_later(&small).is_none(), "it is best left as it is");
}

#[test]
fn those_who_can_be_told_from_one_and_the_same_are_known_by_it() {
    let (mut packer, _) = packer("pod", 150);
    let mut family = |number: u64| {
        packer.pack(&replica(number, 0));
        let packed: Vec<_> = (1..4).map(|each| packer.pack(&replica(number, each))).collect();
        packed
            .iter()
            .zip(4..)
            .map(|(each, next)| packer.keep(Some(each), &replica(number, next)))
            .collect::<Vec<_>>()
    };
    let (one, other) = (family(2000), family(3000));
    let all_of = |family: &[Packed]| {
        family.iter().all(|each| each.is_plain() && each.kinship() == family[0].kinship())
    };
    assert!(all_of(&one) && all_of(&other));
    assert!(one[0].kinship() != 0 && one[0].kinship() != other[0].kinship());
    assert_eq!(packer.keep(None, &replica(2000, 9)).kinship(), 0, "nothing is known of it");
}

#[test]
fn before_there_is_a_dictionary_what_is_kept_helps_to_make_one() {
    let mut packer = Packer::new(Packing::Zstd);
    let all: Vec<_> = (0..600).map(|number| packer.keep(None, &object("pod", number))).collect();
    assert_eq!(packer.stats().generation, 1);
    assert!(all.last().is_some_and(Packed::is_plain));
    let mut off = Packer::new(Packing::Off);
    let kept = off.keep(None, &object("pod", 1));
    assert!(off.pack_later(&kept).is_none());
}

#[test]
fn a_new_version_is_not_told_from_an_old_one_that_nothing_else_needs() {
    let (mut packer, _) = packer("pod", 150);
    // As a frame of its own, and then ready to be shared.
    for ready in [false, true] {
        let mut version = packer.pack(&replica(2000, 0));
        assert_eq!(matches!(version.how, How::Shared(_)), ready);
        for number in 1..5 {
            version = packer.pack_update(&version, &replica(2000, number));
            assert!(matches!(version.how, How::Shared(_) | How::Zstd { .. }));
            assert_eq!(plain(&version), replica(2000, number));
        }
        packer.pack(&replica(2001, 0));
        let told = packer.pack(&replica(2001, 1));
        assert!(matches!(told.how, How::Kin { .. }));
    }
}

#[test]
fn objects_without_kin_are_not_kept_ready_for_it() {
    let (mut packer, _) = packer("pod", 600);
    let packed = packer.pack(&object("pod", 600));
    assert!(matches!(packed.how, How::Zstd { .. }));
    // Kin that turns up later is found after a while.
    let found = (0..100).position(|number| matches!(packer.pack(&replica(1, number)).how, How::Kin { .. }));
    assert!(found.is_some_and(|after| (2..40).contains(&after)), "{found:?}");
}

#[test]
fn damaged_bytes_give_an_error_and_nothing_is_called() {
    let (mut packer, packed) = packer("pod", 600);
    let packed = &packed[599];
    let How::Zstd { plain_len, dictionary } = &packed.how else { panic!("packed") };
    let with = |bytes: &[u8], plain_len: u32| Packed {
        bytes: bytes.into(),
        how: How::Zstd { plain_len, dictionary: Arc::clone(dictionary) },
    };
    let refused = |damaged: &Packed| damaged.unpack(|_| panic!("called")).map(|(): ()| ()).unwrap_err();

    for cut in 0..packed.bytes.len() {
        assert!(matches!(refused(&with(&packed.bytes[..cut], *plain_len)), UnpackError::Damaged(_)));
    }
    refused(&with(&packed.bytes, plain_len - 1));
    let longer = refused(&with(&packed.bytes, plain_len + 1));
    assert_eq!(longer, UnpackError::Length { expected: *plain_len as usize + 1, found: *plain_len as usize });
    assert!(longer.to_string().contains("instead of"));

    packer.pack(&replica(2000, 0));
    let told = (1..200).map(|number| packer.pack(&replica(2000, number)));
    let told = told.into_iter().find(|packed| matches!(packed.how, How::Kin { .. })).unwrap();
    let How::Kin { plain_len: told_len, base } = &told.how else { panic!("kin") };
    let told_with = |bytes: &[u8]| Packed {
        bytes: bytes.into(),
        how: How::Kin { plain_len: *told_len, base: Arc::clone(base) },
    };
    for cut in 0..told.bytes.len() {
        assert!(matches!(refused(&told_with(&told.bytes[..cut])), UnpackError::Damaged(_)));
    }

    // A changed bit is not always noticed; but it never panics, and never gives more than was packed.
    for (at, bit) in (0..packed.bytes.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut bytes = packed.bytes.clone();
        bytes[at] ^= 1 << bit;
        if let Ok(len) = with(&bytes, *plain_len).unpack(<[u8]>::len) {
            assert_eq!(len, packed.plain_len());
        }
        let mut bytes = told.bytes.clone();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        if let Ok(len) = told_with(&bytes).unpack(<[u8]>::len) {
            assert_eq!(len, told.plain_len());
        }
    }
}

#[test]
fn what_is_kept_is_small_and_may_go_to_any_thread() {
    fn sendable<T: Send + Sync>() {}
    sendable::<Packed>();
    fn movable<T: Send>() {}
    movable::<Packer>();
    assert!(size_of::<Packed>() <= 32);
    let (packer, packed) = packer("pod", 1);
    assert!(format!("{packer:?} {packed:?}").contains("plain_len"));
}
