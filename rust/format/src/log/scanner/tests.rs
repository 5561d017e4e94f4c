use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use super::*;
use crate::log::{HeaderKey, SEAL, avro_content, avro_records, write_block};

fn block(instant: &str, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_block(
        &mut out,
        BlockType::AvroData,
        &[(HeaderKey::InstantTime, instant)],
        content,
    );
    out
}

fn scan(bytes: &[u8], corruption: Corruption) -> Result<Vec<LogBlock>> {
    LogScanner::new(Bytes::copy_from_slice(bytes), corruption).collect()
}

fn kinds(bytes: &[u8]) -> Vec<(BlockType, u64, u64)> {
    let blocks = scan(bytes, Corruption::Check).unwrap();
    blocks
        .iter()
        .map(|block| (block.block_type, block.offset, block.end))
        .collect()
}

#[test]
fn written_blocks_come_back() {
    let mut bytes = block("1", b"one");
    let second = bytes.len() as u64;
    bytes.extend(block("2", &vec![0; 100_000]));
    let third = bytes.len() as u64;
    bytes.extend(block("3", b""));
    for corruption in [Corruption::Check, Corruption::Trust] {
        let found = scan(&bytes, corruption).unwrap();
        let instants: Vec<_> = found
            .iter()
            .map(|block| block.instant_time().unwrap())
            .collect();
        assert_eq!(instants, ["1", "2", "3"]);
        assert_eq!((found[1].offset, found[2].offset), (second, third));
        let content = found[0].content(bytes.as_slice()).unwrap();
        assert_eq!(content.split_at(3).0, b"one");
        assert_eq!(found[1].content_len as usize, 100_000 + SEAL);
        assert!(found[1].content(&bytes[..1000]).is_err());
    }
}

#[test]
fn an_empty_file_and_a_torn_magic_have_no_blocks() {
    assert_eq!(scan(b"", Corruption::Check).unwrap(), []);
    assert_eq!(scan(b"#HUDI", Corruption::Check).unwrap(), []);
    let mut bytes = block("1", b"one");
    bytes.extend(b"#HUD");
    assert_eq!(scan(&bytes, Corruption::Check).unwrap().len(), 1);
}

#[test]
fn bytes_that_start_no_block_are_an_error() {
    for bytes in [&b"PAR1......"[..], &[0; 6]] {
        let error = scan(bytes, Corruption::Check).unwrap_err();
        assert!(
            matches!(error, FormatError::Corrupt { offset: 0, .. }),
            "{error}"
        );
    }
}

/// A write that died, and another after it.
#[test]
fn a_torn_block_is_skipped_up_to_the_next_magic() {
    let whole = block("1", &[7; 500]);
    for cut in 6..whole.len() {
        let torn = &whole[..cut];
        let mut bytes = block("0", b"before");
        let start = bytes.len() as u64;
        bytes.extend(torn);
        let end = bytes.len() as u64;
        let before = (BlockType::AvroData, 0, start);
        let corrupt = (BlockType::Corrupt, start, end);
        assert_eq!(kinds(&bytes), [before, corrupt], "cut at {cut}");
        bytes.extend(block("2", b"after"));
        let after = (BlockType::AvroData, end, bytes.len() as u64);
        assert_eq!(kinds(&bytes), [before, corrupt, after], "cut at {cut}");
    }
}

#[test]
fn trust_takes_the_lengths_as_they_are() {
    let mut bytes = block("1", b"one");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    assert_eq!(kinds(&bytes), [(BlockType::Corrupt, 0, bytes.len() as u64)]);
    assert_eq!(
        scan(&bytes, Corruption::Trust).unwrap()[0].block_type,
        BlockType::AvroData
    );
    bytes.pop();
    assert!(scan(&bytes, Corruption::Trust).is_err());
}

#[test]
fn the_next_magic_is_found_across_search_steps() {
    for shift in 0..8 {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(std::iter::repeat_n(0xff, RECOVERY_STEP - shift));
        let end = bytes.len() as u64;
        bytes.extend(block("1", b"x"));
        assert_eq!(
            kinds(&bytes),
            [
                (BlockType::Corrupt, 0, end),
                (BlockType::AvroData, end, bytes.len() as u64)
            ]
        );
    }
}

/// Bytes, a hole that is never read, and bytes.
struct Sparse(Vec<u8>, u64, Vec<u8>);

impl ReadAt for Sparse {
    fn size(&self) -> u64 {
        self.1 + self.2.len() as u64
    }

    fn read_at(&self, offset: u64, len: usize) -> Result<Bytes> {
        if let Some(behind) = offset.checked_sub(self.1) {
            return self.2.read_at(behind, len);
        }
        let mut bytes = self.0.get(offset as usize..).unwrap_or_default().to_vec();
        assert!(len <= RECOVERY_STEP, "{len} bytes of the hole are read");
        bytes.resize(len, 0);
        Ok(Bytes::from(bytes))
    }

    fn next_data(&self, offset: u64) -> u64 {
        if offset < self.0.len() as u64 {
            offset
        } else {
            offset.max(self.1)
        }
    }
}

#[test]
fn the_search_for_a_magic_leaves_holes_out() {
    let mut torn = block("1", b"some content");
    torn.truncate(torn.len() - 3);
    let hole_end = 1 << 50;
    for behind in [Vec::new(), block("2", b"x")] {
        let found = LogScanner::new(
            Sparse(torn.clone(), hole_end, behind.clone()),
            Corruption::Check,
        );
        let found: Vec<_> = found.map(|block| block.unwrap()).collect();
        assert_eq!(found.len(), 1 + usize::from(!behind.is_empty()));
        assert_eq!(found[0].block_type, BlockType::Corrupt);
        assert_eq!(found[0].end, hole_end);
    }
}

#[test]
fn headers_larger_than_the_window_are_read_whole() {
    let schema = "s".repeat(300_000);
    let mut bytes = Vec::new();
    let header = [
        (HeaderKey::Schema, schema.as_str()),
        (HeaderKey::InstantTime, "1"),
    ];
    write_block(&mut bytes, BlockType::Delete, &header, b"content");
    for corruption in [Corruption::Check, Corruption::Trust] {
        let found = scan(&bytes, corruption).unwrap();
        assert_eq!(found[0].schema(), Some(schema.as_str()));
        let content = found[0].content(bytes.as_slice()).unwrap();
        assert_eq!(content.split_at(7).0, b"content");
    }
}

#[test]
fn format_version_0_has_nothing_but_content() {
    let records = avro_content([&b"r"[..]]);
    let mut content = vec![0, 0, 0, 0];
    content.extend(&records[4..]);
    let mut old = MAGIC.to_vec();
    old.extend((content.len() as u64).to_be_bytes());
    old.extend([0; 4]);
    old.extend(&content);
    let mut bytes = old.clone();
    bytes.extend(&old);
    for corruption in [Corruption::Check, Corruption::Trust] {
        let found = scan(&bytes, corruption).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[1].format_version, found[1].end),
            (0, bytes.len() as u64)
        );
        assert_eq!(found[1].content(bytes.as_slice()).unwrap(), content);
    }
    // The content starts with the deflated schema, which no empty text is.
    assert!(avro_records(&Bytes::from(content), 0).is_err());
}

#[test]
fn versions_and_types_of_the_future_are_refused() {
    for (at, value) in [(17, 2), (21, 7)] {
        let mut bytes = block("1", b"one");
        bytes[at] = value;
        let mut scanner = LogScanner::new(bytes.as_slice(), Corruption::Check);
        let error = scanner.next().unwrap().unwrap_err();
        assert!(matches!(error, FormatError::Unsupported { .. }), "{error}");
        assert!(scanner.next().is_none());
    }
    let mut bytes = block("1", b"one");
    bytes[21] = 2;
    assert!(matches!(
        scan(&bytes, Corruption::Check),
        Err(FormatError::Corrupt { .. })
    ));
}

/// Counts reads and the bytes they ask for.
struct Counted<'a>(&'a [u8], &'a AtomicUsize, &'a AtomicUsize);

impl ReadAt for Counted<'_> {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read_at(&self, offset: u64, len: usize) -> Result<Bytes> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.2.fetch_add(len, Ordering::Relaxed);
        self.0.read_at(offset, len)
    }
}

#[test]
fn small_blocks_share_a_read_and_large_contents_are_not_read() {
    let (reads, total) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let small: Vec<u8> = (0..50).flat_map(|_| block("1", &[0; 100])).collect();
    assert_eq!(
        LogScanner::new(Counted(&small, &reads, &total), Corruption::Check).count(),
        50
    );
    assert_eq!(reads.swap(0, Ordering::Relaxed), 1);
    total.store(0, Ordering::Relaxed);
    let large: Vec<u8> = (0..3).flat_map(|_| block("1", &vec![0; 4 << 20])).collect();
    assert_eq!(
        LogScanner::new(Counted(&large, &reads, &total), Corruption::Check).count(),
        3
    );
    assert!(reads.load(Ordering::Relaxed) <= 6 && total.load(Ordering::Relaxed) < 256 << 10);
}

/// Zeros after a block, in memory only where they are read; whoever wants them changes his mind.
struct Zeros {
    block: Vec<u8>,
    size: u64,
    checks: AtomicUsize,
    read: AtomicUsize,
}

impl ReadAt for Zeros {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, len: usize) -> Result<Bytes> {
        self.read.fetch_add(len, Ordering::Relaxed);
        let mut bytes = vec![0; len];
        for (byte, own) in bytes
            .iter_mut()
            .zip(self.block.iter().skip(offset as usize))
        {
            *byte = *own;
        }
        Ok(bytes.into())
    }

    fn check(&self) -> Result<()> {
        match self.checks.fetch_add(1, Ordering::Relaxed) {
            2 => Err(FormatError::Read("interrupted".into())),
            _ => Ok(()),
        }
    }
}

#[test]
fn the_search_for_a_block_ends_where_the_caller_wants_no_more() {
    let source = Zeros {
        block: block("1", b"one"),
        size: 1 << 40,
        checks: AtomicUsize::new(0),
        read: AtomicUsize::new(0),
    };
    let mut scanner = LogScanner::new(&source, Corruption::Check);
    let error = scanner.next().unwrap().unwrap_err();
    assert!(error.to_string().contains("interrupted"), "{error}");
    assert!(source.read.load(Ordering::Relaxed) < 4 * RECOVERY_CHECK as usize);
    assert!(scanner.next().is_none());
}
