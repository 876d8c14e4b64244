// SPDX-License-Identifier: BSD-2-Clause
// Other processes for tests that need them: this program started again with --role, talked to through pipes. Shared by
// every suite that stands on the fixture; which roles there are is each suite's own matter.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "fixture.hpp"

namespace viaduct::conformance {

/// A running role. Killed and waited for by the destructor.
class Child {
public:
    Child(const std::string& role, const std::vector<std::string>& arguments);
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    /// The next line the role wrote on stdout; empty when it ended or the limit, one of running time, passed.
    std::string line(Millis limit = kTimeout);
    /// Tells a role that waits for it to go on.
    void go();
    void kill();
    /// SIGSTOP and SIGCONT: a process that is there but does nothing.
    void stop();
    void resume();
    /// Exit code, or 128 + signal; -1 when it did not end within the limit.
    int wait(Millis limit = kTimeout);
    /// Everything the role wrote on stdout and stderr until it ended.
    std::string everything();
    pid_t pid() const { return pid_; }

private:
    pid_t pid_ = -1;
    int to_ = -1;
    int from_ = -1;
    std::string pending_;
    int code_ = -1;
    bool ended_ = false;
};

/// main() of a suite with roles: [--nic NAME] [gtest options]; --role and --with are for Child. The NIC is that of
/// VIADUCT_TEST_NIC unless named.
using PlayRole = int (*)(const std::string& role, const std::vector<std::string>& arguments);
int run_suite(int argc, char** argv, PlayRole play);

/// Accepts a connection from a role that was started as a client of this end.
void accept_from(End& server, const std::string& discriminator);
/// Arguments that let a role connect to this end: level, host address, discriminator.
std::vector<std::string> client_arguments(End& server, const std::string& discriminator);
/// In the role: an end at the parent's level, connected to the parent that made these arguments.
std::unique_ptr<End> connected_to_parent(const std::vector<std::string>& arguments, EndOptions chosen = {});

/// Bytes as text that can be an argument, and back.
std::string to_hex(const std::string& bytes);
std::string from_hex(const std::string& text);

}  // namespace viaduct::conformance
