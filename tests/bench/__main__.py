"""Run the benchmarks of Mneme, and print their tables.

``python -m tests.bench [--only NAME] [--sessions N] [--turns N] [--conversations N] [--peer
PYTHON]``. Each figure is compared with another figure of the same run.

NAME is one of shape, cache, long, facts, guard, evidence, recall, screen, hurry, owner, questions,
changes, reminders, jobs, speed, gateway, media and page. The benchmarks grow, cold, peers,
services, engines and scale take long, so they run only if you name them.

* gateway, grow and cold also measure another checkout if --before names its folder.
* services needs the engines that ``tests/services/setup.sh`` installs, and names those that are
  missing.
* guard, evidence, recall, hurry, owner, questions, reminders and speed need the project's shared
  benchmark folder next to the checkout, or in MNEME_SHARED. Without it, they print a message and
  are skipped.
* speed compares Mneme with hermes-agent 0.19.0 if --peer or MNEME_PEER_PYTHON names the Python
  interpreter of its environment. Mneme then runs in another process (`proxy.py`).
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import structlog

from tests.bench import (
    changes,
    cold,
    doors,
    engines,
    evidence_table,
    gateway,
    jobs,
    knowing,
    long,
    media,
    page,
    peers,
    recall,
    reminders,
    scale,
    screen,
    services,
    shape,
)
from tests.bench.cache import measure

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
BENCHES = [
    "shape",
    "cache",
    "long",
    "facts",
    "guard",
    "evidence",
    "recall",
    "screen",
    "hurry",
    "owner",
    "questions",
    "changes",
    "reminders",
    "jobs",
    "speed",
    "gateway",
    "media",
    "page",
]
NAMED_ONLY = ["grow", "cold", "peers", "services", "engines", "scale"]


def main() -> int:
    """Run the named benchmarks, or all of them. Return 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument(
        "--only", action="append", choices=BENCHES + NAMED_ONLY, help="this one; may be given again"
    )
    sized = "how big the stores of owner, questions and speed are (1,000 are 20,000 messages), and the history of services"
    default = f"3,000, 10,000, 1,000 and {services.SESSIONS} where it is not said"
    parser.add_argument("--sessions", type=int, help=f"{sized}; {default}")
    parser.add_argument(
        "--turns", type=int, default=long.TURNS, help="of long: how long the one conversation is"
    )
    parser.add_argument(
        "--conversations", type=int, default=long.CONVERSATIONS, help="of long: how many are asked"
    )
    peer = os.environ.get("MNEME_PEER_PYTHON")
    parser.add_argument(
        "--peer", default=peer, metavar="PYTHON", help="the peer's interpreter, to measure it too"
    )
    parser.add_argument(
        "--part",
        metavar="K/N",
        default="1/1",
        help="of guard: only the K-th of N parts of the texts",
    )
    parser.add_argument(
        "--evidence", type=Path, metavar="FILE", help="of evidence: another file of such rows"
    )
    parser.add_argument(
        "--changes", type=Path, metavar="FILE", help="of changes: another file of such rows"
    )
    parser.add_argument(
        "--model",
        nargs="?",
        const="configured",
        help=(
            "of recall: search deeply, with the configured helper model; of changes: scripted lets "
            "a scripted helper model read the messages"
        ),
    )
    parser.add_argument(
        "--engines", action="store_true", help="of recall: the same questions on both engines"
    )
    parser.add_argument(
        "--reminders", type=Path, metavar="FILE", help="of reminders: another file of such rows"
    )
    parser.add_argument(
        "--before", type=Path, metavar="FOLDER", help="of gateway, grow and cold: another checkout"
    )
    parser.add_argument(
        "--chats",
        type=int,
        action="append",
        help="of gateway: how many chats write at once; may be given again; 1, 10, 50 and 200 by default",
    )
    parser.add_argument(
        "--messages",
        type=int,
        help="of grow: how long the conversation becomes, 5,000 by default; of page and engines: how "
        "many messages one person has, 200,000 and 1,000,000 by default; of scale: how many are "
        "measured, 2,000 by default",
    )
    asked = parser.parse_args()
    which = asked.only or BENCHES
    shared = Path(os.environ.get("MNEME_SHARED", ROOT.parent / "shared"))
    # What the house logs is no figure.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    failed = False
    if "shape" in which:
        sys.stdout.write("## The shape of the product\n\n" + shape.report() + "\n\n")
        sys.stdout.flush()
    if "cache" in which:
        sys.stdout.write(
            "## The prefix cache: 50 turns with tools, notes, skills, quotes, jobs, prefetch and a restart\n\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            sys.stdout.write(asyncio.run(measure(Path(folder))) + "\n\n")
        sys.stdout.flush()
    if "long" in which:
        sys.stdout.write("## A conversation without end: what it costs, and what is left of it\n\n")
        with tempfile.TemporaryDirectory() as folder:
            sys.stdout.write(
                asyncio.run(long.measure(Path(folder), asked.turns, asked.conversations)) + "\n\n"
            )
        sys.stdout.flush()
    if "jobs" in which:
        sys.stdout.write("## The scheduler: start, looks and lateness\n\n")
        with tempfile.TemporaryDirectory() as folder:
            sys.stdout.write(asyncio.run(jobs.measure(Path(folder))) + "\n\n")
        sys.stdout.flush()
    if "media" in which:
        sys.stdout.write("## Files: from the update to the model, recall, and room\n\n")
        with tempfile.TemporaryDirectory() as folder:
            sys.stdout.write(asyncio.run(media.measure(Path(folder))) + "\n\n")
        sys.stdout.flush()
    if "page" in which:
        sys.stdout.write("## The local page: first byte, size, and the chats meanwhile\n\n")
        with tempfile.TemporaryDirectory() as folder:
            messages = asked.messages or page.MESSAGES
            sys.stdout.write(asyncio.run(page.measure(Path(folder), messages)) + "\n\n")
        sys.stdout.flush()
    if "facts" in which:
        sys.stdout.write("## Facts: what each part of the blend adds, and what 100,000 cost\n\n")
        with tempfile.TemporaryDirectory() as folder:
            sys.stdout.write(asyncio.run(knowing.quality(Path(folder))) + "\n\n")
            sys.stdout.write(asyncio.run(knowing.scale(Path(folder))) + "\n\n")
        sys.stdout.flush()
    if "guard" in which:
        sys.stdout.write("## The guard: what becomes of foreign texts at every door\n\n")
        if (shared / "data" / "guard" / "foreign.jsonl").exists():
            with tempfile.TemporaryDirectory() as folder:
                texts = doors.select_part(doors.texts(shared), asked.part)
                sys.stdout.write(asyncio.run(doors.measure(Path(folder), texts)) + "\n\n")
        else:
            sys.stdout.write("left out: there is no shared/data/guard/foreign.jsonl\n\n")
        sys.stdout.flush()
    if "evidence" in which:
        sys.stdout.write("## Evidence: false and honest notes that are kept at once\n\n")
        rows = asked.evidence or shared / "data" / "guard" / "evidence-dev.jsonl"
        if rows.exists():
            sys.stdout.write(evidence_table.report(rows) + "\n\n")
        else:
            sys.stdout.write("left out: there is no shared/data/guard/evidence-dev.jsonl\n\n")
        if (shared / "data" / "locomo-dev.json").exists():
            sys.stdout.write(doors.evidence(shared) + "\n\n")
        sys.stdout.flush()
    if "recall" in which:
        sys.stdout.write(
            "## Recall: questions as typed, no model; hit@1 / hit@5 / message recall@10\n\n"
        )
        if (shared / "data" / "locomo-dev.json").exists():
            make = recall.report if asked.model is None else recall.report_deep
            if asked.engines:
                make = recall.report_engines
            for line in make(shared, recall.names(shared)):
                sys.stdout.write(line + "\n")
                sys.stdout.flush()
        else:
            sys.stdout.write("left out: there is no shared/data/locomo-dev.json\n")
        sys.stdout.write("\n")
    if "screen" in which:
        sys.stdout.write("## The first screen of an answer without a model\n\n")
        if (shared / "data" / "locomo-dev.json").exists():
            for line in screen.report(shared):
                sys.stdout.write(line + "\n")
        else:
            sys.stdout.write("left out: there is no shared/data/locomo-dev.json\n")
        sys.stdout.write("\n")
        sys.stdout.flush()
    if "hurry" in which:
        failed |= _run(
            "Recall: the same questions typed in a hurry", [str(HERE / "hurry.py"), str(shared)]
        )
    if "owner" in which:
        corpus = shared / "bench" / "speed" / "corpus.py"
        command = [str(HERE / "owner.py"), str(corpus), str(asked.sessions or 3_000)]
        failed |= _run("Who owns 1 % of a store: in it, and alone", command)
    if "questions" in which:
        speed = shared / "bench" / "speed"
        command = [str(HERE / "questions.py"), str(speed / "corpus.py"), str(speed / "stores.py")]
        failed |= _run("How long a question takes", [*command, str(asked.sessions or 10_000)])
    if "changes" in which:
        sys.stdout.write("## Changes in a life: does the answer begin with what holds now?\n\n")
        rows = asked.changes or shared / "data" / "memory" / "changes-dev.jsonl"
        if rows.exists():
            sys.stdout.write(changes.report(rows, asked.model) + "\n\n")
        else:
            sys.stdout.write("left out: there is no shared/data/memory/changes-dev.jsonl\n\n")
        sys.stdout.flush()
    if "reminders" in which:
        sys.stdout.write("## Reminders: requests in everyday words, without a model\n\n")
        rows = asked.reminders or shared / "data" / "reminders" / "reminders-dev.jsonl"
        if rows.exists():
            sys.stdout.write(reminders.report(rows) + "\n\n")
        else:
            sys.stdout.write("left out: there is no shared/data/reminders/reminders-dev.jsonl\n\n")
        sys.stdout.flush()
    if "speed" in which:
        runner = str(shared / "bench" / "speed" / "run.py")
        plugin, stores = ("proxy", "hermes,floor") if asked.peer else ("speed", "floor")
        command = [runner, "--stores", stores, "--plugin", f"{HERE / plugin}.py:Mneme"]
        command += ["--sessions", str(asked.sessions or 1_000)]
        title = "Speed: ratios are to bare SQLite, of one run"
        failed |= _run(title, command, python=asked.peer or sys.executable)
    if "gateway" in which:
        sys.stdout.write(
            "## The gateway: a message beside a bare echo bot, over a loopback Bot API\n\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            chats = asked.chats or gateway.CHATS
            table = asyncio.run(gateway.measure(Path(folder), before=asked.before, all_chats=chats))
            sys.stdout.write(table + "\n\n")
            sys.stdout.flush()
            table = asyncio.run(gateway.measure_first_words(Path(folder), asked.before))
            sys.stdout.write(table + "\n\n")
    if "grow" in which:
        sys.stdout.write("## One conversation that grows\n\n")
        with tempfile.TemporaryDirectory() as folder:
            messages = asked.messages or 5_000
            table = asyncio.run(gateway.measure_growth(Path(folder), messages, asked.before))
            sys.stdout.write(table + "\n\n")
    if "engines" in which:
        sys.stdout.write("## Engines: a store on PostgreSQL and state.db\n\n")
        if (shared / "bench" / "speed" / "corpus.py").exists():
            with tempfile.TemporaryDirectory() as folder:
                messages = asked.messages or engines.MESSAGES
                for line in asyncio.run(engines.measure(Path(folder), shared, messages)):
                    sys.stdout.write(line + "\n")
        else:
            sys.stdout.write("left out: there is no shared/bench/speed/corpus.py\n")
        sys.stdout.write("\n")
    if "scale" in which:
        sys.stdout.write("## Several gateways over one PostgreSQL server\n\n")
        with tempfile.TemporaryDirectory() as folder:
            messages = asked.messages or scale.MESSAGES
            for line in asyncio.run(scale.measure(Path(folder), messages)):
                sys.stdout.write(line + "\n")
        sys.stdout.write("\n")
    if "cold" in which:
        sys.stdout.write("## Cold starts: processor time of a fresh process\n\n")
        with tempfile.TemporaryDirectory() as folder:
            sys.stdout.write(asyncio.run(cold.measure(Path(folder), asked.before)) + "\n\n")
    if "peers" in which:
        sys.stdout.write("## Peers: the same conversations, questions and changes\n\n")
        if (shared / "data" / "locomo-dev.json").exists():
            for line in peers.report(shared, asked.peer):
                sys.stdout.write(line + "\n")
                sys.stdout.flush()
        else:
            sys.stdout.write("left out: there is no shared/data/locomo-dev.json\n")
        sys.stdout.write("\n")
    if "services" in which:
        sys.stdout.write(
            "## Memory services: the same history told to each, and the same questions\n\n"
        )
        sys.stdout.flush()
        for line in services.report(asked.sessions or services.SESSIONS):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
        sys.stdout.write("\n")
    return int(failed)


def _run(title: str, command: list[str], *more: str, python: str = sys.executable) -> bool:
    sys.stdout.write(f"## {title}\n\n")
    sys.stdout.flush()
    missing = [
        part
        for part in command
        if part.startswith("/") and not Path(part.partition(":")[0]).exists()
    ]
    if missing:
        sys.stdout.write(f"left out: there is no {missing[0]}\n\n")
        return False
    environment = {**os.environ, "MNEME_PYTHON": sys.executable}
    # The peer has packages of the same names as ours: nothing of the checkout may be on its path.
    done = subprocess.run(
        [python, *command, *more], cwd=Path(command[0]).parent, env=environment, check=False
    )
    sys.stdout.write("\n")
    return done.returncode != 0


if __name__ == "__main__":
    sys.exit(main())
