// SPDX-License-Identifier: BSD-2-Clause
// Protection tags: spec/calls 4.5 and the NULL rules V1-V4 of spec/compat 8.
#include <set>

#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

/// One message from client to server, data pieces given.
Outcome transfer(Pair& pair, const Piece& from, const Piece& to) {
    VIP_DESCRIPTOR* receive = pair.server.descriptor();
    fill(receive, VIP_CONTROL_OP_SENDRECV, {to});
    require(pair.server.post_recv(receive), "VipPostRecv");
    VIP_DESCRIPTOR* send = pair.client.descriptor();
    fill(send, VIP_CONTROL_OP_SENDRECV, {from});
    require(pair.client.post_send(send), "VipPostSend");
    const Outcome sent = reap_send(pair.client.vi);
    if (sent.code == VIP_SUCCESS) {
        EXPECT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
    }
    return sent;
}

/// A region of an end's memory registered once more with other attributes.
Piece registered(End& end, VIP_MEM_ATTRIBUTES* attributes) {
    char* data = end.buffer(64, 'd');
    VIP_MEM_HANDLE handle = 0;
    require(VipRegisterMem(end.nic, data, 64, attributes, &handle), "VipRegisterMem");
    return {data, handle, 64};
}

TEST(Ptag, EachTagIsDifferentAndDiesOnce) {
    End end;
    std::set<VIP_PROTECTION_HANDLE> tags;
    for (int i = 0; i < 20; ++i) {
        VIP_PROTECTION_HANDLE tag = nullptr;
        ASSERT_TRUE(CONFORM(VIP_SUCCESS, kNone, VipCreatePtag(end.nic, &tag)));
        EXPECT_NE(tag, nullptr) << "NULL is the default tag";
        EXPECT_TRUE(tags.insert(tag).second);
    }
    for (const VIP_PROTECTION_HANDLE tag : tags) {
        CONFORM(VIP_SUCCESS, kNone, VipDestroyPtag(end.nic, tag));
        CONFORM(VIP_INVALID_PARAMETER, kNone, VipDestroyPtag(end.nic, tag));
    }
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipCreatePtag(end.nic, nullptr));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipDestroyPtag(end.nic, nullptr));
}

TEST(Ptag, ATagInUseByAViCannotBeDestroyed) {
    End end;
    VIP_PROTECTION_HANDLE tag = nullptr;
    require(VipCreatePtag(end.nic, &tag), "VipCreatePtag");
    VIP_VI_ATTRIBUTES attributes = end.vi_attributes();
    attributes.Ptag = tag;
    VIP_VI_HANDLE vi = nullptr;
    require(VipCreateVi(end.nic, &attributes, nullptr, nullptr, &vi), "VipCreateVi");
    CONFORM(VIP_ERROR_RESOURCE, kNone, VipDestroyPtag(end.nic, tag));
    require(VipDestroyVi(vi), "VipDestroyVi");
    CONFORM(VIP_SUCCESS, kNone, VipDestroyPtag(end.nic, tag));
}

TEST(Ptag, ATagAViGaveUpCanBeDestroyed) {
    End end;
    VIP_PROTECTION_HANDLE tag = nullptr;
    require(VipCreatePtag(end.nic, &tag), "VipCreatePtag");
    VIP_VI_ATTRIBUTES attributes = end.vi_attributes();
    attributes.Ptag = tag;
    require(VipSetViAttributes(end.vi, &attributes), "VipSetViAttributes");
    CONFORM(VIP_ERROR_RESOURCE, kNone, VipDestroyPtag(end.nic, tag));
    attributes.Ptag = end.ptag;
    require(VipSetViAttributes(end.vi, &attributes), "VipSetViAttributes");
    CONFORM(VIP_SUCCESS, kNone, VipDestroyPtag(end.nic, tag));
}

TEST(Ptag, ATagInUseByARegionCannotBeDestroyed) {
    End end;
    VIP_PROTECTION_HANDLE tag = nullptr;
    require(VipCreatePtag(end.nic, &tag), "VipCreatePtag");
    VIP_MEM_ATTRIBUTES attributes{tag, VIP_FALSE, VIP_FALSE};
    const Piece one = registered(end, &attributes);
    const Piece two = registered(end, &attributes);
    CONFORM(VIP_ERROR_RESOURCE, kNone, VipDestroyPtag(end.nic, tag));
    require(VipDeregisterMem(end.nic, one.address, one.handle), "VipDeregisterMem");
    CONFORM(VIP_ERROR_RESOURCE, kNone, VipDestroyPtag(end.nic, tag));
    attributes.Ptag = end.ptag;
    require(VipSetMemAttributes(end.nic, two.address, two.handle, &attributes), "VipSetMemAttributes");
    CONFORM(VIP_SUCCESS, kNone, VipDestroyPtag(end.nic, tag));
}

TEST(Ptag, AViWithTheDefaultTagWorksOnMemoryWithARealOne) {
    EndOptions chosen;
    chosen.null_ptag = true;
    Pair pair(chosen);
    VIP_MEM_ATTRIBUTES tagged{pair.client.ptag, VIP_FALSE, VIP_FALSE};
    VIP_MEM_ATTRIBUTES tagged_there{pair.server.ptag, VIP_FALSE, VIP_FALSE};
    EXPECT_EQ(transfer(pair, registered(pair.client, &tagged), registered(pair.server, &tagged_there)).code,
              VIP_SUCCESS);
}

TEST(Ptag, AViWithARealTagWorksOnMemoryWithoutAttributes) {
    Pair pair;
    EXPECT_EQ(transfer(pair, registered(pair.client, nullptr), registered(pair.server, nullptr)).code, VIP_SUCCESS);
}

TEST(Ptag, TwoDifferentRealTagsClash) {
    Pair pair;
    VIP_PROTECTION_HANDLE other = nullptr;
    require(VipCreatePtag(pair.client.nic, &other), "VipCreatePtag");
    VIP_MEM_ATTRIBUTES attributes{other, VIP_FALSE, VIP_FALSE};
    const Piece there = registered(pair.server, nullptr);
    const Outcome sent = transfer(pair, registered(pair.client, &attributes), there);
    EXPECT_EQ(sent.code, VIP_DESCRIPTOR_ERROR);
    EXPECT_TRUE(sent.errors() & VIP_STATUS_PROTECTION_ERROR);
}

TEST(Ptag, ARegionThatIsGivenTheRightTagBecomesUsable) {
    Pair pair;
    VIP_PROTECTION_HANDLE other = nullptr;
    require(VipCreatePtag(pair.client.nic, &other), "VipCreatePtag");
    VIP_MEM_ATTRIBUTES attributes{other, VIP_FALSE, VIP_FALSE};
    const Piece piece = registered(pair.client, &attributes);
    attributes.Ptag = pair.client.ptag;
    require(VipSetMemAttributes(pair.client.nic, piece.address, piece.handle, &attributes), "VipSetMemAttributes");
    EXPECT_EQ(transfer(pair, piece, registered(pair.server, nullptr)).code, VIP_SUCCESS);
}

TEST(Ptag, AllKindsOfDescriptorMemoryWithACompatibleTagAreAccepted) {
    Pair pair;
    VIP_DESCRIPTOR* d = pair.client.descriptor();
    char* data = pair.client.buffer(16);
    VIP_MEM_HANDLE untagged = 0;
    require(VipRegisterMem(pair.client.nic, d, sizeof *d, nullptr, &untagged), "VipRegisterMem");
    pair.server.receive(16);
    fill(d, VIP_CONTROL_OP_SENDRECV, {pair.client.piece(data, 16)});
    CONFORM(VIP_SUCCESS, kConnected, VipPostSend(pair.client.vi, d, untagged));
    EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    EXPECT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
}

}  // namespace
}  // namespace viaduct::conformance
