#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Shows that check.py finds each kind of fault, and nothing in a tree without any."""

import os
import subprocess
import sys
import tempfile

SPDX = "// SPDX-License-Identifier: BSD-2-Clause\n"
CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check.py")

GOOD = {
    "include/vipl.h": SPDX,
    "include/viaduct/provider.hpp": SPDX + '#include "viaduct/types.hpp"\n',
    "include/viaduct/types.hpp": SPDX + "#include <cstdint>\n",
    "core/a.hpp": SPDX + '#include "viaduct/provider.hpp"\n#include "core/config/paths.hpp"\n',
    "vipl/b.cpp": SPDX + '#include "core/a.hpp"\n#include <vipl.h>\n#include "b.hpp"\n',
    "vipl/b.hpp": SPDX,
    "kagent/c.cpp": SPDX + '#include "core/a.hpp"\n',
    "providers/x/d.cpp": SPDX + '#include "providers/wire/w.hpp"\n#include "providers/x/d.hpp"\n',
    "providers/x/d.hpp": SPDX,
    "providers/wire/w.hpp": SPDX,
    "mpi-adi/m.c": SPDX,
    "mpi-adi/transport/adi/vip_calls.hpp": SPDX + '#include <vipl.h>\n#include "viaduct/ext.h"\n[[nodiscard]] decltype(VipOpenNic) VipOpenNic;\n',
    "mpi-adi/transport/via/v.cpp": SPDX + '#include "mpi-adi/transport/adi/vip_calls.hpp"\n#include "core/a.hpp"\nint rc = VipOpenNic();\n',
    "include/viaduct/ext.h": SPDX,
    "core/provider/loader.hpp": SPDX,
    "core/agent/link.hpp": SPDX,
    "tests/t.cpp": SPDX + '#include "vipl/b.hpp"\n#include "kagent/k.hpp"\n',
    "kagent/k.hpp": SPDX,
}

# One change to the good tree each, and what the report must say.
BAD = [
    ("core/bad.hpp", SPDX + '#include "vipl/b.hpp"\n', "core must not include vipl/b.hpp"),
    ("include/viaduct/bad.hpp", SPDX + '#include "core/a.hpp"\n', "include must not include core/a.hpp"),
    ("vipl/bad.cpp", SPDX + '#include "kagent/k.hpp"\n', "vipl must not include kagent/k.hpp"),
    ("kagent/bad.cpp", SPDX + '#include "../vipl/b.hpp"\n', "kagent must not include vipl/b.hpp"),
    ("providers/y/bad.cpp", SPDX + '#include "providers/x/d.hpp"\n', "providers must not include providers/x/d.hpp"),
    ("providers/x/bad.cpp", SPDX + '#include "vipl/b.hpp"\n', "providers must not include vipl/b.hpp"),
    ("utils/u/bad.cpp", SPDX + '#include "kagent/k.hpp"\n', "utils must not include kagent/k.hpp"),
    ("mpi-adi/transport/via/bad.cpp", SPDX + '#include "providers/x/d.hpp"\n', "mpi-adi must not include providers/x/d.hpp"),
    ("mpi-adi/transport/via/bad.cpp", SPDX + '#include "viaduct/provider.hpp"\n', "must not include include/viaduct/provider.hpp"),
    ("mpi-adi/transport/via/bad.cpp", SPDX + '#include "core/provider/loader.hpp"\n', "must not include core/provider/loader.hpp"),
    ("mpi-adi/engine/bad.cpp", SPDX + '#include "core/agent/link.hpp"\n', "mpi-adi must not include core/agent/link.hpp"),
    ("mpi-adi/transport/via/bad.cpp", SPDX + '#include "vipl/b.hpp"\n', "mpi-adi must not include vipl/b.hpp"),
    ("mpi-adi/transport/via/bad.cpp", SPDX + "#include <vipl.h>\n", "must not include include/vipl.h"),
    ("mpi-adi/transport/via/bad.cpp", SPDX + "void f() { VipCloseNic(nic); }\n", "VipCloseNic is not declared in"),
    ("mpi-adi/bad.c", SPDX + '#include "viaduct/types.hpp"\n', "must not include include/viaduct/types.hpp"),
    ("core/bad.cpp", SPDX + '#include "core/gone.hpp"\n', "not in the tree"),
    ("core/bad.cpp", "int x;\n", "no SPDX line"),
    ("docs/bad.md", "see " + "/wor" + "k/main\n", "names a place"),
]


def report(tree):
    with tempfile.TemporaryDirectory() as root:
        for path, text in tree.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        run = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True, check=False)
        return run.returncode, run.stdout


def main():
    wrong = 0
    code, text = report(GOOD)
    if code != 0:
        print(f"the good tree was refused:\n{text}")
        wrong += 1
    for path, content, expected in BAD:
        code, text = report({**GOOD, path: content})
        if code != 1 or expected not in text or "1 faults" not in text:
            print(f"{path}: expected '{expected}', got exit {code}:\n{text}")
            wrong += 1
    print(f"{len(BAD) + 1} trees, {wrong} misjudged")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
