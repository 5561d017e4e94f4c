"""Tables whose base files are ORC, and tables of both formats: what Hudi writes of them and reads back.

0.15.0 reads copy-on-write after one write and fails on the second upsert; 1.0.2 reads none; 1.2.0 reads
merge-on-read alone. Spark's row writer knows Parquet only, so rows come by upserts. Hudi loses the
milliseconds of times as it writes ORC, and cannot read those before 1970 with microseconds. 1.2.0
fails to write dates, and to compact.
"""
from golden import table
from people import COW, MOR, PEOPLE, change, people

ORC = {"hoodie.table.base.file.format": "ORC", "hoodie.datasource.write.row.writer.enable": "false"}
# Statistics are read from Parquet footers.
PLAIN = {"hoodie.metadata.index.column.stats.enable": "false", "hoodie.metadata.index.partition.stats.enable": "false"}

TYPES = ("id string, b boolean, i int, l bigint, f float, d double, dc decimal(10,2), wide decimal(38,6), day date, at timestamp, "
         "bin binary, s string, xs array<int>, texts array<string>, m map<string,bigint>, "
         "st struct<a:int,t:string,deep:array<struct<x:double,y:string>>>, ts bigint")
DAYS = ["2024-02-29", "1969-12-31", "1582-10-15", "9999-12-31", "2015-01-01"]
TIMES = ["2024-02-29T12:00:00.123456Z", "1969-12-31T23:59:58.000000Z", "1900-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z",
         "2015-01-01T00:00:00.500000Z", "1950-06-01T01:02:03.450000Z"]


def of_types(i):
    if i % 9 == 4:
        return {"id": "k%04d" % i, "ts": 1}
    return {"id": "k%04d" % i, "b": i % 3 == 0, "i": [i, -i, 2147483647, -2147483648][i % 4],
            "l": [i, -i, 9223372036854775807, -9223372036854775808][i % 4], "f": [0.1, -1.5, 3.4e38, "NaN"][i % 4],
            "d": [0.1 * i, -1.5e-300, "Infinity", 0.0][i % 4], "dc": ["%d.%02d" % (i, i % 100), "-0.05", "99999999.99"][i % 3],
            "wide": ["%d.000001" % i, "-99999999999999999999999999999999.999999", "0.000000"][i % 3], "day": DAYS[i % 5],
            "at": TIMES[i % 6], "bin": "00ff%02x" % (i % 256), "s": ["", "é", "text %d" % i, "same"][i % 4],
            "xs": list(range(i % 5)), "texts": ["t%d" % k for k in range(i % 3)], "m": {"a%d" % k: i for k in range(i % 3)},
            "st": None if i % 7 == 3 else {"a": i, "t": "t%d" % (i % 4), "deep": [{"x": 0.5 * k, "y": "y"} for k in range(i % 4)]},
            "ts": 1}


def types(kind):
    def f(t):
        t.configure(kind, schema=TYPES if kind == COW else TYPES.replace(" day date,", ""))
        t.set({**ORC, **PLAIN})
        rows = [of_types(i) for i in range(60)]
        if kind == MOR:
            rows = [{k: v for k, v in r.items() if k != "day"} for r in rows]
        t.write(rows, "upsert")
        if kind == MOR:
            t.write([dict(r, ts=2, s="updated") for r in rows[::6]], "upsert")
    return f


def merged(t):
    """updates, deletes and new keys; no compaction, on which 1.2.0 fails"""
    t.configure(MOR, partition="city", schema=PEOPLE)
    t.set({**ORC, **PLAIN})
    if "by12" in t.name:
        t.set({"hoodie.write.table.version": t.name[1], "hoodie.write.auto.upgrade": "false"})
    rows = people(24)
    t.write(rows, "upsert")
    t.write(change(rows, [1, 2, 3], name="upd-1", ts=200) + people(3, seed=7, ts=200, start=24), "upsert")
    t.write(change(rows, [4, 7], ts=300), "delete")
    t.write(change(rows, [2, 5], name="upd-2", ts=400), "upsert")


def once(t):
    t.configure(COW, partition="city", schema=PEOPLE)
    t.set({**ORC, **PLAIN})
    t.write(people(24), "upsert")


def both_formats(kind):
    """a partition of each format"""
    def f(t):
        t.configure(kind, partition="city", schema=PEOPLE)
        t.set({**PLAIN, "hoodie.table.multiple.base.file.formats.enable": "true"})
        t.set({"hoodie.datasource.write.row.writer.enable": "false"})
        rows = people(12)
        for city, form in zip(("lisbon", "osaka", "quito"), ("PARQUET", "ORC", "PARQUET")):
            t.write([r for r in rows if r["city"] == city], "upsert", {"hoodie.base.file.format": form})
        if kind == MOR:
            t.write(change(rows, [0, 1, 2], name="upd-1", ts=200), "upsert")
    return f


table("v9_mor_formats", "1.2.0", "Parquet and ORC base files in one table", ["mor", "orc", "formats"])(both_formats(MOR))
table("v6_cow_formats", "0.15.0", "Parquet and ORC base files in one table", ["cow", "orc", "formats"])(both_formats(COW))
table("v9_mor_orc", "1.2.0", "ORC base files: updates, deletes, new keys", ["mor", "orc"])(merged)
table("v9_mor_orc_types", "1.2.0", "ORC base files: every type, nulls, extremes", ["mor", "orc", "types"])(types(MOR))
table("v6_cow_orc", "0.15.0", "ORC base files, one write", ["cow", "orc"])(once)
table("v6_cow_orc_types", "0.15.0", "ORC base files: every type, nulls, extremes", ["cow", "orc", "types"])(types(COW))
for v in ("6", "8"):
    table("v%sby12_mor_orc" % v, "1.2.0", "table version %s written by 1.2.0, ORC base files" % v, ["mor", "orc"])(merged)
