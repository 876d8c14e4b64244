/* SPDX-License-Identifier: BSD-2-Clause */
#include "end.h"

#include <stdarg.h>

#include "memory.h"

static const char* const kCodes[] = {"VIP_SUCCESS",
                                     "VIP_NOT_DONE",
                                     "VIP_INVALID_PARAMETER",
                                     "VIP_ERROR_RESOURCE",
                                     "VIP_TIMEOUT",
                                     "VIP_REJECT",
                                     "VIP_INVALID_RELIABILITY_LEVEL",
                                     "VIP_INVALID_MTU",
                                     "VIP_INVALID_QOS",
                                     "VIP_INVALID_PTAG",
                                     "VIP_INVALID_RDMAREAD",
                                     "VIP_DESCRIPTOR_ERROR",
                                     "VIP_INVALID_STATE",
                                     "VIP_ERROR_NAMESERVICE",
                                     "VIP_NO_MATCH",
                                     "VIP_NOT_REACHABLE",
                                     "VIP_ERROR_NOT_SUPPORTED"};

struct address {
    _Alignas(VIP_NET_ADDRESS) unsigned char bytes[128];
};

unsigned time_limit(void) {
    const char* text = getenv("ENVIRONMENT_TIMEOUT_MS");
    const int ms = text != NULL ? atoi(text) : 0;
    return ms > 0 ? (unsigned)ms : 8000;
}

void finish(int exit_code, const char* format, ...) {
    char text[sizeof status->result];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    status_result(text);
    fprintf(stderr, "%s\n", text);
    _exit(exit_code);
}

const char* code_name(VIP_RETURN code) {
    return (size_t)code < sizeof kCodes / sizeof *kCodes ? kCodes[code] : "a code of no name";
}

void must(VIP_RETURN code, const char* call) {
    if (code != VIP_SUCCESS) finish(3, "%.*s: %s", (int)strcspn(call, "("), call, code_name(code));
}

static void told(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    struct end* end = context;
    if (error->ErrorCode == VIP_ERROR_CONN_LOST) end->lost = 1;
}

void end_open(struct end* end) {
    memset(end, 0, sizeof *end);
    MUST(VipOpenNic("/dev/via_eth0", &end->nic));
    MUST(VipErrorCallback(end->nic, end, told));
    MUST(VipQueryNic(end->nic, &end->attributes));
    end->memory = memory_of_kind(kRegion);
    VIP_MEM_ATTRIBUTES all = {0, VIP_TRUE, VIP_TRUE};
    MUST(VipRegisterMem(end->nic, end->memory, kRegion, &all, &end->handle));
    VIP_VI_ATTRIBUTES traits = {0};
    traits.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    traits.MaxTransferSize = kLargest;
    traits.EnableRdmaWrite = traits.EnableRdmaRead = VIP_TRUE;
    MUST(VipCreateVi(end->nic, &traits, NULL, NULL, &end->vi));
}

void end_close(struct end* end) {
    MUST(VipDestroyVi(end->vi));
    MUST(VipDeregisterMem(end->nic, end->memory, end->handle));
    MUST(VipCloseNic(end->nic));
}

static VIP_NET_ADDRESS* address_of(const struct end* end, struct address* address, const char* name) {
    VIP_NET_ADDRESS* net = (VIP_NET_ADDRESS*)address->bytes;
    net->HostAddressLen = end->attributes.NicAddressLen;
    memcpy(net->HostAddress, end->attributes.LocalNicAddress, net->HostAddressLen);
    net->DiscriminatorLen = (VIP_UINT16)strlen(name);
    memcpy(net->HostAddress + net->HostAddressLen, name, net->DiscriminatorLen);
    return net;
}

void end_accept(struct end* end, const char* name) {
    struct address here, there;
    VIP_NET_ADDRESS* remote = address_of(end, &there, "................................");
    VIP_VI_ATTRIBUTES traits;
    VIP_CONN_HANDLE connection;
    MUST(VipConnectWait(end->nic, address_of(end, &here, name), time_limit(), remote, &traits, &connection));
    MUST(VipConnectAccept(connection, end->vi));
}

void end_connect(struct end* end, const char* name) {
    char own[32];
    struct address here, there;
    snprintf(own, sizeof own, "c%llx", (unsigned long long)status_now_ns());
    VIP_NET_ADDRESS* remote = address_of(end, &there, name);
    VIP_NET_ADDRESS* local = address_of(end, &here, own);
    VIP_VI_ATTRIBUTES traits;
    VIP_RETURN code;
    const int64_t until = status_now_ns() + (int64_t)time_limit() * 1000000;
    do code = (VIP_RETURN)CALL(VipConnectRequest(end->vi, local, remote, time_limit(), &traits));
    while (code == VIP_NO_MATCH && status_now_ns() < until);
    must(code, "VipConnectRequest");
}

void end_disconnect(struct end* end) {
    MUST(VipDisconnect(end->vi));
    VIP_DESCRIPTOR* left;
    while (VipRecvDone(end->vi, &left) != VIP_NOT_DONE && left != NULL) {
    }
    while (VipSendDone(end->vi, &left) != VIP_NOT_DONE && left != NULL) {
    }
}

static VIP_DESCRIPTOR* descriptor(struct end* end, int which, unsigned char* data, unsigned bytes) {
    VIP_DESCRIPTOR* one = (VIP_DESCRIPTOR*)(end->memory + which * 64);
    memset(one, 0, sizeof *one);
    one->CS.SegCount = 1;
    one->CS.Length = bytes;
    one->Data[0].Data.Address = data;
    one->Data[0].Handle = end->handle;
    one->Data[0].Length = bytes;
    return one;
}

void end_post_receive(struct end* end) {
    MUST(VipPostRecv(end->vi, descriptor(end, 0, end->memory + kReceive, kLargest), end->handle));
}

unsigned end_receive(struct end* end) {
    VIP_DESCRIPTOR* done = NULL;
    const VIP_RETURN code = (VIP_RETURN)CALL(VipRecvWait(end->vi, time_limit(), &done));
    if (code != VIP_SUCCESS)
        finish(3, "VipRecvWait: %s%s", code_name(code), end->lost ? ", connection lost" : "");
    return done->CS.Length;
}

void end_expect(struct end* end, unsigned bytes, unsigned seed) {
    const unsigned came = end_receive(end);
    if (came != bytes || !filled(end->memory + kReceive, bytes, seed))
        finish(5, "wrong: message %u of %u bytes came with %u or with other bytes", seed, bytes, came);
}

static void complete(struct end* end) {
    VIP_DESCRIPTOR* done = NULL;
    const VIP_RETURN code = (VIP_RETURN)CALL(VipSendWait(end->vi, time_limit(), &done));
    if (code != VIP_SUCCESS)
        finish(3, "VipSendWait: %s, status %x%s", code_name(code), done != NULL ? done->CS.Status : 0U,
               end->lost ? ", connection lost" : "");
}

void end_send(struct end* end, unsigned bytes) {
    MUST(VipPostSend(end->vi, descriptor(end, 1, end->memory + kSend, bytes), end->handle));
    complete(end);
}

void end_rdma(struct end* end, unsigned short operation, unsigned long address, VIP_MEM_HANDLE handle, unsigned bytes) {
    VIP_DESCRIPTOR* one = descriptor(end, 1, NULL, 0);
    one->CS.Control = operation;
    one->CS.SegCount = 2;
    one->CS.Length = bytes;
    one->DS[0].Remote.Data.AddressBits = address;
    one->DS[0].Remote.Handle = handle;
    one->DS[0].Remote.Reserved = 0;
    one->Data[1].Data.Address = end->memory + kSend;
    one->Data[1].Handle = end->handle;
    one->Data[1].Length = bytes;
    MUST(VipPostSend(end->vi, one, end->handle));
    complete(end);
}

static unsigned char byte_at(unsigned i, unsigned seed) { return (unsigned char)(seed * 31 + i * 7 + i / 256); }

void fill(unsigned char* memory, unsigned bytes, unsigned seed) {
    for (unsigned i = 0; i < bytes; ++i) memory[i] = byte_at(i, seed);
}

int filled(const unsigned char* memory, unsigned bytes, unsigned seed) {
    for (unsigned i = 0; i < bytes; ++i)
        if (memory[i] != byte_at(i, seed)) return 0;
    return 1;
}
