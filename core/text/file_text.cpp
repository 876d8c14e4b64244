// SPDX-License-Identifier: BSD-2-Clause
#include "core/text/file_text.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "core/shm/fd.hpp"

namespace viaduct {

namespace {

bool is_null_device(const struct stat& about) { return S_ISCHR(about.st_mode) && about.st_rdev == makedev(1, 3); }

}  // namespace

// A FIFO would keep a blocking open waiting for its writer, and a device may have no end.
FileRead read_text(const std::string& path, size_t most, std::string* text) {
    constexpr size_t kPiece = 4096;
    text->clear();
    Fd opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!opened.valid()) return FileRead::not_opened;
    struct stat about {};
    if (::fstat(opened.get(), &about) != 0) return FileRead::failed;
    if (is_null_device(about)) return FileRead::done;
    if (!S_ISREG(about.st_mode)) return FileRead::not_regular;
    const std::unique_ptr<FILE, int (*)(FILE*)> file(::fdopen(opened.get(), "r"), std::fclose);
    if (file == nullptr) return FileRead::failed;
    (void)opened.release();  // the stream has it
    for (;;) {
        const size_t before = text->size();
        const size_t wanted = std::min(kPiece, most - before);
        text->resize(before + wanted);
        const size_t got = std::fread(text->data() + before, 1, wanted, file.get());
        text->resize(before + got);
        if (std::ferror(file.get()) != 0) return FileRead::failed;
        if (got < wanted || text->size() == most) return FileRead::done;
    }
}

std::string text_of_file(const std::string& path) {
    constexpr size_t kMost = 16 << 20;
    std::string text;
    read_text(path, kMost, &text);
    return text;
}

}  // namespace viaduct
