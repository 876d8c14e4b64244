// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/eal.hpp"

#include <fcntl.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_version.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "core/log/log.hpp"
#include "core/process/never_destroyed.hpp"
#include "core/shm/segment.hpp"
#include "providers/acenic/fd_snapshot.hpp"

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

// DPDK keeps a folder for each process and never removes it. Ours goes with the process; those of processes
// that were killed go now: a living one holds a lock on its "config".
class RuntimeFolder {
public:
    void keep(const char* folder) {
        owner_ = ::getpid();
        folder_ = folder;
        std::error_code ignored;
        for (const auto& entry : std::filesystem::directory_iterator(folder_.parent_path(), ignored))
            if (entry.path().filename().string().compare(0, kPrefix.size(), kPrefix) == 0 &&
                entry != folder_ && is_abandoned(entry.path()))
                std::filesystem::remove_all(entry.path(), ignored);
    }
    void remove() const {
        std::error_code ignored;
        if (owner_ == ::getpid()) std::filesystem::remove_all(folder_, ignored);
    }

    static constexpr std::string_view kPrefix = "viaduct-";

private:
    static bool is_abandoned(const std::filesystem::path& folder) {
        const Fd config(::open((folder / "config").c_str(), O_RDWR | O_CLOEXEC));
        struct flock lock {};
        lock.l_type = F_WRLCK;
        lock.l_whence = SEEK_SET;
        if (!config.valid()) return errno == ENOENT && is_old(folder);
        return ::fcntl(config.get(), F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK && is_old(folder);
    }
    // A process that is just starting has no lock yet.
    static bool is_old(const std::filesystem::path& folder) {
        std::error_code failed;
        const auto changed = std::filesystem::last_write_time(folder, failed);
        return !failed && std::filesystem::file_time_type::clock::now() - changed > std::chrono::minutes(1);
    }

    std::filesystem::path folder_;
    int owner_ = 0;
};

int initialise(bool channel) {
    if (FILE* stream = open_log_stream()) ::rte_openlog_stream(stream);
    const long processors = ::sysconf(_SC_NPROCESSORS_CONF);
    // docs/acenic.md: no device of the machine is touched, no hugepages are needed, nothing is shared with
    // other processes unless a driver insists, the thread keeps its processors.
    const std::string prefix = "--file-prefix=" + std::string(RuntimeFolder::kPrefix) + std::to_string(::getpid());
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
    files.close_on_exec();
    static NeverDestroyed<RuntimeFolder> folder;
    if (result >= 0) {
        folder->keep(::rte_eal_get_runtime_dir());
        ::on_exit([](int, void*) { folder->remove(); }, nullptr);
    }
    return result;
}

}  // namespace

bool start_eal(bool channel, std::string* why, std::string* cure) {
    static std::mutex mutex;
    static int state = 0;  // 1 started, -1 failed
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
    if (state == 0) {
        std::thread starter([channel] {
            sigset_t all;
            ::sigfillset(&all);
            ::pthread_sigmask(SIG_BLOCK, &all, nullptr);  // DPDK's threads take no signal of the program's
            state = initialise(channel) >= 0 || rte_errno == EALREADY ? 1 : -1;
            error = rte_errno;
        });
        starter.join();
        has_channel = channel;
    }
    if (state == 1 && channel && !has_channel) {
        *why = "DPDK was started without its channel between processes, which net_memif needs";
        *cure = "name the net_memif port in acenic.ports before the program starts";
        return false;
    }
    if (state == 1) return true;
    *why = std::string("DPDK does not start: ") + ::rte_strerror(error) + last_dpdk_line();
    *cure = error == ENOMEM ? "allow the process more memory and address space (its cgroup, ulimit -v)"
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
