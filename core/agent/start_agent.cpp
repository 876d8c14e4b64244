// SPDX-License-Identifier: BSD-2-Clause
// Starting vipkad from inside an application that must not notice. Called by AgentLink on the thread that
// connects; nothing here is on a data path.
//
// How: clone() with exit signal 0 makes an intermediate child that shares our memory (no copy of a large
// process, no atfork handlers) and that the application's wait() cannot see; it makes the real child in the
// same way and ends; we collect it with __WCLONE. The real child belongs to init from then on.
#include "core/agent/start_agent.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <vector>

#include "core/config/paths.hpp"
#include "core/shm/own_mapping.hpp"

#define VIADUCT_SHARED_MEMORY_CHILD __attribute__((no_sanitize("address", "thread", "undefined")))

// The C library's other name of clone(). A program may own the first one (spec/compat L1), and the thread sanitizer
// takes a call of it for a fork and switches itself off in the child's memory, which here is ours: from then on it
// would see nothing on this thread and refuse new ones.
extern "C" int __clone(int (*run)(void*), void* stack, int flags, void* argument, ...);

namespace viaduct {

namespace {

constexpr size_t kStackBytes = 128 * 1024;

// What of the application's environment the agent gets: what it understands itself, and what the drivers below it do.
// Everything else concerns the application alone: preloads, allocators, library paths, locales, and the service
// manager's words for it, which the agent must not answer.
constexpr const char* kForAgent[] = {
    "VIADUCT_",      "PATH=",         "HOME=",         "USER=",         "LOGNAME=",       "TZ=",   "XDG_",
    "ASAN_OPTIONS=", "LSAN_OPTIONS=", "TSAN_OPTIONS=", "UBSAN_OPTIONS=", "IBV_", "RDMAV_", "MLX"};
// Names that an application gives to NICs and hosts, which its own library looks up, mean nothing to others.
constexpr const char* kNotForAgent[] = {"VIADUCT_NICS=", "VIADUCT_HOSTS="};

// The mapping that holds `address`, for objects that were loaded by a relative name.
std::string mapped_file(const void* address) {
    std::string result;
    const std::unique_ptr<FILE, int (*)(FILE*)> maps(std::fopen("/proc/self/maps", "re"), std::fclose);
    if (maps == nullptr) return result;
    char line[PATH_MAX + 128];
    const auto wanted = reinterpret_cast<unsigned long>(address);
    while (std::fgets(line, sizeof line, maps.get()) != nullptr) {
        unsigned long from = 0, to = 0;
        if (std::sscanf(line, "%lx-%lx", &from, &to) != 2 || wanted < from || wanted >= to) continue;
        if (const char* name = std::strchr(line, '/')) result.assign(name, std::strcspn(name, "\n"));
        break;
    }
    return result;
}

// Folder of the object (libvipl, a tool, a test) that this code was linked into.
std::string own_folder() {
    Dl_info info{};
    const void* here = reinterpret_cast<const void*>(&find_vipkad);
    std::string file;
    if (::dladdr(here, &info) != 0 && info.dli_fname != nullptr && info.dli_fname[0] == '/')
        file = info.dli_fname;
    if (file.empty()) file = mapped_file(here);
    const size_t slash = file.rfind('/');
    return slash == std::string::npos ? std::string() : file.substr(0, slash);
}

struct SpawnPlan {
    const char* path;
    char* const* arguments;
    char* const* environment;
    char* inner_stack_top;
    volatile int error;
    volatile pid_t started;
};

// A child that shares our memory but not our descriptors and handlers calls the kernel itself. The names of
// the C library may be replaced by code that keeps records in that memory: a sanitizer, a preloaded tracer. Those
// would be records of the application's descriptors and handlers, which nothing here has touched.
template <class... Words>
VIADUCT_SHARED_MEMORY_CHILD long kernel(long number, Words... words) {
    return ::syscall(number, words...);
}

VIADUCT_SHARED_MEMORY_CHILD void close_above_stdio() {
#ifdef SYS_close_range
    if (kernel(SYS_close_range, 3u, ~0u, 0u) == 0) return;
#endif
    const long limit = ::sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < (limit > 0 && limit < 65536 ? limit : 65536); ++fd) kernel(SYS_close, fd);
}

VIADUCT_SHARED_MEMORY_CHILD void default_signals() {
    constexpr size_t kSetBytes = (NSIG - 1) / 8;  // the kernel's sigset_t
    const long action[8] = {};                    // at least its struct sigaction, with SIG_DFL and nothing else
    for (int s = 1; s < NSIG; ++s) kernel(SYS_rt_sigaction, s, action, nullptr, kSetBytes);
    const long none[2] = {};
    kernel(SYS_rt_sigprocmask, SIG_SETMASK, none, nullptr, kSetBytes);
}

// The application's own are not for the agent, even where there is no /dev/null.
VIADUCT_SHARED_MEMORY_CHILD void null_stdio() {
    const long null = kernel(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0);
    for (long fd = 0; fd <= 2; ++fd) {
        if (null < 0)
            kernel(SYS_close, fd);
        else if (null != fd)
            kernel(SYS_dup3, null, fd, 0);
    }
}

// As high as they go, since what they are may be too little even to load a program. It does the rest itself
// (core/agent/own_limits.hpp).
VIADUCT_SHARED_MEMORY_CHILD void raise_limits() {
    constexpr int kResources[] = {RLIMIT_AS, RLIMIT_DATA, RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_NOFILE};
    for (const int resource : kResources) {
        uint64_t limit[2];  // the kernel's rlimit64: now, at most
        if (kernel(SYS_prlimit64, 0, resource, nullptr, limit) != 0) continue;
        limit[0] = limit[1];
        kernel(SYS_prlimit64, 0, resource, limit, nullptr);
        limit[0] = limit[1] = ~uint64_t{0};
        if (resource != RLIMIT_NOFILE) kernel(SYS_prlimit64, 0, resource, limit, nullptr);
    }
    uint64_t stack[2];
    constexpr uint64_t kStack = uint64_t{8} << 20;
    if (kernel(SYS_prlimit64, 0, RLIMIT_STACK, nullptr, stack) == 0 && stack[0] < kStack) {
        stack[0] = stack[1] < kStack ? stack[1] : kStack;
        kernel(SYS_prlimit64, 0, RLIMIT_STACK, stack, nullptr);
    }
}

// By the system call alone: a sanitizer's _exit() waits a second for threads, which are the application's.
[[noreturn]] VIADUCT_SHARED_MEMORY_CHILD void end_child(int code) {
    for (;;) kernel(SYS_exit_group, code);
}

// The process that becomes vipkad. Memory is still the application's: system calls only.
VIADUCT_SHARED_MEMORY_CHILD int become_agent(void* argument) {
    auto* plan = static_cast<SpawnPlan*>(argument);
    kernel(SYS_setsid);
    null_stdio();
    close_above_stdio();
    kernel(SYS_chdir, "/");
    kernel(SYS_umask, 022);
    cpu_set_t everywhere;  // the application may be pinned to one processor; the agent shall not sit on it
    std::memset(&everywhere, 0xFF, sizeof everywhere);
    kernel(SYS_sched_setaffinity, 0, sizeof everywhere, &everywhere);
    default_signals();
    raise_limits();
    kernel(SYS_execve, plan->path, plan->arguments, plan->environment);
    plan->error = errno;
    end_child(127);
}

VIADUCT_SHARED_MEMORY_CHILD int run_intermediate(void* argument) {
    auto* plan = static_cast<SpawnPlan*>(argument);
    const pid_t child = __clone(become_agent, plan->inner_stack_top, CLONE_VM | CLONE_VFORK | SIGCHLD, plan);
    if (child < 0) plan->error = errno;
    plan->started = child;
    end_child(0);
}

std::vector<char*> agent_environment() {
    std::vector<char*> result;
    for (char** e = __environ; e != nullptr && *e != nullptr; ++e) {
        const auto begins = [e](const char* name) { return std::strncmp(*e, name, std::strlen(name)) == 0; };
        if (std::any_of(std::begin(kForAgent), std::end(kForAgent), begins) &&
            std::none_of(std::begin(kNotForAgent), std::end(kNotForAgent), begins))
            result.push_back(*e);
    }
    result.push_back(nullptr);
    return result;
}

}  // namespace

std::string find_vipkad(std::string* tried) { return find_beside_vipkad("vipkad", "VIADUCT_VIPKAD", tried); }

std::string find_beside_vipkad(const char* name, const char* variable, std::string* tried) {
    if (const char* named = ::secure_getenv(variable); named != nullptr && *named != '\0') {
        if (::access(named, X_OK) == 0) return named;
        if (tried != nullptr) *tried = std::string(named) + " (" + variable + ")";
        return {};
    }
    const auto beside = [name](const std::string& vipkad) {
        return vipkad.substr(0, vipkad.rfind('/') + 1) + name;
    };
    std::vector<std::string> places;
    if (const std::string folder = own_folder(); !folder.empty()) {
        // From the library's folder, a tool's, and that of a provider.
        for (const std::string& libdir : {folder, folder + "/" + paths::kBindirToLibdir, folder + "/.."})
            places.push_back(libdir + "/" + beside(paths::kLibdirToVipkad));
    }
    places.push_back(beside(paths::kVipkad));
    for (const std::string& place : places) {
        if (::access(place.c_str(), X_OK) == 0) return place;
        if (tried != nullptr) *tried += (tried->empty() ? "" : ", ") + place;
    }
    return {};
}

int spawn_agent(const std::string& path, const std::string& address, pid_t* started) {
    return spawn_detached(path, {"vipkad", "--socket", address, "--automatic"}, started);
}

int spawn_detached(const std::string& path, std::vector<std::string> words, pid_t* started) {
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const std::vector<char*> environment = agent_environment();

    const size_t bytes = 2 * kStackBytes;  // mapped last: the vectors above may throw
    void* stacks = map_own(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK);
    if (stacks == nullptr) return errno;
    auto* base = static_cast<char*>(stacks);
    SpawnPlan plan{path.c_str(), arguments.data(), environment.data(), base + bytes, 0, 0};

    // No handler of the application may run in a child that shares its memory.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = 0;
    const pid_t child = __clone(run_intermediate, base + kStackBytes, CLONE_VM | CLONE_VFORK, &plan);
    if (child < 0) {
        error = errno;
    } else {
        while (::waitpid(child, nullptr, __WCLONE) < 0 && errno == EINTR) {
        }
        error = plan.error;
        if (started != nullptr) *started = plan.started;
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::munmap(stacks, bytes);
    return error;
}

}  // namespace viaduct
