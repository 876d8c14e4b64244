#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each kind of fault that the checks of this folder look for, planted in a folder: the check finds that one, and none where
there is none.
usage: selftest.py"""

import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LINT = os.path.join(HERE, "lint.py")
WORDS = os.path.join(HERE, "words.py")
SLEEPS = os.path.join(HERE, "sleeps.py")
CLEAN = {
    "a.sh": "#!/bin/bash\necho well\n",
    "b.py": "#!/usr/bin/env python3\nprint('well')\n",
    "c.cpp": "int main() { return 0; }\n",
    "d.md": "Plain text.\n\n```\na table   \n```\n",
}
# What is planted: file, text, what lint says, the checker that must be there.
PLANTED = [
    ("a.sh", "#!/bin/bash\ncd /nowhere\nleft=1\n", "SC2164", "shellcheck"),
    ("b.py", "#!/usr/bin/env python3\nimport os\n", "imported but unused", "pyflakes3"),
    ("d.md", "This is reciev" + "ed.\n", "receive", "codespell"),
    ("c.cpp", "int main() { return 0; }  \n", "blanks at the end", None),
    ("d.md", "A line.  \n", "blanks at the end", None),
    ("c.cpp", "int main() {\n\treturn 0;\n}\n", "a tab", None),
    ("c.cpp", "// " + "x" * 120 + "\n", "123 columns", None),
    ("c.hpp", "// " + "x" * 120 + "\n", "123 columns", None),
    ("c.cpp", "int main() { return 0; }", "has no end", None),
    ("c.cpp", "auto at = reinterpret_cast<uint64_t>(&at);\n", "an address is a uintptr_t", None),
]
# The same for words.py: file, text, what it says.
CLEAN_OF_WORDS = {
    "docs/faults.md": "# Faults\n\n## Fault injection\n\nA stalled peer keeps its connection.\n",
    "docs/performance.md": "# Performance\n\n" + "A line.\n" * 90,
    "core/wait/wait.hpp": "#pragma once\n// The poll backoff.\nstruct PollBackoff {};\n",
}
PLANTED_WORDS = [
    ("docs/faults.md", "# Faults\n\n## Bad weather\n", "heading 'Bad weather'"),
    ("docs/faults.md", "# Faults\n\n## What stands still\n", "heading 'stands still'"),
    ("docs/faults.md", "# Faults\n\nThat fault has not\ncome back.\n", "phrase 'not come back'"),
    ("docs/faults.md", "# Faults\n\nIt failed in one of twelve runs.\n", "phrase 'in one of twelve runs'"),
    ("man/vipinfo.1.md", "It takes the short way.\n", "phrase 'short way'"),
    ("docs/performance.md", "# Performance\n\n" + "A line.\n" * 120, "122 lines"),
    ("docs/performance.md", "# Performance\n\n" + "word " * 30 + "end\n", "153 columns"),
    ("core/wait/wait.hpp", "struct Holding {};\n", "name 'Holding'"),
    ("providers/verbs/companion.hpp", "#pragma once\n", "file 'companion'"),
    ("providers/verbs/link.cpp", "ibv_qp* companion_qp = nullptr;\n", "name 'companion_qp'"),
    ("providers/paramnet/tx.hpp", "struct Tx { int room; };\nint f(Tx& tx) { return tx.room; }\n", "name 'tx.room'"),
    ("mpi-adi/engine/rma/origin.cpp", "struct Brief {};\n", "name 'Brief'"),
    ("mpi-adi/transport/via/post.hpp", "void lend_ring(Lane* c);\n", "name 'lend_ring'"),
    ("mpi-adi/transport/via/slots.hpp", "#pragma once\n", "file 'slots'"),
    ("mpi-adi/transport/shm/shm.hpp", "// No peer says goodbye.\n", "comment 'goodbye'"),
    ("vipl/post.cpp", "// Whoever comes later waits.\n", "'Whoever'; name the process"),
    ("core/shm/kept_fd.hpp", "struct KeptFd { void forget(); };\n", "name 'forget'"),
    ("utils/vipperf/server.cpp", "bool wasHeard = false;\n", "name 'wasHeard'"),
    ("kagent/settings.cpp", "int deaf_ms = 0;\n", "setting 'deaf_ms'"),
    ("mpi-adi/engine/job.cpp", "int rail_patience = 0;\n", "setting 'rail_patience'"),
    ("docs/faults.md", "# Faults\n\nA request that nobody answers.\n", "phrase 'nobody'"),
    ("docs/faults.md", "# Faults\n\nAn answer that is\nbelieved.\n", "phrase 'believed'"),
    ("core/wait/wait.hpp", "// Somebody computes.\n", "'Somebody'; name the process"),
    ("vipl/nic.cpp", "// A look in vain.\n", "'in vain'; name the process"),
    ("tests/unit/nic_test.cpp", "TEST(Nic, ForNobody) {}\n", "name 'ForNobody' has 'nobody'"),
    ("kagent/server.cpp", "constexpr int kStrangerLimit = 1;\n", "name 'kStrangerLimit' has 'stranger'"),
    ("providers/wire/node.hpp", "// Who sleeps is woken.\n", "comment 'Who'"),
    ("providers/wire/node.hpp", "/*\n * The peer is gone.\n */\n", "comment 'gone'"),
    ("utils/vipping/ping.hpp", "int who = 0;  // the handler hears it\n", "comment 'hears'"),
    ("core/shm/wake_event.hpp", "struct Bell { int doorbell; };\n", "name 'Bell'"),
    ("providers/paramnet/poll.hpp", "void remind_later();\n", "name 'remind_later'"),
    ("mpi-adi/engine/rma/wire.hpp", "struct Parcel {};\n", "name 'Parcel'"),
    ("mpi-adi/engine/rma/transfer.hpp", "class Aside {};\n", "name 'Aside'"),
    ("mpi-adi/transport/adi/blocking.hpp", "class Asleep {};\n", "name 'Asleep'"),
    ("mpi-adi/transport/via/post.cpp", "void viadev_post();\n", "name 'viadev_post'"),
    ("mpi-adi/transport/via/via.hpp", "void MPID_VIA_Init();\n", "name 'MPID_VIA_Init'"),
    ("providers/wire/node.hpp", "enum class Distrust { kNone };\n", "name 'Distrust'"),
    ("providers/udp/daemon/protocol.hpp", "struct WishMessage {};\n", "name 'WishMessage'"),
    ("providers/packet/interrupt.cpp", "struct Errand {};\n", "name 'Errand'"),
    ("providers/wire/faults.hpp", "struct Fate {};\n", "name 'Fate'"),
    ("utils/vipperf/server.cpp", "struct Door {};\n", "name 'Door'"),
    ("utils/vipperf/server.cpp", "int open_doors();\n", "name 'open_doors'"),
    ("core/shm/bell.hpp", "#pragma once\n", "file 'bell'"),
    ("tests/adi/rails.cpp", "int f() { return viadev_post(); }\n", "name 'viadev_post'"),
    ("tests/udp/cut.py", "# Anybody may send it.\n", "'Anybody'; name the process"),
]

# The same for sleeps.py.
CLEAN_OF_SLEEPS = {
    "tests/README.md": "# Tests\n\n## Sleeps\n\n| File | Sleeps | Slept for |\n| --- | --- | --- |\n"
                       "| `tests/udp/cut.py` | 1 | the cut lasts |\n",
    "tests/udp/cut.py": "time.sleep(3)  # sleeps: the cut lasts\n",
    "tests/unit/wait_test.cpp": "    wait(now_ns() + 1000);  // no sleep(1)\n    ::execlp(\"sleep\", \"sleep\", \"60\", nullptr);\n",
    "tests/unit/moved_test.cpp": "#include \"tests/moved_clock.hpp\"\nauto begun = now_ns();\n",
}
PLANTED_SLEEPS = [
    ("tests/unit/wait_test.cpp", "std::this_thread::sleep_for(1ms);\n", "wait_test.cpp:1: a sleep"),
    ("tests/unit/wait_test.cpp", "\n    ::usleep(1);\n", "wait_test.cpp:2: a sleep"),
    ("tests/unit/wait_test.cpp", "::nanosleep(&t, nullptr);\n", "a sleep"),
    ("tests/unit/wait_test.cpp", "if (x) sleep(1);\n", "a sleep"),
    ("tests/unit/wait_test.cpp", "::poll(nullptr, 0, 20);\n", "a sleep"),
    ("tests/unit/wait_test.cpp", "SlowVipkad slow(place, \"sleep 2.5\");\n", "a sleep"),
    ("tests/unit/wait_test.cpp", "const auto t = std::chrono::steady_clock::now();\n", "a real clock"),
    ("tests/unit/wait_test.cpp", "std::chrono::system_clock::time_point t;\n", "a real clock"),
    ("tests/unit/wait_test.cpp", "::clock_gettime(CLOCK_MONOTONIC, &t);\n", "a real clock"),
    ("tests/unit/wait_test.cpp", "const int64_t begun = now_ns();\n", "a real clock"),
    ("tests/unit/wait_test.cpp", "EXPECT_LT(now_ns() - begun, 5);\n", "a real clock"),
    ("tests/unit/wait.py", "begun = time.time()\n", "a real clock"),
    ("tests/udp/cut.py", "time.sleep(3)\ntime.sleep(4)\n", "2 sleeps, 1 in the table"),
    ("tests/udp/cut.py", "# time.sleep(3)\n", "tests/udp/cut.py has no sleep"),
    ("tests/vm/boot", "#!/bin/bash\nsleep 3\n", "tests/vm/boot: 1 sleeps, 0 in the table"),
    ("tests/fault/late.c", "  usleep(5);\n", "tests/fault/late.c: 1 sleeps, 0 in the table"),
]


def run(program, files):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        done = subprocess.run([sys.executable, program, folder], stdout=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout


def lint(files):
    return run(LINT, files)


def words():
    status, said = run(WORDS, CLEAN_OF_WORDS)
    if status != 0:
        sys.exit(f"a folder without such words: {said}")
    for name, text, expected in PLANTED_WORDS:
        status, said = run(WORDS, dict(CLEAN_OF_WORDS, **{name: text}))
        if status != 1 or expected not in said or len(said.splitlines()) != 1:
            sys.exit(f"{expected}: planted in {name}, and words.py said (status {status})\n{said}")
    print(f"lint.selftest: {len(PLANTED_WORDS)} planted words found")


def sleeps():
    status, said = run(SLEEPS, CLEAN_OF_SLEEPS)
    if status != 0 or "1 sleeps in 1 files" not in said:
        sys.exit(f"a folder whose sleeps have reasons: {said}")
    for name, text, expected in PLANTED_SLEEPS:
        status, said = run(SLEEPS, dict(CLEAN_OF_SLEEPS, **{name: text}))
        if status != 1 or expected not in said or len(said.splitlines()) != 2:
            sys.exit(f"{expected}: planted in {name}, and sleeps.py said (status {status})\n{said}")
    print(f"lint.selftest: {len(PLANTED_SLEEPS)} planted sleeps and clocks found")


def main():
    status, said = lint(CLEAN)
    if status not in (0, 77):
        sys.exit(f"a clean folder: {said}")
    tried = 0
    for name, text, expected, tool in PLANTED:
        if tool is not None and shutil.which(tool) is None:
            print(f"lint.selftest: what {tool} finds is SKIPPED: it is not installed")
            continue
        status, said = lint(dict(CLEAN, **{name: text}))
        if status != 1 or expected not in said or "1 faults" not in said and tool is None:
            sys.exit(f"{expected}: planted in {name}, and lint said (status {status})\n{said}")
        tried += 1
    print(f"lint.selftest: {tried} planted faults found")
    words()
    sleeps()


if __name__ == "__main__":
    main()
