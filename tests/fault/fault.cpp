// SPDX-License-Identifier: BSD-2-Clause
#include "fault.hpp"

#include <algorithm>
#include <cstring>

namespace viaduct::fault {

// ------------------------------------------------------------------------------------------------------
// meeting

namespace {

/// Both ends of a peer connection: the victim's discriminator is the agreed one, the other one ends in 'p'.
void connect_as_peer(End& end, const std::string& host, const std::string& own, const std::string& other) {
    Address local(end.nic, own);
    Address remote(host, other);
    VIP_VI_ATTRIBUTES attributes{};
    require(VipConnectPeerRequest(end.vi, local.get(), remote.get(), conformance::kLongWait),
            "VipConnectPeerRequest");
    require(VipConnectPeerWait(end.vi, &attributes), "VipConnectPeerWait");
}

void connect_as_client(End& end, const std::string& host, const std::string& discriminator) {
    Address local(end.nic, discriminator);
    Address remote(host, discriminator);
    VIP_VI_ATTRIBUTES attributes{};
    require(conformance::request(end.vi, local.get(), remote.get(), conformance::kLongWait, &attributes),
            "VipConnectRequest");
}

std::string host_of(End& end) { return Address(end.nic, "").host_bytes(); }

}  // namespace

std::unique_ptr<End> meet_parent(const Arguments& arguments) {
    EndOptions chosen;
    chosen.level = static_cast<VIP_RELIABILITY_LEVEL>(std::stoi(arguments.at(0)));
    chosen.memory = std::stoul(arguments.at(4));
    auto end = std::make_unique<End>(chosen);
    const std::string host = conformance::from_hex(arguments.at(1));
    const std::string discriminator = conformance::from_hex(arguments.at(2));
    switch (static_cast<Way>(std::stoi(arguments.at(3)))) {
        case Way::kVictimAsks:
            connect_as_client(*end, host, discriminator);
            break;
        case Way::kVictimWaits:
            conformance::accept_from(*end, discriminator);
            break;
        case Way::kPeers:
            connect_as_peer(*end, host, discriminator, discriminator + "p");
            break;
    }
    return end;
}

Meeting::Meeting(const std::string& role, const EndOptions& chosen, const Invitation& invitation)
    : end(std::make_unique<End>(chosen)) {
    for (int i = 0; i < invitation.receives; ++i) posted.push_back(end->receive(kMessageBytes));
    const std::string discriminator = conformance::unique_discriminator();
    Arguments arguments = conformance::client_arguments(*end, discriminator);
    arguments.push_back(std::to_string(static_cast<int>(invitation.way)));
    arguments.push_back(std::to_string(invitation.memory));
    arguments.insert(arguments.end(), invitation.more.begin(), invitation.more.end());
    child = std::make_unique<Child>(role, arguments);
    switch (invitation.way) {
        case Way::kVictimAsks:
            conformance::accept_from(*end, discriminator);
            break;
        case Way::kVictimWaits:
            connect_as_client(*end, host_of(*end), discriminator);
            break;
        case Way::kPeers:
            connect_as_peer(*end, host_of(*end), discriminator + "p", discriminator);
            break;
    }
    const std::string said = child->line();
    require(said == "ready", "the role " + role + " said \"" + said + "\" instead of \"ready\"");
}

void Meeting::kill() {
    killed = Stopwatch();
    child->kill();
}

void send_window(End& end, const Window& window) {
    char* message = end.buffer(sizeof window);
    std::memcpy(message, &window, sizeof window);
    end.send(message, sizeof window);
    require(conformance::reap_send(end.vi).code, "VipSendDone");
}

Window receive_window(End& end, VIP_DESCRIPTOR* posted) {
    const Outcome got = conformance::reap_recv(end.vi);
    require(got.code, "VipRecvDone");
    require(got.descriptor == posted, "another receive completed first");
    Window window;
    std::memcpy(&window, reinterpret_cast<void*>(posted->DS[0].Local.Data.AddressBits), sizeof window);
    return window;
}

void exchange_one(End& from, End& to) {
    static std::atomic<int> number{0};
    const std::string text = "message " + std::to_string(++number);
    VIP_DESCRIPTOR* receive = to.receive(64);
    char* data = from.buffer(64);
    std::copy(text.begin(), text.end(), data);
    from.send(data, text.size());
    const Outcome got = conformance::reap_recv(to.vi);
    require(got.code, "VipRecvDone");
    require(got.descriptor == receive && got.descriptor->CS.Length == text.size(), "another message");
    require(std::memcmp(reinterpret_cast<void*>(receive->DS[0].Local.Data.AddressBits), text.data(),
                        text.size()) == 0,
            "a damaged message");
    require(conformance::reap_send(from.vi).code, "VipSendDone");
}

// --------------------------------------------------------------------------------------------------
// expectations

void expect_new_connections_work() {
    Meeting meeting("echo");
    VIP_DESCRIPTOR* sent = meeting.end->send(meeting.end->buffer(64, 'e'), 64);
    const Outcome done = conformance::reap_send(meeting.end->vi);
    EXPECT_EQ(VIP_SUCCESS, done.code);
    EXPECT_EQ(sent, done.descriptor);
    const Outcome answer = conformance::reap_recv(meeting.end->vi);
    EXPECT_EQ(VIP_SUCCESS, answer.code);
    ASSERT_EQ(meeting.posted.front(), answer.descriptor);
    EXPECT_EQ(64u, answer.descriptor->CS.Length);
    EXPECT_EQ('e', *static_cast<char*>(answer.descriptor->DS[0].Local.Data.Address));
}

void expect_survivor_is_told(Meeting& meeting) {
    End& end = *meeting.end;
    EXPECT_TRUE(end.reaches(VIP_STATE_ERROR, kOneSecond));
    EXPECT_TRUE(end.errors.wait_for(VIP_ERROR_CONN_LOST, kOneSecond));
    EXPECT_TRUE(conformance::in_time(meeting.killed, kOneSecondMeasured));
    const auto error = end.errors.first(VIP_ERROR_CONN_LOST);
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(end.vi, error->ViHandle);
    EXPECT_EQ(end.nic, error->NicHandle);
    EXPECT_EQ(VIP_RESOURCE_VI, error->ResourceCode);
    EXPECT_EQ(VIP_SUCCESS, VipDisconnect(end.vi));
    EXPECT_EQ(VIP_STATE_IDLE, End::state_of(end.vi));
    EXPECT_EQ(1u, end.errors.size()) << "one error, told once";
}

void expect_flushed(End& end, const std::vector<VIP_DESCRIPTOR*>& posted, std::size_t first) {
    for (std::size_t i = first; i < posted.size(); ++i) {
        VIP_DESCRIPTOR* done = nullptr;
        ASSERT_EQ(VIP_DESCRIPTOR_ERROR, VipRecvDone(end.vi, &done)) << "receive " << i;
        ASSERT_EQ(posted[i], done) << "receive " << i;
        EXPECT_NE(0u, done->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR) << "receive " << i;
        EXPECT_NE(0u, done->CS.Status & VIP_STATUS_DONE) << "receive " << i;
        EXPECT_EQ(static_cast<VIP_UINT32>(VIP_STATUS_OP_RECEIVE), done->CS.Status & VIP_STATUS_OP_MASK);
    }
    VIP_DESCRIPTOR* nothing = end.descriptor();
    EXPECT_EQ(VIP_DESCRIPTOR_ERROR, VipRecvDone(end.vi, &nothing));
    EXPECT_EQ(nullptr, nothing);
}

std::size_t expect_sends_end(End& end, const std::vector<VIP_DESCRIPTOR*>& sends, VIP_UINT32 operation) {
    constexpr VIP_UINT32 kExplained = VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_TRANSPORT_ERROR;
    std::size_t good = 0;
    bool broken = false;
    for (std::size_t i = 0; i < sends.size(); ++i) {
        const Outcome done = conformance::reap_send(end.vi, kOneSecond);
        EXPECT_EQ(sends[i], done.descriptor) << "send " << i;
        if (done.descriptor == nullptr) break;
        EXPECT_NE(0u, done.status() & VIP_STATUS_DONE) << "send " << i;
        EXPECT_EQ(operation, done.operation()) << "send " << i;
        EXPECT_EQ(0u, done.errors() & ~kExplained) << "send " << i;
        EXPECT_EQ(done.errors() == 0 ? VIP_SUCCESS : VIP_DESCRIPTOR_ERROR, done.code) << "send " << i;
        if (done.errors() == 0) {
            EXPECT_FALSE(broken) << "send " << i << " succeeds after one that did not";
            ++good;
        } else {
            broken = true;
        }
    }
    return good;
}

}  // namespace viaduct::fault
