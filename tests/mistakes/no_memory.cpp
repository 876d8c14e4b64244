// SPDX-License-Identifier: BSD-2-Clause
// No exception leaves a call of VIPL, and a call that fails leaves nothing behind. VipOpenNic is called while the
// first allocation fails, then the second, and so on until none fails: first each time in a process of its own, which
// has not started the library, then again and again in one process. Other calls follow on an open NIC. A call that
// fails answers VIP_ERROR_RESOURCE and its reason names memory; the next open succeeds; then the process has as many
// descriptors, threads and shared mappings as without a failure.
//
//   no_memory NIC
#include <dirent.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <viaduct/ext.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <new>
#include <string>

#include "tests/eventually.hpp"
#include "tests/failing_new.hpp"

namespace {

constexpr long kMostAllocations = 20'000;  // no call allocates as often
constexpr unsigned kMostSeconds = 20;      // of one round; a longer one is a hang

enum Code : int { kFailed = 1, kSomeLeft = 40, kNoneFails = 41 };

struct Left {
    int files = 0, threads = 0, mappings = 0;
    bool operator==(const Left&) const = default;
};
constexpr int kThreads = 2 + 2;  // entries: the first thread, the library's, and the two names of each folder

int entries_of(const char* folder) {
    int count = 0;
    DIR* const entries = ::opendir(folder);
    while (entries != nullptr && ::readdir(entries) != nullptr) ++count;
    if (entries != nullptr) ::closedir(entries);
    return count;
}

int shared_mappings() {
    int count = 0;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.find("/memfd:viaduct-") != std::string::npos) ++count;
    return count;
}

Left left_now() { return {entries_of("/proc/self/fd"), entries_of("/proc/self/task"), shared_mappings()}; }

// A thread that ends is a task for a moment longer, and another one may read a file of /proc.
bool leaves(const Left& wanted, long n, const char* what) {
    Left now;
    const auto is_so = [&] { return (now = left_now()) == wanted; };
    if (viaduct::tests::eventually("nothing is left", is_so, {.limit = std::chrono::seconds(2)}).holds) return true;
    std::printf("FAILED: %s, allocation %ld fails: %d descriptors, %d threads, %d mappings are left, not %d, %d, %d\n",
                what, n, now.files, now.threads, now.mappings, wanted.files, wanted.threads, wanted.mappings);
    return false;
}

// The counts between two opens of which none fails.
bool measure(Left* usual) {
    const auto is_still = [&] {
        *usual = left_now();
        return usual->threads == kThreads && *usual == left_now();
    };
    return viaduct::tests::eventually("all threads of the NIC have ended", is_still).holds;
}

// The answer of a call during which an allocation has failed. `ordinary`: its answer without a failure.
bool is_right(VIP_RETURN answer, VIP_RETURN ordinary, long n, const char* what) {
    if (answer == ordinary) return true;  // the library can do without that allocation
    char text[1024] = "";
    (void)VipxLastError(nullptr, text, sizeof text);
    if (answer == VIP_ERROR_RESOURCE && std::strstr(text, "memory") != nullptr) return true;
    std::printf("FAILED: %s, allocation %ld fails: answer %d: %s\n", what, n, static_cast<int>(answer), text);
    return false;
}

bool opens_and_closes(const char* name, long n) {
    VIP_NIC_HANDLE nic = nullptr;
    const VIP_RETURN opened = VipOpenNic(name, &nic);
    if (opened == VIP_SUCCESS && VipCloseNic(nic) == VIP_SUCCESS) return true;
    char text[1024] = "";
    (void)VipxLastError(nullptr, text, sizeof text);
    std::printf("FAILED: after an open whose allocation %ld has failed: %s\n", n, text);
    return false;
}

// An open whose allocation n fails, and one without a failure.
Code open_twice(const char* name, long n) {
    VIP_NIC_HANDLE nic = nullptr;
    ::alarm(kMostSeconds);
    fail_allocation_after(n);
    const VIP_RETURN opened = VipOpenNic(name, &nic);
    const bool failed = allocation_has_failed();
    if (!is_right(opened, VIP_SUCCESS, n, "VipOpenNic")) return kFailed;
    if (opened == VIP_SUCCESS && VipCloseNic(nic) != VIP_SUCCESS) return kFailed;
    if (!failed && opened != VIP_SUCCESS) return kFailed;
    if (!opens_and_closes(name, n)) return kFailed;
    return failed ? kSomeLeft : kNoneFails;
}

// ---- the library is not started yet

Code in_a_process(const std::function<Code()>& body) {
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(kMostSeconds);
        const Code code = body();
        std::fflush(stdout);
        ::_exit(code);
    }
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child) return kFailed;
    if (WIFEXITED(status)) return static_cast<Code>(WEXITSTATUS(status));
    std::printf("FAILED: signal %d has ended the process\n", WTERMSIG(status));
    return kFailed;
}

// An agent serves for as long as a process has a NIC open.
class OpenElsewhere {
public:
    explicit OpenElsewhere(const char* name) {
        if (::pipe(open_.data()) != 0 || ::pipe(end_.data()) != 0) return;
        child_ = ::fork();
        if (child_ != 0) {
            ::close(open_[1]);
            ::close(end_[0]);
            char byte = 0;
            is_open = ::read(open_[0], &byte, 1) == 1;
            ::close(open_[0]);
            return;
        }
        ::close(open_[0]);
        ::close(end_[1]);
        VIP_NIC_HANDLE nic = nullptr;
        char byte = 0;
        if (VipOpenNic(name, &nic) == VIP_SUCCESS && ::write(open_[1], &byte, 1) == 1) (void)!::read(end_[0], &byte, 1);
        ::_exit(0);
    }
    ~OpenElsewhere() {
        ::close(end_[1]);
        if (child_ > 0) ::waitpid(child_, nullptr, 0);
    }
    OpenElsewhere(const OpenElsewhere&) = delete;
    OpenElsewhere& operator=(const OpenElsewhere&) = delete;

    bool is_open = false;

private:
    std::array<int, 2> open_{-1, -1}, end_{-1, -1};
    pid_t child_ = -1;
};

bool test_first_opens(const char* name) {
    void* const shared = ::mmap(nullptr, sizeof(Left), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return false;
    auto* const usual = new (shared) Left;
    const auto without_failure = [&] {
        return opens_and_closes(name, -1) && opens_and_closes(name, -1) && measure(usual) ? kNoneFails : kFailed;
    };
    if (in_a_process(without_failure) != kNoneFails) return false;
    long n = 0;
    Code code = kSomeLeft;
    for (; code == kSomeLeft && n < kMostAllocations; ++n) {
        code = in_a_process([&] {
            const Code opened = open_twice(name, n);
            return opened == kFailed || leaves(*usual, n, "the first open") ? opened : kFailed;
        });
        if (code != kSomeLeft && code != kNoneFails) std::printf("allocation %ld\n", n);
    }
    std::printf("first open: %ld allocations\n", n - 1);
    return code == kNoneFails;
}

// ---- the library is started

Code test_later_opens(const char* name) {
    Left usual;
    if (!opens_and_closes(name, -1) || !opens_and_closes(name, -1) || !measure(&usual)) return kFailed;
    long n = 0;
    Code code = kSomeLeft;
    for (; code == kSomeLeft && n < kMostAllocations; ++n) {
        code = open_twice(name, n);
        if (code != kFailed && !leaves(usual, n, "a later open")) code = kFailed;
    }
    std::printf("later open: %ld allocations\n", n - 1);
    return code;
}

// ---- calls on an open NIC

struct Named {
    const char* name;
    std::function<VIP_RETURN()> call;  // undoes what it has done
};

bool test_call(const Named& one, VIP_RETURN ordinary) {
    bool some_left = true;
    long n = 0;
    for (; some_left && n < kMostAllocations; ++n) {
        ::alarm(kMostSeconds);
        fail_allocation_after(n);
        const VIP_RETURN answer = one.call();
        some_left = allocation_has_failed();
        if (!is_right(answer, ordinary, n, one.name)) return false;
        if (const VIP_RETURN again = one.call(); again != ordinary) {
            std::printf("FAILED: %s after a failure of allocation %ld: answer %d, not %d\n", one.name, n,
                        static_cast<int>(again), static_cast<int>(ordinary));
            return false;
        }
    }
    std::printf("%s: %ld allocations\n", one.name, n - 1);
    return n < kMostAllocations;
}

// A line, a name and a word that are no short strings: each is an allocation.
constexpr char kHost[] = "a-host-whose-name-is-long";

bool use_hosts_file() {
    const int file = ::memfd_create("vip_hosts", 0);
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    return file >= 0 && ::dprintf(file, "02:00:00:00:00:01 %s\n", kHost) > 0 &&
           ::setenv("VIADUCT_HOSTS", path.c_str(), 1) == 0;
}

VIP_RETURN look_up(VIP_NIC_HANDLE nic, const char* host) {
    char name[sizeof kHost] = "";
    std::strcpy(name, host);
    alignas(VIP_NET_ADDRESS) char address[128] = {};
    const VIP_RETURN begun = VipNSInit(nic, nullptr);
    return begun == VIP_SUCCESS ? VipNSGetHostByName(nic, name, reinterpret_cast<VIP_NET_ADDRESS*>(address), 0) : begun;
}

Code test_calls(const char* name) {
    if (!use_hosts_file()) return kFailed;
    VIP_NIC_HANDLE nic = nullptr;
    VIP_NIC_ATTRIBUTES about{};
    if (VipOpenNic(name, &nic) != VIP_SUCCESS || VipQueryNic(nic, &about) != VIP_SUCCESS) return kFailed;
    static char memory[4096];
    alignas(VIP_NET_ADDRESS) char local[128] = {}, remote[128] = {};
    const VIP_UINT16 lengths[2] = {about.NicAddressLen, 1};
    std::memcpy(local, lengths, sizeof lengths);
    std::memcpy(local + sizeof lengths, about.LocalNicAddress, about.NicAddressLen);
    local[sizeof lengths + about.NicAddressLen] = 'x';
    const Named calls[] = {
        {"VipRegisterMem",
         [&] {
             VIP_MEM_HANDLE handle = 0;
             const VIP_RETURN made = VipRegisterMem(nic, memory, sizeof memory, nullptr, &handle);
             return made == VIP_SUCCESS ? VipDeregisterMem(nic, memory, handle) : made;
         }},
        {"VipxAllocMemory",
         [&] {
             VIP_PVOID address = nullptr;
             VIP_MEM_HANDLE handle = 0;
             const VIP_RETURN made = VipxAllocMemory(nic, sizeof memory, 0, nullptr, &address, &handle);
             return made == VIP_SUCCESS ? VipxFreeMemory(nic, address, handle) : made;
         }},
        {"VipCreatePtag",
         [&] {
             VIP_PROTECTION_HANDLE tag = nullptr;
             const VIP_RETURN made = VipCreatePtag(nic, &tag);
             return made == VIP_SUCCESS ? VipDestroyPtag(nic, tag) : made;
         }},
        {"VipCreateCQ",
         [&] {
             VIP_CQ_HANDLE queue = nullptr;
             const VIP_RETURN made = VipCreateCQ(nic, 64, &queue);
             return made == VIP_SUCCESS ? VipDestroyCQ(queue) : made;
         }},
        {"VipCreateVi",
         [&] {
             VIP_VI_ATTRIBUTES attributes{};
             attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
             attributes.MaxTransferSize = 1024;
             VIP_VI_HANDLE vi = nullptr;
             const VIP_RETURN made = VipCreateVi(nic, &attributes, nullptr, nullptr, &vi);
             return made == VIP_SUCCESS ? VipDestroyVi(vi) : made;
         }},
        {"VipNSGetHostByName of a host in a file", [&] { return look_up(nic, kHost); }},
        {"VipNSGetHostByName of another host", [&] { return look_up(nic, "localhost"); }},
        {"VipConnectWait",
         [&] {
             VIP_VI_ATTRIBUTES attributes{};
             VIP_CONN_HANDLE connection = nullptr;
             return VipConnectWait(nic, reinterpret_cast<VIP_NET_ADDRESS*>(local), 1,
                                   reinterpret_cast<VIP_NET_ADDRESS*>(remote), &attributes, &connection);
         }},
    };
    // After a failed attempt udp waits a while before it asks its daemon again: the next call would fail, too.
    const bool has_daemon = std::strncmp(name, "udp", 3) == 0;
    for (const Named& one : calls) {
        if (has_daemon && std::strcmp(one.name, "VipConnectWait") == 0) continue;
        if (!test_call(one, one.call())) return kFailed;
    }
    return VipCloseNic(nic) == VIP_SUCCESS ? kNoneFails : kFailed;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    const char* const name = argv[1];
    const OpenElsewhere other(name);
    if (!other.is_open) {
        std::printf("FAILED: %s cannot be opened\n", name);
        return 1;
    }
    const bool first = test_first_opens(name);
    const bool later = in_a_process([&] { return test_later_opens(name); }) == kNoneFails;
    const bool calls = in_a_process([&] { return test_calls(name); }) == kNoneFails;
    return first && later && calls ? 0 : 1;
}
