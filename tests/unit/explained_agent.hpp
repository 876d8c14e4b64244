// SPDX-License-Identifier: BSD-2-Clause
// A user agent for tests of a provider's failures: it keeps the reason and the cure, and has no services.
#pragma once

#include <string>

#include "viaduct/provider.hpp"

namespace viaduct::tests {

class ExplainedAgent final : public UserAgent {
public:
    std::string reason, cure;

    Status agent_start(const Mail&, uint32_t*, Deadline) override { return Status::not_supported; }
    Status agent_await(uint32_t, Deadline, Mail*) override { return Status::not_supported; }
    void agent_abandon(uint32_t, LateAnswer, uint64_t) override {}
    Status watch(int, void (*)(void*), void*, uint32_t*) override { return Status::not_supported; }
    void unwatch(uint32_t) override {}
    Status spawn(const char*, void (*)(void*), void*) override { return Status::not_supported; }
    bool crowded() override { return false; }
    void nic_failed(uint64_t) override {}
    void explain(const char* why, const char* remedy) override {
        reason = why;
        cure = remedy;
    }
};

}  // namespace viaduct::tests
