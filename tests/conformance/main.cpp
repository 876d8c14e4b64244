// SPDX-License-Identifier: BSD-2-Clause
// viaduct_conformance [--nic NAME] [--segments N] [--table FILE] [--record FILE] [gtest options]: runs the suite
// against one NIC and prints what was shown. --merge FILE... prints the table of several recorded runs. --role is for
// the suite itself, which starts this program again where it needs another process. With --peer-nic NAME the second end
// of each pair is on that NIC; partner processes use --child-nic NAME and are started through
// --child-command "WORDS". --hold keeps the NICs open from the first test to the last.
// --segments says that the device of this NIC gathers no more than so many, fewer than the 252 that VIA asks for.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "../report/googletest_rows.hpp"
#include "conform.hpp"
#include "fixture.hpp"
#include "roles.hpp"

namespace {

struct CommandLine {
    std::string table;
    std::string record;
    std::string role;
    std::string segments;
    std::vector<std::string> merge;
    std::vector<std::string> role_arguments;
    bool hold = false;
};

/// Takes our own options out of argv and leaves GoogleTest's. False on an option without its value.
bool parse(int& argc, char** argv, CommandLine& line) {
    int kept = 1;
    for (int i = 1; i < argc; ++i) {
        std::string_view option = argv[i];
        std::string* value = option == "--table"    ? &line.table
                             : option == "--record" ? &line.record
                             : option == "--role"   ? &line.role
                             : option == "--segments"
                                 ? &line.segments
                                 : viaduct::conformance::nic_option(option);
        if (value != nullptr) {
            if (++i == argc) {
                return false;
            }
            *value = argv[i];
        } else if (option == "--hold") {
            line.hold = true;
        } else if (option == "--merge") {
            line.merge.assign(argv + i + 1, argv + argc);
            break;
        } else if (option == "--with") {
            line.role_arguments.assign(argv + i + 1, argv + argc);
            break;
        } else {
            argv[kept++] = argv[i];
        }
    }
    argc = kept;
    argv[argc] = nullptr;
    if (!line.segments.empty()) {
        viaduct::conformance::options().segments =
            static_cast<unsigned>(std::strtoul(line.segments.c_str(), nullptr, 10));
    }
    return true;
}

/// Prints the tables to stdout and, when asked, into a file. Exit code 0 without a gap or failed entry.
int show(const std::string& file) {
    const std::string& nic = viaduct::conformance::options().nic;
    std::cout << "\n";
    const int bad = viaduct::conformance::print_tables(nic, std::cout);
    if (!file.empty()) {
        std::ofstream out(file, std::ios::trunc);
        viaduct::conformance::print_tables(nic, out);
        if (!out) {
            std::cerr << "viaduct_conformance: cannot write " << file << "\n";
            return 1;
        }
    }
    return bad == 0 ? 0 : 1;
}

int merge(const CommandLine& line) {
    for (const std::string& file : line.merge) {
        if (!viaduct::conformance::load_record(file)) {
            std::cerr << "viaduct_conformance: no record in " << file << "\n";
            return 1;
        }
    }
    return show(line.table);
}

/// Keeps both NICs open during the run: a port of DPDK takes a tenth of a second to open, and as long to
/// close.
void hold_nics() {
    for (const std::string& name :
         {viaduct::conformance::options().nic, viaduct::conformance::options().far()}) {
        VIP_NIC_HANDLE nic = nullptr;
        viaduct::conformance::require(VipOpenNic(name.c_str(), &nic), "VipOpenNic");
    }
}

/// A run that leaves out tests cannot be held to the whole table.
bool whole_suite() {
    return GTEST_FLAG_GET(filter) == "*" && std::getenv("GTEST_TOTAL_SHARDS") == nullptr &&
           !GTEST_FLAG_GET(list_tests);
}

}  // namespace

int main(int argc, char** argv) {
    const char* from_environment = std::getenv("VIADUCT_TEST_NIC");
    viaduct::conformance::options().nic = from_environment != nullptr ? from_environment : "/dev/via_eth0";
    CommandLine line;
    if (!parse(argc, argv, line)) {
        std::cerr << "viaduct_conformance: an option lacks its value\n";
        return 2;
    }
    if (!line.role.empty()) {
        return viaduct::conformance::play_role(line.role, line.role_arguments);
    }
    if (!line.merge.empty()) {
        return merge(line);
    }
    if (!line.record.empty()) {
        // A crash must not leave the record of an earlier run behind.
        unlink(line.record.c_str());
    }
    testing::InitGoogleTest(&argc, argv);
    // A record is of the whole subject: with --record all its cases run, whatever TEST_ROWS names.
    if (line.record.empty() && !viaduct::tests::choose_cases()) {
        return 1;
    }
    if (line.hold) {
        hold_nics();
    }
    int result = RUN_ALL_TESTS();
    if (!line.record.empty() && !viaduct::conformance::save_record(line.record)) {
        std::cerr << "viaduct_conformance: cannot write " << line.record << "\n";
        result = 1;
    }
    if (whole_suite()) {
        result |= show(line.table);
    }
    return result;
}
