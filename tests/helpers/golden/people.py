"""What several families of golden tables have in common: their rows and their releases."""
import random

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
VERSION = {"v6": "0.15.0", "v8": "1.0.2", "v9": "1.2.0"}

PEOPLE = "id string, name string, age int, amount decimal(10,2), ts long, city string"
NAMES = ["Ana", "Bo", "Chloé", "Dmitri", "Eun-ji", "Fatima", "Gus", "Hana", "Iñaki", "Jun", "Kofi", "李雷"]
CITIES = ["lisbon", "osaka", "quito"]


def people(n, seed=1, ts=100, start=0, cities=CITIES):
    r = random.Random(seed)
    return [{"id": "k%03d" % (start + i), "name": r.choice(NAMES), "age": r.randint(1, 90),
             "amount": "%d.%02d" % (r.randint(-500, 5000), r.randint(0, 99)), "ts": ts,
             "city": cities[(start + i) % len(cities)]} for i in range(n)]


def change(rows, ids, **new):
    by = {x["id"]: x for x in rows}
    return [{**by["k%03d" % i], **new} for i in ids]


def keys(rows, ids, **new):
    return change(rows, ids, **new)
