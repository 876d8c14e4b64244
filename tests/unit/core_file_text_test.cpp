// SPDX-License-Identifier: BSD-2-Clause
// Files that programs name, whatever they are: reading one never waits and takes no memory without limit.
#include "core/text/file_text.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "tests/temporary_folder.hpp"

namespace viaduct {
namespace {

class FileText : public ::testing::Test {
protected:
    std::string path(const char* name) const { return folder_ + "/" + name; }

    const TemporaryFolder temporary_;
    const std::string folder_ = temporary_.path();
    std::string text_ = "of before";
};

TEST_F(FileText, OfARegularFileIsReadUpToTheLimit) {
    const std::string whole(10'000, 'x');
    std::ofstream(path("file")) << whole;
    EXPECT_EQ(read_text(path("file"), 1 << 20, &text_), FileRead::done);
    EXPECT_EQ(text_, whole);
    EXPECT_EQ(read_text(path("file"), 4097, &text_), FileRead::done);
    EXPECT_EQ(text_.size(), 4097u);
    EXPECT_FALSE(text_of_file("/proc/self/status").empty()) << "a file for which stat() gives the size 0";
}

TEST_F(FileText, OfAFifoIsNotWaitedFor) {
    ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
    EXPECT_EQ(read_text(path("fifo"), 1 << 20, &text_), FileRead::not_regular);
    EXPECT_EQ(text_, "");
}

TEST_F(FileText, OfAFileWithoutEndIsNotRead) {
    EXPECT_EQ(read_text("/dev/zero", 1 << 20, &text_), FileRead::not_regular);
    EXPECT_EQ(text_, "");
    EXPECT_EQ(read_text(folder_, 1 << 20, &text_), FileRead::not_regular);
}

TEST_F(FileText, OfTheNullDeviceIsEmpty) {
    EXPECT_EQ(read_text("/dev/null", 1 << 20, &text_), FileRead::done);
    EXPECT_EQ(text_, "");
}

TEST_F(FileText, OfAFileThatIsNotThereHasAnErrno) {
    errno = 0;
    EXPECT_EQ(read_text(path("none"), 1 << 20, &text_), FileRead::not_opened);
    EXPECT_EQ(errno, ENOENT);
}

}  // namespace
}  // namespace viaduct
