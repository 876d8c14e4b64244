// SPDX-License-Identifier: BSD-2-Clause
// How the tools speak of what went wrong: one line for people, and the exit code it means. Codes are those of
// vipinfo(1).
#pragma once

#include <vipl.h>

#include <stdexcept>
#include <string>

namespace viaduct::tools {

inline constexpr int kExitWell = 0;
inline constexpr int kExitProblem = 1;  // the measurement or the conversation failed
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNoNic = 3;  // the NIC cannot be opened, or the kernel agent does not answer

class ToolError : public std::runtime_error {
public:
    explicit ToolError(const std::string& what, int code = kExitProblem)
        : std::runtime_error(what), code_(code) {}
    int code() const { return code_; }

private:
    int code_;
};

// "VIP_NO_MATCH (no program waits at that address)"
std::string text_of(VIP_RETURN);

// VipxLastError of the process: "VipOpenNic: VIP_ERROR_RESOURCE: ...; cure: ..."; empty: nothing failed.
std::string last_error();

// Throws ToolError("call: text") for anything but VIP_SUCCESS.
[[noreturn]] void fail(VIP_RETURN, const char* call);
inline void check(VIP_RETURN result, const char* call) {
    if (result != VIP_SUCCESS) [[unlikely]]
        fail(result, call);
}

}  // namespace viaduct::tools
