// SPDX-License-Identifier: BSD-2-Clause
// A name in a file: the file's name is a number made of it, the first line the whole name in hexadecimal digits, the
// second the port. The publisher keeps the file locked, so that the name of one that has died is free.
#include "mpi-adi/engine/dynamic/names.hpp"

#include <fcntl.h>
#include <mpi.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <map>

#include "core/process/never_destroyed.hpp"
#include "core/shm/kept_fd.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/transport/adi/host.hpp"
#include "mpi-adi/transport/adi/params.hpp"

namespace viaduct::mpi {
namespace {

using Answer = rte::Runtime::Answer;

constexpr size_t kLongestFile = 64 * 1024;
constexpr int kAttempts = 16;

NeverDestroyed<std::map<std::string, KeptFd>> published_files;  // by service

std::string hex_of(const std::string& text) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string hex;
    for (const unsigned char c : text) {
        hex += kDigits[c >> 4];
        hex += kDigits[c & 15];
    }
    return hex;
}

std::string folder_of_names() {
    if (const char* named = adi::param_text(adi::Param::name_folder); *named != '\0') return named;
    const char* own = std::getenv("XDG_RUNTIME_DIR");
    if (own != nullptr && *own == '/') return std::string(own) + "/viaduct-names";
    return "/tmp/viaduct-names-" + std::to_string(::geteuid());
}

// Ours, and no other user can put anything there.
bool is_good_folder(const std::string& folder) {
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return false;
    struct stat found;
    return ::lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == ::geteuid() &&
           (found.st_mode & 022) == 0;
}

std::string file_of(const std::string& service) {
    const uint64_t number = adi::hash(adi::kHashSeed, service.data(), service.size());
    return folder_of_names() + "/" + hex_of(std::string(reinterpret_cast<const char*>(&number), sizeof number));
}

bool is_still_there(int fd, const std::string& path) {
    struct stat open, named;
    return ::fstat(fd, &open) == 0 && ::stat(path.c_str(), &named) == 0 && open.st_ino == named.st_ino &&
           open.st_dev == named.st_dev;
}

int publish_in_file(const std::string& service, const std::string& port) {
    if (!is_good_folder(folder_of_names())) return MPI_ERR_SERVICE;
    const std::string path = file_of(service);
    const std::string text = hex_of(service) + "\n" + port + "\n";
    for (int attempt = 0; attempt < kAttempts; attempt++) {
        Fd file(above_stdio(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)));
        if (!file.valid() || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return MPI_ERR_SERVICE;
        // Its former owner may have removed it a moment ago.
        if (!is_still_there(file.get(), path)) continue;
        if (::ftruncate(file.get(), 0) != 0 ||
            ::pwrite(file.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
            ::unlink(path.c_str());
            return MPI_ERR_SERVICE;
        }
        (*published_files)[service] = KeptFd(std::move(file));
        return MPI_SUCCESS;
    }
    return MPI_ERR_SERVICE;
}

int unpublish_file(const std::string& service) {
    const auto found = published_files->find(service);
    if (found == published_files->end()) return MPI_ERR_SERVICE;
    // Where the program has closed the descriptor nothing is locked, and the file may be another process'.
    if (is_still_there(found->second.ours(), file_of(service))) ::unlink(file_of(service).c_str());
    published_files->erase(found);
    return MPI_SUCCESS;
}

int look_up_file(const std::string& service, std::string* port) {
    if (!is_good_folder(folder_of_names())) return MPI_ERR_NAME;
    const Fd file(above_stdio(::open(file_of(service).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)));
    if (!file.valid()) return MPI_ERR_NAME;
    // A process that can lock it has found that its owner has ended.
    if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0) return MPI_ERR_NAME;
    std::string text(kLongestFile, '\0');
    const ssize_t bytes = ::pread(file.get(), text.data(), text.size(), 0);
    if (bytes <= 0) return MPI_ERR_NAME;
    text.resize(static_cast<size_t>(bytes));
    const size_t first = text.find('\n');
    if (first == std::string::npos || text.back() != '\n' || text.substr(0, first) != hex_of(service))
        return MPI_ERR_NAME;
    *port = text.substr(first + 1, text.size() - first - 2);
    return MPI_SUCCESS;
}

bool files_are_asked_for() { return *adi::param_text(adi::Param::name_folder) != '\0'; }

}  // namespace

int publish_name(const std::string& service, const std::string& port) {
    const Answer answer = files_are_asked_for() ? Answer::none : engine.job->publish(service, port);
    if (answer == Answer::none) return publish_in_file(service, port);
    return answer == Answer::done ? MPI_SUCCESS : MPI_ERR_SERVICE;
}

int unpublish_name(const std::string& service) {
    const Answer answer = files_are_asked_for() ? Answer::none : engine.job->unpublish(service);
    if (answer == Answer::none) return unpublish_file(service);
    return answer == Answer::done ? MPI_SUCCESS : MPI_ERR_SERVICE;
}

int look_up_name(const std::string& service, std::string* port) {
    const Answer answer = files_are_asked_for() ? Answer::none : engine.job->lookup(service, port);
    if (answer == Answer::none) return look_up_file(service, port);
    return answer == Answer::done ? MPI_SUCCESS : MPI_ERR_NAME;
}

}  // namespace viaduct::mpi
