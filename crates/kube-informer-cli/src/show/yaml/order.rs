//! The order of keys: letters by their code, after everything else; numbers by what they are worth.

use std::cmp::Ordering;

/// Which of two keys comes first.
pub(super) fn keys(a: &str, b: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let Some((at, (x, y))) = a.iter().zip(&b).enumerate().find(|(_, (x, y))| x != y) else {
        return a.len().cmp(&b.len());
    };
    match (x.is_alphabetic(), y.is_alphabetic()) {
        (true, true) => return x.cmp(y),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // A zero within a number counts; one before it does not.
    let within =
        (*x == '0' || *y == '0') && a.iter().take(at).rev().take_while(|c| is_digit(**c)).any(|c| *c != '0');
    let first = i64::from(within);
    let (one, two) = (run(&a, at, first), run(&b, at, first));
    one.cmp(&two).then_with(|| x.cmp(y))
}

/// The number that begins there, and its length.
fn run(key: &[char], at: usize, first: i64) -> (i64, usize) {
    let digits = key.iter().skip(at).take_while(|c| is_digit(**c));
    digits.fold((first, 0), |(number, length), c| {
        let digit = i64::from(u32::from(*c)) - i64::from(u32::from('0'));
        (number.wrapping_mul(10).wrapping_add(digit), length + 1)
    })
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_keys_count_as_numbers() {
        let mut keys_of = vec!["a10", "a2", "a", "B", "b", "a-1", "a.b", "1", "10", "2", "a02", "ab", "a/b"];
        keys_of.sort_by(|a, b| keys(a, b));
        assert_eq!(keys_of, ["1", "2", "10", "B", "a", "a-1", "a.b", "a/b", "a2", "a02", "a10", "ab", "b"]);
    }
}
