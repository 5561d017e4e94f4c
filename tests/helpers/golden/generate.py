#!/usr/bin/env python3
"""Remakes the golden tables. Needs the oracle (`make oracle`); any Python 3.9+ runs it.

    python3 generate.py                    # all
    python3 generate.py --only 'v9_mor_*'  # some
    python3 generate.py --list
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from golden import Builder, main, table  # noqa: E402,F401
from people import CITIES, COW, MOR, NAMES, PEOPLE, VERSION, change, keys, people  # noqa: E402,F401

def basic(t, rows=None):
    """insert, two overlapping upserts with inserts among them, one delete."""
    rows = rows or people(24)
    t.write(rows, "insert")
    t.write(change(rows, [1, 2, 3], name="upd-1", ts=200) + people(3, seed=7, ts=200, start=24), "upsert")
    t.write(change(rows, [2, 5, 8], name="upd-2", amount="0.05", ts=300), "upsert")
    t.write(change(rows, [4, 7], ts=400), "delete")


# ------------------------------------------------------------ layouts and keys

def cow_nonpart(t):
    t.configure(COW, schema=PEOPLE)
    t.set({"hoodie.index.bloom.num_entries": "60000"})  # once with Hudi's own filter size
    basic(t)


def mor_part(t):
    """with Hudi's defaults: small files are filled up and the fifth delta commit compacts"""
    t.configure(MOR, partition="city", schema=PEOPLE)
    del t.opts["hoodie.compact.inline.max.delta.commits"]
    t.opts["hoodie.parquet.small.file.limit"] = "104857600"
    basic(t)
    rows = people(24)
    t.write(change(rows, [2, 9, 10], name="upd-4", ts=500), "upsert")


def mor_block(fmt):
    def f(t):
        t.configure(MOR, partition="city", schema=PEOPLE)
        t.set({"hoodie.logfile.data.block.format": fmt, "hoodie.datasource.write.hive_style_partitioning": "true"})
        basic(t)
        rows = people(24)
        t.write(change(rows, [2, 9, 10], name="upd-4", ts=500), "upsert")
    return f


def cow_urlencode(t):
    odd = ["a b", "x/y", "q=1", "50%", "", None, "é", "a:b", "#1", "plus+"]
    t.configure(COW, partition="city", schema=PEOPLE)
    t.set({"hoodie.datasource.write.hive_style_partitioning": "true",
           "hoodie.datasource.write.partitionpath.urlencode": "true"})
    rows = people(20, cities=odd)
    t.write(rows, "insert")
    t.write(change(rows, [0, 1, 4, 5], name="upd", ts=200), "upsert")
    t.write(change(rows, [5, 6], ts=300), "delete")


def cow_complex(t):
    t.configure(COW, key="id,name", partition="city,year", schema=PEOPLE + ", year int")
    t.set({"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
           "hoodie.datasource.write.hive_style_partitioning": "true"})
    rows = [{**r, "year": 2023 + i % 2} for i, r in enumerate(people(18))]
    t.write(rows, "insert")
    t.write([{**r, "age": 99, "ts": 200} for r in rows[:5]], "upsert")
    t.write([{**rows[6], "ts": 300}], "delete")


def cow_timestamp_key(t):
    t.configure(COW, partition="at", schema="id string, name string, ts long, at long")
    t.set({"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
           "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
           "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
           "hoodie.keygen.timebased.timezone": "UTC"})
    rows = [{"id": "k%02d" % i, "name": NAMES[i % 12], "ts": 1, "at": 1709164800000 + i * 43200000} for i in range(8)]
    t.write(rows, "insert")
    t.write([{**r, "name": "upd", "ts": 2} for r in rows[2:4]], "upsert")


def cow_custom_key(t):
    t.configure(COW, partition="city:SIMPLE,at:TIMESTAMP",
                schema="id string, name string, ts long, city string, at string")
    t.set({"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
           "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
           "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd HH:mm:ss",
           "hoodie.keygen.timebased.output.dateformat": "yyyyMMdd",
           "hoodie.keygen.timebased.timezone": "UTC",
           "hoodie.datasource.write.hive_style_partitioning": "true"})
    rows = [{"id": "k%02d" % i, "name": NAMES[i % 12], "ts": 1, "city": CITIES[i % 2],
             "at": "2024-02-%02d 23:30:00" % (27 + i % 3)} for i in range(9)]
    t.write(rows, "insert")
    t.write([{**r, "name": "upd", "ts": 2} for r in rows[2:4]], "upsert")


def virtual_keys(kind):
    def f(t):
        t.configure(kind, partition="city", schema=PEOPLE)
        t.set({"hoodie.populate.meta.fields": "false", "hoodie.index.type": "SIMPLE"})
        basic(t)
    return f


LAYOUTS = [
    ("cow_nonpart", cow_nonpart, "COW without partitions: insert, upserts, delete", ["cow", "bloom"]),
    ("mor_part_avro", mor_part, "MOR, plain partitions, several Avro log blocks a slice, delete block",
     ["mor", "log:avro", "delete-block"]),
    ("mor_parquet_log", mor_block("parquet"), "MOR with Parquet log blocks, hive-style partitions",
     ["mor", "log:parquet", "delete-block", "hive-style"]),
]
MORE_LAYOUTS = [
    ("mor_hfile_log", mor_block("hfile"), "MOR with HFile log blocks", ["mor", "log:hfile"]),
    ("cow_urlencode", cow_urlencode, "URL-encoded hive-style partition values, null and empty among them",
     ["cow", "urlencode", "null-partition"]),
    ("cow_complex_key", cow_complex, "ComplexKeyGenerator: two key fields, two partition levels",
     ["cow", "keygen:complex"]),
    ("cow_timestamp_key", cow_timestamp_key, "TimestampBasedKeyGenerator, yyyy/MM/dd from epoch millis",
     ["cow", "keygen:timestamp"]),
    ("cow_custom_key", cow_custom_key, "CustomKeyGenerator: a simple and a timestamp level", ["cow", "keygen:custom"]),
    ("cow_virtual_keys", virtual_keys(COW), "no meta columns (virtual keys)", ["cow", "virtual-keys"]),
    ("mor_virtual_keys", virtual_keys(MOR), "no meta columns (virtual keys), MOR", ["mor", "virtual-keys"]),
]
for v in ("v6", "v8", "v9"):
    for name, f, about, covers in LAYOUTS:
        table(v + "_" + name, VERSION[v], about, covers)(f)


# ------------------------------------------------------------ merging

MERGE = "id string, name string, n int, amount decimal(10,2), ts long, city string, _hoodie_is_deleted boolean"


def merge_rows(n=14):
    return [{"id": "k%03d" % i, "name": "base", "n": i, "amount": "%d.50" % i, "ts": 10, "city": CITIES[i % 2],
             "_hoodie_is_deleted": False} for i in range(n)]


def merge_story(t):
    """newer, late, tie, soft deletes (newer, late, tie), reinsert older than a delete,
    delete by operation, reinsert after it, twice the same key in one batch."""
    b = merge_rows()
    t.write(b, "insert")
    t.write(change(b, [1], name="newer", ts=20) + change(b, [2], name="late", ts=5)
            + change(b, [3], name="tie", ts=10)
            + change(b, [4], name="gone-newer", ts=20, _hoodie_is_deleted=True)
            + change(b, [5], name="gone-late", ts=5, _hoodie_is_deleted=True)
            + change(b, [6], name="gone-tie", ts=10, _hoodie_is_deleted=True), "upsert")
    t.write(change(b, [1], name="between", ts=15) + change(b, [4], name="back-older", ts=15)
            + change(b, [6], name="back-same", ts=10), "upsert")
    t.write(change(b, [7, 8, 9]), "delete")
    t.write(change(b, [7], name="back-after-delete", ts=1) + change(b, [8], name="back-newer", ts=30)
            + change(b, [10], name="twice-a", ts=40) + change(b, [10], name="twice-b", ts=30)
            + [dict(merge_rows(20)[17], name="new-deleted", _hoodie_is_deleted=True)], "upsert")


def merge_table(kind, mode=None, payload=None, extra=None, ts="long"):
    def f(t):
        t.configure(kind, partition="city", schema=MERGE.replace("ts long", "ts " + ts))
        if mode:
            t.set({"hoodie.write.record.merge.mode": mode})
        if payload:
            t.set({"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model." + payload})
        t.set(extra or {})
        merge_story(t)
    return f


for v in ("v8", "v9"):
    for kind, k in ((COW, "cow"), (MOR, "mor")):
        for mode in ("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"):
            short = mode.split("_")[0].lower()
            table("%s_%s_%s_time" % (v, k, short), VERSION[v],
                  "%s: late, tied and deleted records" % mode, [k, "merge:" + mode, "_hoodie_is_deleted", "delete-block"])(
                merge_table(kind, mode, ts="int" if v == "v8" else "long"))
# Hudi 1.0.2 cannot read its own table back when the ordering field is a long and a key was deleted
# by operation=delete (the delete carries an Integer 0); 1.2.0 can
table("v8_mor_event_time_long", "1.0.2", "as v8_mor_event_time with a long ordering field: 1.0.2 fails to read it",
      ["mor", "merge:EVENT_TIME_ORDERING", "hudi-bug"])(merge_table(MOR, "EVENT_TIME_ORDERING"))

PAYLOAD = "org.apache.hudi.common.model."
for v, which in (("v6", ("mor_hfile_log", "cow_urlencode", "cow_complex_key", "cow_timestamp_key", "cow_custom_key",
                         "cow_virtual_keys", "mor_virtual_keys")),
                 ("v9", ("mor_hfile_log", "cow_complex_key", "mor_virtual_keys"))):
    for name, f, about, covers in MORE_LAYOUTS:
        if name in which:
            table(v + "_" + name, VERSION[v], about, covers)(f)


# ------------------------------------------------------------ payload classes (v6) and what 1.x makes of them

def payload(name, kind=MOR, extra=None):
    return merge_table(kind, payload=name, extra=extra)


MARKED = MERGE.replace(", _hoodie_is_deleted boolean", ", op string")


def marker_story(t):
    """deletes by a marker column: newer, late, tie, and for a key not there"""
    t.configure(MOR, partition="city", schema=MARKED)
    t.set({"hoodie.payload.delete.field": "op", "hoodie.payload.delete.marker": "D",
           "hoodie.payload.ordering.field": "ts",
           "hoodie.datasource.write.payload.class": PAYLOAD + "DefaultHoodieRecordPayload"})
    b = [{k: v for k, v in dict(r, op="I").items() if k != "_hoodie_is_deleted"} for r in merge_rows()]
    t.write(b, "insert")
    t.write(change(b, [1], name="newer", op="U", ts=20) + change(b, [2], name="late", op="U", ts=5)
            + change(b, [4], name="gone", op="D", ts=20) + change(b, [5], name="gone-late", op="D", ts=5)
            + change(b, [6], name="gone-tie", op="D", ts=10), "upsert")
    t.write(change(b, [4], name="back-older", op="U", ts=15) + change(b, [6], name="back-newer", op="U", ts=16), "upsert")
    t.write([dict(b[0], id="k099", op="D", ts=50)], "upsert")


SPARSE = "id string, name string, n int, amount decimal(10,2), note string, ts long"


def sparse_story(cls):
    """updates that leave columns null, in order and late"""
    def f(t):
        t.configure(MOR, schema=SPARSE)
        t.set({"hoodie.datasource.write.payload.class": PAYLOAD + cls, "hoodie.payload.ordering.field": "ts"})
        b = [{"id": "k%03d" % i, "name": "base", "n": i, "amount": "1.00", "note": "x", "ts": 10} for i in range(8)]
        t.write(b, "insert")
        t.write(change(b, [1], name="newer", n=None, amount=None, ts=20)
                + change(b, [2], name="late", note=None, n=77, ts=5)
                + change(b, [3], name=None, note="only-note", ts=30), "upsert")
        t.write(change(b, [1], name=None, n=111, amount=None, note=None, ts=30)
                + change(b, [2], name=None, n=None, amount="9.99", note=None, ts=40)
                + change(b, [3], name="later", n=None, amount=None, note=None, ts=25), "upsert")
        t.write(change(b, [4]), "delete")
        t.write(change(b, [5], name=None, n=5, note="zero", ts=10), "upsert")
    return f


DBZ = ("id string, name string, note string, _change_operation_type string, _upstream_event_processed_ts_ms long, "
       "_event_origin_ts_ms long, ")


def debezium(which, by9=False):
    def f(t):
        my = which == "MySql"
        more = "_event_bin_file string, _event_pos long, _event_row int, _event_seq string" if my \
            else "_event_tx_id long, _event_lsn long, _event_xmin long"
        t.configure(MOR, schema=DBZ + more, ordering=("_event_seq" if my else "_event_lsn"))
        t.set({"hoodie.datasource.write.payload.class": PAYLOAD + "debezium." + which + "DebeziumAvroPayload"})
        if by9 and my:
            t.set({"hoodie.datasource.write.precombine.field": "_event_bin_file,_event_pos"})

        def ev(i, op, at, **new):
            r = {"id": "k%03d" % i, "name": "base", "note": "long text", "_change_operation_type": op,
                 "_upstream_event_processed_ts_ms": 1700000000000 + at, "_event_origin_ts_ms": 1700000000000 + at}
            if my:
                r.update(_event_bin_file="mysql-bin.%06d" % (at // 100), _event_pos=at % 100, _event_row=0,
                         _event_seq="%d.%d" % (at // 100, at % 100))
            else:
                r.update(_event_tx_id=at, _event_lsn=at, _event_xmin=at)
            r.update(new)
            return r
        t.write([ev(i, "r", 100) for i in range(8)], "insert")
        toast = "__debezium_unavailable_value"
        t.write([ev(1, "u", 120, name="newer"), ev(2, "u", 90, name="late"), ev(3, "d", 130),
                 ev(4, "d", 95), ev(5, "u", 1002, name="next-file", note=toast)], "upsert")
        t.write([ev(3, "c", 125, name="back-older"), ev(5, "u", 999, name="older-file"),
                 ev(1, "u", 140, name=toast, note="short")], "upsert")
        t.write([ev(6, "u", 200, name="x"), ev(7, "d", 201), ev(8, "c", 202)], "upsert")
    return f


def aws_dms(t):
    t.configure(MOR, schema="id string, name string, n int, ts long, Op string")
    t.set({"hoodie.datasource.write.payload.class": PAYLOAD + "AWSDmsAvroPayload"})
    b = [{"id": "k%03d" % i, "name": "full", "n": i, "ts": 10, "Op": None} for i in range(8)]
    t.write(b, "insert")
    t.write(change(b, [1], name="upd", ts=20, Op="U") + change(b, [2], name="late", ts=5, Op="U")
            + change(b, [3], ts=20, Op="D") + change(b, [4], ts=5, Op="D"), "upsert")
    t.write(change(b, [3], name="back", ts=15, Op="I") + [dict(b[0], id="k020", Op="I"), dict(b[0], id="k021", Op="D")],
            "upsert")


PAYLOADS = [
    ("overwrite_latest", payload("OverwriteWithLatestAvroPayload"), "OverwriteWithLatestAvroPayload"),
    ("default", payload("DefaultHoodieRecordPayload", extra={"hoodie.payload.ordering.field": "ts"}),
     "DefaultHoodieRecordPayload"),
    ("delete_marker", marker_story, "DefaultHoodieRecordPayload with hoodie.payload.delete.field and marker"),
    ("event_time", payload("EventTimeAvroPayload", extra={"hoodie.payload.ordering.field": "ts"}), "EventTimeAvroPayload"),
    ("overwrite_non_default", sparse_story("OverwriteNonDefaultsWithLatestAvroPayload"),
     "OverwriteNonDefaultsWithLatestAvroPayload"),
    ("partial_update", sparse_story("PartialUpdateAvroPayload"), "PartialUpdateAvroPayload"),
    ("mysql_debezium", debezium("MySql"), "MySqlDebeziumAvroPayload"),
    ("postgres_debezium", debezium("Postgres"), "PostgresDebeziumAvroPayload, TOASTed values"),
    ("aws_dms", aws_dms, "AWSDmsAvroPayload"),
]
for v in ("v6", "v9"):
    for name, f, about in PAYLOADS:
        if v == "v9" and name == "mysql_debezium":
            f = debezium("MySql", by9=True)
        table("%s_mor_payload_%s" % (v, name), VERSION[v], "payload class " + about, ["mor", "payload:" + name])(f)


def two_orderings(kind):
    def f(t):
        t.configure(kind, schema="id string, name string, ts long, seq int", ordering="ts,seq")
        b = [{"id": "k%03d" % i, "name": "base", "ts": 10, "seq": 5} for i in range(10)]
        t.write(b, "insert")
        t.write(change(b, [1], name="ts-newer", ts=11, seq=1) + change(b, [2], name="seq-newer", ts=10, seq=6)
                + change(b, [3], name="seq-late", ts=10, seq=4) + change(b, [4], name="ts-late", ts=9, seq=9)
                + change(b, [5], name="tie", ts=10, seq=5), "upsert")
        t.write(change(b, [1], name="again-late", ts=10, seq=100) + change(b, [2], name="again-newer", ts=10, seq=7), "upsert")
        t.write(change(b, [6], ts=10, seq=4) + change(b, [7], ts=10, seq=6), "delete")
        t.write(change(b, [6], name="back", ts=1, seq=1), "upsert")
    return f


def null_ordering(kind, ts="long"):
    def f(t):
        t.configure(kind, schema="id string, name string, ts " + ts)
        b = [{"id": "k%03d" % i, "name": "base", "ts": 10 if i % 2 else None} for i in range(8)]
        t.write(b, "insert", may_fail=True)
        if t.steps[-1].get("error"):
            b = [dict(r, ts=10) for r in b]
            t.write(b, "insert")
        t.write(change(b, [1], name="null-over-10", ts=None) + change(b, [0], name="5-over-base", ts=5)
                + change(b, [2], name="null-over-base", ts=None), "upsert", may_fail=True)
        t.write(change(b, [3], name="20-over-10", ts=20) + change(b, [4], name="minus", ts=-1)
                + change(b, [5], name="zero-late", ts=0), "upsert", may_fail=True)
    return f


def no_ordering(t):
    t.configure(MOR, schema="id string, name string, ts long", ordering=None)
    b = [{"id": "k%03d" % i, "name": "base", "ts": 10} for i in range(8)]
    t.write(b, "insert")
    t.write(change(b, [1], name="a", ts=1) + change(b, [1], name="b", ts=2) + change(b, [2], name="c", ts=3), "upsert")
    t.write(change(b, [3]), "delete")
    t.write(change(b, [3], name="back"), "upsert")


for k, kind in (("mor", MOR),):
    table("v9_%s_two_orderings" % k, "1.2.0", "two ordering fields: newer, late and tied on each",
          [k, "merge:EVENT_TIME_ORDERING", "ordering:multiple"])(two_orderings(kind))
for v in ("v6", "v9"):
    table("%s_mor_null_ordering" % v, VERSION[v], "null, zero and negative ordering values", ["mor", "ordering:null"])(
        null_ordering(MOR))
for v in ("v8", "v9"):
    table("%s_mor_null_ordering_int" % v, VERSION[v], "null, zero and negative ordering values of type int", ["mor", "ordering:null"])(
        null_ordering(MOR, "int"))
    table("%s_cow_null_ordering" % v, VERSION[v], "null, zero and negative ordering values", ["cow", "ordering:null"])(
        null_ordering(COW))
table("v8_mor_delete_marker", "1.0.2", "custom delete marker under EVENT_TIME_ORDERING",
      ["mor", "merge:EVENT_TIME_ORDERING", "delete-marker"])(marker_story)
table("v9_mor_no_ordering", "1.2.0", "no ordering field at all", ["mor", "ordering:none"])(no_ordering)


def partial_sql(t):
    t.configure(MOR, partition="city", schema=PEOPLE)
    rows = people(12)
    t.write(rows, "insert")
    t.sql("MERGE INTO {table} t USING (SELECT 'k001' id, 'merged' name, 200L ts, 'osaka' city) s ON t.id = s.id "
          "WHEN MATCHED THEN UPDATE SET name = s.name, ts = s.ts")
    t.sql("MERGE INTO {table} t USING (SELECT 'k001' id, 77 age, 210L ts, 'osaka' city UNION ALL "
          "SELECT 'k002', 78, 90L, 'quito') s ON t.id = s.id "
          "WHEN MATCHED THEN UPDATE SET age = s.age, ts = s.ts")
    t.sql("MERGE INTO {table} t USING (SELECT 'k003' id, CAST(9.99 AS decimal(10,2)) amount, 220L ts, 'lisbon' city) s "
          "ON t.id = s.id WHEN MATCHED THEN UPDATE SET amount = s.amount, ts = s.ts "
          "WHEN NOT MATCHED THEN INSERT (id, name, age, amount, ts, city) VALUES (s.id, 'new', 1, s.amount, s.ts, s.city)")
    t.sql("MERGE INTO {table} t USING (SELECT 'k004' id, 230L ts, 'osaka' city) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    t.sql("UPDATE {table} SET age = 5, ts = 300 WHERE id = 'k005'")


for v in ("v8", "v9"):
    table("%s_mor_partial_sql" % v, VERSION[v], "MERGE INTO and UPDATE: partial-update log blocks",
          ["mor", "partial-update", "sql"])(partial_sql)


# ------------------------------------------------------------ table services

def compaction(t):
    t.configure(MOR, partition="city", schema=PEOPLE)
    rows = people(18)
    t.write(rows, "insert")
    t.write(change(rows, [1, 2, 3], name="upd-1", ts=200), "upsert")
    t.write(change(rows, [4, 5]), "delete")
    t.call("run_compaction(op => 'schedule')")
    t.write(change(rows, [1, 6], name="upd-2", ts=300), "upsert")
    t.call("run_compaction(op => 'run')")
    t.write(change(rows, [2, 7], name="upd-3", ts=400), "upsert")
    t.call("run_compaction(op => 'schedule')")
    t.write(change(rows, [2, 8], name="upd-4", ts=500) + people(2, seed=5, ts=500, start=30), "upsert")


def clustering(kind):
    def f(t):
        t.configure(kind, partition="city", schema=PEOPLE)
        t.set({"hoodie.parquet.small.file.limit": "0", "hoodie.merge.allow.duplicate.on.inserts": "false"})
        t.write(people(9), "bulk_insert")
        t.write(people(9, seed=2, start=9), "bulk_insert")
        t.call("run_clustering(op => 'scheduleandexecute', order => 'age')")
        t.write(people(6, seed=3, start=20), "bulk_insert")
        t.write(change(people(9), [1], name="upd", ts=200), "upsert")
        t.write(people(6, seed=3, start=30), "bulk_insert")
        t.call("run_clustering(op => 'schedule', order => 'name')")
    return f


def cleaning(policy, extra):
    def f(t):
        t.configure(COW, partition="city", schema=PEOPLE)
        t.set({"hoodie.cleaner.policy": policy, "hoodie.clean.automatic": "true", "hoodie.clean.async": "false"})
        t.set(extra)
        rows = people(12)
        t.write(rows, "insert")
        for i in range(4):
            t.write(change(rows, [0, 1 + i], name="upd-%d" % i, ts=200 + i), "upsert")
        t.call("run_clean()", may_fail=True)
    return f


def savepoint_restore(kind):
    def f(t):
        t.configure(kind, partition="city", schema=PEOPLE)
        rows = people(12)
        t.write(rows, "insert")
        t.write(change(rows, [1, 2], name="upd-1", ts=200), "upsert")
        at = t.last()["requested"]
        t.call("create_savepoint(commit_time => '%s', user => 'golden', comments => 'keep')" % at)
        t.write(change(rows, [2, 3], name="upd-2", ts=300) + people(3, seed=4, start=40), "upsert")
        t.write(change(rows, [5]), "delete")
        t.call("rollback_to_savepoint(instant_time => '%s')" % at)
        t.write(change(rows, [7], name="upd-after", ts=400), "upsert")
    return f


def rollback(t):
    t.configure(MOR, partition="city", schema=PEOPLE)
    rows = people(12)
    t.write(rows, "insert")
    t.write(change(rows, [1, 2], name="upd-1", ts=200), "upsert")
    t.write(change(rows, [2, 3, 4], name="bad", ts=300), "upsert")
    t.call("rollback_to_instant(instant_time => '%s')" % t.last()["requested"])
    t.write(change(rows, [3], name="upd-3", ts=400), "upsert")


def failed_then_rolled_back(t):
    t.configure(MOR, partition="city", schema=PEOPLE)
    rows = people(12)
    t.write(rows, "insert")
    t.write(change(rows, [1, 2], name="upd-1", ts=200), "upsert")
    t.fail_write(change(rows, [2, 3, 4], name="bad", ts=300) + people(2, seed=9, start=60), "upsert")
    t.note("the next writer finds the inflight instant and rolls it back first")
    t.write(change(rows, [3], name="upd-3", ts=400), "upsert")


def uncommitted_then_rolled_back(listing):
    """as if the writer died between the metadata table's commit and its own, after the markers were gone"""
    def f(t):
        t.configure(MOR, partition="city", schema=PEOPLE)
        t.set({"hoodie.rollback.using.markers": "false" if listing else "true"})
        rows = people(12)
        t.write(rows, "insert")
        t.write(change(rows, [1, 2], name="upd-1", ts=200), "upsert")
        t.write(change(rows, [2, 3, 4], name="bad", ts=300) + people(2, seed=9, start=60), "upsert")
        t.uncommit()
        t.write(change(rows, [3], name="upd-3", ts=400), "upsert")
    return f


# CREATE INDEX of 1.2.0 refuses without one
LOCK = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"}
LAZY = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.clean.automatic": "false",  # lazy rollback happens when cleaning
        "hoodie.cleaner.policy.failed.writes": "LAZY",
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"}


def inflight(kind):
    def f(t):
        t.configure(kind, partition="city", schema=PEOPLE)
        t.set(LAZY)
        rows = people(12)
        t.write(rows, "insert")
        t.write(change(rows, [1, 2], name="upd-1", ts=200), "upsert")
        t.write(change(rows, [2, 3], name="never-committed", ts=300) + people(2, seed=9, start=60), "upsert")
        t.uncommit()
        t.write(change(rows, [4], name="upd-2", ts=400), "upsert")
        t.fail_write(change(rows, [5], name="never-committed", ts=500), "upsert")
    return f


def archived(kind):
    def f(t):
        t.configure(kind, partition="city", schema=PEOPLE)
        t.set({"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.cleaner.commits.retained": "2",
               "hoodie.commits.archival.batch": "2", "hoodie.archive.merge.enable": "false",
               "hoodie.timeline.compaction.batch.size": "2", "hoodie.metadata.compact.max.delta.commits": "3",
               "hoodie.compact.inline.max.delta.commits": "4"})
        t.max_reads = 4
        rows = people(9)
        t.write(rows, "insert")
        for i in range(10):
            t.write(change(rows, [i % 9, (i + 3) % 9], name="upd-%d" % i, ts=200 + i), "upsert")
    return f


def overwrites(t):
    t.configure(COW, partition="city", schema=PEOPLE)
    t.set({"hoodie.datasource.write.hive_style_partitioning": "true"})
    rows = people(18)
    t.write(rows, "insert")
    t.write([dict(r, name="ow") for r in people(3, seed=5, start=50, cities=["osaka"])], "insert_overwrite")
    t.write(people(2, seed=8, start=70, cities=["porto"]), "upsert")
    t.write(people(1), "delete_partition", {"hoodie.datasource.write.partitions.to.delete": "city=quito"})
    t.write(change(rows, [0], name="upd", ts=300), "upsert")


def overwrite_table(kind):
    def f(t):
        t.configure(kind, partition="city", schema=PEOPLE)
        t.write(people(12), "insert")
        t.write(change(people(12), [1], name="upd", ts=200), "upsert")
        t.write(people(4, seed=5, start=50, cities=["osaka", "lima"]), "insert_overwrite_table")
        t.write(change(people(4, seed=5, start=50, cities=["osaka", "lima"]), [50], name="upd", ts=300), "upsert")
    return f


def log_compaction(t):
    t.configure(MOR, partition="city", schema=PEOPLE)
    t.set({"hoodie.log.compaction.enable": "true", "hoodie.log.compaction.inline": "true",
           "hoodie.log.compaction.blocks.threshold": "3"})
    rows = people(9)
    t.write(rows, "insert")
    for i in range(5):
        t.write(change(rows, [0, 1 + i, 2 + i], name="upd-%d" % i, ts=200 + i), "upsert")


SERVICES = [
    ("mor_compaction", compaction, "completed and pending compaction, log files after both", ["mor", "compaction"], "v6 v8 v9"),
    ("cow_clustering", clustering(COW), "completed and pending clustering", ["cow", "clustering"], "v6 v8 v9"),
    ("mor_clustering", clustering(MOR), "completed and pending clustering, MOR", ["mor", "clustering"], "v9"),
    ("cow_clean_commits", cleaning("KEEP_LATEST_COMMITS", {"hoodie.cleaner.commits.retained": "2"}),
     "cleaner KEEP_LATEST_COMMITS", ["cow", "clean"], "v6 v9"),
    ("cow_clean_versions", cleaning("KEEP_LATEST_FILE_VERSIONS", {"hoodie.cleaner.fileversions.retained": "1"}),
     "cleaner KEEP_LATEST_FILE_VERSIONS", ["cow", "clean"], "v6"),
    ("mor_rollback", rollback, "rollback_to_instant of a delta commit", ["mor", "rollback"], "v6 v9"),
    ("mor_failed_rolled_back", failed_then_rolled_back, "a crashed delta commit that the next writer rolled back",
     ["mor", "rollback"], "v6 v8 v9"),
    ("mor_uncommitted_rolled_back", uncommitted_then_rolled_back(False),
     "rolled back by markers after the markers were gone: its log blocks stay, only the timeline tells", ["mor", "rollback"], "v6 v9"),
    ("mor_listing_rolled_back", uncommitted_then_rolled_back(True),
     "rolled back by listing", ["mor", "rollback"], "v6 v9"),
    ("cow_inflight", inflight(COW), "writes that died uncommitted, with commits after them (lazy cleaning)",
     ["cow", "inflight"], "v6"),
    ("mor_inflight", inflight(MOR), "writes that died uncommitted, with commits after them (lazy cleaning)",
     ["mor", "inflight"], "v6 v8 v9"),
    ("cow_restore", savepoint_restore(COW), "savepoint, restore to it, a commit after", ["cow", "savepoint", "restore"], "v6 v8"),
    ("mor_restore", savepoint_restore(MOR), "savepoint, restore to it, a commit after", ["mor", "savepoint", "restore"], "v6 v9"),
    ("cow_archived", archived(COW), "archived timeline, cleaned files", ["cow", "archive", "clean"], "v6 v8 v9"),
    ("mor_archived", archived(MOR), "archived timeline with compactions", ["mor", "archive", "compaction"], "v6 v9"),
    ("cow_overwrites", overwrites, "insert_overwrite of one partition, delete_partition", ["cow", "replacecommit"], "v6 v8 v9"),
    ("cow_overwrite_table", overwrite_table(COW), "insert_overwrite_table", ["cow", "replacecommit"], "v6"),
    ("mor_overwrite_table", overwrite_table(MOR), "insert_overwrite_table over log files", ["mor", "replacecommit"], "v9"),
    ("mor_log_compaction", log_compaction, "log compaction", ["mor", "log-compaction"], "v6 v9"),
]
for name, f, about, covers, vs in SERVICES:
    for v in vs.split():
        table(v + "_" + name, VERSION[v], about, covers)(f)


# ------------------------------------------------------------ indexes and the metadata table

def indexed(kind, index, extra=None, move=False):
    def f(t):
        # int for 1.0.2, which fails to read a deleted key back under a long ordering field
        t.configure(kind, partition="city", schema=PEOPLE.replace("ts long", "ts int") if t.spec["hudi"] == "1.0.2" else PEOPLE)
        t.set({"hoodie.index.type": index, "hoodie.metadata.record.index.min.filegroup.count": "2",
               "hoodie.metadata.record.index.max.filegroup.count": "4"})
        t.set(extra or {})
        rows = people(18)
        t.write(rows, "insert")
        t.write(change(rows, [1, 2], name="upd-1", ts=200) + people(3, seed=6, start=40), "upsert")
        if move:
            t.write(change(rows, [3], name="moved", city="porto", ts=300)
                    + change(rows, [4], name="moved", city="quito", ts=300), "upsert")
        t.write(change(rows, [5, 6], ts=400), "delete")
        t.write(change(rows, [5], name="back", ts=500), "upsert")
    return f


def bucket_two_fields(t):
    t.configure(MOR, key="id,name", partition="city", schema=PEOPLE)
    t.set({"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4",
           "hoodie.bucket.index.hash.field": "id,name",
           "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator"})
    rows = people(20)
    t.write(rows, "upsert")
    t.write([dict(r, age=1, ts=200) for r in rows[:6]], "upsert")
    t.write([dict(rows[7], ts=300)], "delete")


CONSISTENT = {"hoodie.index.bucket.engine": "CONSISTENT_HASHING", "hoodie.bucket.index.num.buckets": "4",
              "hoodie.bucket.index.max.num.buckets": "8", "hoodie.bucket.index.min.num.buckets": "2",
              "hoodie.bucket.index.hash.field": "id"}
ALL_STATS = {"hoodie.metadata.index.column.stats.enable": "true", "hoodie.metadata.index.bloom.filter.enable": "true",
             "hoodie.metadata.index.partition.stats.enable": "true", "hoodie.metadata.record.index.enable": "true"}


def all_stats(kind):
    def f(t):
        t.configure(kind, partition="city", schema=PEOPLE)
        t.set(ALL_STATS)
        t.set({"hoodie.metadata.record.index.min.filegroup.count": "2"})
        t.read_options = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
        basic(t, people(30))
    return f


def secondary(t):
    t.configure(MOR, partition="city", schema=PEOPLE)
    t.set({"hoodie.metadata.record.index.enable": "true", "hoodie.metadata.record.index.min.filegroup.count": "2"})
    rows = people(18)
    t.write(rows, "insert")
    t.sql("CREATE INDEX idx_name ON {table} (name)", LOCK)
    t.write(change(rows, [1, 2], name="upd-1", ts=200), "upsert")
    t.write(change(rows, [3], ts=300), "delete")
    t.sql("SELECT id, name FROM {table} WHERE name = 'upd-1'", {"hoodie.metadata.enable": "true"})


def expression(t):
    t.configure(COW, partition="city", schema="id string, name string, ts long, city string, at timestamp")
    t.set({"hoodie.metadata.index.column.stats.enable": "true"})
    rows = [{"id": "k%02d" % i, "name": NAMES[i % 12], "ts": 1700000000 + i * 90000, "city": CITIES[i % 3],
             "at": "2024-0%d-10T10:00:00.000000Z" % (1 + i % 5)} for i in range(15)]
    t.write(rows, "insert")
    later = t.spec["hudi"] == "1.2.0"  # its next commit after such a CREATE INDEX dies of a NullPointerException
    if later:
        t.write([dict(r, name="Upd", ts=r["ts"] + 86400) for r in rows[:3]], "upsert")
        t.write(rows[5:6], "delete")
    t.sql("CREATE INDEX idx_day ON {table} USING column_stats(ts) OPTIONS (expr='from_unixtime', format='yyyy-MM-dd')", LOCK)
    if later:  # 1.0.2's next write fails: "FileGroup count for MDT partition … should be > 0"
        t.sql("CREATE INDEX idx_low ON {table} USING bloom_filters(name) OPTIONS (expr='lower')", LOCK)
    else:
        t.write([dict(r, name="Upd", ts=r["ts"] + 86400) for r in rows[:3]], "upsert")
        t.write(rows[5:6], "delete")


INDEXES = [
    ("cow_global_bloom", indexed(COW, "GLOBAL_BLOOM", {"hoodie.bloom.index.update.partition.path": "true"}, move=True),
     "GLOBAL_BLOOM, records that change partition", ["cow", "index:global_bloom"], "v6"),
    ("cow_simple", indexed(COW, "SIMPLE"), "SIMPLE index", ["cow", "index:simple"], "v6"),
    ("mor_global_simple", indexed(MOR, "GLOBAL_SIMPLE", {"hoodie.simple.index.update.partition.path": "true"}, move=True),
     "GLOBAL_SIMPLE, records that change partition", ["mor", "index:global_simple"], "v8"),
    ("mor_bucket", indexed(MOR, "BUCKET", {"hoodie.bucket.index.num.buckets": "4"}), "BUCKET index, 4 buckets a partition",
     ["mor", "index:bucket"], "v6 v9"),
    ("cow_bucket", indexed(COW, "BUCKET", {"hoodie.bucket.index.num.buckets": "3"}), "BUCKET index on COW",
     ["cow", "index:bucket"], "v6"),
    ("mor_bucket_two_fields", bucket_two_fields, "BUCKET index hashing two key fields", ["mor", "index:bucket"], "v6"),
    ("mor_consistent", indexed(MOR, "BUCKET", CONSISTENT), "consistent-hashing BUCKET index",
     ["mor", "index:consistent"], "v6 v8 v9"),
    ("cow_record_index", indexed(COW, "RECORD_INDEX", {"hoodie.metadata.record.index.enable": "true",
                                                       "hoodie.record.index.update.partition.path": "true"}, move=True),
     "RECORD_INDEX in the metadata table", ["cow", "index:record"], "v6 v9"),
    ("mor_record_index", indexed(MOR, "RECORD_INDEX", {"hoodie.metadata.record.index.enable": "true"}),
     "RECORD_INDEX in the metadata table, MOR", ["mor", "index:record"], "v9"),
    ("mor_partitioned_record_index", indexed(MOR, "RECORD_LEVEL_INDEX",
                                             {"hoodie.metadata.record.level.index.enable": "true"}),
     "record index per partition (new in 1.1)", ["mor", "index:record_level"], "v9"),
    ("cow_all_stats", all_stats(COW), "column_stats, partition_stats, bloom_filters and record_index",
     ["cow", "metadata:all"], "v6 v9"),
    ("mor_all_stats", all_stats(MOR), "column_stats, partition_stats, bloom_filters and record_index, MOR",
     ["mor", "metadata:all"], "v9"),
    ("mor_secondary_index", secondary, "secondary index by CREATE INDEX", ["mor", "index:secondary"], "v8 v9"),
    ("cow_expression_index", expression, "expression indexes by CREATE INDEX", ["cow", "index:expression"], "v8 v9"),
]
for name, f, about, covers, vs in INDEXES:
    for v in vs.split():
        table(v + "_" + name, VERSION[v], about, covers)(f)


# ------------------------------------------------------------ CDC

def cdc(kind, mode):
    def f(t):
        t.configure(kind, partition="city", schema=PEOPLE)
        t.set({"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": mode})
        t.cdc = True
        if mode == "op_key_only":
            basic(t, people(12))
            return
        # in the JSON of CDC rows Hudi turns decimals into nonsense ({"zero": false}); so doubles here
        t.schema = PEOPLE.replace("decimal(10,2)", "double")
        rows = [dict(r, amount=float(r["amount"])) for r in people(12)]
        t.write(rows, "insert")
        t.write(change(rows, [1, 2, 3], name="upd-1", ts=200)
                + [dict(r, amount=0.5) for r in people(3, seed=7, ts=200, start=24)], "upsert")
        t.write(change(rows, [2, 5, 8], name="upd-2", amount=0.05, ts=300), "upsert")
        t.write(change(rows, [4, 7], ts=400), "delete")
    return f


for v, kind, mode in (("v6", COW, "op_key_only"), ("v6", COW, "data_before"), ("v6", COW, "data_before_after"),
                      ("v6", MOR, "data_before_after"), ("v8", COW, "data_before"), ("v8", MOR, "data_before_after"),
                      ("v9", COW, "data_before_after"), ("v9", MOR, "data_before_after")):
    k = "cow" if kind == COW else "mor"
    table("%s_%s_cdc_%s" % (v, k, mode), VERSION[v], "change data capture, " + mode, [k, "cdc:" + mode])(cdc(kind, mode))


# ------------------------------------------------------------ schemas

def evolve(kind):
    def f(t):
        t.configure(kind, partition="city", schema="id string, n int, f float, ts long, city string")
        b = [{"id": "k%03d" % i, "n": i, "f": i + 0.5, "ts": 10, "city": CITIES[i % 2]} for i in range(8)]
        t.write(b, "insert")
        t.write([dict(r, ts=20, n=2147483648 + i, extra="new") for i, r in enumerate(b[:2])], "upsert",
                schema="id string, n long, f float, ts long, city string, extra string")
        t.write([dict(r, ts=30, n=0.25, f=1e300, extra=None) for r in b[2:4]], "upsert",
                schema="id string, n double, f double, ts long, city string, extra string")
        t.write([dict(r, ts=40, n=1.5, f=2.5, extra="x", more={"a": 1, "b": None}) for r in b[4:5]], "upsert",
                schema="id string, n double, f double, ts long, city string, extra string, more struct<a:int,b:string>")
    return f


def schema_on_read(kind):
    def f(t):
        on = {"hoodie.schema.on.read.enable": "true"}
        if t.spec["hudi"] == "1.2.0":  # else RENAME and DROP COLUMN fail with MissingSchemaFieldException
            on["hoodie.datasource.write.schema.allow.auto.evolution.column.drop"] = "true"
        t.configure(kind, schema="id string, name string, n int, note string, ts long")
        t.set(on)
        t.read_options = dict(on)
        b = [{"id": "k%03d" % i, "name": "n%d" % i, "n": i, "note": "x", "ts": 10} for i in range(8)]
        t.write(b, "insert")
        t.sql("ALTER TABLE {table} RENAME COLUMN name TO title", on)
        t.sql("ALTER TABLE {table} ADD COLUMNS (extra int)", on)
        b2 = [{"id": r["id"], "title": "second", "n": r["n"], "note": r["note"], "ts": 20, "extra": 1} for r in b]
        t.write(b2[:3], "upsert", schema="id string, title string, n int, note string, ts long, extra int")
        t.sql("ALTER TABLE {table} ALTER COLUMN n TYPE bigint", on)
        t.sql("ALTER TABLE {table} DROP COLUMN note", on)
        b3 = [{"id": r["id"], "title": "third", "n": 5000000000, "ts": 30, "extra": None} for r in b]
        t.write(b3[2:5], "upsert", schema="id string, title string, n bigint, ts long, extra int")
    return f


SOR = {"hoodie.schema.on.read.enable": "true"}
OLD_TYPES = ("id string, i2l int, i2f int, i2d int, i2s int, i2x int, l2f bigint, l2d bigint, l2s bigint, l2x bigint, "
             "f2d float, f2s float, f2x float, d2s double, d2x double, x2x decimal(10,2), x2s decimal(10,2), s2t string, "
             "s2x string, t2s date, ts bigint")
NEW_TYPES = ("id string, i2l bigint, i2f float, i2d double, i2s string, i2x decimal(20,2), l2f float, l2d double, l2s string, "
             "l2x decimal(22,1), f2d double, f2s string, f2x decimal(20,8), d2s string, d2x decimal(20,8), x2x decimal(20,4), "
             "x2s string, s2t date, s2x decimal(12,3), t2s string, ts bigint")


def sor_options(t):
    on = dict(SOR, **{"hoodie.metadata.enable": "false", "hoodie.clean.automatic": "false"})
    if t.spec["hudi"] == "1.2.0":  # else RENAME and DROP COLUMN fail with MissingSchemaFieldException
        on["hoodie.datasource.write.schema.allow.auto.evolution.column.drop"] = "true"
    t.set(on)
    t.read_options = dict(on)
    return on


def old_types(i, ts=10):
    return {"id": "k%d" % i, "i2l": 2147483647 - i, "i2f": 16777217 + i, "i2d": -5 - i, "i2s": i, "i2x": -i,
            "l2f": 9007199254740993, "l2d": 9007199254740993, "l2s": -9223372036854775808, "l2x": 5000000000 + i,
            "f2d": 0.1, "f2s": 1.0e10, "f2x": 0.1, "d2s": 1.5e-5, "d2x": 0.1, "x2x": "-1.05", "x2s": "120.00",
            "s2t": "2024-02-29", "s2x": "12.345", "t2s": "1969-12-31", "ts": ts}


def sor_types(kind):
    """every type change that schema on read allows, of values in base files and in log blocks"""
    def f(t):
        t.configure(kind, schema=OLD_TYPES)
        on = sor_options(t)
        rows = [old_types(i) for i in range(5)] + [dict({k: None for k in old_types(0)}, id="k9", ts=10)]
        t.write(rows, "insert")
        t.write([dict(r, ts=20) for r in rows[1:3]], "upsert")
        new = dict(part.strip().split(" ", 1) for part in NEW_TYPES.replace(",2)", ";2)").replace(",1)", ";1)").replace(
            ",8)", ";8)").replace(",4)", ";4)").replace(",3)", ";3)").split(","))
        for name, kind_ in new.items():
            if "2" in name:
                t.sql("ALTER TABLE {table} ALTER COLUMN %s TYPE %s" % (name, kind_.replace(";", ",")), on, may_fail=True)
        t.write([{"id": "k2", "i2l": 5000000000, "i2f": 0.5, "i2d": 0.5, "i2s": "text", "i2x": "0.25", "l2f": 0.5, "l2d": 0.25,
                  "l2s": "text", "l2x": "0.5", "f2d": 1e300, "f2s": "text", "f2x": "0.00000001", "d2s": "text",
                  "d2x": "0.00000001", "x2x": "0.0001", "x2s": "text", "s2t": "1970-01-02", "s2x": "0.001", "t2s": "text",
                  "ts": 30}], "upsert", schema=NEW_TYPES)
    return f


NESTED = ("id string, st struct<a:int,b:string,c:struct<d:int,e:string>>, arr array<struct<p:int,q:string>>, "
          "m map<string,struct<u:int,v:string>>, x int, y string, ts bigint")


def nested_row(i, ts=10):
    return {"id": "k%d" % i, "st": {"a": i, "b": "b%d" % i, "c": {"d": i * 10, "e": "e%d" % i}},
            "arr": [{"p": i, "q": "q%d" % i}, {"p": -i, "q": None}], "m": {"one": {"u": i, "v": "v%d" % i}},
            "x": i, "y": "y%d" % i, "ts": ts}


def sor_nested(kind):
    """fields of structs, of array elements and of map values renamed, dropped and added; columns moved; a name that was
    dropped, and one that was renamed away, given to a new column; then a compaction or clustering, and writes after it"""
    def f(t):
        t.configure(kind, schema=NESTED)
        on = sor_options(t)
        rows = [nested_row(i) for i in range(8)]
        t.write(rows, "insert")
        # one element each: 1.2.0 reads an array of structs in an older log block as copies of its last element
        t.write([dict(r, y="first", arr=r["arr"][:1]) for r in (nested_row(1, 20), nested_row(2, 20))], "upsert")
        for change_ in ("RENAME COLUMN st.a TO a2", "RENAME COLUMN st.c.d TO d2", "RENAME COLUMN arr.element.p TO p2",
                        "RENAME COLUMN m.value.u TO u2", "ADD COLUMNS (st.f string)", "DROP COLUMN st.b"):
            t.sql("ALTER TABLE {table} " + change_, on)
        mid = ("id string, st struct<a2:int,c:struct<d2:int,e:string>,f:string>, arr array<struct<p2:int,q:string>>, "
               "m map<string,struct<u2:int,v:string>>, x int, y string, ts bigint")
        t.write([{"id": "k2", "st": {"a2": 2, "c": {"d2": 20, "e": "mid"}, "f": "f2"}, "arr": [{"p2": 2, "q": "mid"}],
                  "m": {"two": {"u2": 2, "v": None}}, "x": 2, "y": "mid", "ts": 30}], "upsert", schema=mid)
        for change_ in ("DROP COLUMN x", "ADD COLUMNS (x string)", "RENAME COLUMN y TO y2", "ADD COLUMNS (y int)",
                        "ADD COLUMNS (arr.element.r int)", "DROP COLUMN m.value.v", "RENAME COLUMN st TO st2",
                        "ADD COLUMNS (st2.b string)", "ALTER COLUMN y2 AFTER id"):
            t.sql("ALTER TABLE {table} " + change_, on)
        end = ("id string, y2 string, st2 struct<a2:int,c:struct<d2:int,e:string>,f:string,b:string>, "
               "arr array<struct<p2:int,q:string,r:int>>, m map<string,struct<u2:int>>, ts bigint, x string, y int")
        row = {"id": "k3", "y2": "end", "st2": {"a2": 3, "c": {"d2": 30, "e": "end"}, "f": "f3", "b": "b3"},
               "arr": [{"p2": 3, "q": "end", "r": 3}], "m": {"three": {"u2": 3}}, "ts": 40, "x": "new", "y": 3}
        t.write([row], "upsert", schema=end)
        if kind == MOR:
            t.call("run_compaction(op => 'scheduleandexecute')", on, may_fail=True)
        else:
            t.call("run_clustering(op => 'scheduleandexecute')", on, may_fail=True)
        t.sql("ALTER TABLE {table} RENAME COLUMN y TO y3", on)
        t.write([{**{k: v for k, v in row.items() if k != "y"}, "id": "k4", "y3": 4, "ts": 50}], "upsert",
                schema=end.replace("y int", "y3 int"))
    return f


TYPES = ("id string, b boolean, i int, l long, f float, d double, dec102 decimal(10,2), dec3810 decimal(38,10), s string, "
         "bin binary, dt date, at timestamp, arr array<string>, m map<string,int>, st struct<x:int,y:string,z:struct<w:date>>, "
         "ast array<struct<p:string,q:array<int>>>, mst map<string,struct<k:decimal(5,1)>>, ts long")


def type_rows(null_elements=False):
    full = {"id": "k0", "b": True, "i": 2147483647, "l": -9223372036854775808, "f": 1.5, "d": -1.7976931348623157e308,
            "dec102": "-99999999.99", "dec3810": "1234567890123456789012345678.0123456789", "s": "héllo\n\"q\" 漢字 🙂",
            "bin": "00ff10", "dt": "2024-02-29", "at": "2024-02-29T23:59:59.999999Z", "arr": ["a", "", "ç"],
            "m": {"x": 1, "y": -1}, "st": {"x": 1, "y": "two", "z": {"w": "1969-12-31"}},
            "ast": [{"p": "p1", "q": [1, 2]}, {"p": None, "q": []}], "mst": {"a": {"k": "12.5"}}, "ts": 1}
    rows = [full]
    for i, k in enumerate(k for k in full if k not in ("id", "ts")):
        rows.append({**full, "id": "n%02d" % i, k: None})
    rows.append({**{k: None for k in full}, "id": "z0", "ts": 1})
    rows.append({**full, "id": "e0", "s": "", "bin": "", "arr": [], "m": {}, "ast": [], "mst": {}, "f": "NaN", "d": "-Infinity",
                 "dt": "1600-01-01", "at": "1900-01-01T00:00:00.000001Z", "i": -2147483648, "l": 9223372036854775807,
                 "dec102": "0.00", "dec3810": "-0.0000000001"})
    rows.append({**full, "id": "e1", "dt": "9999-12-31", "at": "2262-04-11T23:47:16.854775Z", "d": 5e-324, "f": 3.4028234663852886e38,
                 "st": {"x": None, "y": None, "z": None}})
    if null_elements:
        rows.append({**full, "id": "x0", "arr": ["a", None], "m": {"x": None}, "ast": [None, {"p": "q", "q": [None, 1]}],
                     "mst": {"a": None}})
    return rows


def all_types(kind, null_elements=False):
    def f(t):
        t.configure(kind, schema=TYPES)
        # 0.15.0 keeps decimal statistics as decimal(30,15): wider values make the write itself fail
        rows = type_rows(null_elements)
        t.write(rows, "insert")
        t.write([dict(r, ts=2, s="updated") for r in rows[::3]] + [dict(rows[1], ts=2)], "upsert")
        t.write([dict(rows[2], ts=3)], "delete")
    return f


def bulk_types(t):
    t.configure(COW, schema=TYPES)
    t.set({"hoodie.parquet.outputtimestamptype": "TIMESTAMP_MILLIS"})
    rows = type_rows()
    t.write(rows, "bulk_insert")
    t.write([dict(r, ts=2, s="updated") for r in rows[::4]], "upsert")


for v, kind in (("v6", COW), ("v6", MOR), ("v8", MOR), ("v9", COW), ("v9", MOR)):
    k = "cow" if kind == COW else "mor"
    table("%s_%s_all_types" % (v, k), VERSION[v], "every type, nulls, extremes", [k, "types"])(all_types(kind))
for v, kind in (("v6", COW), ("v6", MOR), ("v8", MOR), ("v9", COW), ("v9", MOR)):
    k = "cow" if kind == COW else "mor"
    table("%s_%s_evolution" % (v, k), VERSION[v], "added columns, int to long to double, float to double",
          [k, "evolution"])(evolve(kind))
for v, kind in (("v6", COW), ("v6", MOR), ("v9", COW), ("v9", MOR)):
    k = "cow" if kind == COW else "mor"
    table("%s_%s_schema_on_read" % (v, k), VERSION[v], "renamed, dropped, added, widened columns (schema on read)",
          [k, "schema-on-read"], {"spark.golden.apart": "schema-on-read " + k})(schema_on_read(kind))
    table("%s_%s_schema_on_read_types" % (v, k), VERSION[v], "every type change that schema on read allows",
          [k, "schema-on-read"], {"spark.golden.apart": "types " + k})(sor_types(kind))
    table("%s_%s_schema_on_read_nested" % (v, k), VERSION[v],
          "fields of structs, lists and maps evolved by id; names used again; a compaction or clustering after",
          [k, "schema-on-read"], {"spark.golden.apart": "nested " + k})(sor_nested(kind))
# (each in a Spark of its own: Hudi leaves the schema of one such table in the session's Hadoop
# configuration, and then reads other tables by it)
table("v6_cow_millis", "0.15.0", "bulk_insert row writer, timestamps in millis", ["cow", "types", "timestamp-millis"])(bulk_types)
table("v9_cow_millis", "1.2.0", "bulk_insert row writer, timestamps in millis", ["cow", "types", "timestamp-millis"])(bulk_types)
NEW_LISTS = {"spark.hadoop.parquet.avro.write-old-list-structure": "false"}
table("v9_mor_null_elements", "1.2.0", "nulls inside arrays and maps, three-level Parquet lists", ["mor", "types"],
      NEW_LISTS)(all_types(MOR, True))
table("v6_cow_null_elements", "0.15.0", "nulls inside arrays and maps, three-level Parquet lists", ["cow", "types"],
      NEW_LISTS)(all_types(COW, True))


# ------------------------------------------------------------ types that change by name

NAMED_OLD = "id string, f2d float, i2f int, l2d bigint, i2s int, l2s bigint, f2s float, d2s double, x2x decimal(10,2), ts bigint"
NAMED_NEW = ("id string, f2d double, i2f float, l2d double, i2s string, l2s string, f2s string, d2s string, x2x decimal(20,4), "
             "ts bigint")


def changed_by_name(kind):
    """without schema on read: numbers that have no exact counterpart, numbers to text, a decimal that grows"""
    def f(t):
        wider = {"x2x": "0.0001"} if t.spec["hudi"] != "0.15.0" else {}  # which does not let decimals grow
        old, new = NAMED_OLD, NAMED_NEW if wider else NAMED_NEW.replace("(20,4)", "(10,2)")
        t.configure(kind, schema=old)
        t.set({"hoodie.metadata.enable": "false"})
        rows = [{"id": "k%d" % i, "f2d": [0.1, -1.17, 3.4e38, 1.0e-10][i % 4], "i2f": 16777217 + i, "l2d": 9007199254740993,
                 "i2s": -i, "l2s": -9223372036854775808, "f2s": [0.1, 1.0e10, 16777216.0, 0.001][i % 4],
                 "d2s": [1.5e-5, 1.0e7, 123456.789, -0.0][i % 4], "x2x": "-1.05", "ts": 10} for i in range(8)]
        t.write(rows, "insert")
        t.write([dict(r, ts=20) for r in rows[:4]], "upsert")
        t.write([{"id": "k7", "f2d": 0.1, "i2f": 0.5, "l2d": 0.5, "i2s": "text", "l2s": "text", "f2s": "text", "d2s": "text",
                  "x2x": "0.01", **wider, "ts": 30}], "upsert", schema=new)
    return f


for v, kind in (("v6", MOR), ("v9", COW), ("v9", MOR)):
    k = "cow" if kind == COW else "mor"
    table("%s_%s_changed_by_name" % (v, k), VERSION[v], "types changed by name: inexact numbers, numbers to text, wider decimals",
          [k, "evolution"])(changed_by_name(kind))


def other_timestamps(kind, schema, options=None, operation="insert"):
    """timestamps of other logical and physical types, far ones too"""
    def f(t):
        t.configure(kind, schema="id string, %s, ts bigint" % schema)
        t.set({"hoodie.metadata.enable": "false", **(options or {})})
        z = "" if "ntz" in schema else "Z"
        texts = ["2024-02-29T12:30:00.123456", "1969-12-31T23:59:59.999999", "1900-01-01T00:00:00.000001", "9999-12-31T23:59:59.000000"]
        rows = [{"id": "k%d" % i, "at": x and x + z, "l": x and [x + z], "ts": 10} for i, x in enumerate([*texts, None])]
        t.write(rows, operation)
        t.write([dict(r, ts=20) for r in rows[:2]], "upsert", may_fail=True)
    return f


NTZ = "at timestamp_ntz, l array<timestamp_ntz>"
for v, kind in (("v9", COW), ("v9", MOR)):  # 0.15.0 has no such type
    k = "cow" if kind == COW else "mor"
    table("%s_%s_local_timestamps" % (v, k), VERSION[v], "timestamps without a zone", [k, "evolution"])(other_timestamps(kind, NTZ))
table("v6_cow_int96", "0.15.0", "bulk_insert row writer, timestamps as INT96", ["cow", "evolution"])(
    other_timestamps(COW, "at timestamp, l array<timestamp>", {"hoodie.parquet.outputtimestamptype": "INT96"}, "bulk_insert"))


# ------------------------------------------------------------ partition paths

KEYGEN = "org.apache.hudi.keygen."


def partitioned(schema, values, by, options=None, kind=COW, drop=False):
    """A table whose rows differ in their partition columns; `values` has one dict a row."""
    def f(t):
        t.configure(kind, partition=by, schema="id string, name string, ts bigint, " + schema)
        t.set({"hoodie.metadata.enable": "false", "hoodie.datasource.write.hive_style_partitioning": "false", **(options or {})})
        if drop:
            t.set({"hoodie.datasource.write.drop.partition.columns": "true"})
        rows = [{"id": "k%02d" % i, "name": NAMES[i % 12], "ts": 1, **value} for i, value in enumerate(values)]
        t.write(rows, "insert")
        if not drop:  # 1.2.0 cannot write again to tables without typed partition columns
            t.write([dict(rows[0], name="upd", ts=2)], "upsert")
    return f


def each(**columns):
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
COMPLEX = {"hoodie.datasource.write.keygenerator.class": KEYGEN + "ComplexKeyGenerator"}


def timebased(kind, out, generator="TimestampBasedKeyGenerator", **more):
    return {"hoodie.datasource.write.keygenerator.class": KEYGEN + generator, "hoodie.keygen.timebased.timestamp.type": kind,
            "hoodie.keygen.timebased.output.dateformat": out, "hoodie.keygen.timebased.timezone": "UTC",
            **{"hoodie.keygen.timebased." + k.replace("_", "."): v for k, v in more.items()}}


ODD = ["a.b", "..x", "é漢", "a b", "1", "2024-02-29", "true", None, "", "a+b&c"]
TIMES = ["2024-02-29T12:30:00.000000Z", "1969-12-31T23:59:59.999999Z", None]
PARTITIONED = [
    ("odd_texts", "city string", each(city=ODD), "city", {}, "odd texts without URL encoding"),
    ("odd_texts_hive", "city string", each(city=[*ODD, "q=1", "50%"]), "city", HIVE, "odd texts, hive style"),
    ("encoded_levels", "city string, kind string", each(city=["a/b", "", "é%", None, "x:y"], kind=["c/d", "", "z=1", "q", None]),
     "city,kind", {**COMPLEX, **ENCODED}, "two URL-encoded levels"),
    ("slash_in_text", "city string", each(city=["a/b", "a/c", "b/c/d"]), "city", {}, "values with slashes, not encoded"),
    ("levels", "n int, city string, d double", each(n=[1, None, -2], city=["x", "y", None], d=[0.5, 1e10, -1.5e-5]), "n,city,d",
     COMPLEX, "three levels, nulls in them"),
    ("all_types", "b boolean, l bigint, x decimal(10,2), day date, f float",
     each(b=[True, False, None], l=[9007199254740993, -1, None], x=["1.50", "-0.05", None],
          day=["2024-02-29", "1969-12-31", None], f=[0.1, 1.0e10, None]), "b,l,x,day,f", {**COMPLEX, **HIVE},
     "boolean, long, decimal, date and float levels"),
    ("instant", "at timestamp", each(at=TIMES), "at", HIVE, "a timestamp column, hive style"),
    ("ts_millis", "at bigint", each(at=[1709164800000, 1709251199999, 0]), "at", timebased("EPOCHMILLISECONDS", "yyyy-MM-dd HH"),
     "timestamp generator: longs"),
    ("ts_hive", "at bigint", each(at=[1709164800, 1709251199, None]), "at", {**timebased("UNIX_TIMESTAMP", "yyyy/MM/dd"), **HIVE},
     "timestamp generator: seconds, hive style, slashes"),
    ("ts_text", "at string", each(at=["2024-02-29 10:00:00", "2024-03-01 00:00:00"]), "at",
     timebased("DATE_STRING", "yyyy-MM-dd", input_dateformat="yyyy-MM-dd HH:mm:ss"), "timestamp generator: text"),
    ("ts_instant", "at timestamp", each(at=TIMES[:2]), "at", timebased("EPOCHMICROSECONDS", "yyyy-MM-dd"),
     "timestamp generator: timestamps"),
    ("ts_date", "at date", each(at=["2024-02-29", "1969-12-31"]), "at", timebased("EPOCHMILLISECONDS", "yyyy-MM-dd"),
     "timestamp generator: dates"),
    ("ts_double", "at double", each(at=[1709164800.0, 0.5]), "at", timebased("UNIX_TIMESTAMP", "yyyy-MM-dd"),
     "timestamp generator: doubles"),
    ("custom", "city string, n int, at bigint", each(city=["x", "", None], n=[1, 2, None], at=[1709164800000, 0, 86400000]),
     "city:SIMPLE,n:SIMPLE,at:TIMESTAMP", timebased("EPOCHMILLISECONDS", "yyyyMMdd", "CustomKeyGenerator"),
     "custom generator: two plain levels and a time"),
    ("custom_slashes", "city string, at bigint, kind string",
     each(city=["x", "y"], at=[1709164800000, 86400000], kind=["p", None]), "city:SIMPLE,at:TIMESTAMP,kind:SIMPLE",
     timebased("EPOCHMILLISECONDS", "yyyy/MM/dd", "CustomKeyGenerator"), "custom generator: a time with slashes between levels"),
    ("custom_simple", "n int, city string", each(n=[1, 2, None], city=["x", None, ""]), "n:SIMPLE,city:SIMPLE",
     {"hoodie.datasource.write.keygenerator.class": KEYGEN + "CustomKeyGenerator", **HIVE}, "custom generator: plain levels only"),
    ("slash_dates", "day string", each(day=["2024-02-29", "1969-12-31"]), "day",
     {"hoodie.datasource.write.slash.separated.date.partitioning": "true"}, "dates with slashes"),
    ("slash_dates_hive", "day string", each(day=["2024-02-29", "1969-12-31"]), "day",
     {"hoodie.datasource.write.slash.separated.date.partitioning": "true", **HIVE}, "dates with slashes, hive style"),
]
DROPPED = [
    ("types", "b boolean, l bigint, x decimal(10,2), day date, city string",
     each(b=[True, False, None], l=[1, -1, None], x=["1.50", "-0.05", None], day=["2024-02-29", "1969-12-31", None],
          city=["x", "1", None]), "b,l,x,day,city", {**COMPLEX, **HIVE}, "boolean, long, decimal, date and text levels"),
    ("plain", "city string", each(city=ODD[:6]), "city", {}, "odd texts, not hive style"),
    ("encoded", "city string", each(city=["a/b", "é%", "x:y", None, "2024"]), "city", ENCODED, "URL-encoded texts"),
    ("instant", "at timestamp", each(at=TIMES[:2]), "at", HIVE, "a timestamp"),
    ("ts", "at bigint", each(at=[1709164800000, 0]), "at", timebased("EPOCHMILLISECONDS", "yyyy-MM-dd"), "timestamp generator"),
    ("custom", "city string, at bigint", each(city=["x", "y"], at=[1709164800000, 0]), "city:SIMPLE,at:TIMESTAMP",
     timebased("EPOCHMILLISECONDS", "yyyyMMdd", "CustomKeyGenerator"), "custom generator"),
    ("slash_dates", "day string", each(day=["2024-02-29", "1969-12-31"]), "day",
     {"hoodie.datasource.write.slash.separated.date.partitioning": "true"}, "dates with slashes"),
]
for name, schema, values, by, options, about in PARTITIONED:
    table("v9_cow_by_" + name, "1.2.0", "partition columns: " + about, ["cow", "partition-types"])(
        partitioned(schema, values, by, options))
for name, schema, values, by, options, about in DROPPED:
    table("v9_cow_dropped_" + name, "1.2.0", "partition columns dropped from the files: " + about,
          ["cow", "drop-partition-columns"])(partitioned(schema, values, by, options, drop=True))


def virtual_two_keys(t):
    t.configure(MOR, key="id,name", partition="city", schema=PEOPLE)
    t.set({"hoodie.datasource.write.keygenerator.class": KEYGEN + "ComplexKeyGenerator", "hoodie.populate.meta.fields": "false",
           "hoodie.index.type": "SIMPLE", "hoodie.metadata.enable": "false"})
    rows = people(8)
    t.write(rows, "insert")
    t.write([dict(r, age=99, ts=200) for r in rows[:3]], "upsert")
    t.write([dict(rows[4], ts=300)], "delete")


def other_generator(cls, partition=""):
    def f(t):
        t.configure(MOR, partition=partition, schema=PEOPLE)
        t.set({"hoodie.datasource.write.keygenerator.class": KEYGEN + cls, "hoodie.metadata.enable": "false"})
        rows = people(6)
        t.write(rows, "insert")
        t.write([dict(r, age=99, ts=200) for r in rows[:2]], "upsert")
    return f


table("v9_mor_virtual_two_keys", "1.2.0", "no meta columns, a key of two fields", ["mor", "partition-types"])(virtual_two_keys)
table("v9_mor_global_delete_keys", "1.2.0", "GlobalDeleteKeyGenerator", ["mor", "partition-types"])(
    other_generator("GlobalDeleteKeyGenerator"))
table("v9_mor_nonpartitioned_keys", "1.2.0", "NonpartitionedKeyGenerator", ["mor", "partition-types"])(
    other_generator("NonpartitionedKeyGenerator"))


# ------------------------------------------------------------ older table versions by the newest Hudi

def by12(version, f):
    def g(t):
        t.opts.update({"hoodie.write.table.version": str(version), "hoodie.write.auto.upgrade": "false"})
        f(t)
    return g


for n in (6, 8):
    for name, f, about, covers in (("cow_nonpart", cow_nonpart, "COW basics", ["cow"]),
                                   ("mor_part_avro", mor_part, "MOR basics", ["mor"]),
                                   ("mor_event_time", merge_table(MOR, "EVENT_TIME_ORDERING"), "merge story", ["mor"]),
                                   ("mor_compaction", compaction, "compactions", ["mor", "compaction"]),
                                   ("mor_failed_rolled_back", failed_then_rolled_back, "rolled back crash", ["mor", "rollback"]),
                                   ("cow_archived", archived(COW), "archived timeline", ["cow", "archive"])):
        if (n, name) not in ((6, "mor_part_avro"), (6, "mor_event_time"), (6, "mor_failed_rolled_back"), (6, "cow_archived"),
                             (8, "mor_event_time"), (8, "mor_compaction")):
            continue  # keeps the set small
        table("v%dby12_%s" % (n, name), "1.2.0", "table version %d written by 1.2.0: %s" % (n, about),
              covers + ["written-by-newer"])(by12(n, f))


def upgraded(start):
    def f(t):
        t.configure(MOR, partition="city", schema=PEOPLE)
        rows = people(12)
        old = {"hoodie.write.table.version": str(start), "hoodie.write.auto.upgrade": "false"}
        t.write(rows, "insert", old)
        t.write(change(rows, [1, 2], name="upd-old", ts=200), "upsert", old)
        t.write(change(rows, [2, 3], name="upd-new", ts=300), "upsert")
        t.write(change(rows, [4]), "delete")
    return f


def downgraded(name):
    def f(t):
        t.configure(MOR, partition="city", schema=PEOPLE)
        rows = people(12)
        t.write(rows, "insert")
        t.write(change(rows, [1, 2], name="upd-1", ts=200), "upsert")
        t.call("downgrade_table(to_version => '%s')" % name)
    return f


table("v9_mor_upgraded_from_6", "1.2.0", "started as version 6, upgraded by a later write", ["mor", "upgrade"])(upgraded(6))
table("v9_mor_upgraded_from_8", "1.2.0", "started as version 8, upgraded by a later write", ["mor", "upgrade"])(upgraded(8))
table("v6_mor_downgraded_from_9", "1.2.0", "version 9 downgraded to 6", ["mor", "downgrade"])(downgraded("SIX"))
table("v8_mor_downgraded_from_9", "1.2.0", "version 9 downgraded to 8", ["mor", "downgrade"])(downgraded("EIGHT"))


# ------------------------------------------------------------ odds and ends

def empty(t):
    t.configure(COW, schema=PEOPLE)
    t.sql("CREATE TABLE golden_%s (%s) USING hudi PARTITIONED BY (city) TBLPROPERTIES (type = 'cow', primaryKey = 'id', "
          "preCombineField = 'ts') LOCATION '{base}'" % (t.name, PEOPLE.replace("long", "bigint")))


def auto_keys(kind):
    def f(t):
        t.configure(kind, key=None, partition="city", ordering=None, schema=PEOPLE)
        t.write(people(8), "insert")
        t.write(people(4, seed=2), "insert")
        t.sql("UPDATE {table} SET age = -1 WHERE id = 'k001'")
        t.sql("DELETE FROM {table} WHERE id = 'k002'")
    return f


def dropped_partition_columns(t):
    t.configure(COW, partition="city", schema=PEOPLE)
    t.set({"hoodie.datasource.write.drop.partition.columns": "true",
           "hoodie.datasource.write.hive_style_partitioning": "true"})
    rows = people(12)
    t.write(rows, "insert")
    t.write(change(rows, [1, 2], name="upd-1", ts=200), "upsert")


def no_metadata_table(kind):
    def f(t):
        t.configure(kind, partition="city", schema=PEOPLE)
        t.set({"hoodie.metadata.enable": "false"})
        t.read_options = {"hoodie.metadata.enable": "false"}
        basic(t, people(12))
    return f


def typed_partitions(t):
    t.configure(COW, partition="n,day", schema="id string, name string, ts long, n int, day date")
    t.set({"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
           "hoodie.datasource.write.hive_style_partitioning": "true"})
    rows = [{"id": "k%02d" % i, "name": NAMES[i % 12], "ts": 1, "n": i % 2, "day": "2024-02-%02d" % (28 + i % 2)} for i in range(10)]
    t.write(rows, "insert")
    t.write([dict(r, name="upd", ts=2) for r in rows[2:4]], "upsert")


def duplicates(t):
    """insert does not look up keys: the same ones twice"""
    t.configure(COW, schema=PEOPLE)
    t.set({"hoodie.parquet.small.file.limit": "0", "hoodie.datasource.write.insert.drop.duplicates": "false"})
    rows = people(6)
    t.write(rows, "bulk_insert")
    t.write(change(rows, [1, 2], name="again", ts=200), "bulk_insert")
    t.write(change(rows, [2], name="upd", ts=300), "upsert")


EXTRAS = [
    ("cow_empty", empty, "CREATE TABLE and nothing written", ["cow", "empty"], "v6 v8 v9"),
    ("cow_auto_keys", auto_keys(COW), "no record key: generated keys; SQL update and delete", ["cow", "auto-keys"], "v6 v9"),
    ("cow_no_partition_columns", dropped_partition_columns, "partition columns dropped from the files",
     ["cow", "drop-partition-columns"], "v6 v9"),
    ("mor_no_metadata", no_metadata_table(MOR), "without a metadata table", ["mor", "no-metadata-table"], "v6 v8 v9"),
    ("cow_typed_partitions", typed_partitions, "int and date partition columns", ["cow", "partition-types"], "v6 v9"),
    ("cow_duplicates", duplicates, "bulk_insert twice: duplicate keys, then an upsert of one", ["cow", "duplicates"], "v6 v9"),
]
for name, f, about, covers, vs in EXTRAS:
    for v in vs.split():
        table(v + "_" + name, VERSION[v], about, covers)(f)


import bootstrap_tables  # noqa: E402,F401 - each registers its tables
import more_tables  # noqa: E402,F401
import old_tables  # noqa: E402,F401
import orc_tables  # noqa: E402,F401
import service_tables  # noqa: E402,F401

if __name__ == "__main__":
    sys.exit(main(os.path.join(HERE, "..", "..", "fixtures", "tables")))
