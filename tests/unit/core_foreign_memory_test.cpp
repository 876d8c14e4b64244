// SPDX-License-Identifier: BSD-2-Clause
// Memory of another process: reached while that is the process that has the mark, and never otherwise.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "core/process/foreign_memory.hpp"
#include "tests/eventually.hpp"

namespace viaduct {
namespace {

using Result = ForeignMemory::Result;

// What the child tells, in memory that both map.
struct Told {
    MemoryMark mark;
    std::atomic<int> stage;  // 1: told; 2, by the parent: become another program
};

// A child with a mark and a private page of letters at the address of `page` below.
class AnotherProcess : public testing::Test {
protected:
    void SetUp() override {
        void* shared = ::mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(shared, MAP_FAILED);
        told_ = new (shared) Told();
        void* page = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(page, MAP_FAILED);
        page_ = static_cast<char*>(page);
        child_ = ::fork();
        if (child_ == 0) {
            std::memset(page_, 'c', kBytes);
            told_->mark = own_memory_mark();
            told_->stage = 1;
            (void)tests::eventually("the parent lets it exec", [&] { return told_->stage == 2; });
            ::execlp("sleep", "sleep", "60", nullptr);
            ::_exit(1);
        }
        ASSERT_GT(child_, 0);
        ASSERT_TRUE(tests::eventually("the child is ready", [&] { return told_->stage == 1; }));
        memory_ = ForeignMemory(child_, told_->mark);
        if (memory_.probe() == Result::forbidden) GTEST_SKIP() << "process_vm_readv and _writev are forbidden here";
    }
    void TearDown() override {
        end_child();
        ::munmap(page_, kBytes);
        ::munmap(told_, sizeof(Told));
    }
    void end_child() {
        if (child_ <= 0) return;
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
        child_ = -1;
    }
    // Until the child is another program: its command is.
    void let_it_exec() {
        told_->stage = 2;
        const std::string path = "/proc/" + std::to_string(child_) + "/comm";
        EXPECT_TRUE(tests::eventually("the child is another program", [&] {
            std::string name;
            std::ifstream(path) >> name;
            return name == "sleep";
        }));
    }
    iovec at(size_t offset, size_t bytes) const { return {page_ + offset, bytes}; }

    static constexpr size_t kBytes = 4096;
    Told* told_ = nullptr;
    char* page_ = nullptr;
    pid_t child_ = -1;
    ForeignMemory memory_;
};

TEST_F(AnotherProcess, IsReadAndWritten) {
    EXPECT_EQ(memory_.probe(), Result::ok);
    char text[8] = {};
    const iovec first[] = {at(100, 4)};
    EXPECT_EQ(memory_.write(first, "abcd"), Result::ok);
    const iovec both[] = {at(99, 2), at(102, 3)};
    errno = 77;
    EXPECT_EQ(memory_.read(text, both), Result::ok);
    EXPECT_EQ(errno, 77);
    EXPECT_STREQ(text, "cacdc");
    EXPECT_EQ(page_[100], '\0') << "our own page, at the same address, was written";
}

TEST_F(AnotherProcess, IsReachedInMoreRangesThanACallHas) {
    std::vector<iovec> ranges;
    for (size_t i = 0; i < 300; ++i) ranges.push_back(at(i * 8, i % 3));
    std::string data;
    for (int i = 0; i < 300; ++i) data.append(size_t(i % 3), char('a' + i % 26));
    EXPECT_EQ(memory_.write(ranges, data.data()), Result::ok);
    std::string seen(data.size(), '\0');
    EXPECT_EQ(memory_.read(seen.data(), ranges), Result::ok);
    EXPECT_EQ(seen, data);
}

TEST_F(AnotherProcess, ToldFromMemoryThatIsNotThere) {
    char text[8] = {};
    const iovec nowhere[] = {{reinterpret_cast<void*>(8), 4}};
    EXPECT_EQ(memory_.read(text, nowhere), Result::unreached);
    EXPECT_EQ(memory_.write(nowhere, text), Result::unreached);
    const iovec half[] = {at(0, 4), {reinterpret_cast<void*>(8), 4}};
    EXPECT_EQ(memory_.read(text, half), Result::unreached);
}

// The same number and the same address, but not the process that was met.
TEST_F(AnotherProcess, WithoutTheMarkIsNotTouched) {
    const MemoryMark mark = told_->mark;
    char text[8] = {};
    const iovec range[] = {at(0, 4)};
    const ForeignMemory other_address(child_, {mark.address + (uint64_t{1} << 20), mark.value});
    EXPECT_EQ(other_address.write(range, "xxxx"), Result::ended);
    EXPECT_EQ(other_address.read(text, range), Result::ended);
    const ForeignMemory other_value(child_, {mark.address, mark.value + 2});
    EXPECT_EQ(other_value.read(text, range), Result::ended);
    const ForeignMemory ourselves(::getpid(), mark);
    EXPECT_EQ(ourselves.write(range, "xxxx"), Result::ended);
    EXPECT_EQ(page_[0], '\0');
    EXPECT_EQ(memory_.read(text, range), Result::ok);
    EXPECT_STREQ(text, "cccc");
}

// A mark among other mappings, as where addresses are small: another program may have memory at its address.
TEST_F(AnotherProcess, WithSomethingElseAtTheMarksPlaceIsNotTouched) {
    uint64_t letters = 0;
    std::memset(&letters, 'c', sizeof letters);
    const MemoryMark place{reinterpret_cast<uintptr_t>(page_ + 2048), letters};
    const iovec text_there[] = {at(0, 4)}, mark_there[] = {at(2048, sizeof letters)};
    const ForeignMemory other_value(child_, {place.address, letters + 2});
    EXPECT_EQ(other_value.write(text_there, "xxxx"), Result::ended);
    EXPECT_EQ(other_value.read(nullptr, {}), Result::ended);
    EXPECT_EQ(other_value.probe(), Result::ended);
    char text[8] = {};
    uint64_t word = 0;
    EXPECT_EQ(memory_.read(text, text_there), Result::ok);
    EXPECT_STREQ(text, "cccc");
    EXPECT_EQ(memory_.read(&word, mark_there), Result::ok);
    EXPECT_EQ(word, letters) << "the mark was written";
    const ForeignMemory the_process(child_, place);
    EXPECT_EQ(the_process.probe(), Result::ok);
    EXPECT_EQ(the_process.write(text_there, "abcd"), Result::ok);
    EXPECT_EQ(memory_.read(text, text_there), Result::ok);
    EXPECT_STREQ(text, "abcd");
}

TEST_F(AnotherProcess, HasEndedOnceItIsAnotherProgram) {
    let_it_exec();
    char text[8] = {};
    const iovec range[] = {at(0, 4)};
    EXPECT_EQ(memory_.write(range, text), Result::ended);
    EXPECT_EQ(memory_.read(text, range), Result::ended);
    EXPECT_EQ(memory_.probe(), Result::ended);
}

TEST_F(AnotherProcess, HasEndedOnceItsProcessHas) {
    end_child();
    char text[8] = {};
    const iovec range[] = {at(0, 4)};
    EXPECT_EQ(memory_.write(range, text), Result::ended);
    EXPECT_EQ(memory_.read(text, range), Result::ended);
}

// A child of ours has no mark until it makes its own.
TEST(OwnMark, IsNotInherited) {
    const MemoryMark mark = own_memory_mark();
    ASSERT_NE(mark.address, 0u);
    EXPECT_EQ(own_memory_mark().address, mark.address);
    const pid_t child = ::fork();
    if (child == 0) {
        if (own_memory_mark().address == mark.address) ::_exit(1);
        ::pause();
        ::_exit(0);
    }
    const Result seen = ForeignMemory(child, mark).probe();
    EXPECT_TRUE(seen == Result::ended || seen == Result::forbidden);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace viaduct
