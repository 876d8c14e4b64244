// SPDX-License-Identifier: BSD-2-Clause
#include "core/text/code_names.hpp"

#include <array>
#include <cstdio>
#include <cstring>

namespace viaduct {

namespace {

constexpr std::array<CodeName, 17> kReturns = {{
    {"VIP_SUCCESS", "done"},
    {"VIP_NOT_DONE", "nothing is complete yet, or still pending"},
    {"VIP_INVALID_PARAMETER", "a handle that is not live, a pointer that is NULL, or a value that is not possible"},
    {"VIP_ERROR_RESOURCE", "a limit was reached, or the object is in use"},
    {"VIP_TIMEOUT", "the time given was over first"},
    {"VIP_REJECT", "the other end has called VipConnectReject"},
    {"VIP_INVALID_RELIABILITY_LEVEL", "ReliabilityLevel is not offered, or differs from that of the other end"},
    {"VIP_INVALID_MTU", "MaxTransferSize is not offered, or differs from that of the other end"},
    {"VIP_INVALID_QOS", "QoS is not offered, or differs from that of the other end"},
    {"VIP_INVALID_PTAG", "not a protection tag of this NIC handle"},
    {"VIP_INVALID_RDMAREAD", "RDMA read is not offered"},
    {"VIP_DESCRIPTOR_ERROR", "a descriptor completed in error; with a NULL descriptor: the queue is empty"},
    {"VIP_INVALID_STATE", "the VI is in another state than the call needs"},
    {"VIP_ERROR_NAMESERVICE", "the name is unknown, or the name service was not started"},
    {"VIP_NO_MATCH", "there is no waiter at that address"},
    {"VIP_NOT_REACHABLE", "never returned; an absent peer is VIP_NO_MATCH"},
    {"VIP_ERROR_NOT_SUPPORTED", "this NIC or library does not have it"},
}};

constexpr std::array<CodeName, 11> kErrors = {{
    {"VIP_ERROR_POST_DESC", "a posted descriptor is misaligned or not in registered memory"},
    {"VIP_ERROR_CONN_LOST", "the other end or the network has ended the connection"},
    {"VIP_ERROR_RECVQ_EMPTY", "a message met no posted receive"},
    {"VIP_ERROR_VI_OVERRUN", "more descriptors were posted than the queue holds"},
    {"VIP_ERROR_RDMAW_PROT", "an incoming RDMA write is not permitted"},
    {"VIP_ERROR_RDMAW_DATA", "an incoming RDMA write was damaged"},
    {"VIP_ERROR_RDMAW_ABORT", "an incoming RDMA write broke off"},
    {"VIP_ERROR_RDMAR_PROT", "an incoming RDMA read is not permitted"},
    {"VIP_ERROR_COMP_PROT", "a completion could not be written"},
    {"VIP_ERROR_RDMA_TRANSPORT", "the network failed during RDMA"},
    {"VIP_ERROR_CATASTROPHIC", "the NIC failed, or a completion queue overflowed"},
}};

struct BitName {
    uint32_t bit;
    const char* name;
};
constexpr std::array<BitName, 9> kBits = {{
    {VIP_STATUS_DONE, "VIP_STATUS_DONE"},
    {VIP_STATUS_FORMAT_ERROR, "VIP_STATUS_FORMAT_ERROR"},
    {VIP_STATUS_PROTECTION_ERROR, "VIP_STATUS_PROTECTION_ERROR"},
    {VIP_STATUS_LENGTH_ERROR, "VIP_STATUS_LENGTH_ERROR"},
    {VIP_STATUS_PARTIAL_ERROR, "VIP_STATUS_PARTIAL_ERROR"},
    {VIP_STATUS_DESC_FLUSHED_ERROR, "VIP_STATUS_DESC_FLUSHED_ERROR"},
    {VIP_STATUS_TRANSPORT_ERROR, "VIP_STATUS_TRANSPORT_ERROR"},
    {VIP_STATUS_RDMA_PROT_ERROR, "VIP_STATUS_RDMA_PROT_ERROR"},
    {VIP_STATUS_REMOTE_DESC_ERROR, "VIP_STATUS_REMOTE_DESC_ERROR"},
}};

constexpr std::array<const char*, 6> kOperations = {"VIP_STATUS_OP_SEND",       "VIP_STATUS_OP_RECEIVE",
                                                    "VIP_STATUS_OP_RDMA_WRITE", "VIP_STATUS_OP_REMOTE_RDMA_WRITE",
                                                    "VIP_STATUS_OP_RDMA_READ",  "VIPX_STATUS_OP_ATOMIC"};
constexpr uint32_t kOperationShift = 16;

void append(char* text, size_t bytes, size_t* used, const char* name) {
    const char* between = *used == 0 ? "" : " | ";
    for (const char* part : {between, name}) {
        const size_t n = std::strlen(part);
        for (size_t i = 0; i < n; ++i)
            if (*used + i + 1 < bytes) text[*used + i] = part[i];
        *used += n;
    }
    if (bytes != 0) text[*used < bytes ? *used : bytes - 1] = 0;
}

}  // namespace

CodeName name_of_return(uint32_t code) { return code < kReturns.size() ? kReturns[code] : CodeName{}; }

CodeName name_of_error(uint32_t code) { return code < kErrors.size() ? kErrors[code] : CodeName{}; }

const char* name_of_state(uint32_t state) {
    constexpr std::array kStates = {"Idle", "Connected", "Connect-Pending", "Error"};
    return state < kStates.size() ? kStates[state] : "unknown";
}

size_t write_status_names(uint32_t status, char* text, size_t bytes) {
    size_t used = 0;
    if (bytes != 0) text[0] = 0;
    for (const BitName& bit : kBits)
        if ((status & bit.bit) != 0) append(text, bytes, &used, bit.name);
    const uint32_t operation = (status & VIP_STATUS_OP_MASK) >> kOperationShift;
    if (operation < kOperations.size()) append(text, bytes, &used, kOperations[operation]);
    if ((status & VIP_STATUS_IMMEDIATE) != 0) append(text, bytes, &used, "VIP_STATUS_IMMEDIATE");
    return used;
}

}  // namespace viaduct
