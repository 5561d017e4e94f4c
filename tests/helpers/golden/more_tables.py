"""Table services in odd orders, odd partition paths: what the other families leave out."""
from golden import table
from people import COW, MOR, PEOPLE, VERSION, change, people


def odd_paths(t):
    t.configure(MOR, partition="city", schema=PEOPLE)
    rows = people(12, cities=["a.b", ".hidden", "São Paulo", "東京", "v1.log.2", "x_y-z~"])
    t.write(rows, "insert")
    t.write(change(rows, [0, 1, 2, 3, 4, 5], name="upd", ts=200), "upsert")
    t.write(change(rows, [6, 9]), "delete")


def rollbacks_under_compaction(t):
    """rolled-back delta commits before and after a compaction was planned that never ran"""
    t.set({"hoodie.metadata.compact.max.delta.commits": "50"})  # 1.2.0 cannot roll back past one
    t.configure(MOR, partition="city", schema=PEOPLE)
    rows = people(9)
    t.write(rows, "insert")
    t.write(change(rows, [0, 1], name="upd-1", ts=200), "upsert")
    t.write(change(rows, [0, 2], name="bad-1", ts=300), "upsert")
    t.call("rollback_to_instant(instant_time => '%s')" % t.last()["requested"])
    t.write(change(rows, [1, 2], name="upd-2", ts=400), "upsert")
    t.call("run_compaction(op => 'schedule')")
    t.write(change(rows, [0, 3], name="upd-3", ts=500), "upsert")
    t.write(change(rows, [0, 4], name="bad-2", ts=600), "upsert")
    t.call("rollback_to_instant(instant_time => '%s')" % t.last()["requested"])
    t.fail_write(change(rows, [5], name="bad-3", ts=700), "upsert")
    t.write(change(rows, [4], name="upd-4", ts=800), "upsert")
    t.write(change(rows, [8]), "delete")


def restore_over_compaction(t):
    t.configure(MOR, partition="city", schema=PEOPLE)
    rows = people(9)
    t.write(rows, "insert")
    t.write(change(rows, [0, 1], name="upd-1", ts=200), "upsert")
    at = t.last()["requested"]
    t.call("create_savepoint(commit_time => '%s', user => 'golden', comments => 'keep')" % at)
    t.write(change(rows, [1, 2], name="gone", ts=300), "upsert")
    t.call("run_compaction(op => 'schedule')")
    t.call("run_compaction(op => 'run')")
    t.write(change(rows, [0], name="gone", ts=400), "upsert")
    t.call("rollback_to_savepoint(instant_time => '%s')" % at)
    t.write(change(rows, [2], name="after", ts=500), "upsert")


def dropped_and_back(kind):
    def f(t):
        t.configure(kind, partition="city", schema=PEOPLE)
        rows = people(9)
        t.write(rows, "insert")
        t.write(change(rows, [0, 1], name="upd-1", ts=200), "upsert")
        t.write(people(1), "delete_partition", {"hoodie.datasource.write.partitions.to.delete": "osaka"})
        t.write(people(3, seed=5, start=50, ts=300, cities=["osaka"]), "insert")
        t.write(change(people(3, seed=5, start=50, ts=300, cities=["osaka"]), [50], name="upd-2", ts=400), "upsert")
    return f


def overwritten_and_cleaned(t):
    t.configure(MOR, partition="city", schema=PEOPLE)
    t.set({"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "1"})
    rows = people(9)
    t.write(rows, "insert")
    t.write(change(rows, [0, 1, 2], name="upd-1", ts=200), "upsert")
    t.write([dict(r, name="ow") for r in people(2, seed=5, start=50, cities=["osaka"])], "insert_overwrite")
    t.call("run_compaction(op => 'schedule')")
    t.call("run_compaction(op => 'run')")
    t.write(change(rows, [0], name="upd-2", ts=300), "upsert")
    t.call("run_clean()", may_fail=True)
    t.write(change(rows, [2], name="upd-3", ts=400), "upsert")


def log_compaction_then_compaction(t):
    t.configure(MOR, partition="city", schema=PEOPLE)
    t.set({"hoodie.log.compaction.enable": "true", "hoodie.log.compaction.inline": "true", "hoodie.log.compaction.blocks.threshold": "3"})
    rows = people(6)
    t.write(rows, "insert")
    for i in range(4):
        t.write(change(rows, [0, 1 + i], name="upd-%d" % i, ts=200 + i), "upsert")
    t.call("run_compaction(op => 'schedule')")
    t.call("run_compaction(op => 'run')")
    t.write(change(rows, [0, 5], name="after", ts=300), "upsert")


def pending_clusterings(t):
    """one clustering died inflight, another was only planned, a write went on beside them"""
    t.configure(MOR, partition="city", schema=PEOPLE)
    t.write(people(6), "bulk_insert")
    t.write(people(6, seed=2, start=9), "bulk_insert")
    t.call("run_clustering(op => 'scheduleandexecute', order => 'age')")
    t.uncommit()
    t.write(people(3, seed=3, start=30, cities=["lima"]), "bulk_insert")
    t.write(people(3, seed=4, start=40, cities=["lima"]), "bulk_insert")
    t.call("run_clustering(op => 'schedule', order => 'name')", may_fail=True)
    t.write(people(2, seed=5, start=50, cities=["porto"]), "insert")


def rolled_back_by_listing(t):
    t.configure(COW, partition="city", schema=PEOPLE)
    t.set({"hoodie.rollback.using.markers": "false"})
    rows = people(9)
    t.write(rows, "insert")
    t.write(change(rows, [0, 1], name="upd-1", ts=200), "upsert")
    t.write(change(rows, [1, 2], name="bad", ts=300) + people(2, seed=9, start=60), "upsert")
    t.uncommit()
    t.write(change(rows, [3], name="upd-2", ts=400), "upsert")


def lazy_blocks(t):
    t.configure(MOR, partition="city", schema=PEOPLE)
    t.set({"hoodie.compaction.lazy.block.read": "true", "hoodie.compaction.reverse.log.read": "false",
           "hoodie.logfile.data.block.max.size": "300"})
    rows = people(9)
    t.write(rows, "insert")
    t.write(change(rows, range(8), name="upd-1", ts=200), "upsert")
    t.write(change(rows, range(4), name="upd-2", ts=300), "upsert")
    t.write(change(rows, [5, 8]), "delete")


def resized(t):
    """consistent hashing, a bucket split by clustering, writes after it"""
    t.configure(MOR, partition="city", schema=PEOPLE)
    t.set({"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING", "hoodie.bucket.index.num.buckets": "2",
           "hoodie.bucket.index.max.num.buckets": "8", "hoodie.bucket.index.min.num.buckets": "1", "hoodie.bucket.index.hash.field": "id",
           "hoodie.bucket.index.split.threshold": "0.00001", "hoodie.parquet.max.file.size": "1024",
           "hoodie.clustering.plan.strategy.class": "org.apache.hudi.client.clustering.plan.strategy.SparkConsistentBucketClusteringPlanStrategy",
           "hoodie.clustering.execution.strategy.class": "org.apache.hudi.client.clustering.run.strategy.SparkConsistentBucketClusteringExecutionStrategy",
           "hoodie.clustering.updates.strategy": "org.apache.hudi.client.clustering.update.strategy.SparkConsistentBucketDuplicateUpdateStrategy"})
    rows = people(12, cities=["osaka"])
    t.write(rows, "bulk_insert")
    t.write(change(rows, [1, 2], name="upd-1", ts=200), "upsert")
    t.write(change(rows, [3], name="upd-2", ts=300), "upsert", {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"})
    t.write(change(rows, [4, 5], name="upd-3", ts=400), "upsert")


# this one keeps its metadata table; the others go without, to keep the zips small
WITH_METADATA = ("v9_mor_odd_paths",)


def small(name, f):
    def g(t):
        t.max_reads, t.max_spans = 2, 2
        if name not in WITH_METADATA:
            t.set({"hoodie.metadata.enable": "false"})
            t.read_options = {"hoodie.metadata.enable": "false"}
        f(t)
    return g


TABLES = [
    ("mor_odd_paths", odd_paths, "dots and letters beyond ASCII in partition paths", "v9"),
    ("mor_rollbacks_compaction", rollbacks_under_compaction, "rollbacks and a crash around a pending compaction", "v6 v9"),
    ("mor_restore_compaction", restore_over_compaction, "savepoint, compaction, restore, a commit after", "v9"),
    ("mor_dropped_and_back", dropped_and_back(MOR), "delete_partition, then rows in it again, MOR", "v9"),
    ("mor_overwritten_cleaned", overwritten_and_cleaned, "insert_overwrite over logs, compaction, clean", "v6 v9"),
    ("mor_log_compaction_compaction", log_compaction_then_compaction, "log compaction, then compaction", "v9"),
    ("mor_pending_clusterings", pending_clusterings, "a clustering that died, one only planned", "v9"),
    ("cow_listing_rolled_back", rolled_back_by_listing, "rolled back by listing, COW", "v6"),
    ("mor_lazy_blocks", lazy_blocks, "small log blocks, hoodie.compaction.lazy.block.read", "v6"),
    ("mor_resized", resized, "consistent hashing: a bucket split by clustering", "v6 v9"),
]
for name, f, about, versions in TABLES:
    for v in versions.split():
        full = "%s_%s" % (v, name)
        table(full, VERSION[v], about, [name.split("_")[0], "merge", "rollback"])(small(full, f))
