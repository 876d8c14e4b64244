// SPDX-License-Identifier: BSD-2-Clause
// Creating and destroying VIs and the state table of spec/states 3 with its flush rules.
#include <cstring>
#include <thread>

#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

struct Snapshot {
    VIP_VI_STATE state = VIP_STATE_ERROR;
    VIP_VI_ATTRIBUTES attributes{};
    VIP_BOOLEAN send_empty = 77;
    VIP_BOOLEAN recv_empty = 77;
};

Snapshot snapshot(VIP_VI_HANDLE vi) {
    Snapshot s;
    require(VipQueryVi(vi, &s.state, &s.attributes, &s.send_empty, &s.recv_empty), "VipQueryVi");
    return s;
}

void expect_flushed(const Outcome& outcome, const VIP_DESCRIPTOR* expected) {
    EXPECT_EQ(outcome.code, VIP_DESCRIPTOR_ERROR);
    ASSERT_EQ(outcome.descriptor, expected);
    EXPECT_TRUE(outcome.status() & VIP_STATUS_DONE);
    EXPECT_TRUE(outcome.status() & VIP_STATUS_DESC_FLUSHED_ERROR);
}

// ------------------------------------------------------------------------------------------------------ create

TEST(ViCreate, ANewViIsIdleEmptyAndHasTheAttributesAskedFor) {
    End end;
    VIP_VI_ATTRIBUTES wanted = end.vi_attributes();
    wanted.MaxTransferSize = 4096;
    wanted.EnableRdmaWrite = VIP_FALSE;
    VIP_VI_HANDLE vi = nullptr;
    ASSERT_TRUE(CONFORM(VIP_SUCCESS, kNone, VipCreateVi(end.nic, &wanted, nullptr, nullptr, &vi)));
    const Snapshot s = snapshot(vi);
    EXPECT_EQ(s.state, VIP_STATE_IDLE);
    EXPECT_EQ(s.send_empty, VIP_TRUE);
    EXPECT_EQ(s.recv_empty, VIP_TRUE);
    EXPECT_EQ(s.attributes.ReliabilityLevel, wanted.ReliabilityLevel);
    EXPECT_EQ(s.attributes.MaxTransferSize, wanted.MaxTransferSize);
    EXPECT_EQ(s.attributes.Ptag, wanted.Ptag);
    EXPECT_EQ(s.attributes.QoS, wanted.QoS);
    EXPECT_FALSE(s.attributes.EnableRdmaWrite);
    EXPECT_EQ(!s.attributes.EnableRdmaRead, !wanted.EnableRdmaRead);
    CONFORM(VIP_SUCCESS, kIdle, VipDestroyVi(vi));
}

TEST(ViCreate, NullArgumentsAreRefused) {
    End end;
    VIP_VI_ATTRIBUTES attributes = end.vi_attributes();
    VIP_VI_HANDLE vi = nullptr;
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipCreateVi(end.nic, nullptr, nullptr, nullptr, &vi));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipCreateVi(end.nic, &attributes, nullptr, nullptr, nullptr));
}

TEST(ViCreate, ExactlyOneSupportedReliabilityLevelIsNeeded) {
    End end;
    for (const int level : {0, 3, 5, 6, 7, 8, VIP_SERVICE_ACK, VIP_SERVICE_DFC, 0xFFFF}) {
        VIP_VI_ATTRIBUTES attributes = end.vi_attributes();
        attributes.ReliabilityLevel = static_cast<VIP_RELIABILITY_LEVEL>(level);
        attributes.EnableRdmaRead = VIP_FALSE;
        VIP_VI_HANDLE vi = nullptr;
        CONFORM(VIP_INVALID_RELIABILITY_LEVEL, kNone, VipCreateVi(end.nic, &attributes, nullptr, nullptr, &vi));
        CONFORM(VIP_INVALID_RELIABILITY_LEVEL, kIdle, VipSetViAttributes(end.vi, &attributes));
    }
}

TEST(ViCreate, TheTransferSizeIsBetweenOneByteAndTheNicsMaximum) {
    End end;
    for (const VIP_ULONG size : {VIP_ULONG{0}, end.limits.MaxTransferSize + 1, ~VIP_ULONG{0}}) {
        VIP_VI_ATTRIBUTES attributes = end.vi_attributes();
        attributes.MaxTransferSize = size;
        VIP_VI_HANDLE vi = nullptr;
        CONFORM(VIP_INVALID_MTU, kNone, VipCreateVi(end.nic, &attributes, nullptr, nullptr, &vi));
        CONFORM(VIP_INVALID_MTU, kIdle, VipSetViAttributes(end.vi, &attributes));
    }
    for (const VIP_ULONG size : {VIP_ULONG{1}, end.limits.MaxTransferSize}) {
        VIP_VI_ATTRIBUTES attributes = end.vi_attributes();
        attributes.MaxTransferSize = size;
        CONFORM(VIP_SUCCESS, kIdle, VipSetViAttributes(end.vi, &attributes));
    }
}

TEST(ViCreate, AQualityOfServiceThatIsNotOfferedIsRefused) {
    End end;
    VIP_VI_ATTRIBUTES attributes = end.vi_attributes();
    int something = 0;
    attributes.QoS = &something;
    VIP_VI_HANDLE vi = nullptr;
    const VIP_RETURN created = VipCreateVi(end.nic, &attributes, nullptr, nullptr, &vi);
    if (created == VIP_SUCCESS) {
        // Contents are undefined by 1.0: a NIC may take any; then Accept compares them (connect_wait_test).
        cannot_show("VipCreateVi", VIP_INVALID_QOS, VS::kNone, "the NIC takes every QoS");
        cannot_show("VipSetViAttributes", VIP_INVALID_QOS, VS::kIdle, "the NIC takes every QoS");
        VipDestroyVi(vi);
        return;
    }
    CONFORM_RESULT("VipCreateVi", VIP_INVALID_QOS, VS::kNone, created);
    CONFORM(VIP_INVALID_QOS, kIdle, VipSetViAttributes(end.vi, &attributes));
}

TEST(ViCreate, RdmaReadIsRefusedWhereTheLevelHasNone) {
    EndOptions chosen;
    chosen.level = VIP_SERVICE_UNRELIABLE;
    End end(chosen);
    VIP_VI_ATTRIBUTES attributes = end.vi_attributes();
    attributes.EnableRdmaRead = VIP_TRUE;
    VIP_VI_HANDLE vi = nullptr;
    CONFORM(VIP_INVALID_RDMAREAD, kNone, VipCreateVi(end.nic, &attributes, nullptr, nullptr, &vi));
    CONFORM(VIP_INVALID_RDMAREAD, kIdle, VipSetViAttributes(end.vi, &attributes));
}

TEST(ViCreate, ANullTagIsTheDefaultTag) {
    End end;
    VIP_VI_ATTRIBUTES attributes = end.vi_attributes();
    attributes.Ptag = nullptr;
    VIP_VI_HANDLE vi = nullptr;
    ASSERT_TRUE(CONFORM(VIP_SUCCESS, kNone, VipCreateVi(end.nic, &attributes, nullptr, nullptr, &vi)));
    EXPECT_EQ(snapshot(vi).attributes.Ptag, nullptr);
    CONFORM(VIP_SUCCESS, kIdle, VipDestroyVi(vi));
}

TEST(ViSetAttributes, ReplacesAllOrNothing) {
    End end;
    const VIP_VI_ATTRIBUTES before = snapshot(end.vi).attributes;
    VIP_VI_ATTRIBUTES wrong = before;
    wrong.MaxTransferSize = 512;
    wrong.EnableRdmaWrite = VIP_FALSE;
    wrong.Ptag = &wrong;
    CONFORM(VIP_INVALID_PTAG, kIdle, VipSetViAttributes(end.vi, &wrong));
    EXPECT_EQ(snapshot(end.vi).attributes.MaxTransferSize, before.MaxTransferSize);
    EXPECT_EQ(snapshot(end.vi).attributes.EnableRdmaWrite, before.EnableRdmaWrite);
    wrong.Ptag = before.Ptag;
    CONFORM(VIP_SUCCESS, kIdle, VipSetViAttributes(end.vi, &wrong));
    EXPECT_EQ(snapshot(end.vi).attributes.MaxTransferSize, 512u);
    EXPECT_FALSE(snapshot(end.vi).attributes.EnableRdmaWrite);
    CONFORM(VIP_INVALID_PARAMETER, kIdle, VipSetViAttributes(end.vi, nullptr));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipSetViAttributes(nullptr, &wrong));
}

// -------------------------------------------------------------------------------------------- in every state

using StateTable = InEachState;

TEST_P(StateTable, QueryTellsStateAndQueues) {
    StatedVi stated(GetParam());
    Snapshot s;
    CONFORM_RESULT("VipQueryVi", VIP_SUCCESS, GetParam(),
                   VipQueryVi(stated.vi(), &s.state, &s.attributes, &s.send_empty, &s.recv_empty));
    EXPECT_EQ(s.state, vip_state(GetParam()));
    EXPECT_EQ(s.send_empty, VIP_TRUE);
    EXPECT_EQ(s.recv_empty, VIP_TRUE);
    require(stated.end().post_recv(stated.end().message(stated.end().buffer(8), 8)), "VipPostRecv");
    EXPECT_EQ(snapshot(stated.vi()).recv_empty, VIP_FALSE) << "a completed descriptor counts until it is taken";
}

TEST_P(StateTable, NullPointersAreRefused) {
    StatedVi stated(GetParam());
    const VIP_VI_HANDLE vi = stated.vi();
    Snapshot s;
    const auto refused = [&](const char* call, VIP_RETURN result) {
        CONFORM_RESULT(call, VIP_INVALID_PARAMETER, GetParam(), result);
    };
    refused("VipQueryVi", VipQueryVi(vi, nullptr, &s.attributes, &s.send_empty, &s.recv_empty));
    refused("VipQueryVi", VipQueryVi(vi, &s.state, nullptr, &s.send_empty, &s.recv_empty));
    refused("VipQueryVi", VipQueryVi(vi, &s.state, &s.attributes, nullptr, &s.recv_empty));
    refused("VipQueryVi", VipQueryVi(vi, &s.state, &s.attributes, &s.send_empty, nullptr));
    refused("VipSendDone", VipSendDone(vi, nullptr));
    refused("VipRecvDone", VipRecvDone(vi, nullptr));
    refused("VipSendWait", VipSendWait(vi, 0, nullptr));
    refused("VipRecvWait", VipRecvWait(vi, 0, nullptr));
    refused("VipSendNotify", VipSendNotify(vi, nullptr, nullptr));
    refused("VipRecvNotify", VipRecvNotify(vi, nullptr, nullptr));
    refused("VipPostSend", VipPostSend(vi, nullptr, stated.end().region));
    refused("VipPostRecv", VipPostRecv(vi, nullptr, stated.end().region));
    EXPECT_EQ(stated.end().state(), vip_state(GetParam()));
}

TEST_P(StateTable, OnlyAnIdleViTakesNewAttributesAConnectionOrItsEnd) {
    StatedVi stated(GetParam());
    const VIP_VI_HANDLE vi = stated.vi();
    VIP_VI_ATTRIBUTES attributes = stated.end().vi_attributes();
    Address local(stated.end().nic, unique_discriminator());
    Address remote(stated.end().nic, unique_discriminator());
    const VS state = GetParam();
    if (state == VS::kIdle) {
        CONFORM(VIP_SUCCESS, kIdle, VipSetViAttributes(vi, &attributes));
        CONFORM(VIP_NO_MATCH, kIdle, VipConnectRequest(vi, local.get(), remote.get(), kLongWait, &attributes));
        CONFORM(VIP_SUCCESS, kIdle, VipDestroyVi(vi));
        stated.end().vi = nullptr;
        return;
    }
    CONFORM_RESULT("VipSetViAttributes", VIP_INVALID_STATE, state, VipSetViAttributes(vi, &attributes));
    CONFORM_RESULT("VipConnectRequest", VIP_INVALID_STATE, state,
                   VipConnectRequest(vi, local.get(), remote.get(), 100, &attributes));
    CONFORM_RESULT("VipConnectPeerRequest", VIP_INVALID_STATE, state,
                   VipConnectPeerRequest(vi, local.get(), remote.get(), 100));
    CONFORM_RESULT("VipDestroyVi", VIP_INVALID_STATE, state, VipDestroyVi(vi));
    End requester;
    PendingRequest pending = pending_request(requester, stated.end());
    CONFORM_RESULT("VipConnectAccept", VIP_INVALID_STATE, state, VipConnectAccept(pending.connection, vi));
    EXPECT_EQ(stated.end().state(), vip_state(state)) << "a refused call changes nothing";
    const VIP_VI_HANDLE spare = stated.end().create_vi();
    CONFORM(VIP_SUCCESS, kIdle, VipConnectAccept(pending.connection, spare));
    EXPECT_EQ(pending.requester.get(), VIP_SUCCESS);
    retire(spare);
}

TEST_P(StateTable, DisconnectMakesTheViIdleAndFlushesItsReceives) {
    StatedVi stated(GetParam());
    VIP_DESCRIPTOR* posted = stated.end().receive(64);
    CONFORM_RESULT("VipDisconnect", VIP_SUCCESS, GetParam(), VipDisconnect(stated.vi()));
    EXPECT_EQ(stated.end().state(), VIP_STATE_IDLE);
    expect_flushed(reap_recv(stated.vi(), Millis{0}), posted);
    CONFORM(VIP_SUCCESS, kIdle, VipDisconnect(stated.vi()));
    CONFORM(VIP_SUCCESS, kIdle, VipDestroyVi(stated.vi()));
    stated.end().vi = nullptr;
}

TEST_P(StateTable, ReceivesAreKeptOutsideErrorAndFlushedInIt) {
    StatedVi stated(GetParam());
    VIP_DESCRIPTOR* d = stated.end().message(stated.end().buffer(64), 64);
    CONFORM_RESULT("VipPostRecv", VIP_SUCCESS, GetParam(), stated.end().post_recv(d));
    if (GetParam() == VS::kError) {
        const Outcome outcome = reap_recv(stated.vi());
        expect_flushed(outcome, d);
        CONFORM_RESULT("VipRecvDone", VIP_DESCRIPTOR_ERROR, GetParam(), outcome.code);
        EXPECT_EQ(outcome.operation(), static_cast<VIP_UINT32>(VIP_STATUS_OP_RECEIVE));
        return;
    }
    VIP_DESCRIPTOR* got = d;
    CONFORM_RESULT("VipRecvDone", VIP_NOT_DONE, GetParam(), VipRecvDone(stated.vi(), &got));
    EXPECT_EQ(got, nullptr) << "NULL has to be stored when nothing is handed back (spec/compat T18)";
    got = d;
    CONFORM_RESULT("VipRecvWait", VIP_TIMEOUT, GetParam(), VipRecvWait(stated.vi(), 0, &got));
    EXPECT_EQ(got, nullptr);
}

// A Connected VI processes its sends: send_receive_test.
using StateTableOfSends = InEachState;

TEST_P(StateTableOfSends, SendsOutsideConnectedAreFlushedWithoutAStateChange) {
    StatedVi stated(GetParam());
    VIP_DESCRIPTOR* d = stated.end().message(stated.end().buffer(64), 64);
    CONFORM_RESULT("VipPostSend", VIP_SUCCESS, GetParam(), stated.end().post_send(d));
    const Outcome outcome = reap_send(stated.vi());
    expect_flushed(outcome, d);
    CONFORM_RESULT("VipSendDone", VIP_DESCRIPTOR_ERROR, GetParam(), outcome.code);
    EXPECT_EQ(outcome.operation(), static_cast<VIP_UINT32>(VIP_STATUS_OP_SEND));
    require(stated.end().post_send(d), "VipPostSend");
    VIP_DESCRIPTOR* got = nullptr;
    CONFORM_RESULT("VipSendWait", VIP_DESCRIPTOR_ERROR, GetParam(), VipSendWait(stated.vi(), kLongWait, &got));
    EXPECT_EQ(got, d);
    EXPECT_EQ(stated.end().state(), vip_state(GetParam()));
}

TEST_P(StateTable, EmptyQueuesAnswerDescriptorErrorAndNull) {
    StatedVi stated(GetParam());
    VIP_DESCRIPTOR marker{};
    const auto empty = [&](const char* call, const std::function<VIP_RETURN(VIP_DESCRIPTOR**)>& run) {
        VIP_DESCRIPTOR* got = &marker;
        CONFORM_RESULT(call, VIP_DESCRIPTOR_ERROR, GetParam(), run(&got));
        EXPECT_EQ(got, nullptr) << call;
    };
    empty("VipSendDone", [&](VIP_DESCRIPTOR** out) { return VipSendDone(stated.vi(), out); });
    empty("VipRecvDone", [&](VIP_DESCRIPTOR** out) { return VipRecvDone(stated.vi(), out); });
    empty("VipSendWait", [&](VIP_DESCRIPTOR** out) { return VipSendWait(stated.vi(), VIP_INFINITE, out); });
    empty("VipRecvWait", [&](VIP_DESCRIPTOR** out) { return VipRecvWait(stated.vi(), VIP_INFINITE, out); });
}

// In Connect-Pending there is a peer request: peer_test.
using StateTableOfPeers = InEachState;

TEST_P(StateTableOfPeers, PeerCallsWithoutAPendingPeerRequestAreInvalidState) {
    StatedVi stated(GetParam());
    VIP_VI_ATTRIBUTES attributes{};
    CONFORM_RESULT("VipConnectPeerDone", VIP_INVALID_STATE, GetParam(), VipConnectPeerDone(stated.vi(), &attributes));
    CONFORM_RESULT("VipConnectPeerWait", VIP_INVALID_STATE, GetParam(), VipConnectPeerWait(stated.vi(), &attributes));
}

INSTANTIATE_TEST_SUITE_P(EachState, StateTable, VIADUCT_ALL_STATES, state_test_name);
INSTANTIATE_TEST_SUITE_P(EachState, StateTableOfSends, testing::Values(VS::kIdle, VS::kPending, VS::kError),
                         state_test_name);
INSTANTIATE_TEST_SUITE_P(EachState, StateTableOfPeers, testing::Values(VS::kIdle, VS::kConnected, VS::kError),
                         state_test_name);

// ----------------------------------------------------------------------------------------------------- destroy

TEST(ViDestroy, AnUncompletedReceiveIsInTheWayAndAFlushedOneIsNot) {
    End end;
    end.receive(64);
    CONFORM(VIP_ERROR_RESOURCE, kIdle, VipDestroyVi(end.vi));
    CONFORM(VIP_SUCCESS, kIdle, VipDisconnect(end.vi));
    CONFORM(VIP_SUCCESS, kIdle, VipDestroyVi(end.vi));
    end.vi = nullptr;
}

TEST(ViDestroy, TwoHundredFlushedReceivesThatWereNotTakenAreDiscarded) {
    Pair pair;
    for (int i = 0; i < 200; ++i) {
        pair.client.receive(16);
    }
    CONFORM(VIP_SUCCESS, kConnected, VipDisconnect(pair.client.vi));
    CONFORM(VIP_SUCCESS, kIdle, VipDestroyVi(pair.client.vi));
    pair.client.vi = nullptr;
}

TEST(ViDestroy, TakesTheEntriesOfTheViOutOfItsCompletionQueue) {
    EndOptions chosen;
    chosen.send_cq = 64;
    chosen.one_cq = true;
    Pair pair(chosen, EndOptions{});
    End& end = pair.client;
    for (int i = 0; i < 10; ++i) {
        end.receive(16);
    }
    CONFORM(VIP_SUCCESS, kConnected, VipDisconnect(end.vi));
    CONFORM(VIP_SUCCESS, kIdle, VipDestroyVi(end.vi));
    end.vi = nullptr;
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN recv = VIP_FALSE;
    CONFORM(VIP_NOT_DONE, kNone, VipCQDone(end.send_cq, &vi, &recv));
    CONFORM(VIP_SUCCESS, kNone, VipDestroyCQ(end.send_cq));
}

TEST(ViDestroy, OtherVisKeepTheirEntriesInASharedCompletionQueue) {
    EndOptions chosen;
    chosen.recv_cq = 64;
    End end(chosen);
    const VIP_VI_HANDLE other = end.create_vi();
    VIP_DESCRIPTOR* kept[3];
    for (VIP_DESCRIPTOR*& d : kept) {
        end.receive(16);
        d = end.message(end.buffer(16), 16);
        require(VipPostRecv(other, d, end.region), "VipPostRecv");
    }
    VipDisconnect(end.vi);
    VipDisconnect(other);
    require(VipDestroyVi(end.vi), "VipDestroyVi");
    end.vi = nullptr;
    for (VIP_DESCRIPTOR* d : kept) {
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN recv = VIP_FALSE;
        ASSERT_TRUE(CONFORM(VIP_SUCCESS, kNone, VipCQDone(end.recv_cq, &vi, &recv)));
        EXPECT_EQ(vi, other);
        expect_flushed(reap_recv(vi, Millis{0}), d);
    }
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN recv = VIP_FALSE;
    CONFORM(VIP_NOT_DONE, kNone, VipCQDone(end.recv_cq, &vi, &recv));
    VipDestroyVi(other);
}

// ----------------------------------------------------------------------------------------------- flush and end

using FlushRules = AtEachLevel;

TEST_P(FlushRules, DisconnectFlushesInPostingOrder) {
    const Row row("2.3 DESC_FLUSHED_ERROR", GetParam());
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    End& end = pair.client;
    std::vector<VIP_DESCRIPTOR*> posted;
    posted.reserve(5);
    for (int i = 0; i < 5; ++i) {
        posted.push_back(end.receive(64));
    }
    pair.server.send(pair.server.buffer(8, 'x'), 8);
    ASSERT_EQ(reap_recv(end.vi).descriptor, posted[0]);
    CONFORM(VIP_SUCCESS, kConnected, VipDisconnect(end.vi));
    Outcome first = reap_recv(end.vi, Millis{0});
    for (std::size_t i = 1; i < posted.size(); ++i) {
        expect_flushed(first, posted[i]);
        EXPECT_EQ(first.operation(), static_cast<VIP_UINT32>(VIP_STATUS_OP_RECEIVE));
        first = reap_recv(end.vi, Millis{0});
    }
    EXPECT_EQ(first.descriptor, nullptr);
}

TEST_P(FlushRules, TheRemoteViGoesToErrorIsFlushedAndIsToldOnce) {
    const Row row("6.2 Remote VI disconnected", GetParam());
    const Row async_row("8 CONN_LOST", GetParam());
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    std::vector<VIP_DESCRIPTOR*> posted;
    posted.reserve(4);
    for (int i = 0; i < 4; ++i) {
        posted.push_back(pair.server.receive(64));
    }
    const Stopwatch start;
    CONFORM(VIP_SUCCESS, kConnected, VipDisconnect(pair.client.vi));
    // Nothing but VipQueryVi is called here: the state changes by itself (spec/compat Q12).
    EXPECT_TRUE(pair.server.reaches(VIP_STATE_ERROR, kOneSecond));
    for (VIP_DESCRIPTOR* d : posted) {
        expect_flushed(reap_recv(pair.server.vi, kOneSecond), d);
    }
    EXPECT_TRUE(pair.server.errors.wait_for(VIP_ERROR_CONN_LOST));
    EXPECT_TRUE(in_time(start, kOneSecond));
    const auto error = pair.server.errors.first(VIP_ERROR_CONN_LOST);
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->NicHandle, pair.server.nic);
    EXPECT_EQ(error->ViHandle, pair.server.vi);
    EXPECT_EQ(error->ResourceCode, VIP_RESOURCE_VI);
    EXPECT_EQ(pair.server.state(), VIP_STATE_ERROR) << "only VipDisconnect leads out of Error";
    CONFORM(VIP_SUCCESS, kError, VipDisconnect(pair.server.vi));
    EXPECT_EQ(pair.server.state(), VIP_STATE_IDLE);
    EXPECT_EQ(pair.server.errors.size(), 1u);
    EXPECT_EQ(pair.client.errors.size(), 0u) << "the end that disconnects is told nothing";
}

TEST_P(FlushRules, FinishedReceivesCanBeTakenAfterTheConnectionBroke) {
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    VIP_DESCRIPTOR* first = pair.server.receive(64);
    VIP_DESCRIPTOR* second = pair.server.receive(64);
    pair.client.send(pair.client.buffer(8, 'y'), 8);
    ASSERT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    require(VipDisconnect(pair.client.vi), "VipDisconnect");
    ASSERT_TRUE(pair.server.reaches(VIP_STATE_ERROR));
    VIP_DESCRIPTOR* got = nullptr;
    CONFORM(VIP_SUCCESS, kError, VipRecvDone(pair.server.vi, &got));
    EXPECT_EQ(got, first);
    CONFORM(VIP_SUCCESS, kError, VipDisconnect(pair.server.vi));
    CONFORM(VIP_DESCRIPTOR_ERROR, kIdle, VipRecvDone(pair.server.vi, &got));
    EXPECT_EQ(got, second);
}

TEST_P(FlushRules, FinishedReceivesCanBeTakenAfterTheOwnDisconnect) {
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    VIP_DESCRIPTOR* first = pair.server.receive(64);
    pair.client.send(pair.client.buffer(8, 'y'), 8);
    ASSERT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    // Only Reliable Reception says that the message is finished over there; otherwise it may still be under way.
    const bool finished = reception() || eventually(
                                             [&] {
                                                 VIP_DESCRIPTOR* none = nullptr;
                                                 VipSendDone(pair.server.vi, &none);
                                                 return peek_done(first);
                                             },
                                             kQuietTime);
    CONFORM(VIP_SUCCESS, kConnected, VipDisconnect(pair.server.vi));
    VIP_DESCRIPTOR* got = nullptr;
    const VIP_RETURN result = VipRecvDone(pair.server.vi, &got);
    EXPECT_EQ(got, first);
    if (finished) {
        CONFORM_RESULT("VipRecvDone", VIP_SUCCESS, VS::kIdle, result);
    }
}

INSTANTIATE_TEST_SUITE_P(EachLevel, FlushRules, VIADUCT_ALL_LEVELS, level_test_name);

TEST(Flush, EveryFlushedDescriptorIsOneCompletionQueueEntry) {
    EndOptions chosen;
    chosen.send_cq = 64;
    chosen.one_cq = true;
    Pair pair(chosen, EndOptions{});
    constexpr int kReceives = 7;
    for (int i = 0; i < kReceives; ++i) {
        pair.client.receive(16);
    }
    require(VipDisconnect(pair.server.vi), "VipDisconnect");
    ASSERT_TRUE(pair.client.reaches(VIP_STATE_ERROR));
    for (int i = 0; i < kReceives; ++i) {
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN recv = VIP_FALSE;
        ASSERT_TRUE(CONFORM(VIP_SUCCESS, kNone, VipCQWait(pair.client.send_cq, kLongWait, &vi, &recv)));
        EXPECT_EQ(vi, pair.client.vi);
        EXPECT_EQ(recv, VIP_TRUE);
        VIP_DESCRIPTOR* d = nullptr;
        CONFORM(VIP_DESCRIPTOR_ERROR, kError, VipRecvDone(vi, &d));
        EXPECT_NE(d, nullptr);
    }
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN recv = VIP_FALSE;
    CONFORM(VIP_NOT_DONE, kNone, VipCQDone(pair.client.send_cq, &vi, &recv));
}

TEST(End, BothSidesDisconnectTwiceAndBothSucceed) {
    Pair pair;
    CONFORM(VIP_SUCCESS, kConnected, VipDisconnect(pair.client.vi));
    ASSERT_TRUE(pair.server.reaches(VIP_STATE_ERROR));
    CONFORM(VIP_SUCCESS, kError, VipDisconnect(pair.server.vi));
    CONFORM(VIP_SUCCESS, kIdle, VipDisconnect(pair.server.vi));
    CONFORM(VIP_SUCCESS, kIdle, VipDisconnect(pair.client.vi));
}

TEST(End, BothSidesDisconnectAtOnce) {
    for (int i = 0; i < 10; ++i) {
        Pair pair;
        auto other = in_background([&] { return VipDisconnect(pair.server.vi); });
        EXPECT_EQ(VipDisconnect(pair.client.vi), VIP_SUCCESS);
        EXPECT_EQ(other.get(), VIP_SUCCESS);
        EXPECT_EQ(pair.client.state(), VIP_STATE_IDLE);
        EXPECT_EQ(pair.server.state(), VIP_STATE_IDLE);
    }
}

TEST(End, TheShutDownOrderOfTheIntelSampleWorks) {
    EndOptions chosen;
    chosen.send_cq = 64;
    chosen.one_cq = true;
    Pair pair(chosen);
    End& end = pair.client;
    for (int i = 0; i < 8; ++i) {
        end.receive(64);
        pair.server.receive(64);
    }
    for (int i = 0; i < 4; ++i) {
        end.send(end.buffer(16), 16);
    }
    require(VipDisconnect(pair.server.vi), "VipDisconnect");
    // The drain goes through the queues only: the CQ entries stay (spec/compat Q10).
    CONFORM_RESULT("VipDestroyVi", VIP_SUCCESS, VS::kIdle, retire(end.vi));
    end.vi = nullptr;
    CONFORM(VIP_SUCCESS, kNone, VipDestroyCQ(end.send_cq));
    CONFORM(VIP_SUCCESS, kNone, VipDeregisterMem(end.nic, end.memory, end.region));
    CONFORM(VIP_SUCCESS, kNone, VipDestroyPtag(end.nic, end.ptag));
    CONFORM(VIP_SUCCESS, kNone, VipCloseNic(end.nic));
    end.nic = nullptr;
}

TEST(End, AViCanBeConnectedAgainAfterDisconnect) {
    Pair pair;
    for (int round = 0; round < 5; ++round) {
        pair.server.receive(64);
        pair.client.send(pair.client.buffer(8), 8);
        EXPECT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
        EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
        require(VipDisconnect(round % 2 == 0 ? pair.client.vi : pair.server.vi), "VipDisconnect");
        require(VipDisconnect(round % 2 == 0 ? pair.server.vi : pair.client.vi), "VipDisconnect");
        connect(pair.client.nic, pair.client.vi, pair.server.nic, pair.server.vi);
    }
}

TEST(End, ABlockedReceiverWakesUpWhenItsOwnSideDisconnects) {
    Pair pair;
    VIP_DESCRIPTOR* posted = pair.client.receive(64);
    VIP_DESCRIPTOR* got = nullptr;
    auto waiter = in_background([&] { return VipRecvWait(pair.client.vi, VIP_INFINITE, &got); });
    EXPECT_FALSE(ready(waiter, kQuietTime));
    CONFORM(VIP_SUCCESS, kConnected, VipDisconnect(pair.client.vi));
    ASSERT_TRUE(ready(waiter));
    CONFORM_RESULT("VipRecvWait", VIP_DESCRIPTOR_ERROR, VS::kConnected, waiter.get());
    EXPECT_EQ(got, posted);
}

TEST(End, ABlockedReceiverWakesUpWhenTheOtherSideDisconnects) {
    Pair pair;
    VIP_DESCRIPTOR* posted = pair.client.receive(64);
    VIP_DESCRIPTOR* got = nullptr;
    auto waiter = in_background([&] { return VipRecvWait(pair.client.vi, VIP_INFINITE, &got); });
    EXPECT_FALSE(ready(waiter, kQuietTime));
    require(VipDisconnect(pair.server.vi), "VipDisconnect");
    ASSERT_TRUE(ready(waiter, kOneSecond));
    EXPECT_EQ(waiter.get(), VIP_DESCRIPTOR_ERROR);
    EXPECT_EQ(got, posted);
    EXPECT_TRUE(posted->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR);
}

TEST(End, NoByteChangesAfterDisconnectReturned) {
    constexpr std::size_t kBytes = 60000;
    for (int round = 0; round < 5; ++round) {
        Pair pair;
        char* window = pair.server.buffer(kBytes, 0, 64);
        char* data = pair.client.buffer(kBytes, 'w', 64);
        VIP_DESCRIPTOR* d = pair.client.descriptor();
        std::atomic<bool> stop{false};
        auto writer = in_background([&] {
            while (!stop) {
                fill(d, VIP_CONTROL_OP_RDMAWRITE, {pair.client.piece(data, kBytes)}, pair.server.target(window));
                pair.client.post_send(d);
                reap_send(pair.client.vi);
            }
        });
        EXPECT_TRUE(eventually([&] { return peek(&window[kBytes - 1]) == 'w'; }));
        require(VipDisconnect(pair.server.vi), "VipDisconnect");
        std::memset(window, 0, kBytes);
        EXPECT_TRUE(never([&] {
            return peek_count(window, kBytes, 0) != kBytes;
        })) << "a late write of the peer came through";
        stop = true;
        writer.get();
    }
}

}  // namespace
}  // namespace viaduct::conformance
