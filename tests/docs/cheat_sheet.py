#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""docs/cheat-sheet.html says what headers, manual pages and settings say: each call once with as many arguments as it has, each
code with its number, no option, variable or setting that there is not; and it needs nothing from elsewhere. Each option that a
built tool lists stands in its manual page. Where weasyprint is there, it fits on one page.  Usage: cheat_sheet.py ROOT BUILD"""

import html
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from verdict import end, read, unnoticed  # noqa: E402

SHEET = "docs/cheat-sheet.html"
NAMES = re.compile(r"\bVIPX?_[A-Z_]+\b")
TOOLS = {"vipinfo": 1, "vipping": 1, "vipperf": 1, "vipstat": 1, "vipcap": 1, "viptrace": 1, "cmpiinfo": 1, "vipkad": 8}
OPTION = re.compile(r"(?<![\w-])--?[A-Za-z0-9][\w-]*")


class Facts:
    def __init__(self, root):
        headers = read(root, "include/vipl.h") + read(root, "include/viaduct/ext.h")
        self.header_names = set(NAMES.findall(headers))
        code = re.sub(r"/\*.*?\*/", "", headers, flags=re.S)
        self.calls = {name: 0 if arguments.strip() in ("", "void") else arguments.count(",") + 1
                      for name, arguments in re.findall(r"\b(Vipx?[A-Z]\w+)\(([^()]*)\);", code)}
        self.codes = {}
        for enum in re.findall(r"typedef enum[^{]*\{([^}]*)\} VIP_(?:RETURN|ERROR_CODE);", code):
            self.codes.update({name: int(value) for name, value in re.findall(r"(VIP_\w+) = (\d+)", enum)})
        self.pages = {tool: read(root, f"man/{tool}.{section}.md") for tool, section in TOOLS.items()}
        variables = read(root, "man/viaduct.7.md") + read(root, "man/cmpi.7.md") + read(root, "man/viaduct.toml.5.md")
        self.variables = set(re.findall(r"\b(?:VIADUCT|CMPI)_[A-Z_]+[A-Z]\b", variables))
        self.settings = {f"{section}.{key}" for section, key in
                         re.findall(r'\{"(\w+)",\s*"(\w+)"', read(root, "core/config/config_keys.cpp"))}


def faults(sheet, facts):
    text = html.unescape(sheet)
    lists = re.findall(r'<ul class="calls">(.*?)</ul>', text, re.S)
    shown = re.findall(r"<code>(Vipx?[A-Z]\w+)\(([^()]*)\)</code>", "".join(lists))
    for name in {n for n, _ in shown} ^ set(facts.calls):
        yield f"{name}: is in one of the sheet and the headers only"
    for name, arguments in shown:
        count = arguments.count(",") + 1 if arguments else 0
        if count != facts.calls.get(name, count):
            yield f"{name}: has {facts.calls[name]} arguments, the sheet shows {count}"
    yield from (f"{name}: is shown twice" for name in {n for n, _ in shown} if [n for n, _ in shown].count(name) > 1)
    for name, arguments in re.findall(r"^(?:.*;  )?(Vip\w+)\((.*?)\);", text, re.M):
        if arguments.count(",") + 1 != facts.calls.get(name):
            yield f"{name}: the program calls it with other arguments than it has"
    codes = {name: int(number) for number, name in re.findall(r"<td>(\d+) <code>(VIP_\w+)</code>", text)}
    wanted = {name: number for name, number in facts.codes.items() if name != "VIP_ERROR"}
    yield from (f"{name}: is {wanted.get(name)}, and {codes.get(name)} on the sheet"
                for name in set(codes) | set(wanted) if codes.get(name) != wanted.get(name))
    yield from (f"{name}: is in no header" for name in set(NAMES.findall(text)) - facts.header_names)
    tools = dict(re.findall(r"<tr><td><b>(\w+)</b></td>(.*?)</tr>", text, re.S))
    yield from (f"{tool}: is not on the sheet" for tool in set(TOOLS) - set(tools))
    for tool in set(tools) & set(TOOLS):
        used = [o for code in re.findall(r"<code>(.*?)</code>", tools[tool]) for o in OPTION.findall(code)]
        yield from (f"{tool} {o}: is not in its manual page" for o in used if f"**{o}**" not in facts.pages[tool])
        if not used:
            yield f"{tool}: no option is shown"
    for tool, option in re.findall(rf"<code>({'|'.join(TOOLS)}) (--?[\w-]+)", text):
        if f"**{option}**" not in facts.pages[tool]:
            yield f"{tool} {option}: is not in its manual page"
    for name in set(re.findall(r"\b(?:VIADUCT|CMPI)_[A-Z_]+[A-Z]\b", text)) - facts.variables:
        made = name.removeprefix("VIADUCT_").lower().replace("_", ".", 1)
        if made not in facts.settings:
            yield f"{name}: is no variable"
    sections = "|".join({setting.split(".")[0] for setting in facts.settings})
    for name in re.findall(rf"<code>((?:{sections})\.\w+)</code>", text):
        if name not in facts.settings:
            yield f"{name}: is no setting"
    for found in re.findall(r"(?:src|href)=[^ >]*|@import[^;]*|url\([^)]*\)|https?://[^ <]*", text):
        yield f"{found}: the sheet needs nothing from elsewhere"


def tool_faults(build, facts):
    """What the tools themselves list."""
    environment = {**os.environ, "LD_LIBRARY_PATH": os.path.join(build, "lib")}
    for tool, section in TOOLS.items():
        path = os.path.join(build, "sbin" if section == 8 else "bin", tool)
        if not os.path.exists(path):
            continue
        listed = subprocess.run([path, "--help"], capture_output=True, text=True, check=True, env=environment).stdout
        for part in re.findall(r"^  ([a-z]+)  +\S", listed, re.M) if "Subcommands:" in listed else ():
            listed += subprocess.run([path, part, "--help"], capture_output=True, text=True, check=True, env=environment).stdout
        options = {o for line in re.findall(r"^  (-\S+)", listed, re.M) for o in line.split(",")}
        if len(options) < 4:
            yield f"{tool}: its --help cannot be read"
        for option in options - {"-h", "--help", "--version"}:
            if f"**{option}**" not in facts.pages[tool]:
                yield f"{tool} {option}: is not in its manual page"


def page_faults(path):
    if shutil.which("weasyprint") is None:
        print("not looked at how it prints: weasyprint is not there")
        return
    with tempfile.TemporaryDirectory() as folder:
        pdf = os.path.join(folder, "sheet.pdf")
        subprocess.run(["weasyprint", "-q", path, pdf], check=True, capture_output=True)
        with open(pdf, "rb") as file:
            pages = len(re.findall(rb"/Type /Page\b", file.read()))
    if pages != 1:
        yield f"it prints on {pages} pages"


def main():
    root, build = sys.argv[1:3]
    facts, sheet = Facts(root), read(root, SHEET)
    found = list(faults(sheet, facts)) + list(tool_faults(build, facts)) + list(page_faults(os.path.join(root, SHEET)))
    if len(facts.calls) < 60 or len(facts.codes) < 28 or len(facts.settings) < 50:
        found.append("headers or settings cannot be read")
    # A sheet with one thing wrong at a time is noticed.
    changes = [("VipCloseNic(nic)</code>", "VipCloseNic(nic, 1)</code>"), ("VipxVersion()", "VipxVersions()"),
               ("5 <code>VIP_REJECT", "6 <code>VIP_REJECT"), ("VIP_CONTROL_QFENCE", "VIP_CONTROL_FENCE"),
               ("<b>vipcap</b>", "<b>vipcat</b>"), ("<code>--chart</code>", "<code>--charts</code>"),
               ("<code>vipl.spin_us</code></td>", "<code>vipl.spin_ms</code></td>"), ("CMPI_CHECK=1", "CMPI_CHECKS=1"),
               ("VIADUCT_HOSTS", "VIADUCT_HOST"), ("cmpiinfo --job", "cmpiinfo --jobs"),
               ("VipPostSend(vi, d, handle);", "VipPostSend(vi, d);"), ("<title>", "<script src=x></script><title>")]
    end(found + list(unnoticed(sheet, changes, lambda changed: faults(changed, facts))))


if __name__ == "__main__":
    main()
