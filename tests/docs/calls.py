#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each call returns the same codes by the specification (docs/spec/calls.md), by its manual page (RETURN VALUE) and by the
conformance suite (tests/conformance/conform_table.cpp).  Usage: calls.py ROOT"""

import re
import sys

sys.dont_write_bytecode = True
from verdict import end, read  # noqa: E402

CALLS = 41
CODE = r"(?:SUCCESS|NOT_DONE|INVALID_[A-Z_]+|ERROR_[A-Z]+|TIMEOUT|REJECT|NO_MATCH|DESCRIPTOR_ERROR)"
# Codes of the specification that no provider here has a use for.
UNUSED = {
    "VipSetViAttributes": {"ERROR_RESOURCE"},
    "VipDeregisterMem": {"ERROR_RESOURCE"},
}


def of_suite(text):
    """{call: codes} of the table of documented calls."""
    rows = re.search(r"kCalls\[\] = \{(.*?)\n\};", text, re.DOTALL)[1]
    found = {}
    for call, cells in re.findall(r'\{"(Vip\w+)", \w+,\s*((?:"[^"]*"\s*)+)\}', rows):
        found[call] = set(re.findall(rf"({CODE}):", "".join(re.findall(r'"([^"]*)"', cells))))
    return found


def of_specification(text):
    """{call: codes}: headings name calls, the row Returns names codes."""
    found = {}
    for names, section in re.findall(r"^### (Vip[^\n]*)\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL):
        row = re.search(r"^\| Returns \| (.*) \|$", section, re.MULTILINE)
        for call in names.split(", "):
            found[call] = set(re.findall(rf"\b({CODE})\b", row[1])) if row else set()
    return found


def of_manual(text):
    part = re.search(r"^# RETURN VALUE$(.*?)^# ", text, re.MULTILINE | re.DOTALL)
    return set(re.findall(rf"^\*\*VIP_({CODE})\*\*$", part[1], re.MULTILINE)) if part else set()


def faults(root):
    suite = of_suite(read(root, "tests/conformance/conform_table.cpp"))
    specification = of_specification(read(root, "docs/spec/calls.md"))
    if len(suite) != CALLS:
        yield f"the suite has {len(suite)} calls, not {CALLS}"
    for call in sorted(set(suite) | set(specification)):
        said = specification.get(call)
        if said is None or call not in suite:
            yield f"{call}: is in one of the two only"
            continue
        for code in sorted(said ^ suite[call]):
            yield f"{call}: {code}: {'the suite does not know it' if code in said else 'the specification does not name it'}"
        manual = of_manual(read(root, "man", f"{call}.3.md"))
        for code in sorted((said ^ manual) - UNUSED.get(call, set())):
            yield f"{call}: {code}: {'not in the manual page' if code in said else 'in the manual page only'}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = list(faults(sys.argv[1]))
    end(found, f"{CALLS} calls, {len(found)} faults")


if __name__ == "__main__":
    main()
