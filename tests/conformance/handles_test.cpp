// SPDX-License-Identifier: BSD-2-Clause
// Every call that takes a handle, given dead, foreign and invented ones: the documented refusal and no crash
// (spec/calls 4: handles are looked up, never followed).
#include <cstring>

#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

struct HandleCall {
    const char* name;
    VIP_RETURN expected;
    std::function<VIP_RETURN(void*)> call;
};

/// Live handles of every kind, dead ones of every kind, and the records calls want.
class World {
public:
    World() {
        require(VipCreateCQ(end.nic, 4, &cq), "VipCreateCQ");
        pending = pending_request(requester, end);
        {
            VIP_VI_HANDLE vi = end.create_vi();
            dead_vi = vi;
            VipDestroyVi(vi);
        }
        require(VipCreateCQ(end.nic, 4, &dead_cq), "VipCreateCQ");
        VipDestroyCQ(dead_cq);
        require(VipCreatePtag(end.nic, &dead_ptag), "VipCreatePtag");
        VipDestroyPtag(end.nic, dead_ptag);
        require(VipOpenNic(options().nic.c_str(), &dead_nic), "VipOpenNic");
        VipCloseNic(dead_nic);
        {
            End other;
            PendingRequest second = pending_request(other, end);
            dead_connection = second.connection;
            VipConnectReject(dead_connection);
            second.requester.get();
        }
    }

    ~World() {
        VipConnectReject(pending.connection);
        pending.requester.wait();
    }

    /// Everything that is no live handle of the wanted kind.
    std::vector<void*> wrong(void* live) {
        constexpr int kBits = 8 * sizeof(void*);
        std::vector<void*> list = {
            nullptr,        reinterpret_cast<void*>(1), reinterpret_cast<void*>(0x1234567), &list,
            end.memory,     reinterpret_cast<void*>(~std::uintptr_t{0}),
            reinterpret_cast<void*>(~std::uintptr_t{0} >> 1),
            reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(live) ^ 1),
            reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(live) ^ (std::uintptr_t{1} << (kBits - 24))),
            reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(live) ^ (std::uintptr_t{1} << (kBits - 1))),
            dead_nic,       dead_vi,                    dead_cq,                            dead_ptag,
            dead_connection};
        for (void* handle : {end.nic, end.vi, cq, end.ptag, pending.connection}) {
            if (handle != live) {
                list.push_back(handle);
            }
        }
        return list;
    }

    void refuse(void* live, const std::vector<HandleCall>& calls) {
        for (const HandleCall& each : calls) {
            for (void* handle : wrong(live)) {
                EXPECT_TRUE(CONFORM_RESULT(each.name, each.expected, VS::kNone, each.call(handle)))
                    << "handle " << handle;
            }
        }
    }

    End end;
    End requester;
    PendingRequest pending;
    VIP_CQ_HANDLE cq = nullptr;
    void* dead_nic = nullptr;
    void* dead_vi = nullptr;
    void* dead_cq = nullptr;
    void* dead_ptag = nullptr;
    void* dead_connection = nullptr;
};

void ignore_vi(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*) {}
void ignore_cq(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN) {}

constexpr VIP_RETURN kRefused = VIP_INVALID_PARAMETER;

TEST(Handles, NicCallsRefuseWhatIsNoNic) {
    World world;
    End& end = world.end;
    Address address(end.nic, unique_discriminator());
    Address out = Address::blank();
    VIP_VI_ATTRIBUTES vi_attributes = end.vi_attributes();
    VIP_MEM_ATTRIBUTES mem_attributes{};
    VIP_NIC_ATTRIBUTES nic_attributes_out{};
    VIP_VI_HANDLE vi = nullptr;
    VIP_CONN_HANDLE connection = nullptr;
    VIP_PROTECTION_HANDLE ptag = nullptr;
    VIP_MEM_HANDLE region = 0;
    VIP_CQ_HANDLE cq = nullptr;
    VIP_AUTODISCOVERY_LIST list{0, nullptr, 0};
    char name[64] = "localhost";
    VIP_ULONG name_length = sizeof name;
    world.refuse(
        end.nic,
        {
            {"VipQueryNic", kRefused, [&](void* h) { return VipQueryNic(h, &nic_attributes_out); }},
            {"VipCloseNic", kRefused, [&](void* h) { return VipCloseNic(h); }},
            {"VipCreateVi", kRefused,
             [&](void* h) { return VipCreateVi(h, &vi_attributes, nullptr, nullptr, &vi); }},
            {"VipConnectWait", kRefused,
             [&](void* h) {
                 return VipConnectWait(h, address.get(), 0, out.get(), &vi_attributes, &connection);
             }},
            {"VipCreatePtag", kRefused, [&](void* h) { return VipCreatePtag(h, &ptag); }},
            {"VipDestroyPtag", kRefused, [&](void* h) { return VipDestroyPtag(h, end.ptag); }},
            {"VipRegisterMem", kRefused,
             [&](void* h) { return VipRegisterMem(h, end.memory, 64, nullptr, &region); }},
            {"VipDeregisterMem", kRefused,
             [&](void* h) { return VipDeregisterMem(h, end.memory, end.region); }},
            {"VipQueryMem", kRefused,
             [&](void* h) { return VipQueryMem(h, end.memory, end.region, &mem_attributes); }},
            {"VipSetMemAttributes", kRefused,
             [&](void* h) { return VipSetMemAttributes(h, end.memory, end.region, &mem_attributes); }},
            {"VipCreateCQ", kRefused, [&](void* h) { return VipCreateCQ(h, 4, &cq); }},
            {"VipQuerySystemManagementInfo", kRefused,
             [&](void* h) { return VipQuerySystemManagementInfo(h, VIP_SMI_AUTODISCOVERY, &list); }},
            {"VipErrorCallback", kRefused,
             [&](void* h) { return VipErrorCallback(h, nullptr, &ErrorLog::handler); }},
            {"VipNSInit", kRefused, [&](void* h) { return VipNSInit(h, nullptr); }},
            {"VipNSShutdown", kRefused, [&](void* h) { return VipNSShutdown(h); }},
            {"VipNSGetHostByName", kRefused,
             [&](void* h) { return VipNSGetHostByName(h, name, out.get(), 0); }},
            {"VipNSGetHostByAddr", kRefused,
             [&](void* h) { return VipNSGetHostByAddr(h, address.get(), name, &name_length); }},
        });
}

TEST(Handles, ViCallsRefuseWhatIsNoVi) {
    World world;
    End& end = world.end;
    Address local(end.nic, unique_discriminator());
    Address remote(end.nic, unique_discriminator());
    VIP_VI_ATTRIBUTES attributes = end.vi_attributes();
    VIP_VI_STATE state = VIP_STATE_IDLE;
    VIP_BOOLEAN send_empty = VIP_FALSE;
    VIP_BOOLEAN recv_empty = VIP_FALSE;
    VIP_DESCRIPTOR* out = nullptr;
    VIP_DESCRIPTOR* d = end.message(end.buffer(64), 64);
    world.refuse(
        end.vi,
        {
            {"VipDestroyVi", kRefused, [&](void* h) { return VipDestroyVi(h); }},
            {"VipQueryVi", kRefused,
             [&](void* h) { return VipQueryVi(h, &state, &attributes, &send_empty, &recv_empty); }},
            {"VipSetViAttributes", kRefused, [&](void* h) { return VipSetViAttributes(h, &attributes); }},
            {"VipConnectAccept", kRefused,
             [&](void* h) { return VipConnectAccept(world.pending.connection, h); }},
            {"VipConnectRequest", kRefused,
             [&](void* h) { return VipConnectRequest(h, local.get(), remote.get(), 1, &attributes); }},
            {"VipDisconnect", kRefused, [&](void* h) { return VipDisconnect(h); }},
            {"VipConnectPeerRequest", kRefused,
             [&](void* h) { return VipConnectPeerRequest(h, local.get(), remote.get(), 1); }},
            {"VipConnectPeerDone", kRefused, [&](void* h) { return VipConnectPeerDone(h, &attributes); }},
            {"VipConnectPeerWait", kRefused, [&](void* h) { return VipConnectPeerWait(h, &attributes); }},
            {"VipPostSend", kRefused, [&](void* h) { return VipPostSend(h, d, end.region); }},
            {"VipPostRecv", kRefused, [&](void* h) { return VipPostRecv(h, d, end.region); }},
            {"VipSendDone", kRefused, [&](void* h) { return VipSendDone(h, &out); }},
            {"VipRecvDone", kRefused, [&](void* h) { return VipRecvDone(h, &out); }},
            {"VipSendWait", kRefused, [&](void* h) { return VipSendWait(h, 0, &out); }},
            {"VipRecvWait", kRefused, [&](void* h) { return VipRecvWait(h, 0, &out); }},
            {"VipSendNotify", kRefused, [&](void* h) { return VipSendNotify(h, nullptr, &ignore_vi); }},
            {"VipRecvNotify", kRefused, [&](void* h) { return VipRecvNotify(h, nullptr, &ignore_vi); }},
        });
}

TEST(Handles, CompletionQueueCallsRefuseWhatIsNoCompletionQueue) {
    World world;
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN recv = VIP_FALSE;
    world.refuse(world.cq,
                 {
                     {"VipDestroyCQ", kRefused, [&](void* h) { return VipDestroyCQ(h); }},
                     {"VipResizeCQ", kRefused, [&](void* h) { return VipResizeCQ(h, 8); }},
                     {"VipCQDone", kRefused, [&](void* h) { return VipCQDone(h, &vi, &recv); }},
                     {"VipCQWait", kRefused, [&](void* h) { return VipCQWait(h, 0, &vi, &recv); }},
                     {"VipCQNotify", kRefused, [&](void* h) { return VipCQNotify(h, nullptr, &ignore_cq); }},
                     {"VipCreateVi", kRefused,
                      [&](void* h) {
                          VIP_VI_ATTRIBUTES attributes = world.end.vi_attributes();
                          return h == nullptr ? kRefused
                                              : VipCreateVi(world.end.nic, &attributes, h, nullptr, &vi);
                      }},
                     {"VipCreateVi", kRefused,
                      [&](void* h) {
                          VIP_VI_ATTRIBUTES attributes = world.end.vi_attributes();
                          return h == nullptr ? kRefused
                                              : VipCreateVi(world.end.nic, &attributes, nullptr, h, &vi);
                      }},
                 });
}

TEST(Handles, ConnectionCallsRefuseWhatIsNoConnection) {
    World world;
    const VIP_VI_HANDLE idle = world.end.create_vi();
    world.refuse(world.pending.connection,
                 {
                     {"VipConnectAccept", kRefused, [&](void* h) { return VipConnectAccept(h, idle); }},
                     {"VipConnectReject", kRefused, [&](void* h) { return VipConnectReject(h); }},
                 });
}

TEST(Handles, ProtectionTagsAreRefusedWhereverTheyAreNamed) {
    World world;
    End& end = world.end;
    VIP_VI_HANDLE vi = nullptr;
    VIP_MEM_HANDLE region = 0;
    // NULL is the default tag everywhere but in VipDestroyPtag (spec/compat V1, V3).
    const auto unless_null = [](void* h, const std::function<VIP_RETURN()>& call) {
        return h == nullptr ? VIP_INVALID_PTAG : call();
    };
    world.refuse(end.ptag,
                 {
                     {"VipDestroyPtag", kRefused, [&](void* h) { return VipDestroyPtag(end.nic, h); }},
                     {"VipCreateVi", VIP_INVALID_PTAG,
                      [&](void* h) {
                          VIP_VI_ATTRIBUTES attributes = end.vi_attributes();
                          attributes.Ptag = h;
                          return unless_null(
                              h, [&] { return VipCreateVi(end.nic, &attributes, nullptr, nullptr, &vi); });
                      }},
                     {"VipRegisterMem", VIP_INVALID_PTAG,
                      [&](void* h) {
                          VIP_MEM_ATTRIBUTES attributes{h, VIP_FALSE, VIP_FALSE};
                          return unless_null(
                              h, [&] { return VipRegisterMem(end.nic, end.memory, 64, &attributes, &region); });
                      }},
                     {"VipSetMemAttributes", VIP_INVALID_PTAG,
                      [&](void* h) {
                          VIP_MEM_ATTRIBUTES attributes{h, VIP_FALSE, VIP_FALSE};
                          return unless_null(h, [&] {
                              return VipSetMemAttributes(end.nic, end.memory, end.region, &attributes);
                          });
                      }},
                 });
}

TEST(Handles, MemoryHandlesThatWereNeverIssuedAreRefused) {
    End end;
    VIP_MEM_ATTRIBUTES attributes{};
    for (const VIP_MEM_HANDLE handle : {0u, 1u, end.region ^ 1u, end.region ^ 0x80000000u, 0x7FFFFFFFu, 0xFFFFFFFFu}) {
        EXPECT_TRUE(CONFORM(kRefused, kNone, VipDeregisterMem(end.nic, end.memory, handle))) << handle;
        EXPECT_TRUE(CONFORM(kRefused, kNone, VipQueryMem(end.nic, end.memory, handle, &attributes))) << handle;
        EXPECT_TRUE(CONFORM(kRefused, kNone, VipSetMemAttributes(end.nic, end.memory, handle, &attributes)))
            << handle;
    }
}

TEST(Handles, HandlesOfOneOpenAreUnknownUnderAnother) {
    End mine;
    End foreign;
    VIP_CQ_HANDLE foreign_cq = nullptr;
    require(VipCreateCQ(foreign.nic, 4, &foreign_cq), "VipCreateCQ");
    VIP_VI_HANDLE vi = nullptr;
    VIP_VI_ATTRIBUTES attributes = mine.vi_attributes();
    VIP_MEM_ATTRIBUTES mem{};
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipCreateVi(mine.nic, &attributes, foreign_cq, nullptr, &vi));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipCreateVi(mine.nic, &attributes, nullptr, foreign_cq, &vi));
    attributes.Ptag = foreign.ptag;
    CONFORM(VIP_INVALID_PTAG, kNone, VipCreateVi(mine.nic, &attributes, nullptr, nullptr, &vi));
    CONFORM(VIP_INVALID_PTAG, kIdle, VipSetViAttributes(mine.vi, &attributes));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipDestroyPtag(mine.nic, foreign.ptag));
    // The handle's number may exist here too, but never for that address.
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipQueryMem(mine.nic, foreign.memory, foreign.region, &mem));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipSetMemAttributes(mine.nic, foreign.memory, foreign.region, &mem));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipDeregisterMem(mine.nic, foreign.memory, foreign.region));
    mem.Ptag = foreign.ptag;
    VIP_MEM_HANDLE region = 0;
    CONFORM(VIP_INVALID_PTAG, kNone, VipRegisterMem(mine.nic, mine.memory, 64, &mem, &region));
    CONFORM(VIP_INVALID_PTAG, kNone, VipSetMemAttributes(mine.nic, mine.memory, mine.region, &mem));
}

TEST(Handles, AConnectionOfOneOpenCannotBeAcceptedOnAViOfAnother) {
    End requester;
    End server(across());
    End foreign;
    PendingRequest pending = pending_request(requester, server);
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipConnectAccept(pending.connection, foreign.vi));
    CONFORM(VIP_SUCCESS, kIdle, VipConnectAccept(pending.connection, server.vi));
    EXPECT_EQ(pending.requester.get(), VIP_SUCCESS);
}

TEST(Handles, StaleHandlesStayDeadWhenTheirSlotsAreUsedAgain) {
    End end;
    std::vector<VIP_VI_HANDLE> dead;
    for (int i = 0; i < 64; ++i) {
        const VIP_VI_HANDLE vi = end.create_vi();
        dead.push_back(vi);
        require(VipDestroyVi(vi), "VipDestroyVi");
    }
    const VIP_VI_HANDLE live = end.create_vi();
    for (const VIP_VI_HANDLE vi : dead) {
        VIP_DESCRIPTOR* d = nullptr;
        EXPECT_NE(vi, live);
        CONFORM(VIP_INVALID_PARAMETER, kNone, VipRecvDone(vi, &d));
        CONFORM(VIP_INVALID_PARAMETER, kNone, VipDestroyVi(vi));
    }
}

}  // namespace
}  // namespace viaduct::conformance
