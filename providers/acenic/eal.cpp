// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/eal.hpp"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "core/log/log.hpp"

namespace viaduct::acenic {

namespace {

// What DPDK writes goes into our log, line by line, at "info".
ssize_t take_chatter(void*, const char* text, size_t bytes) {
    VIADUCT_LOG(info, "dpdk", "%.*s",
                static_cast<int>(bytes > 0 && text[bytes - 1] == '\n' ? bytes - 1 : bytes), text);
    return static_cast<ssize_t>(bytes);
}

FILE* chatter_stream() {
    cookie_io_functions_t functions{};
    functions.write = take_chatter;
    FILE* stream = ::fopencookie(nullptr, "w", functions);
    if (stream != nullptr) ::setvbuf(stream, nullptr, _IOLBF, 0);
    return stream;
}

int initialise() {
    if (FILE* stream = chatter_stream()) ::rte_openlog_stream(stream);
    const long processors = ::sysconf(_SC_NPROCESSORS_CONF);
    // docs/acenic.md: no device of the machine is touched, no hugepages are needed, nothing is shared with
    // other processes, the thread keeps its processors.
    const std::string prefix = "--file-prefix=viaduct-" + std::to_string(::getpid());
    const std::string cores = "--lcores=0@(0-" + std::to_string(processors > 0 ? processors - 1 : 0) + ")";
    const char* fixed[] = {"viaduct",
                           "--no-pci",
                           "--no-huge",
                           "--no-telemetry",
                           "--iova-mode=va",
                           "-m",
                           "192",
                           "--log-level=lib.*:error",
                           "--log-level=pmd.*:error"};
    std::vector<std::string> words(std::begin(fixed), std::end(fixed));
    words.push_back(cores);
    words.push_back("--no-shconf");
    words.push_back(prefix);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    return ::rte_eal_init(static_cast<int>(argv.size()), argv.data());
}

}  // namespace

bool start_eal(std::string* why, std::string* cure) {
    static std::mutex mutex;
    static int state = 0;  // 1 started, -1 failed
    static int error = 0;
    const std::scoped_lock lock(mutex);
    if (state == 0) {
        std::thread starter([] {
            state = initialise() >= 0 || rte_errno == EALREADY ? 1 : -1;
            error = rte_errno;
        });
        starter.join();
    }
    if (state == 1) return true;
    *why = std::string("DPDK does not start: ") + ::rte_strerror(error);
    *cure =
        "install librte-eal23 librte-mempool-ring23 and the drivers' packages; VIADUCT_LOG=info tells what "
        "DPDK says";
    return false;
}

}  // namespace viaduct::acenic
