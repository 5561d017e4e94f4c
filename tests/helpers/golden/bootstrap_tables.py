"""Bootstrapped tables: skeletons over plain Parquet files, whole files, both; with writes after it.

Hudi keeps the absolute path of the source. The source is packed beside the table, as
`<name>.source`; who unpacks it elsewhere sets `hoodie.bootstrap.base.path`.
"""
from golden import table
from people import COW, MOR, VERSION

SELECTORS = "org.apache.hudi.client.bootstrap.selector."
METADATA_ONLY = {"hoodie.bootstrap.mode.selector": SELECTORS + "MetadataOnlyBootstrapModeSelector"}
MIXED = {"hoodie.bootstrap.mode.selector": SELECTORS + "BootstrapRegexModeSelector",
         "hoodie.bootstrap.mode.selector.regex": ".*osaka.*", "hoodie.bootstrap.mode.selector.regex.mode": "METADATA_ONLY"}
# 1.x cannot bootstrap with column statistics
PLAIN = {"hoodie.metadata.index.column.stats.enable": "false", "hoodie.metadata.index.partition.stats.enable": "false"}
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator"}
FLAT = {"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator"}
SCHEMA = "id string, name string, n int, ts long, city string"
CITY = "CASE {i} % 3 WHEN 0 THEN 'osaka' WHEN 1 THEN 'quito' ELSE 'lisbon' END AS city"
SELECT = "concat('k', lpad({i}, 3, '0')) AS id, concat('n', {i}) AS name, CAST({i} AS int) AS n, 100L AS ts, " + CITY


def row(i, **new):
    return {"id": "k%03d" % i, "name": "n%d" % i, "n": i, "ts": 100, "city": ["osaka", "quito", "lisbon"][i % 3], **new}


def changes(t):
    """updates, a late one, new keys in old and new partitions, deletes"""
    t.write([row(0, name="upd", ts=200), row(1, name="upd", ts=200), row(3, name="late", ts=50),
             row(30, name="new", ts=200), row(31, name="new", ts=200, city="porto")], "upsert")
    t.write([row(6), row(4)], "delete")


def partitioned(kind, mode, after=None):
    def f(t):
        t.configure(kind, partition="city", schema=SCHEMA)
        t.set(PLAIN)
        t.make_source(SELECT, 12, "city")
        t.bootstrap({**HIVE, **mode})
        changes(t)
        if after:
            after(t)
    return f


def compact(t):
    t.write([row(0, name="before", ts=300)], "upsert")
    t.call("run_compaction(op => 'schedule')")
    t.call("run_compaction(op => 'run')")
    t.write([row(0, name="after", ts=400), row(9, name="after", ts=400)], "upsert")


def row_groups(t):
    """an unpartitioned source of several small row groups, INT96 timestamps, nested columns"""
    t.configure(COW, partition="", schema="id string, name string, at timestamp, tags array<string>, st struct<a:int,at:timestamp>, ts long")
    t.set({**PLAIN, "hoodie.upsert.shuffle.parallelism": "1"})
    when = "CASE {i} WHEN 1 THEN timestamp'1900-01-01 00:00:00.000001Z' WHEN 2 THEN timestamp'9999-12-31 23:59:59.999999Z' WHEN 3 THEN NULL ELSE timestamp_micros(1700000000123456 + {i} * 1000003) END"
    t.make_source("concat('k', lpad({i}, 3, '0')) AS id, concat('n', {i}) AS name, " + when + " AS at, array(concat('t', {i}), 'x') AS tags, "
                  "named_struct('a', CAST({i} AS int), 'at', " + when + ") AS st, 100L AS ts", 120, settings="'parquet.block.size' '2048'")
    t.bootstrap({**FLAT, **METADATA_ONLY})


def typed(t):
    """two partition levels, int and date; the table's own style is not the hive style"""
    t.configure(MOR, partition="n,day", schema="id string, name string, ts long, n int, day date")
    t.set(PLAIN)
    t.make_source("concat('k', lpad({i}, 3, '0')) AS id, concat('n', {i}) AS name, 100L AS ts, CAST({i} % 2 AS int) AS n, "
                  "date_add(date'2024-02-28', CAST({i} % 3 AS int)) AS day", 12, "n, day")
    t.bootstrap({**METADATA_ONLY, "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
                 "hoodie.datasource.write.hive_style_partitioning": "true"})
    t.write([{"id": "k000", "name": "upd", "ts": 200, "n": 0, "day": "2024-02-28"}], "upsert")


def not_hive(t):
    """the table is not in the hive style, its source is"""
    t.configure(MOR, partition="city", schema=SCHEMA)
    t.set(PLAIN)
    t.make_source(SELECT, 9, "city")
    t.bootstrap({**HIVE, **METADATA_ONLY, "hoodie.datasource.write.hive_style_partitioning": "false"})


# these keep their metadata table; the others go without, to keep the zips small
WITH_METADATA = ("v8_mor_bootstrap_metadata", "v9_mor_bootstrap_compacted")


def small(name, f):
    def g(t):
        t.max_reads, t.max_spans, t.rows_of_all = 2, 2, 60
        if name not in WITH_METADATA:
            t.set({"hoodie.metadata.enable": "false"})
            t.read_options = {"hoodie.metadata.enable": "false"}
        f(t)
    return g


TABLES = [
    ("cow_bootstrap_metadata", partitioned(COW, METADATA_ONLY), "bootstrapped METADATA_ONLY, COW", "v6 v9"),
    ("mor_bootstrap_metadata", partitioned(MOR, METADATA_ONLY), "bootstrapped METADATA_ONLY, MOR: log files on skeletons", "v8"),
    ("mor_bootstrap_compacted", partitioned(MOR, METADATA_ONLY, compact), "bootstrapped METADATA_ONLY, MOR: a compaction made some files whole", "v6 v9"),
    ("mor_bootstrap_mixed", partitioned(MOR, MIXED), "bootstrapped, METADATA_ONLY and FULL_RECORD by partition", "v9"),
    ("cow_bootstrap_row_groups", row_groups, "bootstrapped, no partitions: row groups, INT96, nested columns", "v9"),  # 0.15.0 fails
    ("mor_bootstrap_typed", typed, "bootstrapped, int and date partition levels", "v9"),
    ("mor_bootstrap_not_hive", not_hive, "bootstrapped from hive-style folders, the table not hive style", "v9"),
]
for name, f, about, versions in TABLES:
    for v in versions.split():
        full = "%s_%s" % (v, name)
        # Spark writes timestamps as INT96, which bootstrapping refuses without this
        conf = {"spark.hadoop.parquet.avro.readInt96AsFixed": "true"} if f is row_groups else None
        table(full, VERSION[v], about, [name.split("_")[0], "bootstrap", "merge"], conf)(small(full, f))
