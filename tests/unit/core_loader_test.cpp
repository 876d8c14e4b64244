// SPDX-License-Identifier: BSD-2-Clause
// The provider loader: what is found, what is refused and why, and operations that are missing.
#include "core/memory/region_table.hpp"
#include "core/provider/loader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "core/config/config.hpp"
#include "core/provider/defaults.hpp"
#include "tests/temporary_folder.hpp"

namespace viaduct {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Loader : public ::testing::Test {
protected:
    void SetUp() override {
        if (const char* value = std::getenv("VIADUCT_PROVIDER_PATH")) before_ = value;
        ::setenv("VIADUCT_PROVIDER_PATH", (":" + folder_.string() + ":/nonexistent").c_str(), 1);
    }
    void TearDown() override {
        before_.empty() ? ::unsetenv("VIADUCT_PROVIDER_PATH")
                        : ::setenv("VIADUCT_PROVIDER_PATH", before_.c_str(), 1);
    }

    // A provider built for tests ("fake" has no data half, "stale" another ABI), as it was built or damaged.
    static std::string built(const char* name) {
        std::ifstream in(fs::path(VIADUCT_TEST_PROVIDERS) / (std::string(name) + ".so"), std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    void place(const std::string& name, const std::string& bytes) {
        std::ofstream(folder_ / (name + ".so"), std::ios::binary) << bytes;
    }

    const TemporaryFolder temporary_;
    const fs::path folder_ = temporary_.path();
    std::string before_;
};

TEST_F(Loader, FoldersOfTheVariableComeFirstAndEachNameOnce) {
    place("paramnet", "mine");
    place("aaa", "x");
    place("Bad Name", "x");
    std::ofstream(folder_ / "notes.txt") << "x";
    const auto files = find_providers();
    ASSERT_GE(files.size(), 2u);
    EXPECT_EQ(files[0].name, "aaa");
    EXPECT_EQ(files[1].name, "paramnet");
    EXPECT_EQ(files[1].path, (folder_ / "paramnet.so").string());
    EXPECT_EQ(std::count_if(files.begin(), files.end(), [](const auto& f) { return f.name == "paramnet"; }),
              1);
}

TEST_F(Loader, LoadsOnceAndCompletely) {
    place("fake", built("fake"));
    const LoadedProvider first = load_provider("fake");
    ASSERT_NE(first.provider, nullptr) << first.error;
    EXPECT_STREQ(first.provider->name, "fake");
    EXPECT_EQ(load_provider("fake").provider, first.provider);
    EXPECT_EQ(first.provider->data.open(OpenArgs{}, nullptr), Status::not_supported) << "it has no data half";
    const auto* operations = reinterpret_cast<void* const*>(&first.provider->data);
    for (size_t i = 0; i < sizeof(DataOps) / sizeof(void*); ++i) EXPECT_NE(operations[i], nullptr) << i;
}

TEST_F(Loader, LoadsOnceForManyThreads) {
    place("fake", built("fake"));
    std::atomic<int> different{0};
    const Provider* const expected = load_provider("fake").provider;
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int j = 0; j < 50; ++j) {
                if (load_provider("fake").provider != expected || load_provider("absent").provider != nullptr)
                    ++different;
            }
        });
    }
    for (auto& t : threads) t.join();
    EXPECT_NE(expected, nullptr);
    EXPECT_EQ(different, 0);
}

TEST_F(Loader, RefusesNamesThatAreNoFileNames) {
    for (const char* name : {"", "../paramnet", "a/b", "Paramnet", "a.b", "x y"}) {
        const LoadedProvider result = load_provider(name);
        EXPECT_EQ(result.provider, nullptr) << name;
        EXPECT_FALSE(result.cure.empty());
    }
    EXPECT_EQ(load_provider(std::string(32, 'a')).provider, nullptr);
}

TEST_F(Loader, SaysThatThereIsNoneAndWhereToPutIt) {
    const LoadedProvider result = load_provider("nowhere");
    EXPECT_EQ(result.provider, nullptr);
    EXPECT_THAT(result.error, HasSubstr("no provider \"nowhere\""));
    EXPECT_THAT(result.cure, HasSubstr("VIADUCT_PROVIDER_PATH"));
}

TEST_F(Loader, RefusesWhatIsNoObject) {
    place("garbage", "this is no shared object");
    EXPECT_THAT(load_provider("garbage").error, HasSubstr("cannot be loaded"));
    place("empty", "");
    EXPECT_EQ(load_provider("empty").provider, nullptr);
}

TEST_F(Loader, RefusesAnObjectWithoutATable) {
    fs::path library;
    for (const char* candidate :
         {"/lib/x86_64-linux-gnu/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6", "/lib64/libm.so.6"}) {
        if (fs::exists(candidate)) library = candidate;
    }
    ASSERT_FALSE(library.empty()) << "no C library where it is looked for";
    fs::copy_file(library, folder_ / "libm.so");
    EXPECT_THAT(load_provider("libm").error, HasSubstr("is no provider"));
}

TEST_F(Loader, RefusesATableUnderAnotherName) {
    place("impostor", built("fake"));
    EXPECT_THAT(load_provider("impostor").error, HasSubstr("says its name is fake"));
}

TEST_F(Loader, RefusesATableOfAnotherAbi) {
    place("stale", built("stale"));
    const LoadedProvider result = load_provider("stale");
    EXPECT_EQ(result.provider, nullptr);
    EXPECT_THAT(result.error, HasSubstr("another Viaduct"));
    EXPECT_THAT(result.cure, HasSubstr("same version"));
}

TEST_F(Loader, RefusesATableOfAnotherSize) {
    place("larger", built("larger"));
    const LoadedProvider result = load_provider("larger");
    EXPECT_EQ(result.provider, nullptr);
    EXPECT_THAT(result.error, HasSubstr("another Viaduct"));
}

TEST(ProviderDefaults, AnswerNotSupportedOrDoNothing) {
    Provider provider;
    std::memset(static_cast<void*>(&provider.control), 0, sizeof provider.control);
    std::memset(static_cast<void*>(&provider.data), 0, sizeof provider.data);
    const auto own = [](NicContext*) {};
    provider.data.wake = own;
    fill_missing_operations(&provider);
    EXPECT_EQ(provider.data.wake, static_cast<void (*)(NicContext*)>(own)) << "what is there stays";
    EXPECT_EQ(provider.data.open(OpenArgs{}, nullptr), Status::not_supported);
    EXPECT_EQ(provider.data.connect_finish(nullptr, nullptr), Status::not_supported);
    const Config config;
    EXPECT_EQ(provider.control.join(NicInfo{}, NicInfo{}, config.settings("paramnet"), nullptr),
              Status::not_supported);
    EXPECT_EQ(provider.data.sleep_begin(nullptr), 0u);
    provider.data.poll_group(nullptr);
    EXPECT_EQ(provider.data.region_added(nullptr, 1, Region{}), Status::not_supported);
    EXPECT_EQ(provider.data.region_changed(nullptr, 1, Region{}), Status::not_supported);
    provider.data.region_removed(nullptr, 1, {});
    const auto* operations = reinterpret_cast<void* const*>(&provider.data);
    for (size_t i = 0; i < sizeof(DataOps) / sizeof(void*); ++i) EXPECT_NE(operations[i], nullptr) << i;
}

}  // namespace
}  // namespace viaduct
