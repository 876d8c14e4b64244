// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/eal.hpp"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_version.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "core/log/log.hpp"
#include "core/process/never_destroyed.hpp"
#include "providers/acenic/fd_snapshot.hpp"
#include "providers/acenic/runtime_folder.hpp"

namespace viaduct::acenic {

namespace {

// The last line that DPDK has written: at the levels it is started with, of what has failed.
struct LastLine {
    std::mutex mutex;
    char text[160] = {};
};
NeverDestroyed<LastLine> last_line;

// Text that DPDK writes goes into our log, line by line, at "info".
ssize_t log_dpdk_line(void*, const char* text, size_t bytes) {
    const size_t length = bytes > 0 && text[bytes - 1] == '\n' ? bytes - 1 : bytes;
    VIADUCT_LOG(info, "dpdk", "%.*s", static_cast<int>(length), text);
    const std::scoped_lock lock(last_line->mutex);
    std::snprintf(last_line->text, sizeof last_line->text, "%.*s", static_cast<int>(length), text);
    return static_cast<ssize_t>(bytes);
}

FILE* open_log_stream() {
    cookie_io_functions_t functions{};
    functions.write = log_dpdk_line;
    FILE* stream = ::fopencookie(nullptr, "w", functions);
    if (stream != nullptr) ::setvbuf(stream, nullptr, _IOLBF, 0);
    return stream;
}

int initialise(bool channel) {
    if (FILE* stream = open_log_stream()) ::rte_openlog_stream(stream);
    const long processors = ::sysconf(_SC_NPROCESSORS_CONF);
    // docs/acenic.md: no device of the machine is touched, no hugepages are needed, nothing is shared with
    // other processes unless a driver insists, the thread keeps its processors.
    const std::string prefix = "--file-prefix=" + std::string(kRuntimePrefix) + std::to_string(::getpid());
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
    if (!channel) words.push_back("--no-shconf");
    words.push_back(prefix);
    std::vector<char*> argv;
    argv.reserve(words.size());
    for (std::string& word : words) argv.push_back(word.data());
    const FdSnapshot files;
    const int result = ::rte_eal_init(static_cast<int>(argv.size()), argv.data());
    // DPDK is started: an exception from here on would report a failed start.
    const int error = rte_errno;
    try {
        files.close_on_exec();
    } catch (const std::exception&) {
        VIADUCT_LOG(warn, "dpdk", "no memory: programs that this one starts inherit DPDK's descriptors");
    }
    if (result >= 0) keep_runtime_folder(::rte_eal_get_runtime_dir());
    rte_errno = error;
    return result;
}

enum class Started : int { failed = -1, not_tried, yes };

// On a thread of its own, which no exception may leave.
Started start_here(bool channel, int* error) try {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);  // DPDK's threads take no signal of the program's
    const bool started = initialise(channel) >= 0 || rte_errno == EALREADY;
    *error = rte_errno;
    return started ? Started::yes : Started::failed;
} catch (const std::exception&) {
    *error = ENOMEM;
    return Started::not_tried;
}

}  // namespace

bool start_eal(bool channel, std::string* why, std::string* cure) {
    static std::mutex mutex;
    static Started state = Started::not_tried;
    static bool has_channel = false;
    static std::atomic<pid_t> owner{0};
    static int error = 0;
    // A child has none of its threads, and would take memory that is its parent's. Looked at first: another thread
    // of the parent may have held the lock at the fork.
    pid_t none = 0;
    if (!owner.compare_exchange_strong(none, ::getpid()) && owner.load() != ::getpid()) {
        *why = "DPDK was started by the process this one was forked from";
        *cure = "open the NIC after exec, or let the ports be shared (acenic.mode)";
        return false;
    }
    const std::scoped_lock lock(mutex);
    if (state == Started::not_tried) {
        try {
            std::thread([channel] { state = start_here(channel, &error); }).join();
        } catch (const std::system_error& refused) {
            error = refused.code().value();
        }
        has_channel = channel;
    }
    if (state == Started::yes && channel && !has_channel) {
        *why = "DPDK was started without its channel between processes, which net_memif needs";
        *cure = "name the net_memif port in acenic.ports before the program starts";
        return false;
    }
    if (state == Started::yes) return true;
    *why = std::string("DPDK does not start: ") + ::rte_strerror(error) + last_dpdk_line();
    *cure = error == ENOMEM   ? "allow the process more memory and address space (its cgroup, ulimit -v)"
            : error == EAGAIN ? "allow the user more processes (ulimit -u), and the cgroup"
                              : "install " + dpdk_package("eal") + " " + dpdk_package("mempool-ring") +
                                    " and the drivers' packages; VIADUCT_LOG=info shows all that DPDK says";
    return false;
}

void clear_last_dpdk_line() {
    const std::scoped_lock lock(last_line->mutex);
    last_line->text[0] = '\0';
}

std::string last_dpdk_line() {
    const std::scoped_lock lock(last_line->mutex);
    return last_line->text[0] != '\0' ? std::string(" (DPDK says: ") + last_line->text + ")" : std::string();
}

// The number is that of the ABI, which each November's release begins and the next year is called by.
std::string dpdk_package(const char* part) {
    return std::string("librte-") + part + std::to_string(RTE_VER_YEAR + (RTE_VER_MONTH >= 11 ? 1 : 0));
}

}  // namespace viaduct::acenic
