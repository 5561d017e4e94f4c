"""Fill corpus/<target> with seeds: real files of the crates' tests, cut to what each target reads.

`make fuzz` runs it first.
"""

import base64
import pathlib

HERE = pathlib.Path(__file__).parent
DATA = HERE.parent / "format" / "tests" / "data"
AVRO = HERE.parent / "avro" / "tests" / "data"
RECORD = "02026b" + "01" + "0002" + "020a" + "020000000005" + "02" + "02020200" + "0202610200" + "00" + "00"
FILTERS = {
    "simple": "/////wAAAAcBAAAAYBIgAEEgAEQCgAIAQA==",
    "dynamic": "/////wAAAAcBAAAAFAAAAAIAAAADAAAAAv////8AAAAHAQAAABRvNg7/////AAAABwEAAAAU+GIE",
}
LISTS = {
    "two": "04" + "020264" + "0200" + "0400" + "020263" + "0200" + "0400" + "00",
    "array": "02" + "02026b" + "00" + "18" + "02" + "04" + "040e" + "0e0261" + "00" + "00",
}


def put(target: str, name: str, data: bytes) -> None:
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def main() -> None:
    for path in sorted((DATA / "log").iterdir()):
        put("log_scan", path.name, path.read_bytes())
    for path in sorted((DATA / "hfile").iterdir()):
        put("hfile", path.name, path.read_bytes()[:-4].rstrip(b"\0"))
    for name in ("v6_mor_archived.clean", "v9_mor_all_types.deltacommit"):
        put("container", name, (AVRO / name).read_bytes())
    put("records", "one", bytes.fromhex(RECORD))
    put("datum", "one", bytes.fromhex("00" + "02" + "02" + "0261" + "0800" + "00" + "0206"))
    for name, text in FILTERS.items():
        put("bloom", name, base64.b64decode(text))
        put("bloom", name + ".txt", text.encode())
    for name, text in LISTS.items():
        put("delete_list", name, bytes.fromhex(text))
    kryo = (HERE.parent / "format" / "src" / "log" / "kryo" / "tests.rs").read_text()
    for number, text in enumerate(kryo.split('= "')[1:]):
        digits = text.split('"')[0]
        if digits.startswith("0100"):
            put("delete_list", f"kryo{number}", bytes.fromhex(digits))


if __name__ == "__main__":
    main()
