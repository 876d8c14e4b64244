// SPDX-License-Identifier: BSD-2-Clause
// Configuration: precedence, origins, mistakes that are told and never stop a program.
#include "core/config/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "core/clock/limits.hpp"
#include "core/config/config_text.hpp"
#include "core/config/tuning.hpp"
#include "tests/temporary_folder.hpp"

namespace viaduct {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> problems_of(const Config& config) {
    std::vector<std::string> texts;
    for (const ConfigProblem& problem : config.problems()) texts.push_back(problem.text);
    return texts;
}

// Variables as they were before, however a test ends.
class ConfigFiles : public ::testing::Test {
protected:
    void SetUp() override {
        std::filesystem::create_directories(folder_ / "home/.config/viaduct");
        set("HOME", (folder_ / "home").string());
        unset("XDG_CONFIG_HOME");
        unset("XDG_CACHE_HOME");
        set("VIADUCT_TUNING", "off");
        unset("VIADUCT_CONFIG");
        unset("VIADUCT_NICS");
        unset("VIADUCT_HOSTS");
    }
    void TearDown() override {
        for (const auto& [name, value] : before_) {
            value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
        }
    }
    void remember(const char* name) {
        const char* value = std::getenv(name);
        before_.emplace(name, value != nullptr ? std::optional<std::string>(value) : std::nullopt);
    }
    void set(const char* name, const std::string& value) {
        remember(name);
        ::setenv(name, value.c_str(), 1);
    }
    void unset(const char* name) {
        remember(name);
        ::unsetenv(name);
    }
    std::string file(const char* name, const char* text) {
        const auto path = folder_ / name;
        std::ofstream(path) << text;
        return path.string();
    }

    const TemporaryFolder temporary_;
    const std::filesystem::path folder_ = temporary_.path();
    std::map<std::string, std::optional<std::string>> before_;
};

TEST(Config, HasADefaultOfTheRightTypeForEveryKey) {
    for (const ConfigKey& row : Config::keys()) {
        EXPECT_EQ(wrong_value(row, row.fallback), "") << row.section << "." << row.key;
        EXPECT_GT(std::string(row.help).size(), 10u) << row.section << "." << row.key;
        const ConfigValue value = Config().value(row.section, row.key);
        if (time_factor() == 1 || limit_of_setting(row.section, row.key) == nullptr) {
            EXPECT_EQ(value.text, row.fallback);
            EXPECT_EQ(value.origin, "default");
        }
    }
}

TEST(Config, ReadsTextNumbersAndTruth) {
    const Config c = Config::parse(
        "[agent]\nlinger_ms = 5\ngrace_ms = \"2s\"\nmax_registered_bytes = \"3M\"\n[vipl]\nstrict = true\n",
        "test.toml");
    EXPECT_THAT(problems_of(c), IsEmpty());
    EXPECT_EQ(c.get_int("agent", "linger_ms"), 5);
    EXPECT_EQ(c.get_int("agent", "grace_ms"), 2000);
    EXPECT_EQ(c.get_int("agent", "max_registered_bytes"), 3 << 20);
    EXPECT_TRUE(c.get_bool("vipl", "strict"));
    EXPECT_EQ(c.value("agent", "linger_ms").origin, "test.toml:2");
    EXPECT_EQ(c.value("names", "strict").origin, "default");
}

TEST(Config, ReportsUnknownKeysWithTheNearestOne) {
    const Config c =
        Config::parse("[agent]\nliger_ms = 5\n\n[vlip]\nstrict = true\n[zzzzzzzzzz]\na = 1\n", "f");
    ASSERT_EQ(c.problems().size(), 3u);
    EXPECT_THAT(
        problems_of(c),
        ElementsAre(AllOf(HasSubstr("f:2"), HasSubstr("liger_ms"), HasSubstr("did you mean linger_ms?")),
                    AllOf(HasSubstr("f:5"), HasSubstr("[vlip]"), HasSubstr("did you mean vipl?")),
                    ::testing::Not(HasSubstr("did you mean"))));
    EXPECT_EQ(c.get_int("agent", "linger_ms"), 1000);
}

TEST(Config, IgnoresAndReportsValuesOfTheWrongKind) {
    const Config c = Config::parse(
        "top = 1\n[agent]\nlinger_ms = \"soon\"\ngrace_ms = 1.5\nmax_registered_bytes = -1\n[vipl]\nstrict = "
        "\"perhaps\"\n[paramnet]\ncross_copy = \"sometimes\"\n",
        "f");
    EXPECT_EQ(c.problems().size(), 6u);
    EXPECT_THAT(problems_of(c), Contains(HasSubstr("one of auto|on|off")));
    EXPECT_THAT(problems_of(c), Contains(HasSubstr("outside of a section")));
    EXPECT_EQ(c.get_int("agent", "linger_ms"), 1000);
    EXPECT_FALSE(c.get_bool("vipl", "strict"));
    EXPECT_EQ(c.get("paramnet", "cross_copy"), "auto");
}

TEST(Config, ReportsWhatIsNoToml) {
    const Config c = Config::parse("[agent\nlinger_ms = 5", "broken.toml");
    ASSERT_EQ(c.problems().size(), 1u);
    EXPECT_THAT(c.problems()[0].text, HasSubstr("broken.toml:1"));
    EXPECT_EQ(c.get_int("agent", "linger_ms"), 1000);
}

TEST(Config, SurvivesWhatItsParserDoesNotExpect) {
    // Each of these failed an assertion of the parser, found by tests/fuzz/config_fuzz.cpp.
    for (const char* text : {"[=]", "[.a]", "[ = ]", "[[=]]", "x = 1\n[\x01", "[#", "y\xCA\x8A = 1",
                             "[agent]\n\xCA\x8A", "lems = +\"\xCF\x8E ab\"", "a = \"\"\"\n\"\"\"\xCA\x8A\""}) {
        const Config config = Config::parse(text, "f.toml");
        EXPECT_EQ(config.problems().size(), 1u) << text;
        EXPECT_EQ(config.get_int("paramnet", "nics"), 1) << text;
    }
}

TEST(Config, TakesEveryCharacterInStringsAndComments) {
    const Config config =
        Config::parse("# \xCA\x8A\n[names]\nhosts = \"/t\xCA\x8A\\\"mp\" # \xC3\xA4\n", "f.toml");
    EXPECT_TRUE(config.problems().empty());
    EXPECT_EQ(config.get("names", "hosts"), "/t\xCA\x8A\"mp");
    for (const char* text : {"\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "Q", "Q51", "QcZ\xC3\xA4"}) {
        for (const char* quote : {"\"", "'"}) {
            const std::string quoted = std::string(quote) + text + quote;
            const Config one = Config::parse("[names]\nhosts = " + quoted + "\n[nics]\n" + quoted + " = 'b'\n", "f");
            EXPECT_TRUE(one.problems().empty()) << quoted;
            EXPECT_EQ(one.get("names", "hosts"), text);
            ASSERT_NE(one.nic_of_alias(text), nullptr) << quoted;
        }
    }
}

TEST(Config, TakesNothingButUtf8) {
    for (const char* text : {"\xff", "\x80", "\xC3", "\xC3(", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xE2\x82",
                             "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80"}) {
        const Config config = Config::parse(std::string("[names]\nhosts = \"") + text + "\"\n", "f");
        EXPECT_THAT(problems_of(config), ElementsAre(HasSubstr("f:2: "))) << text;
    }
}

TEST(Config, TellsProblemsInTheWordsOfTheFile) {
    const Config config = Config::parse("[agent]\n\"\xC3\xA4Q\" = 1\n", "f");
    EXPECT_THAT(problems_of(config), ElementsAre(HasSubstr("\xC3\xA4Q")));
}

TEST(Config, MapsNicNames) {
    const Config c = Config::parse("[nics]\n\"/dev/via_eth0\" = \"paramnet0\"\nfast = \"verbs0\"\n", "f");
    EXPECT_EQ(c.nic_aliases().at("/dev/via_eth0"), "paramnet0");
    EXPECT_EQ(c.nic_aliases().at("fast"), "verbs0");
    ASSERT_NE(c.nic_of_alias("fast"), nullptr);
    EXPECT_EQ(*c.nic_of_alias("fast"), "verbs0");
    EXPECT_EQ(c.nic_of_alias("verbs0"), nullptr);
    EXPECT_THAT(problems_of(c), IsEmpty());
}

TEST(Config, GivesProvidersTheirOwnSection) {
    const Config c = Config::parse("[paramnet]\nnics = 3\n", "f");
    const Settings& s = c.settings("paramnet");
    EXPECT_EQ(s.get_int("nics", 1), 3);
    EXPECT_STREQ(s.get("cross_copy", "?"), "auto");
    EXPECT_STREQ(s.get("no such key", "fallback"), "fallback");
    EXPECT_EQ(s.get_int("no such key", 9), 9);
    EXPECT_EQ(s.get_int("cross_copy", 9), 9) << "no number";
    EXPECT_STREQ(c.settings("no such section").get("x", "y"), "y");
    EXPECT_EQ(c.get("no such section", "x"), "");
    EXPECT_EQ(c.get_int("agent", "no such key"), 0);
}

TEST_F(ConfigFiles, LaterSurfacesWin) {
    std::ofstream(folder_ / "home/.config/viaduct/viaduct.toml")
        << "[agent]\nlinger_ms = 1\ngrace_ms = 1\nconfirm_ms = 1\n";
    EXPECT_EQ(Config::load().get_int("agent", "linger_ms"), 1);

    const std::string named =
        file("named.toml", "[agent]\ngrace_ms = 2\nconfirm_ms = 2\n[nics]\na = \"x\"\nb = \"x\"\n");
    set("VIADUCT_CONFIG", named);
    set("VIADUCT_AGENT_CONFIRM_MS", "3");
    set("VIADUCT_NICS", "b=y,/dev/c=z");
    const Config c = Config::load();
    EXPECT_THAT(problems_of(c), IsEmpty());
    EXPECT_EQ(c.get_int("agent", "linger_ms"), 1);
    EXPECT_EQ(c.get_int("agent", "grace_ms"), 2);
    EXPECT_EQ(c.get_int("agent", "confirm_ms"), 3);
    EXPECT_THAT(c.value("agent", "linger_ms").origin, HasSubstr("home/.config/viaduct/viaduct.toml"));
    EXPECT_EQ(c.value("agent", "grace_ms").origin, named + ":2");
    EXPECT_EQ(c.value("agent", "confirm_ms").origin, "environment VIADUCT_AGENT_CONFIRM_MS");
    EXPECT_EQ(c.nic_aliases(), (std::map<std::string, std::string>{{"a", "x"}, {"b", "y"}, {"/dev/c", "z"}}));
}

TEST_F(ConfigFiles, WhatWasMeasuredStandsBetweenDefaultsAndFiles) {
    const std::vector<FileSetting> measured = {{"paramnet", "stream_from", "65536", 0},
                                               {"paramnet", "block_bytes", "8192", 0},
                                               {"paramnet", "pull_from", "0", 0}};
    const std::string path =
        file("tuning.toml", tuning_text(this_machine(), "2026-01-01", measured, {"a note"}).c_str());
    set("VIADUCT_TUNING", path);
    set("VIADUCT_PARAMNET_BLOCK_BYTES", "32K");
    const Config c = Config::load();
    EXPECT_THAT(problems_of(c), IsEmpty());
    EXPECT_EQ(c.settings("paramnet").get_int("stream_from", 1), 65536);
    EXPECT_EQ(c.value("paramnet", "stream_from").origin, "measured, " + path);
    EXPECT_EQ(c.settings("paramnet").get_int("block_bytes", 1), 32768);
    EXPECT_EQ(c.settings("paramnet").get_int("pull_from", 1), 0);
}

TEST_F(ConfigFiles, AMeasurementThatDoesNotCountIsNoProblem) {
    set("VIADUCT_TUNING", file("tuning.toml", "[machine\n\xff"));
    const Config c = Config::load();
    EXPECT_THAT(problems_of(c), IsEmpty());
    EXPECT_EQ(c.get("paramnet", "stream_from"), "auto");
}

TEST_F(ConfigFiles, XdgFolderComesBeforeHome) {
    std::filesystem::create_directories(folder_ / "xdg/viaduct");
    std::ofstream(folder_ / "xdg/viaduct/viaduct.toml") << "[agent]\nlinger_ms = 11\n";
    set("XDG_CONFIG_HOME", (folder_ / "xdg").string());
    EXPECT_EQ(Config::load().get_int("agent", "linger_ms"), 11);
}

TEST_F(ConfigFiles, ANamedFileMustExistAndOthersNeedNot) {
    EXPECT_THAT(problems_of(Config::load()), IsEmpty());
    set("VIADUCT_CONFIG", (folder_ / "missing.toml").string());
    EXPECT_THAT(problems_of(Config::load()), ElementsAre(HasSubstr("missing.toml: No such file")));
    set("VIADUCT_CONFIG", folder_.string());
    EXPECT_FALSE(Config::load().problems().empty()) << "a folder is no file";
}

TEST_F(ConfigFiles, MistakesInTheEnvironmentAreTold) {
    set("VIADUCT_AGENT_LINGERMS", "5");
    set("VIADUCT_AGENT_GRACE_MS", "never");
    set("VIADUCT_NIC", "a=b");
    set("VIADUCT_NICS", "a=b,oops,=x,y=");
    set("VIADUCT_SOMETHING_ELSE_ALTOGETHER", "1");
    set("VIADUCT_LOG", "warm");
    const Config c = Config::load();
    EXPECT_THAT(problems_of(c),
                Contains(HasSubstr("VIADUCT_LOG=warm is not one of off|error|warn|info|debug; did you mean warn?")));
    EXPECT_THAT(problems_of(c), Contains(HasSubstr("did you mean VIADUCT_AGENT_LINGER_MS?")));
    EXPECT_THAT(problems_of(c), Contains(HasSubstr("VIADUCT_AGENT_GRACE_MS=never is not")));
    EXPECT_THAT(problems_of(c), Contains(HasSubstr("did you mean VIADUCT_NICS?")));
    EXPECT_THAT(problems_of(c), Contains(HasSubstr("VIADUCT_NICS: oops is not")));
    EXPECT_EQ(c.problems().size(), 7u);
    EXPECT_EQ(c.nic_aliases().size(), 1u);
}

// A former name sets the same value and is reported once, and the present one counts more.
TEST(Config, AnOldNameInAFileIsReportedAndCounts) {
    const Config c = Config::parse("[agent]\ndeaf_ms = \"2s\"\n[mpi]\nslots_after = 3\nrail_patience = 4\n", "f");
    EXPECT_THAT(problems_of(c),
                ElementsAre(HasSubstr("f:2: [agent] deaf_ms is the old name of client_stall_ms"),
                            HasSubstr("f:5: [mpi] rail_patience is the old name of rail_timeout"),
                            HasSubstr("f:4: [mpi] slots_after is the old name of eager_ring_after")));
    EXPECT_EQ(c.get_int("agent", "client_stall_ms"), 2000);
    EXPECT_EQ(c.get_int("mpi", "eager_ring_after"), 3);
    EXPECT_EQ(c.get_int("mpi", "rail_timeout"), 4);
    for (const ConfigProblem& p : c.problems()) EXPECT_FALSE(p.wrong_in_environment);

    const Config both = Config::parse("[agent]\nclient_stall_ms = 7000\ndeaf_ms = 2000\n", "f");
    EXPECT_EQ(both.problems().size(), 1u);
    EXPECT_EQ(both.get_int("agent", "client_stall_ms"), 7000);
}

TEST_F(ConfigFiles, AnOldVariableIsReportedAndCounts) {
    set("CMPI_SLOTS_AFTER", "5");
    set("VIADUCT_AGENT_DEAF_MS", "2000");
    const Config c = Config::load();
    EXPECT_THAT(
        problems_of(c),
        ElementsAre(HasSubstr("VIADUCT_AGENT_DEAF_MS is the old name of VIADUCT_AGENT_CLIENT_STALL_MS"),
                    HasSubstr("CMPI_SLOTS_AFTER is the old name of CMPI_EAGER_RING_AFTER")));
    for (const ConfigProblem& p : c.problems()) EXPECT_FALSE(p.wrong_in_environment);
    EXPECT_EQ(c.get_int("mpi", "eager_ring_after"), 5);
    EXPECT_EQ(c.value("mpi", "eager_ring_after").origin, "environment CMPI_SLOTS_AFTER");
    EXPECT_EQ(c.get_int("agent", "client_stall_ms"), 2000);

    set("CMPI_EAGER_RING_AFTER", "9");
    set("VIADUCT_AGENT_DEAF_MS", "never");
    const Config other = Config::load();
    EXPECT_EQ(other.get_int("mpi", "eager_ring_after"), 9);
    EXPECT_EQ(other.get_int("agent", "client_stall_ms"), 30000);
    EXPECT_THAT(problems_of(other), Contains(HasSubstr("VIADUCT_AGENT_DEAF_MS=never is not")));
}

TEST(Config, EveryOldNameStandsForAKey) {
    for (const OldKey& old : Config::old_keys()) {
        EXPECT_NE(Config().value(old.section, old.key).text, "") << old.key;
        EXPECT_EQ(Config().value(old.section, old.old_key).origin, "") << old.old_key << " is a key";
    }
}

// What each kind of row takes and refuses: no value of the type, one below the range, one above it.
TEST_F(ConfigFiles, EverySettingOfMpiIsCheckedInTheEnvironment) {
    size_t rows = 0;
    for (const ConfigKey& row : Config::keys()) {
        if (std::string_view(row.section) != "mpi") continue;
        ++rows;
        const std::string name = Config::variable_of(row);
        EXPECT_EQ(name.rfind("CMPI_", 0), 0u);
        const auto problems_with = [&](const std::string& value) {
            set(name.c_str(), value);
            const Config c = Config::load();
            std::vector<ConfigProblem> found = c.problems();
            if (!found.empty()) {
                EXPECT_EQ(c.value("mpi", row.key).text, row.fallback) << name;
                EXPECT_EQ(c.value("mpi", row.key).origin, "default") << name;
            } else {
                EXPECT_EQ(c.value("mpi", row.key).text, value);
                EXPECT_EQ(c.value("mpi", row.key).origin, "environment " + name);
            }
            return found;
        };
        const auto refused = [&](const std::string& value, const std::string& allowed) {
            const auto found = problems_with(value);
            ASSERT_EQ(found.size(), 1u) << name << "=" << value;
            EXPECT_EQ(found[0].section, "mpi");
            EXPECT_TRUE(found[0].wrong_in_environment);
            EXPECT_EQ(found[0].text.rfind(name + "=" + value + " is not ", 0), 0u) << found[0].text;
            EXPECT_THAT(found[0].text, HasSubstr(allowed));
        };
        if (row.has_range()) {
            const std::string range = "from " + std::to_string(row.low) + " to " + std::to_string(row.high);
            for (const char* none : {"abc", "", "1x", "0x", "1.5", "99999999999999999999"}) refused(none, range);
            refused(std::to_string(row.low - 1), range);
            refused(std::to_string(row.high + 1), range);
            for (const int64_t good : {row.low, row.high})
                EXPECT_TRUE(problems_with(std::to_string(good)).empty()) << name << "=" << good;
        } else if (std::string_view(row.type) != "string") {
            refused("paper", "one of ");
            EXPECT_TRUE(problems_with(row.fallback).empty()) << name;
        } else {
            EXPECT_TRUE(problems_with("anything at all").empty()) << name;
        }
        ::unsetenv(name.c_str());
    }
    EXPECT_GE(rows, 24u);
}

TEST_F(ConfigFiles, SettingsOfMpiComeFromFilesTooAndTheEnvironmentWins) {
    const std::string named =
        file("named.toml", "[mpi]\neager_limit = \"8K\"\nshm_ring = 8192\nrendezvous = \"paper\"\non_demand = -1\n");
    set("VIADUCT_CONFIG", named);
    set("CMPI_SHM_RING", "0x4000");
    const Config c = Config::load();
    EXPECT_EQ(c.get_int("mpi", "eager_limit"), 8192);
    EXPECT_EQ(c.value("mpi", "eager_limit").origin, named + ":2");
    EXPECT_EQ(c.get_int("mpi", "shm_ring"), 16384);
    EXPECT_EQ(c.value("mpi", "shm_ring").origin, "environment CMPI_SHM_RING");
    EXPECT_EQ(c.get("mpi", "rendezvous"), "auto");
    EXPECT_EQ(c.get_int("mpi", "on_demand"), 32);
    EXPECT_THAT(problems_of(c), ::testing::UnorderedElementsAre(
                                    named + ":4: [mpi] rendezvous = \"paper\" is not one of auto|rput|rget|both|r3; "
                                            "ignored",
                                    named + ":5: [mpi] on_demand = \"-1\" is not a whole number from 0 to 1048576; "
                                            "ignored"));
    for (const ConfigProblem& problem : c.problems()) {
        EXPECT_EQ(problem.section, "mpi");
        EXPECT_FALSE(problem.wrong_in_environment);
    }
}

TEST_F(ConfigFiles, EveryUnknownVariableOfMpiIsTold) {
    set("CMPI_EAGER_LIMT", "1");
    set("CMPI_QZXW_SOMETHING_ELSE", "1");
    set("CMPI_CC", "cc");
    const Config c = Config::load();
    EXPECT_THAT(problems_of(c),
                ::testing::UnorderedElementsAre("environment CMPI_EAGER_LIMT is unknown; did you mean "
                                                "CMPI_EAGER_LIMIT?",
                                                "environment CMPI_QZXW_SOMETHING_ELSE is unknown"));
    for (const ConfigProblem& problem : c.problems()) {
        EXPECT_EQ(problem.section, "mpi");
        EXPECT_FALSE(problem.wrong_in_environment);
    }
}

TEST_F(ConfigFiles, HostsOfTheVariableComeFirst) {
    set("VIADUCT_HOSTS", "/tmp/mine");
    const ConfigValue hosts = Config::load().value("names", "hosts");
    EXPECT_EQ(hosts.text.rfind("/tmp/mine:./vip_hosts:", 0), 0u) << hosts.text;
    EXPECT_EQ(hosts.origin, "environment VIADUCT_HOSTS");
}

TEST(ConfigText, Numbers) {
    EXPECT_EQ(parse_number("int", "-12"), -12);
    EXPECT_EQ(parse_number("int", "12x"), std::nullopt);
    EXPECT_EQ(parse_number("int", ""), std::nullopt);
    EXPECT_EQ(parse_number("int", "99999999999999999999"), std::nullopt);
    EXPECT_EQ(parse_number("size", "64K"), 65536);
    EXPECT_EQ(parse_number("size", "2GiB"), int64_t{2} << 30);
    EXPECT_EQ(parse_number("size", "9999999T"), std::nullopt) << "more than 2^63";
    EXPECT_EQ(parse_number("size", "1Q"), std::nullopt);
    EXPECT_EQ(parse_number("duration_ms", "250"), 250);
    EXPECT_EQ(parse_number("duration_ms", "2min"), 120'000);
    EXPECT_EQ(parse_number("duration_ms", "-1"), std::nullopt);
    EXPECT_EQ(parse_number("bool", "on"), 1);
    EXPECT_EQ(parse_number("bool", "no"), 0);
    EXPECT_EQ(parse_number("bool", "2"), std::nullopt);
}

// As strtol(3) reads it with any base.
TEST(ConfigText, NumbersOfC) {
    EXPECT_EQ(parse_number("c_int", "0x1F"), 31);
    EXPECT_EQ(parse_number("c_int", "017"), 15);
    EXPECT_EQ(parse_number("c_int", " +5"), 5);
    EXPECT_EQ(parse_number("c_int", "-5"), -5);
    EXPECT_EQ(parse_number("c_int", "09"), std::nullopt);
    EXPECT_EQ(parse_number("c_int", "4K"), std::nullopt);
    EXPECT_EQ(parse_number("c_size", "0x1F"), 31);
    EXPECT_EQ(parse_number("c_size", "010K"), 8192);
    EXPECT_EQ(parse_number("c_size", "-1"), std::nullopt);
    EXPECT_EQ(parse_number("c_size", "9223372036854775808"), std::nullopt);
}

TEST(ConfigText, SettingsMayHaveARange) {
    const ConfigKey row = {"s", "k", "int", "2", "for this test", 1, 3};
    for (const char* good : {"1", "2", "3"}) EXPECT_EQ(wrong_value(row, good), "") << good;
    for (const char* bad : {"0", "4", "-1", "x"})
        EXPECT_EQ(wrong_value(row, bad), "a whole number from 1 to 3") << bad;
    const ConfigKey time = {"s", "k", "duration_ms", "2", "for this test", 0, 1000};
    EXPECT_EQ(wrong_value(time, "1s"), "");
    EXPECT_EQ(wrong_value(time, "2s"), "a number of milliseconds from 0 to 1000, or with s or min");
}

TEST(ConfigText, NearMisses) {
    const std::vector<std::string> words = {"linger_ms", "grace_ms", "strict"};
    EXPECT_EQ(nearest("lnger_ms", words), "linger_ms");
    EXPECT_EQ(nearest("linegr_ms", words), "linger_ms") << "two letters swapped";
    EXPECT_EQ(nearest("grace", words), "");
    EXPECT_EQ(nearest("stric", words), "strict");
    EXPECT_EQ(nearest("completely different", words), "");
    EXPECT_EQ(nearest("x", {}), "");
}

}  // namespace
}  // namespace viaduct
