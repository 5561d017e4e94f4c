//! Parquet's hybrid of runs and packed numbers, in which levels and the indexes of a dictionary are.

/// Numbers that are packed together.
const PACKED: usize = 8;

/// The number that a whole sequence consists of, where it is written as one run.
pub(super) fn constant(data: &[u8], width: u8, count: usize) -> Option<u32> {
    let mut data = Input(data);
    let header = data.varint()?;
    (header & 1 == 0 && (header >> 1) as usize >= count).then_some(())?;
    data.number(width)
}

/// The first `count` numbers; none where the data ends before.
pub(super) fn decode(data: &[u8], width: u8, count: usize) -> Option<Vec<u32>> {
    if width > 32 {
        return None;
    }
    let mut data = Input(data);
    let mut numbers = Vec::with_capacity(count);
    while numbers.len() < count {
        let left = count - numbers.len();
        match data.run(width)? {
            Run::Equal(number, length) => {
                numbers.resize(numbers.len() + length.min(left), number);
            }
            Run::Packed(packed, length) => unpack(packed, width, length.min(left), &mut numbers),
        }
    }
    Some(numbers)
}

/// The number at a place; none where the data ends before.
pub(super) fn number_at(data: &[u8], width: u8, at: usize) -> Option<u32> {
    if width > 32 {
        return None;
    }
    let (mut data, mut left) = (Input(data), at);
    loop {
        match data.run(width)? {
            Run::Equal(number, length) if left < length => return Some(number),
            Run::Packed(packed, length) if left < length => {
                return packed_number(packed, width, left);
            }
            Run::Equal(_, length) | Run::Packed(_, length) => left -= length,
        }
    }
}

/// How often a number occurs among the first `count`; none where the data ends before.
pub(super) fn occurrences(data: &[u8], width: u8, count: usize, number: u32) -> Option<usize> {
    if width > 32 {
        return None;
    }
    let (mut data, mut left, mut found) = (Input(data), count, 0);
    while left > 0 {
        match data.run(width)? {
            Run::Equal(equal, length) => {
                found += if equal == number { length.min(left) } else { 0 };
                left -= length.min(left);
            }
            Run::Packed(packed, length) => {
                let count = length.min(left);
                found += if width == 1 {
                    match number {
                        0 => count - ones(packed, count),
                        1 => ones(packed, count),
                        _ => 0,
                    }
                } else {
                    let mut numbers = Vec::with_capacity(count);
                    unpack(packed, width, count, &mut numbers);
                    numbers.iter().filter(|each| **each == number).count()
                };
                left -= count;
            }
        }
    }
    Some(found)
}

/// How many of the first `count` bits are set.
fn ones(packed: &[u8], count: usize) -> usize {
    let (whole, rest) = packed.split_at(packed.len().min(count / 8));
    let last = rest
        .first()
        .map_or(0, |byte| byte & ((1 << (count % 8)) - 1));
    let ones = whole.iter().map(|byte| byte.count_ones()).sum::<u32>() + last.count_ones();
    ones as usize
}

fn packed_number(packed: &[u8], width: u8, at: usize) -> Option<u32> {
    let bit = at * usize::from(width);
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(packed.get(bit / 8..)?) {
        *to = *from;
    }
    let mask = (1_u64 << width) - 1;
    Some((u64::from_le_bytes(word) >> (bit % 8) & mask) as u32)
}

/// packed: has so many numbers.
fn unpack(packed: &[u8], width: u8, count: usize, numbers: &mut Vec<u32>) {
    let (mut bits, mut available) = (0_u64, 0_u8);
    let mask = (1_u64 << width) - 1;
    let (words, rest) = packed.as_chunks::<4>();
    let words = words
        .iter()
        .map(|word| (u64::from(u32::from_le_bytes(*word)), 32));
    let mut input = words.chain(rest.iter().map(|byte| (u64::from(*byte), 8)));
    for _ in 0..count {
        while available < width {
            let Some((more, length)) = input.next() else {
                return;
            };
            bits |= more << available;
            available += length;
        }
        numbers.push((bits & mask) as u32);
        bits >>= width;
        available -= width;
    }
}

/// Appends numbers.
pub(super) fn encode(numbers: &[u32], width: u8, out: &mut Vec<u8>) {
    let mut rest = numbers;
    let mut packed: &[u32] = &[];
    while let Some(first) = rest.first() {
        let run = rest.iter().take_while(|number| *number == first).count();
        if run >= PACKED {
            pack(packed, width, out);
            varint((run as u64) << 1, out);
            let bytes = first.to_le_bytes();
            out.extend(bytes.iter().take(usize::from(width.div_ceil(8))));
            rest = rest.get(run..).unwrap_or_default();
            packed = &[];
        } else {
            let begin = numbers.len() - rest.len() - packed.len();
            rest = rest.get(PACKED..).unwrap_or_default();
            packed = numbers
                .get(begin..numbers.len() - rest.len())
                .unwrap_or_default();
        }
    }
    pack(packed, width, out);
}

fn pack(numbers: &[u32], width: u8, out: &mut Vec<u8>) {
    if numbers.is_empty() {
        return;
    }
    let groups = numbers.len().div_ceil(PACKED);
    varint((groups as u64) << 1 | 1, out);
    let end = out.len() + groups * usize::from(width);
    let (mut bits, mut used) = (0_u64, 0_u8);
    for number in numbers {
        bits |= u64::from(*number) << used;
        used += width;
        if used >= 32 {
            out.extend((bits as u32).to_le_bytes());
            bits >>= 32;
            used -= 32;
        }
    }
    let rest = bits.to_le_bytes();
    out.extend(rest.iter().take(usize::from(used.div_ceil(8))));
    out.resize(end, 0);
}

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Numbers that stand together, and how many there are.
enum Run<'a> {
    Equal(u32, usize),
    Packed(&'a [u8], usize),
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// The next run, which is not empty.
    fn run(&mut self, width: u8) -> Option<Run<'a>> {
        let header = self.varint()?;
        let length = (header >> 1) as usize;
        let run = if header & 1 == 0 {
            Run::Equal(self.number(width)?, length)
        } else {
            let packed = self.take(length.checked_mul(usize::from(width))?)?;
            Run::Packed(packed, length.saturating_mul(PACKED))
        };
        (length > 0).then_some(run)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u32> {
        let mut number = 0;
        for at in 0..5 {
            let [byte] = *self.take(1)? else { return None };
            number |= u32::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn number(&mut self, width: u8) -> Option<u32> {
        let mut bytes = [0; 4];
        let stored = self.take(usize::from(width.div_ceil(8)))?;
        bytes.get_mut(..stored.len())?.copy_from_slice(stored);
        Some(u32::from_le_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(numbers: &[u32], width: u8) -> Vec<u8> {
        let mut out = Vec::new();
        encode(numbers, width, &mut out);
        out
    }

    #[test]
    fn numbers_are_decoded_as_they_were_encoded() {
        for width in [0_u8, 1, 2, 3, 7, 8, 9, 15, 17, 20, 31, 32] {
            let mask = ((1_u64 << width) - 1) as u32;
            for count in [0_usize, 1, 7, 8, 9, 63, 64, 65, 1000] {
                let spread = |number: usize| (number as u32).wrapping_mul(2_654_435_761) & mask;
                let mixed = (0..count).map(spread).collect::<Vec<_>>();
                let runs = (0..count).map(|number| spread(number / 13)).collect();
                let long = (0..count).map(|number| spread(number / 300)).collect();
                for numbers in [mixed, runs, long] {
                    let bytes = encoded(&numbers, width);
                    assert_eq!(
                        decode(&bytes, width, count).unwrap(),
                        numbers,
                        "{width} {count}"
                    );
                    for at in (0..count).step_by(1 + count / 40) {
                        let number = numbers[at];
                        assert_eq!(number_at(&bytes, width, at), Some(number));
                        let before = numbers[..at].iter().filter(|each| **each == number);
                        let found = occurrences(&bytes, width, at, number);
                        assert_eq!(found, Some(before.count()), "{width} {count} {at}");
                    }
                }
            }
        }
    }

    #[test]
    fn one_run_is_a_constant() {
        assert_eq!(constant(&encoded(&[5; 900], 3), 3, 900), Some(5));
        assert_eq!(constant(&encoded(&[5; 900], 3), 3, 901), None);
        assert_eq!(constant(&encoded(&[1, 2, 3, 4, 5, 6, 7, 0], 3), 3, 8), None);
    }

    #[test]
    fn data_that_ends_early_has_no_numbers() {
        let bytes = encoded(&[1, 2, 3, 4, 5, 6, 7, 0, 3], 3);
        for length in 0..bytes.len() {
            assert_eq!(decode(&bytes[..length], 3, 9), None, "{length} bytes");
            assert_eq!(number_at(&bytes[..length], 3, 8), None, "{length} bytes");
            assert_eq!(occurrences(&bytes[..length], 3, 9, 1), None);
        }
        assert_eq!(decode(&[0, 1], 3, 9), None);
        assert_eq!(decode(&[1], 3, 9), None);
        assert_eq!(decode(&[0xff; 12], 3, 9), None);
    }
}
