//! One file slice, merged, as a stream of batches.
//!
//! Log records are collected first, oldest block first, then the base file streams past them. Given
//! out are the base rows that stand and the rows made of both sides, then the log rows that won. A
//! log side beyond the memory limit goes to disk in parts, and the base side after it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use pyhudi_format::log::OrderingValue;

use crate::adapt::adapt;
use crate::base::{BaseReader, Keeping, Kept, Merging, Opening, open_base};
use crate::blocks::{BlockCounts, ChosenBlock, LogSource, choose_blocks};
use crate::columns::Columns;
use crate::error::{Result, SliceError};
use crate::log_map::{LogMap, Winners};
use crate::log_side::{Collected, LogSide, Shape};
use crate::lookup::{Lookup, Wanted};
use crate::names::names_of;
use crate::positions::positions_of;
use crate::records::{Decode, LogRecords};
use crate::request::{ReadStats, SliceRead};
use crate::row_test::SharedMap;
use crate::spill::{SpillOptions, SpilledPart, part_of};

/// Bytes that records take in memory for each byte of their blocks, at a guess.
const EXPANSION: u64 = 3;

/// Where base rows come from.
enum BaseSide {
    File(BaseReader),
    Part(SpilledPart),
}

impl Iterator for BaseSide {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::File(reader) => reader.next(),
            Self::Part(part) => part.next(),
        }
    }
}

/// A part on disk that waits to be merged, and how often it was split.
struct WaitingPart {
    log: SpilledPart,
    base: SpilledPart,
    depth: u32,
}

enum Stage {
    /// Nothing was read yet.
    Start,
    /// No log records: the base file as it is.
    Plain(BaseReader),
    /// The base side streams past the log side.
    Merge(SharedMap, Option<BaseSide>),
    /// Log rows that won.
    Winners(Winners),
    /// The next part that is on disk, if there is one.
    NextPart,
}

/// The batches of one file slice. Reads nothing before the first is asked for.
pub struct SliceReader {
    read: SliceRead,
    out: SchemaRef,
    /// Set when the log blocks are known.
    merging: Option<Arc<Merging>>,
    stage: Stage,
    /// Made and not given out yet.
    ready: VecDeque<RecordBatch>,
    waiting: VecDeque<WaitingPart>,
    stats: Arc<ReadStats>,
    /// Until the base file is opened.
    keeping: Option<Keeping>,
    kept: Option<Kept>,
}

impl SliceReader {
    /// Checks the request.
    ///
    /// # Errors
    /// A column that is not in the table's schema, a part of a slice with something to merge.
    pub fn new(mut read: SliceRead) -> Result<Self> {
        let merges = !read.logs.is_empty()
            || read.incoming.rows.is_some()
            || read.incoming.delete_keys.is_some()
            || read.bootstrap.is_some();
        if read.base_part.is_some() && merges {
            let msg = "only a base file with nothing to merge can be read in parts";
            return Err(SliceError::Schema(msg.to_owned()));
        }
        if !merges {
            // Nothing is compared, so the table need not have them.
            read.merge.ordering_fields.clear();
        }
        // Checks every column that a merge by keys would read.
        let out = Columns::of(&read, false)?.out;
        Ok(Self {
            read,
            out,
            merging: None,
            stage: Stage::Start,
            ready: VecDeque::new(),
            waiting: VecDeque::new(),
            stats: Arc::default(),
            keeping: None,
            kept: None,
        })
    }

    /// The counters, which go on counting.
    pub fn stats(&self) -> Arc<ReadStats> {
        Arc::clone(&self.stats)
    }

    /// Schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.out)
    }

    /// The next batch, none at the end.
    ///
    /// # Errors
    /// Damaged files, failing storage, a feature that is not supported.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            while let Some(batch) = self.ready.pop_front() {
                if batch.num_rows() > 0 {
                    return Ok(Some(batch));
                }
            }
            let stage = std::mem::replace(&mut self.stage, Stage::NextPart);
            self.stage = match stage {
                Stage::Start => self.start()?,
                Stage::Plain(base) => self.plain(base)?,
                Stage::Merge(map, Some(base)) => self.merge(map, base)?,
                Stage::Merge(map, None) => self.winners(map)?,
                Stage::Winners(winners) => self.winner(winners)?,
                Stage::NextPart => match self.waiting.pop_front() {
                    Some(part) => self.open_part(part)?,
                    None => return Ok(None),
                },
            };
        }
    }

    /// Row groups of the base file that a rewrite can take over as they stand, whose rows are then
    /// not given out. To be asked before the first batch.
    pub(crate) fn keep(&mut self, keeping: Keeping) -> Result<Option<Kept>> {
        self.keeping = Some(keeping);
        self.stage = self.start()?;
        let kept = self.kept.take();
        let rows = kept.as_ref().map_or(0, Kept::rows);
        ReadStats::add(&self.stats.base_rows, rows as usize);
        Ok(kept)
    }

    fn start(&mut self) -> Result<Stage> {
        if let Some(lookup) = self.read.lookup.clone() {
            return self.start_lookup(&lookup);
        }
        let sources = LogSource::open_all(&self.read.store, &self.read.logs)?;
        let (blocks, counts) = choose_blocks(&sources, &self.read.filter)?;
        self.count_blocks(counts);
        if let Some(positions) = self.usable_positions(&blocks)
            && let Some(stage) = self.collect(&blocks, Some(&positions))?
        {
            ReadStats::add(&self.stats.by_position, 1);
            return Ok(stage);
        }
        self.collect_by_key(&blocks)
    }

    /// Keys alone decide: the positions of records that are not read would be unknown.
    fn start_lookup(&mut self, lookup: &Lookup) -> Result<Stage> {
        let logs = lookup.logs(&self.read.store, &self.read.logs, &self.read.filter)?;
        self.count_blocks(logs.counts);
        let sources = logs.sources(&self.read.store, &self.read.logs);
        let blocks: Vec<ChosenBlock<'_>> = logs
            .blocks()
            .filter_map(|(number, block)| {
                let source = sources.get(number)?;
                Some(ChosenBlock { source, block })
            })
            .collect();
        self.collect_by_key(&blocks)
    }

    fn collect_by_key(&mut self, blocks: &[ChosenBlock<'_>]) -> Result<Stage> {
        let stage = self.collect(blocks, None)?;
        stage.ok_or_else(|| SliceError::Schema("keys do not fit their records".to_owned()))
    }

    fn count_blocks(&self, counts: BlockCounts) {
        ReadStats::add(&self.stats.log_blocks, counts.read as usize);
        ReadStats::add(&self.stats.corrupt_blocks, counts.corrupt as usize);
        ReadStats::add(&self.stats.rollback_blocks, counts.rollback as usize);
    }

    /// Whether all records are those of the slice's files.
    fn has_only_files(&self) -> bool {
        let incoming = &self.read.incoming;
        incoming.rows.is_none() && incoming.delete_keys.is_none()
    }

    fn usable_positions(&self, blocks: &[ChosenBlock<'_>]) -> Option<Vec<Vec<u64>>> {
        let instant = self.read.base_instant.as_ref()?;
        // A message about values that a rule cannot combine names the key.
        let needs_keys = !self.read.merge.column_rules.is_empty();
        let usable =
            self.has_only_files() && self.read.base.is_some() && !blocks.is_empty() && !needs_keys;
        usable.then(|| positions_of(blocks, instant)).flatten()
    }

    /// Collects the log side. None when a block has another number of records than of positions.
    fn collect(
        &mut self,
        blocks: &[ChosenBlock<'_>],
        positions: Option<&[Vec<u64>]>,
    ) -> Result<Option<Stage>> {
        let columns = Columns::of(&self.read, positions.is_some())?;
        let partial = blocks.iter().any(|chosen| chosen.block.is_partial());
        let kind = self
            .read
            .merge
            .kind(&columns.log, &columns.merged, partial)?;
        let shape = Shape {
            columns,
            by_position: positions.is_some(),
            spec: self.read.merge.clone(),
        };
        let merging = Arc::new(Merging { shape, kind });
        let Merging { shape, kind } = merging.as_ref();
        let spill = self.read.spill.clone();
        let parts = parts_for(blocks, spill.as_ref());
        let mut side = LogSide::new(shape, kind, spill.as_ref(), parts, 0, self.read.batch_rows)?;
        if !self.read_blocks(blocks, positions, shape, &mut side)? {
            return Ok(None);
        }
        self.take_incoming(&mut side)?;
        let collected = side.finish();
        self.merging = Some(Arc::clone(&merging));
        self.after_log_side(collected, None, 0).map(Some)
    }

    fn read_blocks(
        &self,
        blocks: &[ChosenBlock<'_>],
        positions: Option<&[Vec<u64>]>,
        shape: &Shape,
        side: &mut LogSide<'_>,
    ) -> Result<bool> {
        let columns = names_of(&shape.columns.log);
        let decode = Decode {
            columns: &columns,
            batch_rows: self.read.batch_rows,
            only_rows: false,
            evolution: self.read.evolution.as_ref(),
            parts: None,
        };
        for (number, chosen) in blocks.iter().enumerate() {
            let wanted = match &self.read.lookup {
                Some(lookup) => lookup.wanted(chosen.source, &chosen.block)?,
                None => Wanted::All,
            };
            let decode = match &wanted {
                Wanted::None => continue,
                Wanted::All => Decode { ..decode },
                Wanted::Parts(parts) => Decode {
                    parts: Some(parts),
                    ..decode
                },
            };
            let partial = chosen.block.is_partial();
            let known = positions.map(|all| all.get(number).map_or(&[][..], Vec::as_slice));
            let mut seen = 0;
            let mut fits = true;
            let decoded = decode.block(chosen.source, &chosen.block, &mut |records| {
                let count = records.len();
                let own = known.map(|known| known.get(seen..seen + count).unwrap_or_default());
                seen += count;
                fits &= own.is_none_or(|own| own.len() == count);
                if !fits {
                    return Ok(());
                }
                ReadStats::add(&self.stats.log_records, count);
                match records {
                    LogRecords::Rows(batch) => {
                        let damaged = |error: SliceError| {
                            error.in_rows_of(&chosen.source.path, Some(chosen.block.content_offset))
                        };
                        side.add_rows(&batch, own, partial).map_err(damaged)
                    }
                    LogRecords::Deletes { keys, ordering } => {
                        side.add_deletes(keys, own, &ordering)
                    }
                }
            });
            decoded.map_err(|error| error.of_rows(Some(&chosen.source.path)))?;
            if !fits || known.is_some_and(|known| known.len() != seen) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn take_incoming(&mut self, side: &mut LogSide<'_>) -> Result<()> {
        if let Some(rows) = self.read.incoming.rows.take() {
            for batch in rows {
                side.add_rows(&batch?, None, false)?;
            }
        }
        if let Some(keys) = self.read.incoming.delete_keys.take() {
            let ordering = vec![OrderingValue::Int(0); keys.len()];
            side.add_deletes(keys, None, &ordering)?;
        }
        Ok(())
    }

    /// Goes on with the base side: `part` of it that is on disk, or else the base file.
    fn after_log_side(
        &mut self,
        collected: Collected,
        part: Option<SpilledPart>,
        depth: u32,
    ) -> Result<Stage> {
        let merging = self.merging()?;
        match collected {
            Collected::InMemory(map) if map.is_empty() && part.is_none() => {
                let base = self.open_base(Opening::Plain)?;
                Ok(base.map_or(Stage::NextPart, Stage::Plain))
            }
            Collected::InMemory(map) => {
                let map = Arc::new(Mutex::new(*map));
                let base = self.base_side(part, Opening::Merged(&merging, &map))?;
                Ok(Stage::Merge(map, base))
            }
            Collected::OnDisk(mut spill) => {
                let base = self.base_side(part, Opening::Spilled(&merging))?;
                for batch in base.into_iter().flatten() {
                    let (keys, batch) = self.base_rows(&batch?, depth)?;
                    spill.add_base(&keys, &batch)?;
                }
                let parts = spill.finish()?;
                ReadStats::add(&self.stats.spilled_parts, parts.len());
                for (log, base) in parts.into_iter().rev() {
                    self.waiting.push_front(WaitingPart {
                        log,
                        base,
                        depth: depth + 1,
                    });
                }
                Ok(Stage::NextPart)
            }
        }
    }

    fn open_part(&mut self, part: WaitingPart) -> Result<Stage> {
        let merging = self.merging()?;
        let Merging { shape, kind } = merging.as_ref();
        let spill = self.read.spill.clone();
        let rows = self.read.batch_rows;
        let mut side = LogSide::new(shape, kind, spill.as_ref(), 8, part.depth, rows)?;
        for batch in part.log {
            let part = part_of(&batch?, side.encoder())?;
            side.add(part)?;
        }
        let collected = side.finish();
        self.after_log_side(collected, Some(part.base), part.depth)
    }

    fn merging(&self) -> Result<Arc<Merging>> {
        let merging = self.merging.as_ref().map(Arc::clone);
        merging.ok_or_else(|| SliceError::Schema("the log side was not read".to_owned()))
    }

    /// The part that is on disk, or else the base file.
    fn base_side(
        &mut self,
        part: Option<SpilledPart>,
        opening: Opening<'_>,
    ) -> Result<Option<BaseSide>> {
        if let Some(part) = part {
            return Ok(Some(BaseSide::Part(part)));
        }
        Ok(self.open_base(opening)?.map(BaseSide::File))
    }

    fn open_base(&mut self, opening: Opening<'_>) -> Result<Option<BaseReader>> {
        let merging = opening.merging();
        let columns = merging.map_or(&self.out, |merging| &merging.shape.columns.base);
        let (kept, groups) = match self.keeping.take() {
            Some(keeping) => Kept::find(&self.read, opening, &keeping)?,
            None => (None, None),
        };
        let base = open_base(&self.read, &names_of(columns), opening, groups)?;
        self.kept = kept;
        let pruned = base.as_ref().map_or(0, BaseReader::pruned_row_groups);
        ReadStats::add(&self.stats.pruned_row_groups, pruned as usize);
        Ok(base)
    }

    fn plain(&mut self, mut base: BaseReader) -> Result<Stage> {
        let Some(batch) = base.next().transpose()? else {
            return Ok(Stage::NextPart);
        };
        ReadStats::add(&self.stats.base_rows, batch.num_rows());
        let batch = adapt(&batch, &self.out).map_err(|error| self.of_base(error))?;
        self.ready.push_back(batch);
        Ok(Stage::Plain(base))
    }

    fn of_base(&self, error: SliceError) -> SliceError {
        error.of_rows(self.read.base.as_deref())
    }

    /// Keys and adapted columns of a batch of base rows, counted when it comes from the file.
    fn base_rows(
        &self,
        batch: &RecordBatch,
        depth: u32,
    ) -> Result<(pyhudi_merge::Keys, RecordBatch)> {
        let merging = self.merging()?;
        let shape = &merging.shape;
        if depth == 0 {
            ReadStats::add(&self.stats.base_rows, batch.num_rows());
        }
        let batch = adapt(batch, &shape.base_schema()).map_err(|error| self.of_base(error))?;
        let keys = shape
            .base_keys(&batch)
            .map_err(|error| match &self.read.base {
                Some(path) => error.in_rows_of(path, None),
                None => error,
            })?;
        Ok((keys, batch))
    }

    fn merge(&mut self, map: SharedMap, mut base: BaseSide) -> Result<Stage> {
        let Some(batch) = base.next().transpose()? else {
            return Ok(Stage::Merge(map, None));
        };
        let depth = u32::from(matches!(base, BaseSide::Part(_)));
        let (keys, batch) = self.base_rows(&batch, depth)?;
        let merging = self.merging()?;
        let shape = &merging.shape;
        let ordering = shape.ordering(&batch)?;
        let rows = shape.merged(&batch)?;
        let given = map
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .merge_base(keys, &ordering, &rows)?;
        for batch in given {
            self.ready.push_back(self.fitted(&batch)?);
        }
        Ok(Stage::Merge(map, Some(base)))
    }

    fn winners(&mut self, map: SharedMap) -> Result<Stage> {
        let map = Arc::into_inner(map)
            .ok_or_else(|| SliceError::Schema("the base file is still being read".to_owned()))?;
        let map: LogMap = map.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (winners, counts) = map.winners(self.read.batch_rows)?;
        self.stats.add_counts(counts);
        Ok(Stage::Winners(winners))
    }

    fn winner(&mut self, mut winners: Winners) -> Result<Stage> {
        let Some(batch) = winners.next_batch()? else {
            return Ok(Stage::NextPart);
        };
        self.ready.push_back(self.fitted(&batch)?);
        Ok(Stage::Winners(winners))
    }

    /// The leading columns, in the output's schema unless they hold nulls that it does not allow.
    fn fitted(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let wanted = self.out.fields();
        let columns: Vec<_> = batch.columns().iter().take(wanted.len()).cloned().collect();
        let broken = |(column, field): (&ArrayRef, &FieldRef)| {
            !field.is_nullable() && column.null_count() > 0
        };
        let schema = if columns.iter().zip(wanted).any(broken) {
            let schema = batch.schema();
            let fields = schema.fields().iter().take(columns.len());
            Arc::new(Schema::new(fields.cloned().collect::<Vec<_>>()))
        } else {
            Arc::clone(&self.out)
        };
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(
            schema, columns, &options,
        )?)
    }
}

/// Most parts of a split. Each is two open files, and other slices are read at the same time.
const MOST_PARTS: u64 = 32;

/// Into how many parts to split a log side, so that each fits in memory.
fn parts_for(blocks: &[ChosenBlock<'_>], spill: Option<&SpillOptions>) -> usize {
    let bytes: u64 = blocks.iter().map(|chosen| chosen.block.content_len).sum();
    let room = spill.map_or(u64::MAX, |spill| (spill.memory_limit as u64 / 4).max(1));
    (bytes.saturating_mul(EXPANSION) / room + 1).clamp(4, MOST_PARTS) as usize
}

impl Iterator for SliceReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}
