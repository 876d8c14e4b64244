// SPDX-License-Identifier: BSD-2-Clause
// What VIPL's words mean in verbs: statuses, addresses, ports, private data, control QP messages, limits of a
// device. No device, no library call.
#include "providers/verbs/mapping.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

#include "providers/verbs/control_qp.hpp"
#include "providers/verbs/private_data.hpp"

namespace viaduct::verbs {
namespace {

constexpr uint16_t kUnreliable = VIP_SERVICE_UNRELIABLE;
constexpr uint16_t kDelivery = VIP_SERVICE_RELIABLE_DELIVERY;
constexpr uint16_t kReception = VIP_SERVICE_RELIABLE_RECEPTION;

EndAddress end_of(const std::string& discriminator, uint8_t host = 1) {
    EndAddress end;
    end.host.bytes[5] = host;
    end.discriminator_len = static_cast<uint16_t>(discriminator.size());
    std::memcpy(end.discriminator, discriminator.data(), discriminator.size());
    return end;
}

// ---- completion statuses

struct SendRow {
    ibv_wc_status status;
    uint32_t at_reception;
    uint32_t at_delivery;
    bool descriptor;
    bool told;  // the peer is told
};

class SendStatus : public testing::TestWithParam<SendRow> {};

TEST_P(SendStatus, IsToldAsTheTableSays) {
    const SendRow row = GetParam();
    const Outcome reception = map_send(row.status, kReception, false);
    const Outcome delivery = map_send(row.status, kDelivery, false);
    EXPECT_EQ(reception.bits, row.at_reception);
    EXPECT_EQ(delivery.bits, row.at_delivery);
    EXPECT_EQ(reception.descriptor, row.descriptor);
    EXPECT_EQ(delivery.descriptor, row.descriptor);
    EXPECT_EQ(reception.no_receive || reception.refused, row.told);
    // A break that no descriptor explains is reported.
    EXPECT_TRUE(delivery.bits != 0 || delivery.report);
    EXPECT_TRUE(reception.bits != 0 || reception.report);
}

INSTANTIATE_TEST_SUITE_P(
    EveryStatus, SendStatus,
    testing::Values(
        SendRow{IBV_WC_LOC_LEN_ERR, VIP_STATUS_LENGTH_ERROR, VIP_STATUS_LENGTH_ERROR, true, false},
        SendRow{IBV_WC_LOC_QP_OP_ERR, VIP_STATUS_FORMAT_ERROR, VIP_STATUS_FORMAT_ERROR, true, false},
        SendRow{IBV_WC_LOC_EEC_OP_ERR, VIP_STATUS_FORMAT_ERROR, VIP_STATUS_FORMAT_ERROR, true, false},
        SendRow{IBV_WC_MW_BIND_ERR, VIP_STATUS_FORMAT_ERROR, VIP_STATUS_FORMAT_ERROR, true, false},
        SendRow{IBV_WC_LOC_PROT_ERR, VIP_STATUS_PROTECTION_ERROR, VIP_STATUS_PROTECTION_ERROR, true, false},
        SendRow{IBV_WC_REM_ACCESS_ERR, VIP_STATUS_RDMA_PROT_ERROR, 0, true, true},
        SendRow{IBV_WC_REM_INV_REQ_ERR, VIP_STATUS_REMOTE_DESC_ERROR, 0, true, false},
        SendRow{IBV_WC_REM_OP_ERR, VIP_STATUS_REMOTE_DESC_ERROR, 0, true, false},
        SendRow{IBV_WC_REM_INV_RD_REQ_ERR, VIP_STATUS_REMOTE_DESC_ERROR, 0, true, false},
        SendRow{IBV_WC_RNR_RETRY_EXC_ERR, VIP_STATUS_REMOTE_DESC_ERROR, 0, true, true},
        SendRow{IBV_WC_WR_FLUSH_ERR, 0, 0, false, false}));

TEST(SendStatus, TroubleOfTheNetworkIsATransportErrorAndReported) {
    for (const ibv_wc_status status :
         {IBV_WC_RETRY_EXC_ERR, IBV_WC_REM_ABORT_ERR, IBV_WC_BAD_RESP_ERR, IBV_WC_RESP_TIMEOUT_ERR,
          IBV_WC_LOC_ACCESS_ERR, IBV_WC_LOC_RDD_VIOL_ERR, IBV_WC_INV_EECN_ERR, IBV_WC_INV_EEC_STATE_ERR,
          IBV_WC_FATAL_ERR, IBV_WC_GENERAL_ERR}) {
        for (const uint16_t level : {kUnreliable, kDelivery, kReception}) {
            const Outcome v = map_send(status, level, false);
            EXPECT_EQ(v.bits, static_cast<uint32_t>(VIP_STATUS_TRANSPORT_ERROR)) << status;
            EXPECT_TRUE(v.report) << status;
        }
    }
}

TEST(SendStatus, AtUnreliableOnlyTheMessageIsLost) {
    for (const ibv_wc_status status :
         {IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_OP_ERR, IBV_WC_RNR_RETRY_EXC_ERR}) {
        const Outcome v = map_send(status, kUnreliable, false);
        EXPECT_TRUE(v.descriptor && v.goes_on) << status;
        EXPECT_EQ(v.bits, 0u) << "the sender is not told";
        EXPECT_FALSE(v.report) << status;
        EXPECT_FALSE(map_send(status, kDelivery, false).goes_on) << status;
        EXPECT_FALSE(map_send(status, kReception, false).goes_on) << status;
    }
    EXPECT_EQ(map_send(IBV_WC_LOC_PROT_ERR, kUnreliable, false).bits,
              static_cast<uint32_t>(VIP_STATUS_PROTECTION_ERROR));
    EXPECT_TRUE(map_send(IBV_WC_LOC_PROT_ERR, kUnreliable, false).goes_on);
    EXPECT_FALSE(map_send(IBV_WC_RETRY_EXC_ERR, kUnreliable, false).goes_on) << "no host answers there";
    EXPECT_FALSE(map_send(IBV_WC_SUCCESS, kUnreliable, false).goes_on);
}

TEST(ReceiveStatus, AtUnreliableTheConnectionGoesOn) {
    for (const ibv_wc_status status : {IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_PROT_ERR}) {
        EXPECT_TRUE(map_receive(status, kUnreliable).goes_on) << status;
        EXPECT_FALSE(map_receive(status, kDelivery).goes_on) << status;
    }
    EXPECT_FALSE(map_receive(IBV_WC_GENERAL_ERR, kUnreliable).goes_on);
    EXPECT_FALSE(map_receive(IBV_WC_WR_FLUSH_ERR, kUnreliable).descriptor);
}

TEST(SendStatus, ARefusedReadIsToldAtBothReliableLevels) {
    for (const uint16_t level : {kDelivery, kReception}) {
        const Outcome v = map_send(IBV_WC_REM_ACCESS_ERR, level, true);
        EXPECT_EQ(v.bits, static_cast<uint32_t>(VIP_STATUS_RDMA_PROT_ERROR));
        EXPECT_FALSE(v.report) << "the descriptor has said it";
    }
}

// Nothing has come: a read or an atomic operation that the other end has not done must not look like one.
TEST(SendStatus, WhatWasNotFetchedIsToldAtBothReliableLevels) {
    for (const ibv_wc_status status : {IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_INV_RD_REQ_ERR})
        for (const uint16_t level : {kDelivery, kReception}) {
            const Outcome v = map_send(status, level, true);
            EXPECT_TRUE(v.descriptor) << status;
            EXPECT_EQ(v.bits, static_cast<uint32_t>(VIP_STATUS_RDMA_PROT_ERROR)) << status;
            EXPECT_TRUE(v.refused) << "the owner is told";
            EXPECT_FALSE(v.report) << status;
        }
}

// The owner has refused nothing, so no end is told of a refusal.
TEST(SendStatus, WhatTheOtherEndCouldNotFetchIsATransportErrorAndReported) {
    for (const ibv_wc_status status : {IBV_WC_REM_OP_ERR, IBV_WC_RNR_RETRY_EXC_ERR})
        for (const uint16_t level : {kDelivery, kReception}) {
            const Outcome v = map_send(status, level, true);
            EXPECT_TRUE(v.descriptor) << status;
            EXPECT_EQ(v.bits, static_cast<uint32_t>(VIP_STATUS_TRANSPORT_ERROR)) << status;
            EXPECT_FALSE(v.refused || v.no_receive) << status;
            EXPECT_TRUE(v.report) << status;
        }
}

TEST(SendStatus, SuccessIsSuccess) {
    const Outcome v = map_send(IBV_WC_SUCCESS, kReception, false);
    EXPECT_TRUE(v.descriptor);
    EXPECT_EQ(v.bits, 0u);
    EXPECT_FALSE(v.report);
}

TEST(ReceiveStatus, IsToldAsTheTableSays) {
    const struct {
        ibv_wc_status status;
        uint32_t bits;
    } rows[] = {{IBV_WC_LOC_LEN_ERR, VIP_STATUS_LENGTH_ERROR},
                {IBV_WC_REM_INV_REQ_ERR, VIP_STATUS_LENGTH_ERROR},
                {IBV_WC_LOC_QP_OP_ERR, VIP_STATUS_LENGTH_ERROR},
                {IBV_WC_LOC_EEC_OP_ERR, VIP_STATUS_LENGTH_ERROR},
                {IBV_WC_LOC_PROT_ERR, VIP_STATUS_PROTECTION_ERROR},
                {IBV_WC_LOC_ACCESS_ERR, VIP_STATUS_PROTECTION_ERROR},
                {IBV_WC_REM_ABORT_ERR, VIP_STATUS_PARTIAL_ERROR | VIP_STATUS_TRANSPORT_ERROR},
                {IBV_WC_GENERAL_ERR, VIP_STATUS_TRANSPORT_ERROR},
                {IBV_WC_FATAL_ERR, VIP_STATUS_TRANSPORT_ERROR},
                {IBV_WC_SUCCESS, 0}};
    for (const auto& row : rows) {
        const Outcome v = map_receive(row.status, kDelivery);
        EXPECT_EQ(v.bits, row.bits) << row.status;
        EXPECT_TRUE(v.descriptor) << row.status;
    }
    EXPECT_FALSE(map_receive(IBV_WC_WR_FLUSH_ERR, kDelivery).descriptor) << "left to the user agent's flush";
}

// ---- addresses and ports

TEST(VerbsAddress, HoldsTheIpAddress) {
    in_addr ip{};
    ::inet_pton(AF_INET, "192.0.2.17", &ip);
    const NicAddress address = address_of(ip);
    EXPECT_EQ(address.bytes[0] & 0x03, 0x02) << "locally administered, one station";
    in_addr back{};
    ASSERT_TRUE(ip_of(address, &back));
    EXPECT_EQ(back.s_addr, ip.s_addr);
    NicAddress other = address;
    other.bytes[1] = 0;
    EXPECT_FALSE(ip_of(other, &back)) << "an address of another kind of NIC";
}

TEST(VerbsPort, IsTheSameForAllAndSpreads) {
    const NicSettings settings;
    // These two are in docs/verbs.md for other implementations to compare with.
    EXPECT_EQ(port_of(settings, end_of("")), 20480 + 0x811C9DC5u % kPortRange);
    EXPECT_EQ(port_of(settings, end_of("a")), 20480 + 0xE40C292Cu % kPortRange);
    EXPECT_EQ(port_of(settings, end_of("x", 1)), port_of(settings, end_of("x", 2)))
        << "the host is where one listens, not what for";
    std::set<uint16_t> ports;
    for (int i = 0; i < 256; ++i) ports.insert(port_of(settings, end_of("rank " + std::to_string(i))));
    EXPECT_GT(ports.size(), 220u);
    for (const uint16_t port : ports) EXPECT_LT(port, 20480 + kPortRange);
}

// ---- private data

PrivateData some_private_data() {
    PrivateData private_data;
    private_data.kind = PrivateDataKind::peer;
    private_data.traits.reliability = kReception;
    private_data.traits.max_transfer = 1u << 30;
    private_data.traits.rdma_write = 1;
    private_data.control_qp = 0xABCDEF;
    private_data.nonce = 0x12345678;
    private_data.local = end_of("0123456789abcdef", 9);
    private_data.remote = end_of("x", 0);
    return private_data;
}

TEST(PrivateDataTest, ARequestComesBackAsItWas) {
    const PrivateData sent = some_private_data();
    uint8_t data[56] = {};
    uint8_t exact[kRequestBytes];
    write_request(sent, exact);
    std::memcpy(data, exact, sizeof exact);  // rdma_cm pads to the full length
    PrivateData got;
    ASSERT_EQ(read_request(data, sizeof data, &got), Status::ok);
    EXPECT_EQ(got.kind, PrivateDataKind::peer);
    EXPECT_EQ(got.control_qp, sent.control_qp);
    EXPECT_EQ(got.nonce, sent.nonce);
    EXPECT_EQ(got.local, sent.local);
    EXPECT_TRUE(got.remote.same_discriminator(sent.remote));
    EXPECT_EQ(got.traits.reliability, kReception);
    EXPECT_EQ(got.traits.max_transfer, 1u << 30);
    EXPECT_EQ(got.traits.rdma_write, 1);
    EXPECT_EQ(got.traits.rdma_read, 0);
}

TEST(PrivateDataTest, AnAcceptComesBackAsItWas) {
    PrivateData sent = some_private_data();
    sent.traits.rdma_read = 1;
    uint8_t data[kAcceptBytes];
    write_accept(sent, data);
    PrivateData got;
    ASSERT_EQ(read_accept(data, sizeof data, &got), Status::ok);
    EXPECT_EQ(got.control_qp, sent.control_qp);
    EXPECT_EQ(got.traits.rdma_read, 1);
    EXPECT_EQ(read_request(data, sizeof data, &got), Status::invalid) << "too short for a request";
}

TEST(PrivateDataTest, WhatIsNotOursIsRefused) {
    uint8_t good[kRequestBytes];
    write_request(some_private_data(), good);
    PrivateData got;
    EXPECT_EQ(read_request(nullptr, 0, &got), Status::invalid);
    EXPECT_EQ(read_request(good, kRequestBytes - 1, &got), Status::invalid);
    const struct {
        size_t at;
        uint8_t value;
        Status answer;
    } rows[] = {{0, 0, Status::invalid},        {1, 2, Status::version},   {2, 3, Status::not_supported},
                {2, 77, Status::not_supported}, {3, 3, Status::invalid},   {8, 17, Status::invalid},
                {22, 17, Status::invalid},      {22, 255, Status::invalid}};
    for (const auto& row : rows) {
        uint8_t bad[kRequestBytes];
        std::memcpy(bad, good, sizeof bad);
        bad[row.at] = row.value;
        EXPECT_EQ(read_request(bad, sizeof bad, &got), row.answer) << "byte " << row.at;
    }
}

TEST(PrivateDataTest, RefusalsHaveReasons) {
    uint8_t data[kRejectBytes];
    write_refusal(Refusal::rejected, data);
    Refusal why = Refusal::no_match;
    ASSERT_TRUE(read_refusal(data, sizeof data, &why));
    EXPECT_EQ(why, Refusal::rejected);
    data[1] = 9;
    ASSERT_TRUE(read_refusal(data, sizeof data, &why));
    EXPECT_EQ(why, Refusal::version);
    const uint8_t zeros[148] = {};
    EXPECT_FALSE(read_refusal(zeros, sizeof zeros, &why)) << "no program listens there";
}

TEST(ControlMessage, ComesBackAsItWasAndIsChecked) {
    Message sent;
    sent.kind = MessageKind::answer;
    sent.handle = 0x80000001;
    sent.address = 0x123456789ABCDEF0;
    sent.length = uint64_t{1} << 40;
    sent.key = 77;
    sent.flags = 3;
    std::byte bytes[kMessageBytes];
    write_message(sent, bytes);
    Message got;
    ASSERT_TRUE(read_message(bytes, sizeof bytes, &got));
    EXPECT_EQ(got.handle, sent.handle);
    EXPECT_EQ(got.address, sent.address);
    EXPECT_EQ(got.length, sent.length);
    EXPECT_EQ(got.key, sent.key);
    EXPECT_EQ(got.flags, sent.flags);
    EXPECT_FALSE(read_message(bytes, sizeof bytes - 1, &got));
    const int beyond = static_cast<int>(MessageKind::alive) + 1;
    for (const int kind : {0, beyond, 255}) {
        bytes[0] = static_cast<std::byte>(kind);
        EXPECT_FALSE(read_message(bytes, sizeof bytes, &got)) << kind;
    }
}

// ---- limits

PortFacts some_port() {
    PortFacts facts;
    std::strcpy(facts.device, "rxe0");
    std::strcpy(facts.interface, "veth0");
    ::inet_pton(AF_INET, "192.0.2.1", &facts.ip);
    facts.transport = IBV_TRANSPORT_IB;
    ibv_device_attr& d = facts.device_attr;
    d.max_mr_size = UINT64_MAX;
    d.max_mr = 1 << 20;
    d.max_qp = 1 << 16;
    d.max_qp_wr = 1 << 14;
    d.max_sge = 32;
    d.max_sge_rd = 32;
    d.max_cq = 1 << 16;
    d.max_cqe = 32767;
    d.max_qp_rd_atom = 128;
    d.max_qp_init_rd_atom = 128;
    d.atomic_cap = IBV_ATOMIC_HCA;
    facts.port_attr.state = IBV_PORT_ACTIVE;
    facts.port_attr.max_msg_sz = 1u << 23;
    facts.port_attr.active_mtu = IBV_MTU_4096;
    facts.port_attr.link_layer = IBV_LINK_LAYER_ETHERNET;
    return facts;
}

TEST(VerbsLimits, AreTheDevicesOwn) {
    NicInfo nic;
    Rejection why;
    ASSERT_TRUE(describe_port(some_port(), NicSettings(), 1, &nic, &why));
    EXPECT_STREQ(nic.name, "verbs1");
    EXPECT_STREQ(nic.description, "rxe0 port 1, RoCE, 192.0.2.1 on veth0");
    PortFacts known = some_port();
    ASSERT_EQ(::inet_pton(AF_INET6, "::ffff:192.0.2.1", known.gid.raw), 1);
    EXPECT_TRUE(is_gid_of(known.gid, known.ip));
    NicInfo with_gid;
    ASSERT_TRUE(describe_port(known, NicSettings(), 1, &with_gid, &why));
    EXPECT_STREQ(with_gid.description, "rxe0 port 1, RoCE, 192.0.2.1 on veth0, GID ::ffff:192.0.2.1");
    ++known.gid.raw[15];
    EXPECT_FALSE(is_gid_of(known.gid, known.ip));
    EXPECT_EQ(nic.max_transfer, 1u << 23);
    EXPECT_EQ(nic.native_mtu, 4096u);
    EXPECT_EQ(nic.max_segments, 16u);
    EXPECT_EQ(nic.max_cq_entries, 32767u);
    EXPECT_EQ(nic.link_up, 1u);
    EXPECT_EQ(nic.reliability_mask, kUnreliable | kDelivery | kReception);
    EXPECT_EQ(nic.rdma_read_mask, kDelivery | kReception);
    EXPECT_EQ(nic.capabilities & (kCapAtomics | kCapAtomicsGlobal), kCapAtomics) << "of the device alone";
    EXPECT_EQ(atomic_widths(nic), 8u);
    EXPECT_EQ(nic.capabilities & kCapLocalOnly, 0u);
    known.device_attr.atomic_cap = IBV_ATOMIC_GLOB;
    ASSERT_TRUE(describe_port(known, NicSettings(), 1, &nic, &why));
    EXPECT_NE(nic.capabilities & kCapAtomicsGlobal, 0u) << "beside processors";
    known.device_attr.max_qp_init_rd_atom = 0;
    ASSERT_TRUE(describe_port(known, NicSettings(), 1, &nic, &why));
    EXPECT_EQ(atomic_widths(nic), 0u) << "there is nothing to answer them with";
}

TEST(VerbsLimits, SayWhatADeviceCannotDo) {
    PortFacts facts = some_port();
    facts.transport = IBV_TRANSPORT_IWARP;
    facts.device_attr.max_qp_rd_atom = 0;
    facts.device_attr.atomic_cap = IBV_ATOMIC_NONE;
    facts.device_attr.max_sge = 4;
    facts.device_attr.max_qp = 100;
    facts.port_attr.state = IBV_PORT_DOWN;
    NicInfo nic;
    Rejection why;
    ASSERT_TRUE(describe_port(facts, NicSettings(), 0, &nic, &why));
    EXPECT_EQ(nic.reliability_mask, kDelivery | kReception) << "iWARP has no unreliable connections";
    EXPECT_EQ(nic.rdma_read_mask, 0);
    EXPECT_EQ(nic.get.max_bytes, 0u);
    EXPECT_EQ(nic.atomic.max_bytes, 0u);
    EXPECT_EQ(nic.capabilities & (kCapAtomics | kCapRdmaRead), 0u);
    EXPECT_EQ(atomic_widths(nic), 0u);
    EXPECT_EQ(nic.max_segments, 4u);
    EXPECT_EQ(nic.max_vi, 50u) << "two queue pairs each";
    EXPECT_EQ(nic.link_up, 0u);
}

TEST(VerbsLimits, UnusableDevicesComeWithAReasonAndACure) {
    NicInfo nic;
    Rejection why;
    PortFacts small = some_port();
    small.port_attr.max_msg_sz = 4096;
    EXPECT_FALSE(describe_port(small, NicSettings(), 0, &nic, &why));
    EXPECT_STREQ(why.name, "rxe0/1");
    EXPECT_NE(std::string(why.cure), "");
    PortFacts locked = some_port();
    locked.memlock = 64 << 10;
    EXPECT_FALSE(describe_port(locked, NicSettings(), 0, &nic, &why));
    EXPECT_NE(std::string(why.reason).find("64 KiB"), std::string::npos);
    EXPECT_NE(std::string(why.cure).find("ulimit -l"), std::string::npos);
}

TEST(VerbsTraits, LevelAndSizeMustAgree) {
    ViTraits a, b;
    a.reliability = b.reliability = kDelivery;
    a.max_transfer = b.max_transfer = 65536;
    a.rdma_write = 1;
    EXPECT_EQ(compare(a, b), Status::ok);
    b.max_transfer = 65537;
    EXPECT_EQ(compare(a, b), Status::mismatch_mtu);
    b.reliability = kReception;
    EXPECT_EQ(compare(a, b), Status::mismatch_level);
}

}  // namespace
}  // namespace viaduct::verbs
