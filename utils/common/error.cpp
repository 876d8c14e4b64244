// SPDX-License-Identifier: BSD-2-Clause
#include "utils/common/error.hpp"

#include <viaduct/ext.h>

#include <iterator>

namespace viaduct::tools {

std::string text_of(VIP_RETURN result) {
    static constexpr struct {
        const char* name;
        const char* meaning;
    } kTexts[] = {
        {"VIP_SUCCESS", "done"},
        {"VIP_NOT_DONE", "nothing completed yet"},
        {"VIP_INVALID_PARAMETER", "a handle or value was not accepted"},
        {"VIP_ERROR_RESOURCE", "descriptors, memory, a quota or the kernel agent are missing"},
        {"VIP_TIMEOUT", "no answer in time"},
        {"VIP_REJECT", "turned away by the other side"},
        {"VIP_INVALID_RELIABILITY_LEVEL", "reliability level not offered, or not equal on both sides"},
        {"VIP_INVALID_MTU", "transfer size not offered, or not equal on both sides"},
        {"VIP_INVALID_QOS", "quality of service not offered"},
        {"VIP_INVALID_PTAG", "not a protection tag of this NIC"},
        {"VIP_INVALID_RDMAREAD", "this NIC has no RDMA read at this reliability level"},
        {"VIP_DESCRIPTOR_ERROR", "a descriptor completed in error"},
        {"VIP_INVALID_STATE", "the VI is in the wrong state"},
        {"VIP_ERROR_NAMESERVICE", "host name unknown"},
        {"VIP_NO_MATCH", "no program waits at that address"},
        {"VIP_NOT_REACHABLE", "not reachable"},
        {"VIP_ERROR_NOT_SUPPORTED", "not supported"},
    };
    const auto index = static_cast<size_t>(result);
    if (index >= std::size(kTexts)) return "answer " + std::to_string(index);
    return std::string(kTexts[index].name) + " (" + kTexts[index].meaning + ")";
}

std::string last_error() {
    char text[1024];
    return VipxLastError(nullptr, text, sizeof text) == VIP_SUCCESS ? text : "";
}

void fail(VIP_RETURN result, const char* call) {
    // What the library says is of this call unless another thread has failed since.
    const std::string why = last_error();
    throw ToolError(why.starts_with(std::string(call) + ":") ? why : std::string(call) + ": " + text_of(result));
}

}  // namespace viaduct::tools
