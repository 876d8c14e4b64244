#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The manual pages.  Usage: man_pages.py ROOT FOLDER-OF-RENDERED-PAGES

Each has EXAMPLES, SEE ALSO at its end, and a date where it is rendered; what stands in EXAMPLES of a page
of a call is C that a compiler takes; mandoc finds nothing wrong. SKIPPED in the end where mandoc or a compiler is not there
and all else is well."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

root, rendered = sys.argv[1:3]
sources = sorted(glob.glob(os.path.join(root, "man", "*.md")))
faults, skipped = [], []
# What the snippets use and do not declare.
BEFORE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vipl.h>
#include <viaduct/ext.h>
enum { VIS = 4, RECEIVES = 4 };
extern void work(void), use(VIP_DESCRIPTOR *), give_back(VIP_DESCRIPTOR *), serve(VIP_VI_HANDLE, VIP_DESCRIPTOR *);
extern VIP_DESCRIPTOR *next_descriptor(void);
extern VIP_CQ_HANDLE cq; extern VIP_EVENT_HANDLE event; extern VIP_PROTECTION_HANDLE ptag;
extern VIP_NET_ADDRESS *own, *other, *caller; extern VIP_CONN_HANDLE request; extern VIP_VI_STATE state;
extern VIP_BOOLEAN is_receive, send_empty, receive_empty; extern VIP_MEM_HANDLE handle, remote_handle;
extern VIP_UINT64 remote_address; extern VIP_ULONG bytes, entries; extern unsigned length; extern char *data;
extern VIP_MEM_ATTRIBUTES memory_wish; extern VIP_VI_ATTRIBUTES vi_wish; extern void *words, *address; extern int i;
extern VIP_RETURN result; extern VIP_DESCRIPTOR *receives[RECEIVES], *d; extern struct client *client;
"""
# These a snippet may declare by itself.
LOCAL = {"nic": "VIP_NIC_HANDLE nic;", "vi": "VIP_VI_HANDLE vi;", "theirs": "VIP_VI_ATTRIBUTES theirs;",
         "server": "VIP_NET_ADDRESS *server;", "descriptor": "VIP_DESCRIPTOR *descriptor;", "done": "VIP_DESCRIPTOR *done;",
         "wish": "VIP_VI_ATTRIBUTES wish;", "attributes": "VIP_VI_ATTRIBUTES attributes;", "memory": "char *memory;",
         "name": "char *name;"}


def check_parts(path, text):
    headings = re.findall(r"^# (.*)$", text, re.M)
    if "EXAMPLES" not in headings or headings[-1] != "SEE ALSO":
        faults.append(f"{path}: it needs EXAMPLES, and SEE ALSO at its end")


def check_snippet(path, text, compiler, folder):
    section = re.search(r"^# EXAMPLES$(.*?)^# ", text, re.M | re.S)
    for lines in re.findall(r"^```\n(.*?)^```", section.group(1) if section else "", re.M | re.S):
        # Functions of the snippet become nested ones, an extension of GCC.
        body = re.sub(r"^static ", "auto ", lines, flags=re.M)
        local = dict(LOCAL)
        if "MemAttributes" in lines or "QueryMem" in lines:
            local["attributes"] = "VIP_MEM_ATTRIBUTES attributes;"
        code = BEFORE + "void snippet(void);\nvoid snippet(void) {\n" + "\n".join(local.values()) + "\n{\n" + body + "}\n}\n"
        file = os.path.join(folder, "snippet.c")
        with open(file, "w", encoding="utf-8") as out:
            out.write(code)
        done = subprocess.run([compiler, "-std=gnu11", "-fsyntax-only", "-w", "-Werror=implicit-function-declaration",
                               "-Werror=incompatible-pointer-types", "-Werror=int-conversion", "-I", os.path.join(root, "include"), file],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            faults.append(f"{path}: EXAMPLES does not compile:\n{done.stderr}")


compiler = shutil.which("gcc")
with tempfile.TemporaryDirectory() as folder:
    for path in sources:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        check_parts(path, text)
        if compiler and path.endswith(".3.md"):
            check_snippet(path, text, compiler, folder)
if not compiler:
    skipped.append("no gcc: EXAMPLES are not compiled")

pages = sorted(glob.glob(os.path.join(rendered, "*.[1-8]")))
if not pages:
    skipped.append("no rendered pages (package go-md2man)")
for path in pages:
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if not re.search(r'^\.TH ("[^"]+" "[1-8]"|\S+ [1-8]) "\d{4}-\d\d-\d\d"', text, re.M):
        faults.append(f"{path}: no date")
    if re.search(r"^T}\n\t", text, re.M):
        faults.append(f"{path}: a row of a table is torn: its second cell begins a row of its own")
if shutil.which("mandoc") is None:
    skipped.append("no mandoc: the pages are not checked by it")
elif pages:
    done = subprocess.run(["mandoc", "-Tlint", "-W", "warning", *pages], capture_output=True, text=True, check=False)
    if done.stdout.strip():
        faults.append(done.stdout)

for fault in faults:
    print(f"FAILED  {fault}")
print(f"{len(sources)} pages, {len(pages)} of them rendered, {len(faults)} faults")
if skipped and not faults:
    print("SKIPPED: " + "; ".join(skipped))
    sys.exit(77)
sys.exit(bool(faults))
