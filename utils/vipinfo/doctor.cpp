// SPDX-License-Identifier: BSD-2-Clause
// See doctor.hpp.
#include "utils/vipinfo/doctor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "core/agent/name_holder.hpp"
#include "core/config/config.hpp"
#include "core/config/config_text.hpp"
#include "core/config/tuning.hpp"
#include "core/process/cpu_quota.hpp"
#include "core/sync/asymmetric_barrier.hpp"

namespace viaduct::vipinfo {

using namespace tools;

namespace {

constexpr uint64_t kWantedFiles = 256;  // sockets, watches of peers, the application's own
constexpr uint64_t kMappingsPerVi = 4;  // connection segment, peer's hub and table, slack
constexpr uint64_t kWantedBuffer = 8 << 20;  // of a socket of udp
constexpr uint64_t kWantedMappings = 1024 * kMappingsPerVi + 4096;

Finding ok(std::string subject, std::string text) {
    return {Verdict::ok, std::move(subject), std::move(text), {}};
}

std::string first_line(const char* path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

Finding kernel() {
    utsname name{};
    ::uname(&name);
    return ok("kernel", fmt::format("{} {} on {}", name.sysname, name.release, name.machine));
}

Finding shared_memory() {
    const int fd = ::memfd_create("viaduct-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return {
            Verdict::problem, "shared memory", fmt::format("memfd_create: {}", std::strerror(errno)),
            "allow memfd_create in the container's seccomp profile; connections cannot be made without it"};
    }
    const bool sealed = ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0;
    ::close(fd);
    if (!sealed) {
        return {Verdict::problem, "shared memory", "memfd cannot be sealed", "use a kernel of 3.17 or newer"};
    }
    return ok("shared memory", "sealed memfd works");
}

Finding barrier() {
    asymmetric_barrier_init();
    if (asymmetric_barrier_available())
        return ok("membarrier", "expedited barriers work: hot paths run without fences");
    return {Verdict::note, "membarrier", "not available: every message pays for a fence",
            "allow the membarrier system call (kernel 4.16 or newer, seccomp profile)"};
}

Finding process_watch() {
    const long fd = ::syscall(SYS_pidfd_open, ::getpid(), 0);
    if (fd < 0) {
        return {Verdict::problem, "pidfd", fmt::format("pidfd_open: {}", std::strerror(errno)),
                "use a kernel of 5.3 or newer, or allow pidfd_open in the seccomp profile: without it the "
                "death of a "
                "peer is noticed late"};
    }
    ::close(static_cast<int>(fd));
    return ok("pidfd", "deaths of peers are noticed at once");
}

// A child reads a word of a sibling, as two applications would: being an ancestor grants more than
// peers have.
bool siblings_can_read(int* error) {
    static const uint64_t word = 0x5669616475637421;
    int pipe_fds[2];
    *error = EAGAIN;
    if (::pipe2(pipe_fds, O_CLOEXEC) != 0) return false;
    const pid_t target = ::fork();
    if (target == 0) {
        char byte;
        ::close(pipe_fds[1]);
        const ssize_t ended =
            ::read(pipe_fds[0], &byte, 1);  // until the examiner has finished and closed its end
        ::_exit(ended < 0 ? 1 : 0);
    }
    const pid_t reader = ::fork();
    if (reader == 0) {
        uint64_t copy = 0;
        const iovec local{&copy, sizeof copy};
        const iovec remote{const_cast<uint64_t*>(&word), sizeof word};
        const ssize_t n = ::process_vm_readv(target, &local, 1, &remote, 1, 0);
        ::_exit(n == static_cast<ssize_t>(sizeof word) && copy == word ? 0 : errno);
    }
    int status = 0;
    if (target > 0 && reader > 0) ::waitpid(reader, &status, 0);
    ::close(pipe_fds[0]);
    ::close(pipe_fds[1]);
    int ignored = 0;
    if (target > 0) ::waitpid(target, &ignored, 0);
    if (target < 0 || reader < 0) return false;
    *error = WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
    return *error == 0;
}

Finding cross_copy() {
    int error = 0;
    if (siblings_can_read(&error))
        return ok("cross-process copy", "process_vm_readv between processes of one user works");
    const std::string yama = first_line("/proc/sys/kernel/yama/ptrace_scope");
    return {Verdict::note, "cross-process copy",
            fmt::format("process_vm_readv between sibling processes: {}{}", std::strerror(error),
                        yama.empty() ? "" : fmt::format(" (kernel.yama.ptrace_scope = {})", yama)),
            "RDMA into ordinary memory is served by a helper thread instead; for direct copies set "
            "kernel.yama.ptrace_scope = 0, or give the container CAP_SYS_PTRACE"};
}

Finding open_files() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= kWantedFiles) return ok("open files", fmt::format("limit {}", limit.rlim_cur));
    return {Verdict::problem, "open files",
            fmt::format("limit {} is low; {} are advisable", limit.rlim_cur, kWantedFiles),
            fmt::format("ulimit -n {}", kWantedFiles * 4)};
}

Finding mappings() {
    const std::string text = first_line("/proc/sys/vm/max_map_count");
    const uint64_t count = text.empty() ? kWantedMappings : std::strtoull(text.c_str(), nullptr, 10);
    if (count >= kWantedMappings) return ok("memory mappings", fmt::format("vm.max_map_count {}", count));
    return {Verdict::note, "memory mappings",
            fmt::format("vm.max_map_count {} does not suffice for 1,024 VIs", count),
            fmt::format("sysctl vm.max_map_count={}", kWantedMappings * 2)};
}

Finding locked_memory() {
    rlimit limit{};
    ::getrlimit(RLIMIT_MEMLOCK, &limit);
    const std::string value =
        limit.rlim_cur == RLIM_INFINITY ? "unlimited" : fmt::format("{} KiB", limit.rlim_cur / 1024);
    return ok("locked memory",
              fmt::format("limit {}; RDMA devices lock what is registered, paramnet locks none", value));
}

Finding processors() {
    cpu_set_t set;
    CPU_ZERO(&set);
    // Fails on machines with more processors than the set has room for: there all count.
    const long allowed =
        ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : ::sysconf(_SC_NPROCESSORS_ONLN);
    const double quota = own_cpu_quota().processors;
    const std::string text =
        fmt::format("{} allowed{}", allowed,
                    quota > 0 ? fmt::format(", and their control group has the time of {:.3g}", quota) : "");
    if (allowed >= 2 && (quota == 0 || quota >= 2)) return ok("processors", text);
    return {Verdict::note, "processors", text + ": two polling processes must take turns",
            "allow at least two processors (taskset, cpuset, cpu.max) where latency matters"};
}

// What the default NIC has measured of this machine.
Finding measurements() {
    const Tuning tuning = load_tuning();
    if (tuning.state == Tuning::State::valid) {
        std::string values;
        for (const FileSetting& s : tuning.settings)
            values += fmt::format("{}.{} = {}, ", s.section, s.key, s.text);
        return ok("measurements", fmt::format("{}measured {}, {}", values, tuning.measured, tuning.path));
    }
    const std::string text =
        tuning.state == Tuning::State::none
            ? "nothing was measured on this machine: each connection of paramnet finds how to move long "
              "messages"
            : fmt::format("{} does not count here: {}", tuning.path, tuning.why);
    return {Verdict::note, "measurements", text,
            "run vipperf --tune when the machine is quiet; as root it counts for all users"};
}

Finding agent(const Inventory& all) {
    if (!all.agent_error.empty()) {
        const bool named = !all.agent_address.empty() && all.agent_address[0] != '@';
        return {Verdict::problem, "kernel agent", fmt::format("{}: {}", all.agent_address, all.agent_error),
                named ? fmt::format("an agent at a path is never started by programs: start its service, or "
                                    "vipkad --socket {}; or unset VIADUCT_AGENT",
                                    all.agent_address)
                      : "start it by hand to see why: vipkad --foreground --log-level debug"};
    }
    return ok("kernel agent", fmt::format("vipkad {} (process {}, protocol {}) at {}, {}", all.agent_version,
                                          all.agent_pid, all.protocol, all.agent_address, all.agent_origin));
}

// Any user may take an abstract name; the agent serves at another place then.
void agents_name(const Inventory& all, std::vector<Finding>& out) {
    const std::string holder = other_user_at(all.agent_address);
    if (holder.empty()) return;
    out.push_back(
        {Verdict::note, "agent's name",
         fmt::format("{} is held by {}: the agent is met in a folder of your own instead", all.agent_address, holder),
         "end that process; it cannot read what you send, only make starting slower"});
}

void providers(const Inventory& all, std::vector<Finding>& out) {
    if (all.providers.empty()) {
        out.push_back({Verdict::problem, "providers", "none found",
                       "reinstall Viaduct, or name their folder in VIADUCT_PROVIDER_PATH"});
    }
    for (const ProviderRow& row : all.providers) {
        const std::string subject = "provider " + row.name;
        if (row.error.empty()) {
            out.push_back(ok(subject, fmt::format("version {}, {}", row.version, row.path)));
        } else {
            out.push_back({Verdict::problem, subject, row.error, row.cure});
        }
    }
    for (const RejectedNic& nic : all.rejected) {
        out.push_back(
            {Verdict::note, "NIC " + nic.name, fmt::format("{}: {}", nic.provider, nic.reason), nic.cure});
    }
}

std::string setting(const Inventory& all, std::string_view section, std::string_view key) {
    for (const SettingRow& row : all.settings)
        if (row.section == section && row.key == key) return row.value;
    return {};
}

// The default provider of this program: no other one stands in where it offers no NIC.
void wanted_provider(const Inventory& all, std::vector<Finding>& out) {
    const std::string wanted = setting(all, "names", "default_provider");
    const std::string subject = fmt::format("names.default_provider = \"{}\"", wanted);
    std::vector<std::string> names;
    for (const ProviderRow& row : all.providers) names.push_back(row.name);
    if (std::find(names.begin(), names.end(), wanted) == names.end()) {
        const std::string near = nearest(wanted, names);
        out.push_back({Verdict::problem, subject,
                       fmt::format("there is no such provider{}", near.empty() ? "" : "; did you mean " + near + "?"),
                       fmt::format("one of: {}", fmt::join(names, ", "))});
        return;
    }
    const bool offers = std::any_of(all.nics.begin(), all.nics.end(),
                                    [&](const NicInfo& nic) { return text_of(nic.provider) == wanted; });
    if (offers || !all.agent_error.empty()) return;
    Finding finding{Verdict::problem, subject,
                    "it offers no NIC: VipOpenNic fails for names that say no provider",
                    "see the providers below, or choose another one"};
    for (const RejectedNic& nic : all.rejected) {
        if (nic.provider != wanted) continue;
        finding.finding += fmt::format(" ({}: {})", nic.name, nic.reason);
        finding.cure = nic.cure;
    }
    out.push_back(finding);
}

// An agent keeps the configuration that it was started with.
void agents_configuration(const Inventory& all, std::vector<Finding>& out) {
    if (all.agent_configuration.empty() || all.agent_configuration == all.own_configuration) return;
    out.push_back(
        {Verdict::problem, "agent's configuration",
         fmt::format("vipkad (process {}) was started with other settings than those in force here", all.agent_pid),
         fmt::format("renew it: kill {}; the next program starts another one, and connections stay", all.agent_pid)});
}

// An interface that drops what is to leave: most often its MTU is larger than that of what is behind it.
void dropped_frames(const NicInfo& nic, std::vector<Finding>& out) {
    const std::string about(text_of(nic.description)), key = "iface=";
    const size_t at = about.find(key);
    if (at == std::string::npos) return;
    const std::string interface = about.substr(at + key.size(), about.find_first_of(",;", at) - at - key.size());
    if (interface.empty() || interface.find('/') != std::string::npos) return;
    const std::string dropped = first_line(("/sys/class/net/" + interface + "/statistics/tx_dropped").c_str());
    if (dropped.empty() || dropped == "0") return;
    out.push_back({Verdict::note, fmt::format("NIC {}", text_of(nic.name)),
                   fmt::format("{} has dropped {} frames on their way out; its MTU is {}", interface, dropped,
                               nic.native_mtu),
                   fmt::format("where hosts or switches have a smaller MTU, frames of that size are used after one "
                               "more try; `ip link set {} mtu N` saves it",
                               interface)});
}

// Frames of a connection that come faster than they are taken wait there.
void socket_buffers(const Inventory& all, std::vector<Finding>& out) {
    const bool needed = std::any_of(all.nics.begin(), all.nics.end(),
                                    [](const NicInfo& nic) { return text_of(nic.provider) == "udp"; });
    const std::string most = needed ? first_line("/proc/sys/net/core/rmem_max") : "";
    if (most.empty()) return;
    if (std::strtoull(most.c_str(), nullptr, 10) >= kWantedBuffer) {
        out.push_back(ok("socket buffers", fmt::format("net.core.rmem_max {}", most)));
        return;
    }
    out.push_back({Verdict::note, "socket buffers",
                   fmt::format("net.core.rmem_max {}: udp keeps fewer frames under way than it could", most),
                   fmt::format("sysctl -w net.core.rmem_max={0} net.core.wmem_max={0}", kWantedBuffer)});
}

void nics(const Inventory& all, std::vector<Finding>& out) {
    if (all.agent_error.empty() && all.nics.empty()) {
        out.push_back(
            {Verdict::problem, "NICs", "none", "see the providers above; paramnet.nics must be at least 1"});
    }
    for (const NicInfo& nic : all.nics) {
        const std::string subject = fmt::format("NIC {}", text_of(nic.name));
        if (nic.link_up != 0) {
            out.push_back(ok(subject, fmt::format("link up, address {}", address_text(nic.address))));
            dropped_frames(nic, out);
        } else {
            out.push_back(
                {Verdict::problem, subject, "link down", "bring the link up, or choose another NIC"});
        }
    }
}

// The NIC that a message is to go through. A name that nothing is known of opens the default one, and nothing would
// have been tried.
void message(const Inventory& all, const std::string& device, std::vector<Finding>& out) {
    const std::string provider = provider_meant_by(device);
    const bool named_by_user = Config::load().nic_of_alias(device) != nullptr;
    NicInfo guessed;
    std::string why;
    if (provider.empty() && resolve_name(device, &guessed, &why) == Status::ok && !why.empty()) {
        out.push_back({Verdict::problem, "message", fmt::format("nothing was tried through \"{}\": {}", device, why),
                       "vipinfo shows the names of NICs; a host is examined by its name or IPv4 address"});
        return;
    }
    if (provider.empty() || named_by_user || !all.agent_error.empty()) return out.push_back(try_message(device));
    for (const NicInfo& nic : all.nics)
        if (device == provider && text_of(nic.provider) == provider)
            return out.push_back(try_message(std::string(text_of(nic.name))));
    // The agent has the reason for one interface ("udp:eth9"); here are those for all of them.
    const bool of_interface = device.find_first_of("/:") != device.npos;
    if (device != provider && (of_interface || resolve_name(device, &guessed, &why) == Status::ok))
        return out.push_back(try_message(device));
    Finding finding{Verdict::problem, "message", fmt::format("provider {} offers no NIC {}", provider, device),
                    fmt::format("see viaduct-{}(7)", provider)};
    if (device == provider) finding.finding = fmt::format("provider {} offers no NIC", provider);
    for (const RejectedNic& nic : all.rejected) {
        if (nic.provider != provider) continue;
        finding.finding += fmt::format(" ({}: {})", nic.name, nic.reason);
        if (!nic.cure.empty()) finding.cure = nic.cure;
    }
    out.push_back(finding);
}

}  // namespace

std::vector<Finding> check_host(const Inventory& all, const std::string& device) {
    std::vector<Finding> out{kernel(),     shared_memory(), barrier(),       process_watch(), cross_copy(),
                             open_files(), mappings(),      locked_memory(), processors(),    measurements()};
    for (const std::string& problem : all.config_problems) {
        out.push_back({Verdict::problem, "configuration", problem,
                       "correct the file or variable named; see viaduct.toml(5)"});
    }
    wanted_provider(all, out);
    providers(all, out);
    out.push_back(agent(all));
    agents_configuration(all, out);
    agents_name(all, out);
    nics(all, out);
    socket_buffers(all, out);
    message(all, device, out);
    return out;
}

}  // namespace viaduct::vipinfo
