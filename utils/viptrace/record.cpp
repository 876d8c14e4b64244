// SPDX-License-Identifier: BSD-2-Clause
#include "utils/viptrace/record.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "utils/common/error.hpp"
#include "utils/viptrace/read.hpp"

namespace viaduct::viptrace {

namespace {

namespace fs = std::filesystem;
using tools::ToolError;

void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

}  // namespace

void make_folder(const std::string& folder) {
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) throw ToolError(folder + ": " + std::strerror(errno));
}

int record(const std::string& folder, uint64_t events, const std::vector<std::string>& command) {
    make_folder(folder);
    set(kFolderVariable, fs::absolute(folder));
    set(kEventsVariable, std::to_string(events));
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
        ::execvp(words[0], words.data());
        std::fprintf(stderr, "viptrace: %s: %s\n", words[0], std::strerror(errno));
        ::_exit(errno == ENOENT ? 127 : 126);
    }
    if (child < 0) throw ToolError(std::string("fork: ") + std::strerror(errno));
    // Ctrl-C is the program's.
    std::signal(SIGINT, SIG_IGN);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace viaduct::viptrace
