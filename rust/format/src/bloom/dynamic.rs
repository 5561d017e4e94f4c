//! A filter of several rows, which grows up to a limit.

use super::row::{Row, header, put_header, vector_len};
use crate::Result;
use crate::cursor::Cursor;

/// Header of a simple filter.
const HEADER: usize = 13;

/// Rows of one shape; the last one takes the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dynamic {
    pub(super) shape: (u32, u32),
    pub(super) keys_per_row: u32,
    pub(super) keys_in_last: u32,
    pub(super) rows: Vec<Row>,
    /// No new rows from here on. Not stored: a filter that was read never grows, as in Java.
    pub(super) max_keys: u64,
    /// The row that takes the next key once there are no new ones; [`None`] before.
    pub(super) turn: Option<usize>,
}

impl Dynamic {
    pub(super) fn decode(cursor: &mut Cursor<'_>, shape: (u32, u32)) -> Result<Self> {
        let keys_per_row = cursor.u32()?;
        let keys_in_last = cursor.u32()?;
        let count = cursor.count(HEADER.saturating_add(vector_len(shape.1)))?;
        if count == 0 {
            return cursor.corrupt("bloom filter without rows");
        }
        let mut rows = Vec::with_capacity(count);
        for _ in 0..count {
            let at = cursor.clone();
            let (hashes, bits) = header(cursor)?;
            if (hashes, bits) != shape {
                return at.corrupt("rows of a bloom filter differ");
            }
            rows.push(Row {
                hashes,
                bits,
                vector: cursor.take(vector_len(bits))?.to_vec(),
            });
        }
        Ok(Self {
            shape,
            keys_per_row,
            keys_in_last,
            rows,
            max_keys: 0,
            turn: None,
        })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_header(out, self.shape.0, self.shape.1);
        for number in [self.keys_per_row, self.keys_in_last, self.rows.len() as u32] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        for row in &self.rows {
            row.encode(out);
        }
    }

    /// The row that a key goes to, which makes it count (`InternalDynamicBloomFilter.add`).
    pub(super) fn next_row(&mut self) -> Option<&mut Row> {
        let full = self.keys_in_last >= self.keys_per_row;
        let capacity = self.rows.len() as u64 * u64::from(self.keys_per_row);
        if self.turn.is_none() && full && capacity < self.max_keys {
            self.rows.push(Row::new(self.shape.0, self.shape.1));
            self.keys_in_last = 0;
        }
        let rows = self.rows.len();
        let row = match self.turn {
            Some(turn) => {
                self.turn = Some(turn.wrapping_add(1));
                turn % rows
            }
            // The first key over the limit goes to the first row, and so does the next one.
            None if full && capacity >= self.max_keys => {
                self.turn = Some(0);
                0
            }
            None => rows - 1,
        };
        self.keys_in_last = self.keys_in_last.saturating_add(1);
        self.rows.get_mut(row)
    }
}
