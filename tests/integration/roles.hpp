// SPDX-License-Identifier: BSD-2-Clause
// What the integration tests share: whole programs of several processes, started from here.
#pragma once

#include <vipl.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../conformance/child.hpp"
#include "../conformance/fixture.hpp"

namespace viaduct::integration {

using conformance::Address;
using conformance::Child;
using conformance::Clock;
using conformance::End;
using conformance::EndOptions;
using conformance::eventually;
using conformance::Millis;
using conformance::Outcome;
using conformance::require;

using Arguments = std::vector<std::string>;

/// --seconds of the soak (soak_test.cpp).
int& soak_seconds();

/// One line to the process that started this one.
inline void say(const std::string& text) { std::cout << text << std::endl; }

/// What main() does under --role.
int play_role(const std::string& role, const Arguments& arguments);

/// client_arguments() are level, host and discriminator; a role's own follow.
inline constexpr std::size_t kFirstOwnArgument = 3;
Arguments arguments_for(End& server, const std::string& discriminator, const Arguments& more);

/// Connects a VI as the server of one discriminator.
void accept_on(End& end, VIP_VI_HANDLE vi, const std::string& discriminator);

/// Where the other side may write: sent as it is in a message.
struct Window {
    std::uint64_t address;
    std::uint64_t bytes;
    std::uint32_t handle;
    std::uint32_t count;
};

/// A variable of the environment, for processes started while this lives.
class Variable {
public:
    Variable(const std::string& name, const std::string& value);
    ~Variable();
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

private:
    std::string name_;
    std::string before_;
    bool was_set_;
};

/// An agent of its own for processes started while this lives: one that reads the changed environment.
class OtherAgent {
public:
    explicit OtherAgent(const std::string& suffix);

private:
    Variable variable_;
};

}  // namespace viaduct::integration
