// SPDX-License-Identifier: BSD-2-Clause
// The rows of the reliability table, spec/reliability 6.2, on RDMA that its target refuses, at all levels that have it.
#include <functional>
#include <vector>

#include "reliability.hpp"

namespace viaduct::conformance {
namespace {

struct Refusal {
    const char* what;
    /// Changes the target's side or the remote segment so that it has to be refused.
    std::function<void(Pair&, Target&)> make;
};

VIP_MEM_HANDLE register_as(End& end, void* address, std::size_t length, VIP_MEM_ATTRIBUTES attributes) {
    VIP_MEM_HANDLE handle = 0;
    require(VipRegisterMem(end.nic, address, length, &attributes, &handle), "VipRegisterMem");
    return handle;
}

std::vector<Refusal> refusals(bool reading) {
    const VIP_BOOLEAN write = reading ? VIP_FALSE : VIP_TRUE;
    const VIP_BOOLEAN read = reading ? VIP_TRUE : VIP_FALSE;
    return {
        {"memory not enabled",
         [=](Pair& pair, Target& at) {
             at.handle = register_as(pair.server, at.address, 64, {pair.server.ptag, VIP_FALSE, VIP_FALSE});
         }},
        {"memory enabled for the other direction only",
         [=](Pair& pair, Target& at) {
             const VIP_BOOLEAN other = pair.server.limits.RDMAReadSupport != 0 ? write : VIP_FALSE;
             at.handle = register_as(pair.server, at.address, 64, {pair.server.ptag, read, other});
         }},
        {"memory registered without attributes",
         [](Pair& pair, Target& at) {
             require(VipRegisterMem(pair.server.nic, at.address, 64, nullptr, &at.handle), "VipRegisterMem");
         }},
        {"memory of another tag",
         [=](Pair& pair, Target& at) {
             VIP_PROTECTION_HANDLE other = nullptr;
             require(VipCreatePtag(pair.server.nic, &other), "VipCreatePtag");
             at.handle = register_as(pair.server, at.address, 64, {other, write, read});
         }},
        {"range beyond the region",
         [=](Pair& pair, Target& at) {
             at.handle = register_as(pair.server, at.address, 63, {pair.server.ptag, write, read});
         }},
        {"range before the region",
         [=](Pair& pair, Target& at) {
             at.handle =
                 register_as(pair.server, static_cast<char*>(at.address) + 1, 63, {pair.server.ptag, write, read});
         }},
        {"unknown handle", [](Pair& pair, Target& at) { at.handle = pair.server.region ^ 0x33330000u; }},
        {"handle of the initiator's region",
         [](Pair& pair, Target& at) { at = pair.client.target(pair.client.buffer(64, 'k')); }},
        {"deregistered memory",
         [=](Pair& pair, Target& at) {
             at.handle = register_as(pair.server, at.address, 64, {pair.server.ptag, write, read});
             require(VipDeregisterMem(pair.server.nic, at.address, at.handle), "VipDeregisterMem");
         }},
        {"address around the end of the address space",
         [](Pair&, Target& at) { at.address = reinterpret_cast<void*>(~std::uintptr_t{0} - 8); }},
    };
}

class RdmaRefusal : public Reliability {
protected:
    void write_refused(Pair& pair, const Target& at) {
        const char* window = static_cast<char*>(at.address);
        pair.client.write(pair.client.buffer(64, 'W'), 64, at);
        const Outcome sent = reap_send(pair.client.vi);
        heard(pair.server, VIP_ERROR_RDMAW_PROT);
        EXPECT_EQ(pair.server.errors.size(), 1u);
        if (window >= pair.server.memory && window < pair.server.memory + pair.server.wanted.memory) {
            EXPECT_EQ(window[0], 'k');
            EXPECT_EQ(window[63], 'k');
        }
        if (unreliable()) {
            EXPECT_EQ(sent.code, VIP_SUCCESS);
            EXPECT_EQ(sent.descriptor->CS.Length, 64u) << "as of any message that is lost";
            still_connected(pair);
        } else {
            after_break(sent, VIP_STATUS_RDMA_PROT_ERROR);
            EXPECT_EQ(sent.operation(), static_cast<VIP_UINT32>(VIP_STATUS_OP_RDMA_WRITE));
            broken(pair);
            if (!reception()) {
                heard(pair.client, VIP_ERROR_CONN_LOST);
            }
        }
    }

    void read_refused(Pair& pair, const Target& at) {
        char* into = pair.client.buffer(64, 'k');
        pair.client.read(into, 64, at);
        const Outcome done = reap_send(pair.client.vi);
        EXPECT_EQ(done.code, VIP_DESCRIPTOR_ERROR);
        EXPECT_TRUE(done.errors() & VIP_STATUS_RDMA_PROT_ERROR) << std::hex << done.status();
        EXPECT_EQ(done.operation(), static_cast<VIP_UINT32>(VIP_STATUS_OP_RDMA_READ));
        EXPECT_EQ(into[0], 'k');
        heard(pair.server, VIP_ERROR_RDMAR_PROT);
        EXPECT_EQ(pair.server.errors.size(), 1u);
        broken(pair);
    }
};

TEST_P(RdmaRefusal, OfAWrite) {
    for (const Refusal& refusal : refusals(false)) {
        SCOPED_TRACE(refusal.what);
        const Row row("6.2 RDMA Write refused at target", GetParam());
        const Row code("8 RDMAW_PROT", GetParam());
        std::optional<Row> bit;
        if (reception()) {
            bit.emplace("2.3 RDMA_PROT_ERROR", GetParam());
        }
        NEEDS_LEVEL(GetParam());
        Pair pair(at_level());
        Target at = pair.server.target(pair.server.buffer(64, 'k'));
        refusal.make(pair, at);
        write_refused(pair, at);
    }
}

TEST_P(RdmaRefusal, OfAWriteToAViThatIsNotEnabled) {
    const Row row("6.2 RDMA Write refused at target", GetParam());
    NEEDS_LEVEL(GetParam());
    EndOptions closed = at_level();
    Pair pair(closed, closed);
    // The VI is closed, its memory is not.
    VIP_VI_ATTRIBUTES attributes = pair.server.vi_attributes();
    attributes.EnableRdmaWrite = VIP_FALSE;
    require(VipDisconnect(pair.client.vi), "VipDisconnect");
    require(VipDisconnect(pair.server.vi), "VipDisconnect");
    require(VipSetViAttributes(pair.server.vi, &attributes), "VipSetViAttributes");
    connect(pair.client.nic, pair.client.vi, pair.server.nic, pair.server.vi);
    write_refused(pair, pair.server.target(pair.server.buffer(64, 'k')));
}

TEST_P(RdmaRefusal, OfAWriteWithImmediateDataIsToldInTheReceive) {
    const Row row("6.2 RDMA Write with immediate refused at target", GetParam());
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    VIP_DESCRIPTOR* receive = pair.server.receive(64);
    char* window = pair.server.buffer(64, 'k');
    const VIP_MEM_HANDLE sealed =
        register_as(pair.server, window, 64, {pair.server.ptag, VIP_FALSE, VIP_FALSE});
    pair.client.write(pair.client.buffer(64, 'W'), 64, {window, sealed}, VIP_CONTROL_IMMEDIATE, 5);
    const Outcome sent = reap_send(pair.client.vi);
    const Outcome got = reap_recv(pair.server.vi);
    EXPECT_EQ(got.code, VIP_DESCRIPTOR_ERROR);
    ASSERT_EQ(got.descriptor, receive);
    EXPECT_TRUE(got.errors() & (VIP_STATUS_RDMA_PROT_ERROR | VIP_STATUS_PROTECTION_ERROR))
        << std::hex << got.status();
    EXPECT_EQ(got.operation(), static_cast<VIP_UINT32>(VIP_STATUS_OP_REMOTE_RDMA_WRITE));
    EXPECT_EQ(window[0], 'k');
    EXPECT_EQ(pair.server.errors.count(VIP_ERROR_RDMAW_PROT), 0u) << "the receive tells it instead";
    if (unreliable()) {
        EXPECT_EQ(sent.code, VIP_SUCCESS);
        EXPECT_EQ(sent.descriptor->CS.Length, 64u) << "as of any message that is lost";
        still_connected(pair);
    } else {
        after_break(sent, VIP_STATUS_RDMA_PROT_ERROR);
        broken(pair);
    }
}

TEST_P(RdmaRefusal, OfAWriteWithImmediateDataWithoutAReceive) {
    const Row row("6.2 No receive descriptor posted", GetParam());
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    char* window = pair.server.buffer(64, 'k');
    pair.client.write(pair.client.buffer(64, 'W'), 64, pair.server.target(window), VIP_CONTROL_IMMEDIATE, 5);
    const Outcome sent = reap_send(pair.client.vi);
    heard(pair.server, VIP_ERROR_RECVQ_EMPTY);
    if (unreliable()) {
        EXPECT_EQ(sent.code, VIP_SUCCESS);
        still_connected(pair);
    } else {
        after_break(sent, VIP_STATUS_REMOTE_DESC_ERROR);
        broken(pair);
    }
}

INSTANTIATE_TEST_SUITE_P(EachLevel, RdmaRefusal, VIADUCT_ALL_LEVELS, level_test_name);

using RdmaReadRefusal = RdmaRefusal;

TEST_P(RdmaReadRefusal, ForEveryReason) {
    for (const Refusal& refusal : refusals(true)) {
        SCOPED_TRACE(refusal.what);
        const Row row("6.2 RDMA Read refused", GetParam());
        const Row code("8 RDMAR_PROT", GetParam());
        const Row bit("2.3 RDMA_PROT_ERROR", GetParam());
        NEEDS_LEVEL(GetParam());
        NEEDS_RDMA_READ(GetParam());
        Pair pair(at_level());
        Target at = pair.server.target(pair.server.buffer(64, 'S'));
        refusal.make(pair, at);
        read_refused(pair, at);
    }
}

TEST_P(RdmaReadRefusal, ByAViThatIsNotEnabled) {
    const Row row("6.2 RDMA Read refused", GetParam());
    NEEDS_LEVEL(GetParam());
    NEEDS_RDMA_READ(GetParam());
    Pair pair(at_level());
    VIP_VI_ATTRIBUTES attributes = pair.server.vi_attributes();
    attributes.EnableRdmaRead = VIP_FALSE;
    require(VipDisconnect(pair.client.vi), "VipDisconnect");
    require(VipDisconnect(pair.server.vi), "VipDisconnect");
    require(VipSetViAttributes(pair.server.vi, &attributes), "VipSetViAttributes");
    connect(pair.client.nic, pair.client.vi, pair.server.nic, pair.server.vi);
    read_refused(pair, pair.server.target(pair.server.buffer(64, 'S')));
}

INSTANTIATE_TEST_SUITE_P(EachLevel, RdmaReadRefusal, VIADUCT_RELIABLE_LEVELS, level_test_name);

}  // namespace
}  // namespace viaduct::conformance
