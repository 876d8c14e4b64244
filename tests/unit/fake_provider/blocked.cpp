// SPDX-License-Identifier: BSD-2-Clause
// A provider that answers once the FIFO FAKE_GATE is open for writing. In an agent that a program has started, which
// gets no such variable, it never answers.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "fake_control.hpp"

namespace {

viaduct::Status discover(const viaduct::Settings&, const viaduct::Hints&, viaduct::NicSink& sink) {
    const char* const gate = std::getenv("FAKE_GATE");
    while (gate == nullptr) ::pause();
    const int fd = ::open(gate, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) ::close(fd);
    sink.offer(viaduct::fake::nic("blocked", 0));
    return viaduct::Status::ok;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const viaduct::Provider viaduct_provider_v1 =
    viaduct::fake::provider("blocked", discover);
