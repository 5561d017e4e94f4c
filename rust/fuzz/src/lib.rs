//! What the targets share: an allocator with a limit that follows the input's size.

use std::alloc::System;

use cap::Cap;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Memory that needs no input: schemas, tables of code, the fuzzer's own notes of one run.
const ROOM: usize = 4 << 20;

/// Decodes with no more than `times` the input's size to spare; more is an abort, and so a finding.
pub fn within(times: usize, data: &[u8], decode: impl FnOnce(&[u8])) {
    let most = ALLOCATOR.allocated() + ROOM + times * data.len();
    ALLOCATOR.set_limit(most).expect("more than is allocated");
    decode(data);
    ALLOCATOR.set_limit(usize::MAX).expect("no limit");
}
