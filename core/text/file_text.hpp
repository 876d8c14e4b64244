// SPDX-License-Identifier: BSD-2-Clause
// A text file at once: a regular one, or /dev/null. Never waits.
//
// Streams of the C++ library call open() and read() by these names, which a program may own (spec/compat L1). Those
// of the C library do not.
#pragma once

#include <cstddef>
#include <string>

namespace viaduct {

enum class FileRead {
    done,
    not_opened,   // errno says why
    not_regular,  // a folder, a FIFO, a device
    failed,
};

// Reads at most `most` bytes of the file.
FileRead read_text(const std::string& path, size_t most, std::string* text);

// The same for files of the kernel: empty if there is none.
std::string text_of_file(const std::string& path);

}  // namespace viaduct
