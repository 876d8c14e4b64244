// SPDX-License-Identifier: BSD-2-Clause
// Static trace points (USDT) for debuggers, bpftrace, perf and SystemTap: one no-operation instruction each
// and a note in the ELF file. docs/tracing.md lists them. Without <sys/sdt.h> (Debian package
// systemtap-sdt-dev) they vanish.
#pragma once

#if __has_include(<sys/sdt.h>) && !defined(VIADUCT_NO_PROBES)
#include <sys/sdt.h>
#define VIADUCT_PROBE1(name, a) DTRACE_PROBE1(viaduct, name, a)
#define VIADUCT_PROBE2(name, a, b) DTRACE_PROBE2(viaduct, name, a, b)
#define VIADUCT_PROBE3(name, a, b, c) DTRACE_PROBE3(viaduct, name, a, b, c)
#else
#define VIADUCT_PROBE1(name, a) static_cast<void>(a)
#define VIADUCT_PROBE2(name, a, b) (static_cast<void>(a), static_cast<void>(b))
#define VIADUCT_PROBE3(name, a, b, c) (static_cast<void>(a), static_cast<void>(b), static_cast<void>(c))
#endif
