//! Deflate of blocks whose pairs repeat their values, as those of the record index do.
//!
//! A general compressor looks for repetitions at every byte. Here they are known: a key can repeat parts of
//! the key before it, and a value an equal value. So both are found by one comparison each, and the rest
//! are literals. Codes serve several blocks, since blocks of one file are alike.

/// Fewer equal bytes cost as much as their literals.
const LEAST_MATCH: usize = 4;
const LONGEST_MATCH: usize = 258;
/// The shortest one that deflate has.
const SHORTEST_MATCH: usize = 3;
const WINDOW: usize = 1 << 15;
/// Values of a block that can be found again.
const SLOTS: usize = 256;
/// Blocks after which codes are made again.
const CODE_BLOCKS: u32 = 32;

const LITERALS: usize = 286;
const DISTANCES: usize = 30;
const END: usize = 256;
const LONGEST_CODE: usize = 15;
/// Of the code for the lengths of codes.
const LONGEST_LENGTH_CODE: usize = 7;
/// The order in which a block has the lengths of that code.
const LENGTH_ORDER: [usize; 19] = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
];

/// Where a pair is in its block.
#[derive(Debug, Clone, Copy)]
pub(super) struct PairAt {
    /// Start of the key.
    pub key: usize,
    /// End of the key.
    pub key_end: usize,
    /// Start of the value.
    pub value: usize,
    /// End of the value.
    pub value_end: usize,
}

/// Packs one block after the other with the same memory.
#[derive(Debug, Default)]
pub(super) struct PairDeflate {
    tokens: Vec<Token>,
    code: Option<Code>,
    used: u32,
}

#[derive(Debug, Clone, Copy)]
enum Token {
    Literal(u8),
    Match { length: u16, distance: u16 },
}

impl PairDeflate {
    /// Adds the deflated payload, unless so little of it repeats that a search can find more.
    pub(super) fn deflate(&mut self, payload: &[u8], pairs: &[PairAt], out: &mut Vec<u8>) -> bool {
        self.find(payload, pairs);
        if self.tokens.len() > payload.len() / 2 {
            return false;
        }
        let start = out.len();
        if self.used < CODE_BLOCKS
            && let Some(code) = &self.code
            && code.write(&self.tokens, out)
        {
            self.used += 1;
            return true;
        }
        out.truncate(start);
        let code = Code::of(&Counts::of(&self.tokens));
        code.write(&self.tokens, out);
        (self.code, self.used) = (Some(code), 1);
        true
    }

    fn find(&mut self, payload: &[u8], pairs: &[PairAt]) {
        self.tokens.clear();
        let mut values = [None::<usize>; SLOTS];
        let mut at = 0;
        let mut last: Option<PairAt> = None;
        for (number, pair) in pairs.iter().enumerate() {
            let next = pairs.get(number + 1).map_or(payload.len(), |next| next.key);
            let of_key = last.map(|last| pair.key - last.key);
            at = self.cover(payload, at, pair.key_end, of_key);
            let value = payload.get(pair.value..pair.value_end).unwrap_or_default();
            let slot = values.get_mut(slot_of(value));
            let of_value = slot.and_then(|slot| slot.replace(pair.value));
            let of_value = of_value.map(|earlier| pair.value - earlier);
            at = self.cover(payload, at, next, of_value);
            last = Some(*pair);
        }
        self.cover(payload, at, payload.len(), None);
    }

    /// Tokens for the bytes up to `end` at least, and for those after it that a match goes on to.
    fn cover(
        &mut self,
        payload: &[u8],
        mut at: usize,
        end: usize,
        distance: Option<usize>,
    ) -> usize {
        let distance = distance.filter(|distance| (1..=WINDOW).contains(distance));
        while at < end {
            let same = distance
                .and_then(|distance| at.checked_sub(distance))
                .map_or(0, |earlier| same_bytes(payload, earlier, at));
            if let (LEAST_MATCH.., Some(distance)) = (same, distance) {
                self.copy(same, distance);
                at += same;
            } else {
                self.tokens
                    .extend(payload.get(at).copied().map(Token::Literal));
                at += 1;
            }
        }
        at
    }

    fn copy(&mut self, mut same: usize, distance: usize) {
        while same > 0 {
            let left = same.saturating_sub(LONGEST_MATCH);
            let short = SHORTEST_MATCH.saturating_sub(left) * usize::from(left > 0);
            let length = same - left - short;
            self.tokens.push(Token::Match {
                length: length as u16,
                distance: (distance - 1) as u16,
            });
            same -= length;
        }
    }
}

/// Equal values have equal slots.
fn slot_of(value: &[u8]) -> usize {
    let (words, rest) = value.as_chunks::<8>();
    let mix = |hash: u64, word: u64| {
        (hash ^ word)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(29)
    };
    let hash = words.iter().fold(value.len() as u64, |hash, word| {
        mix(hash, u64::from_le_bytes(*word))
    });
    let hash = rest
        .iter()
        .fold(hash, |hash, byte| mix(hash, u64::from(*byte)));
    (mix(hash, 0) >> 32) as usize % SLOTS
}

/// How many bytes from `at` on are those from `earlier` on.
fn same_bytes(payload: &[u8], earlier: usize, at: usize) -> usize {
    let behind = payload.get(at..).unwrap_or_default();
    let before = payload.get(earlier..).unwrap_or_default();
    let (words, rest) = behind.as_chunks::<8>();
    let mut same = 0;
    for (word, other) in words.iter().zip(before.as_chunks::<8>().0) {
        let differ = u64::from_le_bytes(*word) ^ u64::from_le_bytes(*other);
        if differ != 0 {
            return same + differ.trailing_zeros() as usize / 8;
        }
        same += 8;
    }
    let other = before.get(same..).unwrap_or_default();
    same + rest.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// Number of a symbol, and the bits that follow its code: how many, and which.
type Symbol = (usize, u32, u32);

fn length_symbol(length: u16) -> Symbol {
    let length = u32::from(length);
    if length as usize == LONGEST_MATCH {
        return (LITERALS - 1, 0, 0);
    }
    let length = length - SHORTEST_MATCH as u32;
    let bits = length.max(4).ilog2() - 2;
    let symbol = 257 + (bits << 2) + (length >> bits);
    (symbol as usize, bits, length & ((1 << bits) - 1))
}

/// distance: less one.
fn distance_symbol(distance: u16) -> Symbol {
    let distance = u32::from(distance);
    let bits = distance.max(2).ilog2() - 1;
    let symbol = (bits << 1) + (distance >> bits);
    (symbol as usize, bits, distance & ((1 << bits) - 1))
}

/// How often each symbol occurs.
struct Counts {
    literals: [u32; LITERALS],
    distances: [u32; DISTANCES],
}

impl Counts {
    fn of(tokens: &[Token]) -> Self {
        let mut counts = Self {
            literals: [0; LITERALS],
            distances: [0; DISTANCES],
        };
        let add = |counts: &mut [u32], symbol: usize| {
            if let Some(count) = counts.get_mut(symbol) {
                *count += 1;
            }
        };
        add(&mut counts.literals, END);
        // A code of a single distance is not understood by all readers.
        add(&mut counts.distances, 0);
        add(&mut counts.distances, 1);
        for token in tokens {
            match token {
                Token::Literal(byte) => add(&mut counts.literals, usize::from(*byte)),
                Token::Match { length, distance } => {
                    add(&mut counts.literals, length_symbol(*length).0);
                    add(&mut counts.distances, distance_symbol(*distance).0);
                }
            }
        }
        counts
    }
}

/// Codes of a block, and the bits with which the block begins.
#[derive(Debug)]
struct Code {
    literals: Vec<(u32, u32)>,
    distances: Vec<(u32, u32)>,
    start: Bits,
}

impl Code {
    fn of(counts: &Counts) -> Self {
        let literals = code_lengths(&counts.literals, LONGEST_CODE);
        let distances = code_lengths(&counts.distances, LONGEST_CODE);
        Self {
            start: start_of_block(&literals, &distances),
            literals: codes(&literals),
            distances: codes(&distances),
        }
    }

    /// Adds a block; says whether all of its symbols have a code.
    fn write(&self, tokens: &[Token], out: &mut Vec<u8>) -> bool {
        let mut bits = Bits {
            bytes: std::mem::take(out),
            open: self.start.open,
            count: self.start.count,
        };
        bits.bytes.extend(&self.start.bytes);
        let mut whole = true;
        let mut put = |codes: &[(u32, u32)], (symbol, more, value): Symbol| {
            let (code, len) = codes.get(symbol).copied().unwrap_or_default();
            whole &= len > 0;
            bits.put(code | value << len, len + more);
        };
        for token in tokens {
            match token {
                Token::Literal(byte) => put(&self.literals, ((*byte).into(), 0, 0)),
                Token::Match { length, distance } => {
                    put(&self.literals, length_symbol(*length));
                    put(&self.distances, distance_symbol(*distance));
                }
            }
        }
        put(&self.literals, (END, 0, 0));
        *out = bits.finish();
        whole
    }
}

/// The header of a last block with codes of its own.
fn start_of_block(literals: &[usize], distances: &[usize]) -> Bits {
    let used = |lengths: &[usize]| {
        lengths
            .iter()
            .rposition(|len| *len > 0)
            .map_or(1, |at| at + 1)
    };
    let (literals, distances) = (
        literals.get(..used(literals).max(257)).unwrap_or_default(),
        distances.get(..used(distances)).unwrap_or_default(),
    );
    let lengths: Vec<usize> = literals.iter().chain(distances).copied().collect();
    // Runs without a code are counted: (symbol, bits that follow, their value).
    let mut symbols: Vec<Symbol> = Vec::new();
    for run in lengths.chunk_by(|a, b| a == b) {
        let (len, mut left) = (run.first().copied().unwrap_or_default(), run.len());
        while len == 0 && left >= 3 {
            let part = left.min(138);
            symbols.push(match part {
                ..11 => (17, 3, part as u32 - 3),
                _ => (18, 7, part as u32 - 11),
            });
            left -= part;
        }
        symbols.extend(std::iter::repeat_n((len, 0, 0), left));
    }
    let mut counts = [0_u32; 19];
    for (symbol, ..) in &symbols {
        if let Some(count) = counts.get_mut(*symbol) {
            *count += 1;
        }
    }
    let of_lengths = code_lengths(&counts, LONGEST_LENGTH_CODE);
    let ordered = LENGTH_ORDER.map(|symbol| of_lengths.get(symbol).copied().unwrap_or_default());
    let ordered = ordered.get(..used(&ordered).max(4)).unwrap_or_default();
    let mut bits = Bits::default();
    bits.put(0b101, 3);
    bits.put(literals.len() as u32 - 257, 5);
    bits.put(distances.len() as u32 - 1, 5);
    bits.put(ordered.len() as u32 - 4, 4);
    for len in ordered {
        bits.put(*len as u32, 3);
    }
    let codes = codes(&of_lengths);
    for (symbol, more, value) in symbols {
        let (code, len) = codes.get(symbol).copied().unwrap_or_default();
        bits.put(code | value << len, len + more);
    }
    bits
}

/// Lengths of the codes of a Huffman code; 0 for symbols that do not occur.
fn code_lengths(counts: &[u32], longest: usize) -> Vec<usize> {
    let mut counts = counts.to_vec();
    loop {
        let lengths = huffman(&counts);
        if lengths.iter().all(|len| *len <= longest) {
            return lengths;
        }
        for count in &mut counts {
            *count = count.div_ceil(2);
        }
    }
}

fn huffman(counts: &[u32]) -> Vec<usize> {
    let mut lengths = vec![0; counts.len()];
    let occurring = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let mut leaves: Vec<(u32, usize)> = occurring.map(|(symbol, count)| (*count, symbol)).collect();
    leaves.sort_unstable();
    // Nodes: leaves, then each pair of the rarest two nodes that are left. The last one is the root.
    let mut weights: Vec<u32> = leaves.iter().map(|(count, _)| *count).collect();
    let mut parents: Vec<usize> = vec![0; leaves.len()];
    let (mut leaf, mut inner) = (0, leaves.len());
    while weights.len() + 1 < 2 * leaves.len() {
        let parent = weights.len();
        let mut weight = 0;
        for _ in 0..2 {
            let of_leaf = weights.get(leaf).filter(|_| leaf < leaves.len());
            let of_inner = weights.get(inner);
            let rarest = match (of_leaf, of_inner) {
                (Some(a), Some(b)) if a > b => &mut inner,
                (None, _) => &mut inner,
                _ => &mut leaf,
            };
            weight += weights.get(*rarest).copied().unwrap_or_default();
            if let Some(of) = parents.get_mut(*rarest) {
                *of = parent;
            }
            *rarest += 1;
        }
        weights.push(weight);
        parents.push(0);
    }
    let mut depths = vec![0_usize; weights.len()];
    for node in (0..weights.len().saturating_sub(1)).rev() {
        let parent = parents.get(node).copied().unwrap_or_default();
        let depth = depths.get(parent).copied().unwrap_or_default() + 1;
        if let Some(of) = depths.get_mut(node) {
            *of = depth;
        }
    }
    for ((_, symbol), depth) in leaves.iter().zip(depths) {
        if let Some(len) = lengths.get_mut(*symbol) {
            *len = depth.max(1);
        }
    }
    lengths
}

/// The canonical codes of these lengths, the first bit lowest, each with its length.
fn codes(lengths: &[usize]) -> Vec<(u32, u32)> {
    let mut codes = vec![(0, 0); lengths.len()];
    let mut code = 0_u32;
    for len in 1..=LONGEST_CODE {
        code <<= 1;
        for (of, _) in codes.iter_mut().zip(lengths).filter(|(_, of)| **of == len) {
            *of = (code.reverse_bits() >> (32 - len), len as u32);
            code += 1;
        }
    }
    codes
}

/// Bits, the first one lowest in its byte.
#[derive(Debug, Clone, Default)]
struct Bits {
    bytes: Vec<u8>,
    open: u64,
    count: u32,
}

impl Bits {
    /// At most 32 bits.
    fn put(&mut self, value: u32, count: u32) {
        self.open |= u64::from(value) << self.count;
        self.count += count;
        if self.count >= 32 {
            self.bytes.extend((self.open as u32).to_le_bytes());
            self.open >>= 32;
            self.count -= 32;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        let open = self.open.to_le_bytes();
        let used = self.count.div_ceil(8) as usize;
        self.bytes.extend(open.iter().take(used));
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::DeflateDecoder;

    use super::*;

    /// Numbers without an order.
    fn noise(seed: u64) -> impl FnMut(usize) -> usize {
        let mut state = seed | 1;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        }
    }

    fn block(pairs: &[(Vec<u8>, Vec<u8>)]) -> (Vec<u8>, Vec<PairAt>) {
        let (mut block, mut places) = (Vec::new(), Vec::new());
        for (key, value) in pairs {
            block.extend((key.len() as u32).to_be_bytes());
            block.extend((value.len() as u32).to_be_bytes());
            let start = block.len();
            block.extend(key);
            let key_end = block.len();
            block.extend([0x7f; 10]);
            places.push(PairAt {
                key: start,
                key_end,
                value: block.len(),
                value_end: block.len() + value.len(),
            });
            block.extend(value);
            block.push(0);
        }
        (block, places)
    }

    fn inflated(packed: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        DeflateDecoder::new(packed).read_to_end(&mut bytes).unwrap();
        bytes
    }

    /// Keys of one alphabet, of about one length, and a few values.
    fn pairs(
        seed: u64,
        count: usize,
        alphabet: usize,
        value_bytes: usize,
    ) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut next = noise(seed);
        let mut bytes = |len: usize, alphabet: usize| -> Vec<u8> {
            (0..len).map(|_| next(alphabet) as u8).collect()
        };
        let values: Vec<Vec<u8>> = (0..5).map(|_| bytes(value_bytes, 256)).collect();
        let mut keys: Vec<Vec<u8>> = (0..count).map(|at| bytes(8 + at % 3, alphabet)).collect();
        keys.sort();
        let mut next = noise(seed + 1);
        let value = |_: &Vec<u8>| values[next(values.len())].clone();
        let values: Vec<Vec<u8>> = keys.iter().map(value).collect();
        keys.into_iter().zip(values).collect()
    }

    #[test]
    fn deflated_pairs_are_inflated() {
        let mut deflate = PairDeflate::default();
        for (seed, count, alphabet, value_bytes) in [
            (1, 1, 10, 300),
            (2, 300, 10, 70),
            (3, 300, 256, 70),
            (4, 40, 2, 1000),
            (5, 2, 10, 40_000),
            (6, 3000, 16, 64),
            (7, 300, 10, 70),
        ] {
            let (block, places) = block(&pairs(seed, count, alphabet, value_bytes));
            let mut packed = b"before".to_vec();
            if !deflate.deflate(&block, &places, &mut packed) {
                assert!(count < 3, "{seed}");
                assert_eq!(packed, b"before");
                continue;
            }
            let packed = packed.strip_prefix(b"before").unwrap();
            assert_eq!(inflated(packed), block, "{seed}");
        }
    }

    #[test]
    fn every_length_of_a_match_is_inflated() {
        for len in 1..700 {
            let value = pairs(9, 1, 10, len).remove(0).1;
            let same: Vec<_> = (0..30_u8)
                .map(|key| (vec![key; 5], value.clone()))
                .collect();
            let (block, places) = block(&same);
            let mut packed = Vec::new();
            if PairDeflate::default().deflate(&block, &places, &mut packed) {
                assert_eq!(inflated(&packed), block, "{len}");
            } else {
                assert!(len < 20, "{len}");
            }
        }
    }

    #[test]
    fn rare_symbols_have_codes_of_limited_length() {
        // Fibonacci numbers make the longest codes.
        let mut counts = vec![1_u32, 1];
        while counts.len() < 30 {
            counts.push(counts[counts.len() - 1] + counts[counts.len() - 2]);
        }
        for longest in [7, 15] {
            let lengths = code_lengths(&counts, longest);
            assert!(lengths.iter().all(|len| (1..=longest).contains(len)));
            let space: u32 = lengths.iter().map(|len| 1 << (longest - len)).sum();
            assert_eq!(space, 1 << longest);
        }
    }

    #[test]
    fn values_that_differ_are_left_to_a_search() {
        let mut next = noise(3);
        let pairs: Vec<_> = (0..100_u8)
            .map(|key| (vec![key; 8], (0..200).map(|_| next(256) as u8).collect()))
            .collect();
        let (block, places) = block(&pairs);
        assert!(!PairDeflate::default().deflate(&block, &places, &mut Vec::new()));
    }
}
