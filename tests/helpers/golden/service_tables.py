"""States of table services: planned, died, carried out, taken back."""
import os

from golden import table
from people import COW, MOR, PEOPLE, VERSION, change, people

# Without it a procedure plans no compaction before the fifth delta commit.
OFTEN = {"hoodie.compact.inline.max.delta.commits": "1"}
# Zips stay small without it; tables of other families have theirs.
PLAIN = {"hoodie.metadata.enable": "false"}


def call(t, procedure, conf=None):
    """A procedure that makes no metadata table."""
    t.call(procedure, dict(PLAIN, **(conf or {})))


def compact(t, op):
    """What the procedure is to have done; it says nothing where no compaction is due."""
    call(t, "run_compaction(op => '%s')" % op, OFTEN)
    if not any(i["action"] in ("compaction", "commit") for i in t.steps[-1]["instants"]):
        raise RuntimeError("no compaction: " + op)


def pending_compaction(t):
    """one compaction done, one planned, log files of both kinds of names after it"""
    t.configure(MOR, partition="city", schema=PEOPLE)
    rows = people(9)
    t.write(rows, "insert")
    t.write(change(rows, [0, 1, 2], name="upd-1", ts=200), "upsert")
    compact(t, "scheduleandexecute")
    t.write(change(rows, [0, 3], name="upd-2", ts=300), "upsert")
    t.write(change(rows, [4]), "delete")
    compact(t, "schedule")
    t.write(change(rows, [0, 5], name="upd-3", ts=400), "upsert")
    t.write(people(2, seed=5, start=30, ts=400), "upsert")


def rolled_back_compaction(t):
    """a compaction died with its files written and was taken back; 1.x leaves its plan, 0.15 carries it out"""
    t.configure(MOR, partition="city", schema=PEOPLE)
    rows = people(9)
    t.write(rows, "insert")
    t.write(change(rows, [0, 1, 2], name="upd-1", ts=200), "upsert")
    compact(t, "scheduleandexecute")
    died = t.uncommit()
    mark(t, died)
    if t.spec["hudi"] == "0.15.0":  # it has no procedure for that; the next run takes back what died
        compact(t, "run")
    else:
        call(t, "run_rollback_inflight_tableservice(pending_instant => '%s', delete_request_instant_file => false)" % died)
    t.write(change(rows, [0, 3], name="upd-2", ts=300), "upsert", {"hoodie.compact.inline": "false"})


def mark(t, instant):
    """Markers of what the instant wrote, as before it was complete; a rollback goes by them."""
    for root, _, files in os.walk(t.base):
        for name in files:
            if ".hoodie" not in root and name.endswith("_%s.parquet" % instant):
                folder = os.path.join(t.base, ".hoodie", ".temp", instant, os.path.relpath(root, t.base))
                os.makedirs(folder, exist_ok=True)
                open(os.path.join(folder, name + ".marker.MERGE"), "w").close()
    t.note("its markers are there again")


def restored_over_compaction(t):
    t.configure(MOR, partition="city", schema=PEOPLE)
    rows = people(9)
    t.write(rows, "insert")
    t.write(change(rows, [0, 1], name="upd-1", ts=200), "upsert")
    at = t.last()["requested"]
    call(t, "create_savepoint(commit_time => '%s', user => 'golden', comments => 'keep')" % at)
    t.write(change(rows, [1, 2], name="gone", ts=300), "upsert")
    compact(t, "scheduleandexecute")
    t.write(change(rows, [0], name="gone", ts=400), "upsert")
    call(t, "rollback_to_savepoint(instant_time => '%s')" % at)
    t.write(change(rows, [2], name="after", ts=500), "upsert")


def log_compacted(t):
    """log files merged into one, and others after it"""
    t.configure(MOR, partition="city", schema=PEOPLE)
    t.set({"hoodie.log.compaction.enable": "true", "hoodie.log.compaction.inline": "true",
           "hoodie.log.compaction.blocks.threshold": "3"})
    rows = people(6)
    t.write(rows, "insert")
    for i in range(3):
        t.write(change(rows, [0, 1 + i], name="upd-%d" % i, ts=200 + i), "upsert")
    t.write(change(rows, [5]), "delete")
    t.write(change(rows, [0, 3], name="last", ts=300), "upsert", {"hoodie.log.compaction.inline": "false"})


def log_compacted_again(t):
    """every range of log compactions, with deletes and late rows between"""
    t.max_reads, t.all_spans = 2, True
    t.set(PLAIN)
    t.read_options = dict(PLAIN)
    log_compacted(t)
    rows = people(6)
    if t.spec["hudi"] == "1.2.0":  # earlier releases let late rows lose to what is only repeated
        t.write(change(rows, [2, 4], name="late", ts=1), "upsert")
    t.write(change(rows, [1, 4], name="again", ts=400), "upsert")


def curved(kind, layout):
    def f(t):
        t.configure(kind, partition="city", schema=PEOPLE)
        t.set({"hoodie.parquet.small.file.limit": "0"})
        rows = people(9)
        t.write(rows, "bulk_insert")
        t.write(people(9, seed=2, start=9), "bulk_insert")
        t.write(change(rows, [1, 2], name="upd-1", ts=200), "upsert")
        call(t, "run_clustering(op => 'scheduleandexecute', order => 'age,name', order_strategy => '%s')" % layout)
        if t.last()["action"] != "replacecommit":
            raise RuntimeError("no clustering")
        t.write(change(rows, [1, 3], name="upd-2", ts=300), "upsert")
    return f


def cleaned(policy, retain):
    def f(t):
        t.configure(COW, partition="city", schema=PEOPLE)
        t.set({"hoodie.clean.automatic": "false"})
        rows = people(6)
        t.write(rows, "insert")
        for i in range(4):
            t.write(change(rows, [0, 1 + i], name="upd-%d" % i, ts=200 + i), "upsert")
        call(t, "run_clean(clean_policy => '%s', %s)" % (policy, retain))
        t.last("clean")
        t.write(change(rows, [2], name="after", ts=300), "upsert")
    return f


def pending_clean(kind):
    """a clean died when some of its files were gone, and a commit came after it"""
    def f(t):
        t.configure(kind, partition="city", schema=PEOPLE)
        t.set({"hoodie.clean.automatic": "false"})
        rows = people(6)
        t.write(rows, "insert")
        for i in range(4):
            t.write(change(rows, [0, 1 + i], name="upd-%d" % i, ts=200 + i), "upsert")
        kept = base_files(t.base)
        call(t, "run_clean(clean_policy => 'KEEP_LATEST_COMMITS', retain_commits => 1)")
        back = [path for path in sorted(kept) if not os.path.exists(path)][1:]
        for path in back:
            with open(path, "wb") as f:
                f.write(kept[path])
        t.note("%d of the files that it removed are there again" % len(back))
        t.uncommit(t.last("clean")["requested"])
        t.write(change(rows, [2], name="after", ts=300), "upsert")
    return f


def base_files(base):
    found = {}
    for root, _, files in os.walk(base):
        for name in files:
            if ".hoodie" not in root and name.endswith(".parquet"):
                with open(os.path.join(root, name), "rb") as f:
                    found[os.path.join(root, name)] = f.read()
    return found


def small(f):
    def g(t):
        t.max_reads, t.max_spans = 3, 3
        t.set(PLAIN)
        t.read_options = dict(PLAIN)
        f(t)
    return g


COMMITS, VERSIONS = "KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS"
TABLES = [
    ("mor_pending_compaction", pending_compaction, "a compaction, a planned one, log files after both", "v6 v8 v9"),
    ("mor_compaction_rolled_back", rolled_back_compaction, "a compaction that died and was taken back", "v6 v8 v9"),
    ("mor_compaction_restored", restored_over_compaction, "savepoint, compaction, restore that takes it back", "v6 v9"),
    ("mor_log_compacted", log_compacted, "log compaction, deletes and updates after it", "v8"),
    ("cow_zorder", curved(COW, "ZORDER"), "completed clustering along a z-order curve", "v6 v9"),
    ("mor_hilbert", curved(MOR, "HILBERT"), "completed clustering of log files along a Hilbert curve", "v8"),
    ("cow_clean_commits", cleaned(COMMITS, "retain_commits => 2"), "cleaner KEEP_LATEST_COMMITS", "v8"),
    ("cow_clean_versions", cleaned(VERSIONS, "file_versions_retained => 1"), "cleaner KEEP_LATEST_FILE_VERSIONS", "v8 v9"),
    ("cow_pending_clean", pending_clean(COW), "a clean that died half done, a commit after", "v6 v8 v9"),
]
for v in ("v6", "v9"):
    table(v + "_mor_log_compactions", VERSION[v], "log compactions, and every range of commits",
          ["mor", "log-compaction"])(log_compacted_again)
for name, f, about, versions in TABLES:
    for v in versions.split():
        full = "%s_%s" % (v, name)
        table(full, VERSION[v], about, [name.split("_")[0], "clean", "compaction"])(small(f))
