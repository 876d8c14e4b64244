// SPDX-License-Identifier: BSD-2-Clause
// A provider that answers inquiry after inquiry by a letter of FAKE_ANSWERS, the last one for ever: 1, it has a NIC; 0,
// it has none; s, it has a NIC, and descriptors are short.
#include <cstddef>
#include <cstdlib>
#include <string>

#include "fake_control.hpp"

namespace {

viaduct::Status discover(const viaduct::Settings&, const viaduct::Hints&, viaduct::NicSink& sink) {
    static size_t inquiries = 0;  // one at a time
    const char* const text = std::getenv("FAKE_ANSWERS");
    const std::string answers = text != nullptr ? text : "1";
    const char answer = inquiries < answers.size() ? answers[inquiries] : answers.back();
    ++inquiries;
    if (answer != '0') sink.offer(viaduct::fake::nic("scripted", 0));
    return answer == 's' ? viaduct::Status::out_of_resources : viaduct::Status::ok;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const viaduct::Provider viaduct_provider_v1 =
    viaduct::fake::provider("scripted", discover);
