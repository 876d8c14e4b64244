// SPDX-License-Identifier: BSD-2-Clause
#include "core/text/file_text.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>

namespace viaduct {

FileRead read_text(const std::string& path, size_t most, std::string* text) {
    constexpr size_t kPiece = 4096;
    text->clear();
    const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
    if (file == nullptr) return FileRead::not_opened;
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
