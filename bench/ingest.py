"""What reading a dataset takes: peak memory and megabytes a second, for each format.

    python bench/ingest.py [--gigabytes 2] [--formats text,jsonl,...] [--folder FOLDER]

Files are made in a temporary folder, one after another, and removed; each is read by a process of its own, whose peak
of resident memory is asked of the system. Words are drawn from a fixed list, so that texts compress as texts do, and
nearly all documents differ. "short" are JSON lines with a text of about 50 bytes: it has the most documents.
Sizes and rates are those of the unpacked content; CPU seconds are what counts on a machine that others use too.
Prints a table, and last one line of JSON.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

FORMATS = ("text", "jsonl", "short", "csv", "parquet", "jsonl.gz", "jsonl.zst", "tokens")
_BLOCK = 1 << 20  # bytes that are made at once; more than a packer looks back
_CHILD = """
import json, resource, subprocess, sys
done = subprocess.run([sys.executable, "-m", "nas.ingest", *sys.argv[1:]], stdout=subprocess.PIPE, check=False)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
seconds = used.ru_utime + used.ru_stime
print(json.dumps({"peak_kib": used.ru_maxrss, "cpu_s": seconds, "answer": json.loads(done.stdout)}))
"""


def sentences(generator: random.Random, n_bytes: int) -> Iterator[str]:
    """Texts of about n_bytes, without end."""
    words = ["".join(generator.choices("etaoinshrdlucé", k=generator.randint(1, 11))) for _ in range(20_000)]
    while True:
        yield " ".join(generator.choices(words, k=max(1, n_bytes // 7)))


def rows(generator: random.Random, n_bytes: int) -> Iterator[tuple[str, int]]:
    """Documents with one of four labels."""
    for text in sentences(generator, n_bytes):
        yield text, generator.randrange(4)


def make(path: Path, what: str, n_bytes: int) -> int:
    """Write a file of a format; its content has about n_bytes. Returns how many it has."""
    generator = random.Random(0)
    if what == "parquet":
        return make_parquet(path, n_bytes)
    if what == "jsonl.zst":
        import pyarrow

        with pyarrow.CompressedOutputStream(str(path), "zstd") as packed:
            return fill(packed, "jsonl", n_bytes, generator)
    with gzip.open(path, "wb", compresslevel=1) if what == "jsonl.gz" else path.open("wb") as file:
        return fill(file, what, n_bytes, generator)


def fill(file: IO[bytes] | Any, what: str, n_bytes: int, generator: random.Random) -> int:
    """Blocks of about _BLOCK bytes are made and written as often as it takes, each with a number in its texts."""
    done = 0
    if what == "csv":
        done += file.write(b"text,label\n")
    block = template(what, generator)
    while done < n_bytes:
        written = block.replace(b"#", b"%08d" % (done % 10**8)) if what != "tokens" else block
        file.write(written)
        done += len(written)
    return done


def template(what: str, generator: random.Random) -> bytes:
    """A block whose documents hold a "#", in whose place a number makes them differ from those of other blocks."""
    if what == "tokens":
        return generator.randbytes(_BLOCK)
    lines: list[str] = []
    size = 0
    for text, label in rows(generator, 35 if what == "short" else 500):
        line = {
            "text": f"{text} #",
            "csv": f'"{text}, #",{label}',
        }.get(what) or json.dumps({"text": f"{text} #", "label": label}, ensure_ascii=False)
        lines.append(line + "\n")
        size += len(line)
        if size > _BLOCK:
            return "".join(lines).encode()
    raise AssertionError("rows end")


def make_parquet(path: Path, n_bytes: int) -> int:
    """One group of rows, so that reading by groups alone would hold all of it."""
    import pyarrow
    import pyarrow.parquet as parquet

    generator = random.Random(0)
    texts = [text for text, _ in zip(sentences(generator, 500), range(2000), strict=False)]
    labels = [generator.randrange(4) for _ in texts]
    done = 0
    batches = []
    while done < n_bytes:
        found = [f"{text} {done}" for text in texts]
        batches.append(pyarrow.record_batch({"text": pyarrow.array(found, pyarrow.large_string()), "label": labels}))
        done += sum(map(len, found))
    table = pyarrow.Table.from_batches(batches)
    parquet.write_table(table, path, row_group_size=table.num_rows, compression="zstd", use_dictionary=False)
    return done


def measure(what: str, n_bytes: int, folder: Path) -> dict[str, Any]:
    """Make a file, read it, remove both."""
    raw = folder / f"raw.{what}"
    content = make(raw, what, n_bytes)
    told: dict[str, Any] = {"format": {"short": "jsonl"}.get(what, what.partition(".")[0])}
    if what == "tokens":
        told |= {"dtype": "uint16", "vocab_size": 65536}
    kept = folder / "kept"
    begin = time.perf_counter()
    arguments = [str(raw), str(kept), json.dumps(told), str(4 * n_bytes)]
    done = subprocess.run([sys.executable, "-c", _CHILD, *arguments], stdout=subprocess.PIPE, check=True)
    seconds = time.perf_counter() - begin
    found = json.loads(done.stdout)
    if "card" not in found["answer"]:
        raise SystemExit(f"{what}: {found['answer']['error']['message']}")
    card = found["answer"]["card"]
    for path in (raw, kept / card["fingerprint"], *kept.iterdir()):
        path.unlink(missing_ok=True)
    return {
        "format": what,
        "content_mb": round(content / 1e6),
        "rows": card["n_rows"],
        "seconds": round(seconds, 1),
        "cpu_seconds": round(found["cpu_s"], 1),
        "mb_per_s": round(content / 1e6 / seconds, 1),
        "mb_per_cpu_s": round(content / 1e6 / found["cpu_s"], 1),
        "peak_mb": round(found["peak_kib"] * 1024 / 1e6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--gigabytes", type=float, default=2.0, help="of content a file")
    parser.add_argument("--formats", default=",".join(FORMATS), help=f"of {', '.join(FORMATS)}")
    parser.add_argument("--folder", type=Path, default=None, help="where files are made; the system's if not given")
    asked = parser.parse_args()
    results = []
    print(
        f"{'format':10} {'MB':>6} {'rows':>11} {'seconds':>8} {'CPU s':>7} {'MB/s':>7} {'MB/CPU s':>9} {'peak MB':>8}"
    )
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        for what in asked.formats.split(","):
            each = measure(what, int(asked.gigabytes * 1e9), Path(folder))
            results.append(each)
            print(
                f"{each['format']:10} {each['content_mb']:6,} {each['rows']:11,} {each['seconds']:8} "
                f"{each['cpu_seconds']:7} {each['mb_per_s']:7} {each['mb_per_cpu_s']:9} {each['peak_mb']:8,}",
                flush=True,
            )
    print(json.dumps({"bench": "ingest", "results": results}))


if __name__ == "__main__":
    main()
