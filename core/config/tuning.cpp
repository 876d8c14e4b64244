// SPDX-License-Identifier: BSD-2-Clause
#include "core/config/tuning.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "core/shm/segment.hpp"
#include "core/text/file_text.hpp"

namespace viaduct {

namespace {

constexpr const char* kMachineFolder = "/var/lib/viaduct";
constexpr const char* kMachineFile = "/var/lib/viaduct/tuning.toml";
constexpr size_t kLargestTable = 4096;
constexpr uint64_t kLargestValue = UINT32_MAX;

// What the processor or the kernel says of itself, as it can stand between quotes in a file.
std::string plain(std::string_view said) {
    std::string text;
    for (const char c : said)
        if (c >= ' ' && c < 127 && c != '"' && c != '\\') text += c;
    const auto first = text.find_first_not_of(' ');
    return first == std::string::npos ? "unknown"
                                      : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// /proc/cpuinfo grows with the number of processors; the processor itself answers at once.
std::string processor_model() {
#if defined(__x86_64__)
    unsigned words[12] = {};
    if (static_cast<unsigned>(__get_cpuid_max(0x80000000, nullptr)) >= 0x80000004) {  // clang: int
        for (unsigned i = 0; i < 3; ++i)
            __get_cpuid(0x80000002 + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2],
                        &words[4 * i + 3]);
        char name[sizeof words + 1] = {};
        std::memcpy(name, words, sizeof words);
        return name;
    }
#endif
    std::istringstream info(text_of_file("/proc/cpuinfo"));
    info.exceptions(std::ios::badbit);  // a failed allocation throws; getline would end the text early
    for (std::string line; std::getline(info, line);) {
        for (const char* key : {"model name", "CPU part", "cpu\t"}) {
            if (line.rfind(key, 0) == 0 && line.find(':') != std::string::npos)
                return line.substr(line.find(':') + 1);
        }
    }
    return "unknown processor";
}

std::string own_file() {
    if (const char* base = ::secure_getenv("XDG_CACHE_HOME"); base != nullptr && *base == '/')
        return fmt::format("{}/viaduct/tuning.toml", base);
    if (const char* home = ::secure_getenv("HOME"); home != nullptr && *home == '/')
        return fmt::format("{}/.cache/viaduct/tuning.toml", home);
    return "";
}

Tuning damaged(const std::string& path, std::string why) {
    Tuning tuning;
    tuning.state = Tuning::State::damaged;
    tuning.path = path;
    tuning.why = std::move(why);
    return tuning;
}

bool is_size(std::string_view text) {
    uint64_t value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    return failure == std::errc{} && end == text.data() + text.size() && value <= kLargestValue;
}

// The folder shows by its owner which user measures for the machine: only root can make one
// there.
bool may_speak_for_all(const std::string& path, uid_t owner) {
    struct stat folder {};
    return path == kMachineFile && ::lstat(kMachineFolder, &folder) == 0 && S_ISDIR(folder.st_mode) &&
           folder.st_uid == owner;
}

// Neither a pipe nor a device nor another user's file stops or steers a program.
Tuning load_file(const std::string& path) {
    Tuning tuning;
    tuning.path = path;
    if (path.empty()) return tuning;
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!fd.valid()) {
        if (errno == ENOENT || errno == ENOTDIR) return tuning;
        return damaged(path, std::strerror(errno));
    }
    struct stat about {};
    if (::fstat(fd.get(), &about) != 0 || !S_ISREG(about.st_mode)) return damaged(path, "no ordinary file");
    if (about.st_uid != 0 && about.st_uid != ::geteuid() && !may_speak_for_all(path, about.st_uid))
        return damaged(path, "it belongs to another user");
    if (about.st_size > static_cast<off_t>(kLargestTable)) return damaged(path, "it is too long");
    char text[kLargestTable];
    const ssize_t n = ::read(fd.get(), text, sizeof text);
    if (n < 0) return damaged(path, std::strerror(errno));
    return parse_tuning({text, static_cast<size_t>(n)}, path, this_machine());
}

// And those above it; true if it is there.
bool make_folder(const std::filesystem::path& folder) {
    const auto made = [&] { return folder.empty() || ::mkdir(folder.c_str(), 0777) == 0 || errno == EEXIST; };
    return made() || (errno == ENOENT && make_folder(folder.parent_path()) && made());
}

}  // namespace

MachineKey this_machine() {
    utsname system{};
    ::uname(&system);
    return {plain(processor_model()), plain(system.release)};
}

const std::vector<TunedKey>& tuned_keys() {
    static const auto& keys = *new std::vector<TunedKey>{
        {"paramnet", "stream_from"}, {"paramnet", "block_bytes"}, {"paramnet", "pull_from"}};
    return keys;
}

Tuning parse_tuning(std::string_view text, const std::string& path, const MachineKey& machine) {
    const FileContent content = read_toml(text, path);
    if (!content.problems.empty()) return damaged(path, content.problems.front());
    Tuning tuning;
    tuning.path = path;
    MachineKey measured_on;
    for (const FileSetting& s : content.settings) {
        if (s.section == "machine" && s.key == "processor") {
            measured_on.processor = s.text;
        } else if (s.section == "machine" && s.key == "kernel") {
            measured_on.kernel = s.text;
        } else if (s.section == "machine" && s.key == "measured") {
            tuning.measured = s.text;
        } else if (std::none_of(tuned_keys().begin(), tuned_keys().end(), [&](const TunedKey& t) {
                       return s.section == t.section && s.key == t.key;
                   })) {
            return damaged(path, fmt::format("[{}] {} is nothing that is measured", s.section, s.key));
        } else if (!is_size(s.text)) {
            return damaged(path,
                           fmt::format("[{}] {} = \"{}\" is no number of bytes", s.section, s.key, s.text));
        } else {
            tuning.settings.push_back(s);
        }
    }
    if (measured_on.processor.empty() || measured_on.kernel.empty())
        return damaged(path, "it does not say on which machine it was measured");
    if (tuning.settings.size() != tuned_keys().size()) return damaged(path, "it is not whole");
    tuning.state = Tuning::State::valid;
    if (measured_on != machine) {
        tuning.state = Tuning::State::foreign;
        tuning.why =
            measured_on.processor != machine.processor
                ? fmt::format("measured on {}, this is {}", measured_on.processor, machine.processor)
                : fmt::format("measured under Linux {}, this is {}", measured_on.kernel, machine.kernel);
        tuning.settings.clear();
    }
    return tuning;
}

Tuning load_tuning() {
    if (const char* named = ::secure_getenv("VIADUCT_TUNING"); named != nullptr && *named != '\0')
        return std::strcmp(named, "off") == 0 ? Tuning{} : load_file(named);
    Tuning own = load_file(own_file());
    if (own.state == Tuning::State::valid) return own;
    Tuning machine = load_file(kMachineFile);
    return machine.state == Tuning::State::valid || own.state == Tuning::State::none ? machine : own;
}

std::string tuning_text(const MachineKey& machine, const std::string& measured,
                        const std::vector<FileSetting>& settings, const std::vector<std::string>& notes) {
    std::string out = "# Written by vipperf --tune; measure anew rather than edit it (viaduct.toml(5)).\n";
    for (const std::string& note : notes) out += fmt::format("# {}\n", note);
    out += fmt::format("\n[machine]\nprocessor = \"{}\"\nkernel = \"{}\"\nmeasured = \"{}\"\n",
                       machine.processor, machine.kernel, measured);
    std::string section;
    for (const FileSetting& s : settings) {
        if (s.section != section) out += fmt::format("\n[{}]\n", s.section);
        section = s.section;
        out += fmt::format("{} = {}\n", s.key, s.text);
    }
    return out;
}

std::string own_tuning_path() {
    if (const char* named = ::secure_getenv("VIADUCT_TUNING"); named != nullptr && *named != '\0')
        return std::strcmp(named, "off") == 0 ? "" : named;
    return ::geteuid() == 0 ? kMachineFile : own_file();
}

std::string write_tuning(const std::string& path, const std::string& text) {
    if (!make_folder(std::filesystem::path(path).parent_path())) return std::strerror(errno);
    std::string fresh = path + ".XXXXXX";
    const Fd fd(::mkostemp(fresh.data(), O_CLOEXEC));
    if (!fd.valid()) return std::strerror(errno);
    // Others read it too.
    const bool well = ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                      ::fchmod(fd.get(), 0644) == 0 && ::fsync(fd.get()) == 0 &&
                      ::rename(fresh.c_str(), path.c_str()) == 0;
    if (well) return "";
    std::string why = std::strerror(errno);
    ::unlink(fresh.c_str());
    return why;
}

}  // namespace viaduct
