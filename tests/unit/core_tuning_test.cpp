// SPDX-License-Identifier: BSD-2-Clause
// What was measured on a machine: which files count, and what a file that does not count may do (nothing).
#include "core/config/tuning.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "tests/temporary_folder.hpp"

namespace viaduct {
namespace {

using ::testing::HasSubstr;
using State = Tuning::State;

const MachineKey kHere = {"A processor @ 2.0GHz", "6.1.0-13"};

std::vector<FileSetting> values(const char* stream_from = "0") {
    return {{"paramnet", "stream_from", stream_from, 0},
            {"paramnet", "block_bytes", "16384", 0},
            {"paramnet", "pull_from", "65536", 0}};
}

std::string whole(const char* stream_from = "0") {
    return tuning_text(kHere, "2026-11-22 03:00 UTC", values(stream_from), {"a table", "of figures"});
}

TEST(Tuning, IsReadAsItWasWritten) {
    const Tuning tuning = parse_tuning(whole("4294967295"), "f", kHere);
    ASSERT_EQ(tuning.state, State::valid) << tuning.why;
    EXPECT_EQ(tuning.measured, "2026-11-22 03:00 UTC");
    EXPECT_EQ(tuning.path, "f");
    std::map<std::string, std::string> read;
    for (const FileSetting& s : tuning.settings) read[s.section + "." + s.key] = s.text;
    EXPECT_EQ(read, (std::map<std::string, std::string>{{"paramnet.stream_from", "4294967295"},
                                                        {"paramnet.block_bytes", "16384"},
                                                        {"paramnet.pull_from", "65536"}}));
}

TEST(Tuning, OfAnotherMachineOrKernelDoesNotCount) {
    const Tuning processor = parse_tuning(whole(), "f", {"Another one", kHere.kernel});
    EXPECT_EQ(processor.state, State::foreign);
    EXPECT_THAT(processor.why, HasSubstr("this is Another one"));
    EXPECT_TRUE(processor.settings.empty());
    const Tuning kernel = parse_tuning(whole(), "f", {kHere.processor, "6.2"});
    EXPECT_EQ(kernel.state, State::foreign);
    EXPECT_THAT(kernel.why, HasSubstr("this is 6.2"));
}

TEST(Tuning, ThatIsDamagedDoesNotCount) {
    const std::string good = whole();
    std::vector<std::string> bad = {"", "[machine", "# nothing", good + "nics = 3\n",
                                    good + "[vipl]\nstrict = true\n"};
    for (const char* value : {"-1", "\"8K\"", "\"\"", "4294967296", "1.5", "true", "99999999999999999999"})
        bad.push_back(whole(value));
    for (size_t n = 0; n + 1 < good.size(); n += 7) bad.push_back(good.substr(0, n));  // cut short
    for (const std::string& text : bad) {
        const Tuning tuning = parse_tuning(text, "f", kHere);
        // A number that was cut short is still one: the file cannot know.
        if (good.size() - text.size() < 5 && text.size() < good.size()) continue;
        EXPECT_EQ(tuning.state, State::damaged) << text;
        EXPECT_FALSE(tuning.why.empty()) << text;
        EXPECT_TRUE(tuning.settings.empty()) << text;
    }
}

TEST(Tuning, NamesThisMachineInAFormThatCanBeKept) {
    const MachineKey machine = this_machine();
    EXPECT_FALSE(machine.processor.empty());
    EXPECT_FALSE(machine.kernel.empty());
    EXPECT_EQ(parse_tuning(tuning_text(machine, "today", values(), {}), "f", machine).state, State::valid);
}

class TuningFiles : public ::testing::Test {
protected:
    void SetUp() override {
        for (const char* variable : {"VIADUCT_TUNING", "XDG_CACHE_HOME", "HOME"}) {
            const char* value = std::getenv(variable);
            before_[variable] = value != nullptr ? std::optional<std::string>(value) : std::nullopt;
        }
        ::unsetenv("VIADUCT_TUNING");
        ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
    }
    void TearDown() override {
        for (const auto& [name, value] : before_)
            value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
    }
    std::string own() const { return folder_ / "viaduct/tuning.toml"; }
    static std::string text() { return tuning_text(this_machine(), "today", values(), {}); }

    const TemporaryFolder temporary_;
    const std::filesystem::path folder_ = temporary_.path();
    std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(TuningFiles, AreWrittenWholeWithTheirFolderAndReadableForAll) {
    EXPECT_EQ(write_tuning(own(), text()), "");
    EXPECT_EQ(write_tuning(own(), text()), "") << "a second time";
    struct stat about {};
    ASSERT_EQ(::stat(own().c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0644u);
    const auto in_folder = std::filesystem::directory_iterator(folder_ / "viaduct");
    EXPECT_EQ(std::distance(begin(in_folder), end(in_folder)), 1) << "nothing is left beside it";
    EXPECT_NE(write_tuning("/proc/viaduct/tuning.toml", text()), "");
}

TEST_F(TuningFiles, OfTheUserCount) {
    write_tuning(own(), text());
    const Tuning tuning = load_tuning();
    EXPECT_EQ(tuning.state, State::valid) << tuning.why;
    EXPECT_EQ(tuning.path, own());
}

TEST_F(TuningFiles, CanBeNamedOrSwitchedOff) {
    write_tuning(own(), text());
    ::setenv("VIADUCT_TUNING", "off", 1);
    EXPECT_EQ(load_tuning().state, State::none);
    EXPECT_EQ(own_tuning_path(), "");
    const std::string named = folder_ / "named.toml";
    ::setenv("VIADUCT_TUNING", named.c_str(), 1);
    EXPECT_EQ(load_tuning().state, State::none);
    EXPECT_EQ(own_tuning_path(), named);
    write_tuning(named, text());
    EXPECT_EQ(load_tuning().path, named);
    EXPECT_EQ(load_tuning().state, State::valid);
}

TEST_F(TuningFiles, ThatAreNoOrdinaryFilesStopNoProgram) {
    const std::string named = folder_ / "pipe";
    ASSERT_EQ(::mkfifo(named.c_str(), 0600), 0);
    ::setenv("VIADUCT_TUNING", named.c_str(), 1);
    EXPECT_EQ(load_tuning().state, State::damaged);
    ::setenv("VIADUCT_TUNING", folder_.c_str(), 1);
    EXPECT_EQ(load_tuning().state, State::damaged);
    const std::string big = folder_ / "big";
    std::ofstream(big) << text() << std::string(8192, '#');
    ::setenv("VIADUCT_TUNING", big.c_str(), 1);
    EXPECT_EQ(load_tuning().state, State::damaged);
}

TEST_F(TuningFiles, OfOtherUsersDoNotCount) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
    write_tuning(own(), text());
    ASSERT_EQ(::chown(own().c_str(), 12345, 12345), 0);
    ::setenv("VIADUCT_TUNING", own().c_str(), 1);
    EXPECT_THAT(load_tuning().why, HasSubstr("another user"));
}

}  // namespace
}  // namespace viaduct
