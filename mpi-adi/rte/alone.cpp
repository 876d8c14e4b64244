// SPDX-License-Identifier: BSD-2-Clause
// A process started without a launcher: a job of one.
#include <unistd.h>

#include <map>

#include "mpi-adi/rte/clients.hpp"

namespace viaduct::rte {
namespace {

class Alone final : public Runtime {
public:
    Alone() { job_ = "alone-" + std::to_string(::getpid()); }
    const char* name() const override { return "alone"; }

    bool put(std::string_view key, std::string_view value) override {
        values_[std::string(key)] = value;
        return true;
    }

    bool fence() override { return true; }

    std::optional<std::string> get(int of, std::string_view key) override {
        const auto found = values_.find(std::string(key));
        if (of != 0 || found == values_.end()) {
            fail("it was not published");
            return std::nullopt;
        }
        return found->second;
    }

    bool finalize() override { return true; }

    void abort(int code, const std::string&) override { ::_exit(code); }

private:
    std::map<std::string, std::string> values_;
};

}  // namespace

std::unique_ptr<Runtime> make_alone() { return std::make_unique<Alone>(); }

}  // namespace viaduct::rte
