#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Words that must not come back: names of the code and its files, keys of settings, headings and phrases of documents. Each has
the standard term that takes its place (docs/glossary.md).
usage: words.py SOURCE_FOLDER"""

import os
import re
import subprocess
import sys

# Subjects that are no part of the system, and what only people do: a sentence names the process, the thread, the peer or the user.
PEOPLE = (r"\b(nobody|somebody|anybody|everybody|whoever|someone|anyone|strangers?|patience|patient(ly)?|evenings?|believ(es?|ed|ing)|"
          r"in vain|at home)\b")
# Phrases of documents and manual pages: what they mean is said plainly, and in the present tense.
PHRASES = [
    (r"bad weather", "fault injection, injected faults, a lossy network"),
    (r"\b(short|general|usual|long) ways?\b", "fast path, slow path"),
    (r"\bgoodbye\b", "close"),
    (r"\bdiary\b", "log"),
    (r"\bverdict\b", "nack, result"),
    (r"\bnonsense\b", "invalid values, protocol error"),
    (r"\bcompanions?\b", "control QP"),
    (r"\bone evening\b|\bthat evening\b|\btonight\b", "machine, commit and date"),
    (r"not (come back|seen again)|was not seen again|has not been seen since", "what holds and what does not"),
    (r"\b(in|of) (\d+|one|two|three|twelve) (of (\d+|two|three|twelve) )?runs\b", "docs/measurements"),
    (r"\bused to (be|do|have|take|go)\b", "what holds"),
    (PEOPLE, "the process, the peer, another thread, no program, ..."),
]
HEADINGS = [
    (r"bad weather", "fault injection"),
    (r"stands? still", "stalled processes"),
    (r"\bwho may\b", "killed processes, stalled processes, hostile peers"),
    (r"\b(in general|usual|short)\b", "fast path, slow path"),
    (r"\bfor whoever\b", "use"),
    (r"(^|\W)since\b", "measurements"),
]
# Names of the code, by folder: parts of identifiers (between underscores or capitals), and of names of files. What stands
# in comments is not looked at here.
PARTS = [
    (r"^(providers/verbs/|tests/unit/verbs)", {"companion": "control QP", "doubt": "connect probe", "hello": "private data",
                                               "verdict": "outcome"}),
    (r"^(providers/(wire|packet|acenic)/|tests/unit/(wire|acenic))", {
        "usual": "fast path", "verdict": "host result", "lender": "zero-copy tx", "lends": "zero copy", "lent": "zero copy"}),
    (r"^providers/paramnet/", {"ahead": "prefetch", "nonsense": "protocol error", "verdict": "nack", "ways": "methods"}),
    (r"^(mpi-adi/engine/|core/wait/)", {"company": "CPU contention", "seats": "CPU placement"}),
    (r"^mpi-adi/engine/rma/", {"brief": "inline op"}),
    (r"^(mpi-adi/transport|tests/adi)/", {"chores": "deferred work", "lend": "offer a ring", "doom": "fail later", "doomed": "failure",
                                          "ways": "methods, addresses", "strangers": "pending callers", "limbo": "unconfirmed"}),
    (r"^mpi-adi/transport/via/", {"news": "ring status", "lent": "local", "opening": "attempt", "openings": "attempts"}),
    (r"^(core|vipl|kagent|providers)/", {"heir": "standby", "nonsense": "protocol error", "goodbye": "close"}),
    (r"^(core|vipl|kagent|providers|mpi-adi|utils)/", {
        "forget": "clear, release, reset, erase", "forgotten": "expired", "hear": "handle, receive", "heard": "received, seen",
        "hush": "clear", "bury": "reap", "graveyard": "what is to be destroyed", "obey": "run", "farewell": "last message, disconnect",
        "flying": "in flight", "judge": "check", "laden": "has load", "yardstick": "reference", "tired": "has spun", "owe": "response",
        "owed": "response", "overstayed": "exceeded", "lifeline": "liveness pipe", "orphan": "ended link", "orphans": "ended links",
        "bell": "doorbell, wake event", "bells": "doorbells, wake events", "remind": "request a poll", "reminder": "poll request",
        "reminders": "poll requests", "reminded": "poll request", "parcel": "inline message, staging buffer",
        "parcels": "inline messages, staging buffers", "distrust": "authentication failure", "wish": "request filter",
        "wishes": "request filters", "errand": "task", "errands": "tasks", "fate": "outcome", "fates": "outcomes",
        "door": "listener", "doors": "listeners"}),
]
# Whole names and expressions, by folder.
NAMES = [
    (r"^(providers/verbs/|tests/unit/verbs)", r"\bCalls\b|\bcalls->", "VerbsOps, ops"),
    (r"^providers/(wire|packet)/", r"\bHold\b|\bhold_\b|\bKeptRequests\b|\bkept_requests\b", "ReorderBuffer, PendingConnects"),
    (r"^providers/(acenic|packet)/", r"\bonly_one\w*|\bNewFiles\b|\bnew_files\b", "port lock, FdSnapshot"),
    (r"^(providers/paramnet/|tests/unit/paramnet)", r"\btx\.room\b|\brx\.alone\b|\bTimed\w*|\bgive_verdict\b",
     "burst_credit, poll_budget, Probe, nack"),
    (r"^(core|vipl|kagent|providers)/", r"(?<![\w.>])holds\(|\bHolding\b|\b\w*between_looks\b",
     "atomic_equals, BiasedLockGuard, poll backoff"),
    (r"^(mpi-adi/transport|tests/adi)/", r"\bSlots\b|\w+_slots\b|\bslots_\w+|\blook_for_lost\b|\bWay\b", "eager ring, failure, Method"),
    (r"^mpi-adi/(engine|mpi)/", r"\bshort_way\b|\bFirstLook\b|\bfirst_look\b|\bSeats\b|\bPatience\b", "direct access, poll delay"),
    (r"^(core|vipl|kagent|providers|mpi-adi|utils)/", r"\b(Aside|Asleep)\b", "staging buffer, scope of a sleep"),
    (r"^(core|vipl|kagent|providers|mpi-adi|utils|tests/adi)/", r"\bMPID_VIA_\w*|\bviadev_\w*", "the function's own verb"),
]
FILES = {"usual_message", "hold", "pace", "kept_requests", "lender", "only_one", "new_files", "ways", "ahead", "large", "timed",
         "holds", "between_looks", "slots", "lost", "short_way", "brief", "company", "seats", "first_look", "companion", "doubt",
         "hello", "bell", "bells"}
FILE_SCOPE = re.compile(r"^(core|vipl|kagent|providers|mpi-adi)/")
# Former names of settings: the table of aliases has them, and what tests and describes it.
SETTINGS = re.compile(r"\bdeaf_ms\b|\bslots_after\b|\bDEAF_MS\b|\b\w*SLOTS_AFTER\b|\b\w*RAIL_PATIENCE\b", re.I)
HAS_OLD_SETTINGS = {"core/config/config_keys.cpp", "tests/unit/core_config_test.cpp", "man/viaduct.toml.5.md", "CHANGELOG.md",
                    "tests/lint/words.py", "tests/lint/selftest.py"}
SETTINGS_SCOPE = re.compile(r"^(?!docs/spec/)")
# Phrases of comments in the folders of the product.
COMMENTS = re.compile(r"\b((short|general|long) way|goodbyes?|diary|verdict|nonsense|bad weather|companions?)\b", re.I)
COMMENT_SCOPE = re.compile(r"^(core|vipl|kagent|providers|include|mpi-adi)/")
PEOPLE_COMMENT_SCOPE = re.compile(r"^(core|vipl|kagent|providers|include|mpi-adi|utils)/")
# The same words of people in all sources and scripts, in comments, texts and names. Programs of the VIA era (tests/legacy) and the
# launchers' and system's own names stay as they are.
PEOPLE_WORDS = re.compile(PEOPLE, re.I)
PEOPLE_PARTS = {"nobody", "somebody", "anybody", "everybody", "whoever", "stranger", "strangers", "patience", "believe", "believes",
                "believed", "vain"}
PEOPLE_SCOPE = re.compile(r"^(?!docs/spec/|tests/(lint|legacy)/|tests/fuzz/corpus/)")
# In the comment itself: what only people do, and a part that ends, leaves or is unmapped is not "gone".
PEOPLE_IN_COMMENTS = re.compile(r"(//|^\s*/?\*).*?\b(who|whom|gone|hears?|owes?|thinks?|wants|learns of)\b", re.I)
CODE = re.compile(r"\.(cpp|hpp|h|c)$")
# Pages with limits of their own: lines (two screens), and columns.
LINES = {"docs/performance.md": 100}
COLUMNS = {"docs/performance.md": 120, "docs/adi.md": 120, "docs/adi-rails.md": 120, "docs/adi-writing-a-transport.md": 120}

DOCUMENT = re.compile(r"^(docs/(?!spec/|measurements/).*\.md|man/.*\.md|[A-Z]+\.md)$")
# CHANGELOG says what was.
NOT_A_DOCUMENT = re.compile(r"^CHANGELOG\.md$")


def files_of(source):
    listed = subprocess.run(["git", "-C", source, "ls-files", "-z"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return listed.stdout.rstrip("\0").split("\0")
    names = []
    for folder, folders, found in os.walk(source):
        folders[:] = [name for name in folders if not name.startswith((".", "build"))]
        names += [os.path.relpath(os.path.join(folder, name), source) for name in found]
    return names


def read(source, name):
    with open(os.path.join(source, name), encoding="utf-8", errors="replace") as file:
        return file.read()


def faults_of_document(name, text):
    lines = text.rstrip("\n").split("\n")
    if len(lines) > LINES.get(name, len(lines)):
        yield f"{name}: {len(lines)} lines, {LINES[name]} are allowed"
    fenced = False
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if fenced:
            continue
        if not line.startswith("|") and len(line) > COLUMNS.get(name, len(line)):
            yield f"{name}:{number}: {len(line)} columns, {COLUMNS[name]} are allowed"
        listed = HEADINGS if line.startswith("#") else PHRASES
        for pattern, instead in listed:
            found = re.search(pattern, line, re.I)
            if found:
                kind = "heading" if listed is HEADINGS else "phrase"
                yield f"{name}:{number}: {kind} '{found.group()}'; say {instead}"
    # A phrase may go over the end of a line.
    for first, second in zip(lines, lines[1:]):
        joined = first.rstrip() + " " + second.lstrip()
        for pattern, instead in PHRASES:
            found = re.search(pattern, joined, re.I)
            if found and found.start() < len(first.rstrip()) < found.end():
                yield f"{name}: phrase '{found.group()}'; say {instead}"


def parts_of(name):
    """The words that an identifier is made of, in small letters."""
    return {part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)}


def faults_of_code(name, text):
    stem = os.path.basename(name).split(".")[0]
    if FILE_SCOPE.match(name) and stem in FILES:
        yield f"{name}: file '{stem}' has a name of its kind's former words"
    if not CODE.search(name):
        return
    if COMMENT_SCOPE.match(name):
        for number, line in enumerate(text.split("\n"), 1):
            found = COMMENTS.search(line)
            if found:
                yield f"{name}:{number}: comment '{found.group()}': say it plainly (docs/glossary.md)"
    if PEOPLE_COMMENT_SCOPE.match(name):
        for number, line in enumerate(text.split("\n"), 1):
            found = PEOPLE_IN_COMMENTS.search(line)
            if found:
                yield f"{name}:{number}: comment '{found.group(2)}'; say which process, thread or part does what"
    parts = {}
    for scope, words in PARTS:
        if re.match(scope, name):
            parts.update(words)
    whole = [(pattern, instead) for scope, pattern, instead in NAMES if re.match(scope, name)]
    if not parts and not whole:
        return
    for number, line in enumerate(text.split("\n"), 1):
        code = re.sub(r"//.*$|\"(\\\\.|[^\"\\\\])*\"", "", line)
        for pattern, instead in whole:
            found = re.search(pattern, code)
            if found:
                yield f"{name}:{number}: name '{found.group()}'; say {instead}"
        for identifier in set(re.findall(r"[A-Za-z_]\w*", code)) if parts else ():
            for part in parts_of(identifier) & parts.keys():
                yield f"{name}:{number}: name '{identifier}'; say {parts[part]}"


def faults_of_people(name, text):
    if not PEOPLE_SCOPE.match(name):
        return
    for number, line in enumerate(text.split("\n"), 1):
        line = SETTINGS.sub("", line)  # faults_of_settings() says where these may stand
        found = PEOPLE_WORDS.search(line)
        if found:
            yield f"{name}:{number}: '{found.group()}'; name the process, the thread, the peer or the user"
            continue
        for identifier in set(re.findall(r"[A-Za-z_]\w*", line)):
            for part in parts_of(identifier) & PEOPLE_PARTS:
                yield f"{name}:{number}: name '{identifier}' has '{part}'; name the process, the thread, the peer or the user"


def faults_of_settings(name, text):
    if name in HAS_OLD_SETTINGS or not SETTINGS_SCOPE.match(name):
        return
    for found in SETTINGS.finditer(text):
        yield f"{name}: setting '{found.group()}' has another name (core/config/config_keys.cpp)"


def main():
    source = os.path.abspath(sys.argv[1])
    names = [name for name in files_of(source) if os.path.isfile(os.path.join(source, name))]
    faults = []
    for name in names:
        if DOCUMENT.match(name) and not NOT_A_DOCUMENT.match(name):
            faults += faults_of_document(name, read(source, name))
        if re.search(r"\.(cpp|hpp|h|c|py|md|in|cmake|txt|sh)$", name):
            text = read(source, name)
            faults += faults_of_code(name, text)
            faults += faults_of_settings(name, text)
            if not DOCUMENT.match(name):
                faults += faults_of_people(name, text)
    print("\n".join(faults) or f"words: {len(names)} files, none of the words that were replaced")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
