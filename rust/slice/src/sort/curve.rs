//! Space-filling curves: numbers of several dimensions to one key whose bytes are in curve order.
//!
//! Z-order takes the bits in turn. The Hilbert curve is J. Skilling's transform ("Programming the
//! Hilbert curve", 2004), as Hudi's `HilbertCurveUtils` has it.

/// Appends the bits of each number in turn, from the highest of `bits` on, the first number's first.
pub(super) fn z_order(point: &[u64], bits: u32, key: &mut Vec<u8>) {
    let (mut byte, mut filled) = (0_u8, 0);
    for bit in (0..bits).rev() {
        for number in point {
            byte = byte << 1 | (number >> bit & 1) as u8;
            filled += 1;
            if filled == 8 {
                key.push(byte);
                (byte, filled) = (0, 0);
            }
        }
    }
    if filled > 0 {
        key.push(byte << (8 - filled));
    }
}

/// Appends where a point is on the Hilbert curve; what it takes the point for is lost.
pub(super) fn hilbert(point: &mut [u64], bits: u32, key: &mut Vec<u8>) {
    transpose(point, bits);
    z_order(point, bits, key);
}

/// From coordinates to the index, whose bits are then those of the numbers in turn.
fn transpose(point: &mut [u64], bits: u32) {
    let Some((first, rest)) = point.split_first_mut() else {
        return;
    };
    for bit in (1..bits).rev() {
        let (high, low) = (1_u64 << bit, (1_u64 << bit) - 1);
        if *first & high != 0 {
            *first ^= low;
        }
        for number in rest.iter_mut() {
            if *number & high != 0 {
                *first ^= low;
            } else {
                let swapped = (*first ^ *number) & low;
                *first ^= swapped;
                *number ^= swapped;
            }
        }
    }
    let mut before = *first;
    for number in rest.iter_mut() {
        *number ^= before;
        before = *number;
    }
    let mut flipped = 0;
    for bit in 1..bits {
        if before & 1 << bit != 0 {
            flipped ^= (1_u64 << bit) - 1;
        }
    }
    for number in point {
        *number ^= flipped;
    }
}

#[cfg(test)]
mod tests {
    use super::{hilbert, z_order};

    fn index(key: &[u8], bits: usize) -> u128 {
        let whole = key
            .iter()
            .fold(0, |index, byte| index << 8 | u128::from(*byte));
        whole >> (key.len() * 8 - bits)
    }

    fn on_z(point: &[u64], bits: u32) -> u128 {
        let mut key = Vec::new();
        z_order(point, bits, &mut key);
        index(&key, point.len() * bits as usize)
    }

    fn on_hilbert(point: &[u64], bits: u32) -> u128 {
        let mut key = Vec::new();
        hilbert(&mut point.to_vec(), bits, &mut key);
        index(&key, point.len() * bits as usize)
    }

    #[test]
    fn z_order_takes_bits_in_turn() {
        assert_eq!(on_z(&[0b11, 0b00], 2), 0b1010);
        assert_eq!(on_z(&[0b01, 0b10], 2), 0b0110);
        assert_eq!(on_z(&[0b10, 0b01, 0b11], 2), 0b101_011);
        let mut key = Vec::new();
        let sign = 1 << 63;
        z_order(&[5 ^ sign, 3 ^ sign], 64, &mut key);
        // Hudi 1.2.0's key of (5L, 3L).
        let low = 0x27;
        assert_eq!(key.len(), 16);
        assert_eq!((key.first(), key.last()), (Some(&0xc0), Some(&low)));
    }

    #[test]
    fn z_order_rises_with_each_dimension() {
        for fixed in 0..16 {
            for value in 1..16 {
                assert!(on_z(&[value, fixed], 4) > on_z(&[value - 1, fixed], 4));
                assert!(on_z(&[fixed, value], 4) > on_z(&[fixed, value - 1], 4));
            }
        }
    }

    /// What Hudi 1.2.0 gives, with 63 bits a dimension.
    #[test]
    fn the_hilbert_curve_is_that_of_hudi() {
        let known: [(&[u64], u128); 7] = [
            (&[1, 0], 3),
            (&[0, 1], 1),
            (&[1, 1], 2),
            (&[5, 3], 52),
            (
                &[(1 << 63) - 1, 0],
                85_070_591_730_234_615_865_843_651_857_942_052_863,
            ),
            (&[0, 0, 0], 0),
            (&[0, 0], 0),
        ];
        for (point, wanted) in known {
            assert_eq!(on_hilbert(point, 63), wanted, "{point:?}");
        }
        for (point, wanted) in [([1, 2, 3], 48), ([5, 3, 1], 489)] {
            assert_eq!(on_hilbert(&point, 42), wanted, "{point:?}");
        }
    }

    #[test]
    fn neighbours_on_the_hilbert_curve_are_neighbours() {
        for (dimensions, bits) in [(2_u32, 4_u32), (3, 3), (4, 2)] {
            let cells = 1_usize << (dimensions * bits);
            let mut curve = vec![Vec::new(); cells];
            for cell in 0..cells as u64 {
                let mask = (1 << bits) - 1;
                let point: Vec<u64> = (0..dimensions)
                    .map(|dimension| cell >> (dimension * bits) & mask)
                    .collect();
                let place = on_hilbert(&point, bits) as usize;
                curve[place] = point;
            }
            for pair in curve.windows(2) {
                let steps: u64 = pair[0]
                    .iter()
                    .zip(&pair[1])
                    .map(|(one, other)| one.abs_diff(*other))
                    .sum();
                assert_eq!(steps, 1, "{pair:?}");
            }
        }
    }
}
