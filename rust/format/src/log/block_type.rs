//! The kinds of log block: number and name in one table.

/// `HoodieLogBlock.HoodieLogBlockType`. The discriminant is the number on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockType {
    /// An order to the reader; the only one is to drop a rolled-back instant.
    Command = 0,
    /// Keys of deleted records.
    Delete = 1,
    /// Bytes that are no block. Made by readers, never written.
    Corrupt = 2,
    /// Records in Avro binary.
    AvroData = 3,
    /// Records in an embedded HFile; the metadata table's form.
    HfileData = 4,
    /// Records in an embedded Parquet file.
    ParquetData = 5,
    /// Change data records, only in `.cdc` log files.
    CdcData = 6,
}

const TABLE: [(BlockType, &str); 7] = [
    (BlockType::Command, "COMMAND_BLOCK"),
    (BlockType::Delete, "DELETE_BLOCK"),
    (BlockType::Corrupt, "CORRUPT_BLOCK"),
    (BlockType::AvroData, "AVRO_DATA_BLOCK"),
    (BlockType::HfileData, "HFILE_DATA_BLOCK"),
    (BlockType::ParquetData, "PARQUET_DATA_BLOCK"),
    (BlockType::CdcData, "CDC_DATA_BLOCK"),
];

impl BlockType {
    /// Every type, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|(block_type, _)| *block_type)
    }

    /// The number on disk.
    pub fn ordinal(self) -> u32 {
        self as u32
    }

    /// The type with this number on disk.
    pub fn from_ordinal(ordinal: u32) -> Option<Self> {
        Self::all().find(|block_type| block_type.ordinal() == ordinal)
    }

    /// The name of the constant in Hudi.
    pub fn name(self) -> &'static str {
        TABLE
            .iter()
            .find(|(block_type, _)| *block_type == self)
            .map_or("", |(_, name)| name)
    }

    /// The type whose constant in Hudi has this name.
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(block_type, _)| *block_type)
    }

    /// Whether the block holds records (not deletes, not a command).
    pub fn is_data(self) -> bool {
        matches!(
            self,
            Self::AvroData | Self::HfileData | Self::ParquetData | Self::CdcData
        )
    }
}

impl std::fmt::Display for BlockType {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_survives_both_round_trips() {
        for (ordinal, block_type) in BlockType::all().enumerate() {
            assert_eq!(block_type.ordinal() as usize, ordinal);
            assert_eq!(
                BlockType::from_ordinal(block_type.ordinal()),
                Some(block_type)
            );
            assert_eq!(BlockType::from_name(block_type.name()), Some(block_type));
        }
        assert_eq!(BlockType::from_ordinal(7), None);
        assert_eq!(BlockType::from_name(""), None);
    }
}
