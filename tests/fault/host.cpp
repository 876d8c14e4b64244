// SPDX-License-Identifier: BSD-2-Clause
#include "host.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "../conformance/fixture.hpp"

namespace viaduct::fault {

namespace files = std::filesystem;

namespace {

/// What can be read of a file of /proc: nothing when its process has ended meanwhile, even after the opening.
std::string contents(const files::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();  // unlike an iterator, this takes a failing read for the end
    return text.str();
}

/// True when one of the zero-terminated words equals `wanted`.
bool has_word(const std::string& words, const std::string& wanted) {
    return ('\0' + words).find('\0' + wanted + '\0') != std::string::npos;
}

/// Calls `look` for each process but this one.
template <typename Look>
void each_process(Look look) {
    std::error_code ignored;  // processes may end while we look
    for (const auto& entry : files::directory_iterator("/proc", ignored)) {
        const std::string name = entry.path().filename();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        const pid_t pid = static_cast<pid_t>(std::stol(name));
        if (pid != getpid()) look(pid, entry.path());
    }
}

std::size_t open_descriptors(const files::path& process) {
    std::error_code ignored;
    const files::directory_iterator open(process / "fd", ignored);
    return static_cast<std::size_t>(std::distance(begin(open), end(open)));
}

bool speaks_of_us(const std::string& name) {
    return name.find("viaduct") != std::string::npos || name.find("vipkad") != std::string::npos;
}

/// In a folder where tests that run at the same time have files, too, of other names than the library's.
bool is_of_the_library(const std::string& name) {
    static const std::regex of_a_user("viaduct-(names-)?[0-9]+");
    return std::regex_match(name, of_a_user) || name.find("vipkad") != std::string::npos;
}

template <typename IsOurs>
void add_names(std::set<std::string>& names, const files::path& folder, IsOurs is_ours) {
    std::error_code ignored;
    for (const auto& entry : files::directory_iterator(folder, ignored))
        if (is_ours(entry.path().filename())) names.insert(entry.path());
}

}  // namespace

std::string agent_name() {
    const char* name = std::getenv("VIADUCT_AGENT");
    conformance::require(
        name != nullptr && *name == '@',
        "the fault tests kill their agent and need one of their own: set VIADUCT_AGENT=@name");
    return name;
}

pid_t agent_pid() {
    const std::string name = agent_name();
    pid_t found = 0;
    each_process([&](pid_t pid, const files::path& process) {
        if (contents(process / "comm") == "vipkad\n" && has_word(contents(process / "cmdline"), name))
            found = pid;
    });
    return found;
}

bool kill_agent() {
    const pid_t pid = agent_pid();
    if (pid == 0 || ::kill(pid, SIGKILL) != 0) return false;
    return conformance::eventually([&] { return agent_pid() != pid; });
}

OtherAgent::OtherAgent(const std::string& suffix) : before_(agent_name()) {
    setenv("VIADUCT_AGENT", (before_ + suffix).c_str(), 1);
    setenv("VIADUCT_AGENT_ENDED_MS", "0", 1);
}

OtherAgent::~OtherAgent() {
    unsetenv("VIADUCT_AGENT_ENDED_MS");
    setenv("VIADUCT_AGENT", before_.c_str(), 1);
}

StoppedAgent::StoppedAgent() : pid_(agent_pid()) {
    if (pid_ == 0) return;
    guardian_ =
        std::make_unique<conformance::Child>("guardian", std::vector<std::string>{std::to_string(pid_)});
    conformance::require(guardian_->line() == "ready", "no process guards the stopped agent");
    ::kill(pid_, SIGSTOP);
}

StoppedAgent::~StoppedAgent() {
    if (pid_ != 0) ::kill(pid_, SIGCONT);
}

Census Census::take() {
    Census census;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.find("memfd:") != std::string::npos) ++census.mappings;
    }
    maps.close();
    census.descriptors = open_descriptors("/proc/self");
    const std::string user = "VIADUCT_AGENT=" + agent_name();
    each_process([&](pid_t, const files::path& process) {
        if (has_word(contents(process / "environ"), user)) ++census.processes;
    });
    if (const pid_t agent = agent_pid(); agent != 0)
        census.agent_descriptors = open_descriptors("/proc/" + std::to_string(agent));
    add_names(census.files, "/dev/shm", speaks_of_us);
    add_names(census.files, "/tmp", is_of_the_library);
    if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime != nullptr)
        add_names(census.files, runtime, speaks_of_us);
    return census;
}

Census Census::settled() {
    constexpr int kLooks = 50;
    Census census = take();
    int same = 0;
    const auto stands = [&] {
        const Census now = take();
        same = now == census ? same + 1 : 0;
        census = now;
        return same == kLooks;
    };
    conformance::require(conformance::eventually(stands), "what is held does not come to rest");
    return census;
}

bool Census::within(const Census& before) const {
    return mappings <= before.mappings && descriptors <= before.descriptors &&
           agent_descriptors <= before.agent_descriptors && processes <= before.processes &&
           std::includes(before.files.begin(), before.files.end(), files.begin(), files.end());
}

std::string Census::text() const {
    std::string out = std::to_string(mappings) + " mappings, " + std::to_string(descriptors) +
                      " descriptors, " + std::to_string(agent_descriptors) + " descriptors of the agent, " +
                      std::to_string(processes) + " processes";
    for (const std::string& name : files) out += ", " + name;
    return out;
}

}  // namespace viaduct::fault
