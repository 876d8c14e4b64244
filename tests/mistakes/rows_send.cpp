// SPDX-License-Identifier: BSD-2-Clause
// Descriptors and messages: posts, lengths, memory of either end, receives.
#include <atomic>
#include <chrono>
#include <thread>

#include "../eventually.hpp"
#include "ends.hpp"
#include "rows.hpp"

namespace mistakes {

namespace {

constexpr VIP_UINT32 kShort = 64;

VIP_DESCRIPTOR* plain(const Memory& m, VIP_UINT32 length = kShort, unsigned number = 0) {
    return fill(m.descriptor(number), m.data(), m.handle, length);
}

std::string post_null() {
    const Pair pair;
    VipPostSend(pair.a, nullptr, pair.mine.handle);
    return last(pair.a);
}

std::string post_dead() {
    const Memory memory(nic());
    const VIP_VI_HANDLE vi = vi_of(nic(), attributes());
    must(VipDestroyVi(vi), "VipDestroyVi");
    VipPostRecv(vi, plain(memory), memory.handle);
    return last(vi);
}

std::string misaligned() {
    const Pair pair;
    auto* odd = reinterpret_cast<VIP_DESCRIPTOR*>(pair.mine.bytes + 16);
    VipPostSend(pair.a, fill(odd, pair.mine.data(), pair.mine.handle, kShort), pair.mine.handle);
    return pair.of_both();
}

std::string unregistered_descriptor() {
    alignas(VIP_DESCRIPTOR_ALIGNMENT) static VIP_DESCRIPTOR descriptor;
    const Pair pair;
    VipPostSend(pair.a, fill(&descriptor, pair.mine.data(), pair.mine.handle, kShort), pair.mine.handle);
    return pair.of_sender();
}

std::string overrun() {
    const VIP_VI_HANDLE vi = vi_of(nic(), attributes());
    const Memory memory(nic());
    VIP_NIC_ATTRIBUTES info;
    must(VipQueryNic(nic(), &info), "VipQueryNic");
    for (VIP_ULONG i = 0; i <= info.MaxDescriptorsPerQueue; ++i) VipPostRecv(vi, plain(memory), memory.handle);
    std::string text = last(vi);
    VipDisconnect(vi);
    VipDestroyVi(vi);
    return text;
}

std::string unconnected() {
    const VIP_VI_HANDLE vi = vi_of(nic(), attributes());
    const Memory memory(nic());
    VipPostSend(vi, plain(memory), memory.handle);
    std::string text = last(vi);
    VipDisconnect(vi);
    VipDestroyVi(vi);
    return text;
}

std::string empty_queue() {
    const Pair pair;
    VIP_DESCRIPTOR* d;
    VipRecvDone(pair.b, &d);  // a poll of an empty queue is no failure
    VipSendDone(pair.b, &d);
    if (const std::string told = last(pair.b); told.find("empty") != std::string::npos) return told;
    VipRecvWait(pair.b, kSoon, &d);
    return last(pair.b);
}

std::string nothing_comes() {
    const Pair pair;
    pair.receive(plain(pair.theirs), pair.theirs.handle);
    VIP_DESCRIPTOR* d;
    VipRecvWait(pair.b, 50, &d);
    return last(pair.b);
}

std::string two_waiters() {
    const Pair pair;
    pair.receive(plain(pair.theirs), pair.theirs.handle);
    std::string text;
    std::atomic<bool> told = false;
    std::thread first([&] {
        VIP_DESCRIPTOR* d;
        while (!told)
            if (VipRecvWait(pair.b, 50, &d) == VIP_ERROR_RESOURCE) std::this_thread::yield();
    });
    const auto is_told = [&] {
        VIP_DESCRIPTOR* d;
        if (VipRecvWait(pair.b, 0, &d) == VIP_ERROR_RESOURCE) text = last(pair.b);
        return text.find("another thread") != std::string::npos;
    };
    viaduct::tests::eventually("the second thread is refused", is_told);
    told = true;
    first.join();
    // How often it was told is a matter of which of the two came first.
    if (text.ends_with(" times)")) text.resize(text.rfind(" ("));
    return text;
}

// A send that is wrong in itself; what both ends say.
template <class Spoil>
std::string wrong_send(Spoil&& spoil) {
    const Pair pair;
    pair.receive(plain(pair.theirs), pair.theirs.handle);
    VIP_DESCRIPTOR* d = plain(pair.mine);
    spoil(d);
    pair.send(d, pair.mine.handle);
    return pair.of_both();
}

std::string wrong_sum() {
    return wrong_send([](VIP_DESCRIPTOR* d) { d->CS.Length = 100; });
}

std::string no_handle() {
    return wrong_send([](VIP_DESCRIPTOR* d) { d->DS[0].Local.Handle = 0; });
}

std::string past_region() {
    return wrong_send([](VIP_DESCRIPTOR* d) { d->CS.Length = d->DS[0].Local.Length = 60000; });
}

std::string many_segments() {
    return wrong_send([](VIP_DESCRIPTOR* d) { d->CS.SegCount = 9999; });
}

std::string uncleared_control() {
    return wrong_send([](VIP_DESCRIPTOR* d) { d->CS.Control = 0x0100; });
}

std::string long_message() {
    VIP_VI_ATTRIBUTES a = attributes();
    a.MaxTransferSize = 32;
    const Pair pair(a, a);
    pair.receive(plain(pair.theirs, 32), pair.theirs.handle);
    pair.send(plain(pair.mine, 33), pair.mine.handle);
    return pair.of_sender();
}

std::string other_tag() {
    VIP_VI_ATTRIBUTES a = attributes();
    VIP_PROTECTION_HANDLE other;
    must(VipCreatePtag(nic(), &a.Ptag), "VipCreatePtag");
    must(VipCreatePtag(nic(), &other), "VipCreatePtag");
    std::string text;
    {
        const Pair pair(a);
        const Memory foreign(nic(), other);
        pair.receive(plain(pair.theirs), pair.theirs.handle);
        pair.send(fill(pair.mine.descriptor(), foreign.data(), foreign.handle, kShort), pair.mine.handle);
        text = pair.of_both();
    }
    VipDestroyPtag(nic(), a.Ptag);
    VipDestroyPtag(nic(), other);
    return text;
}

std::string short_receive() {
    const Pair pair;
    pair.receive(plain(pair.theirs, 32), pair.theirs.handle);
    pair.send(plain(pair.mine, 512), pair.mine.handle);
    return pair.of_both();
}

std::string no_receive() {
    const Pair pair;
    pair.send(plain(pair.mine), pair.mine.handle);
    return pair.of_both();
}

std::string unregistered_receive() {
    static unsigned char elsewhere[256];
    const Pair pair;
    pair.receive(fill(pair.theirs.descriptor(), elsewhere, pair.theirs.handle, sizeof elsewhere), pair.theirs.handle);
    pair.send(plain(pair.mine), pair.mine.handle);
    return pair.of_both();
}

std::string receive_that_sends() {
    const Pair pair;
    pair.receive(
        fill(pair.theirs.descriptor(), pair.theirs.data(), pair.theirs.handle, kShort, VIP_CONTROL_OP_RDMAWRITE),
        pair.theirs.handle);
    pair.send(plain(pair.mine), pair.mine.handle);
    return pair.of_both();
}

std::string unreliable_loss() {
    const Pair pair(attributes(VIP_SERVICE_UNRELIABLE), attributes(VIP_SERVICE_UNRELIABLE));
    VIP_DESCRIPTOR* none;
    VipRecvDone(pair.b, &none);  // that the queue is empty is told once
    pair.send(plain(pair.mine), pair.mine.handle);
    const auto is_lost = [&] { return last(pair.b).find("VIP_ERROR_RECVQ_EMPTY") != std::string::npos; };
    viaduct::tests::eventually("the loss is reported", is_lost);
    return last(pair.b);
}

std::string full_queue() {
    VIP_CQ_HANDLE cq;
    must(VipCreateCQ(nic(), 1, &cq), "VipCreateCQ");
    std::string text;
    {
        const Pair pair;
        VIP_VI_HANDLE vi;
        VIP_VI_ATTRIBUTES a = attributes();
        must(VipCreateVi(nic(), &a, cq, cq, &vi), "VipCreateVi");
        const Memory memory(nic());
        for (unsigned i = 0; i < 3; ++i) VipPostSend(vi, plain(memory, kShort, i), memory.handle);
        text = last(vi);
        VipCQDone(cq, &vi, nullptr);
        VipDisconnect(vi);
        text += " || " + last(cq);
        VIP_BOOLEAN receive;
        VIP_VI_HANDLE of;
        while (VipCQDone(cq, &of, &receive) == VIP_SUCCESS) {
        }
        VipDestroyVi(vi);
    }
    VipDestroyCQ(cq);
    return text;
}

}  // namespace

Rows rows_send() {
    return {
        {"post.null", "VipPostSend without a descriptor", post_null, {"VipPostSend", "DescriptorPtr is NULL"}},
        {"post.dead", "VipPostRecv on a VI that was destroyed", post_dead, {"VipPostRecv", "ViHandle", "destroyed"}},
        {"post.misaligned",
         "a descriptor that is not aligned to 64 bytes",
         misaligned,
         {"VIP_ERROR_POST_DESC", "not a multiple of 64", "VIP_DESCRIPTOR_ALIGNMENT", "the peer says"}},
        {"post.unregistered",
         "a descriptor in memory that is not registered",
         unregistered_descriptor,
         {"VIP_ERROR_POST_DESC", "descriptor at", "register the memory"}},
        {"post.overrun",
         "more receives posted than the queue holds",
         overrun,
         {"VIP_ERROR_VI_OVERRUN", "the queue holds", "MaxDescriptorsPerQueue"}},
        {"send.unconnected",
         "VipPostSend before the VI is connected",
         unconnected,
         {"the VI is Idle", "VipConnectRequest"}},
        {"wait.empty",
         "VipRecvWait with nothing posted",
         empty_queue,
         {"VipRecvWait: ", "receive queue is empty", "VipPostRecv first"}},
        {"wait.nothing",
         "VipRecvWait, and no message comes",
         nothing_comes,
         {"VIP_TIMEOUT", "1 descriptors of the receive queue wait", "Connected", "vipstat"}},
        {"wait.two", "two threads wait on one queue", two_waiters, {"another thread waits"}},
        {"send.sum",
         "CS.Length is not the sum of the segments",
         wrong_sum,
         {"VIP_ERROR_CONN_LOST", "CS.Length is 100, the data segments hold 64", "the peer says"}},
        {"send.handle",
         "a segment whose memory handle was not set",
         no_handle,
         {"segment 1 (DS[0])", "memory handle 0 is not registered", "VipRegisterMem", "the peer says"}},
        {"send.outside",
         "a segment that ends behind its region",
         past_region,
         {"length 60000 is outside memory handle", "register all of the buffer", "the peer says"}},
        {"send.segments", "SegCount was not set", many_segments, {"SegCount is 9999", "MaxSegmentsPerDesc"}},
        {"send.control", "a descriptor that was not cleared", uncleared_control, {"Control 0x100", "reserved bits"}},
        {"send.size",
         "a message longer than MaxTransferSize of the VI",
         long_message,
         {"length 33 is more than MaxTransferSize 32"}},
        {"send.ptag",
         "a segment in memory with another protection tag",
         other_tag,
         {"has protection tag", "the VI has", "one protection tag", "the peer says"}},
        {"receive.short",
         "a receive that is shorter than the message",
         short_receive,
         {"a message of 512 bytes met a receive of 32 bytes", "the peer says", "post longer receives"}},
        {"receive.none",
         "a message before a receive is posted",
         no_receive,
         {"VIP_ERROR_RECVQ_EMPTY", "a message of 64 bytes met no posted receive", "post receives before"}},
        {"receive.outside",
         "a receive in memory that is not registered",
         unregistered_receive,
         {"receive: segment 1", "is outside memory handle", "the peer says"}},
        {"receive.control",
         "a receive with the control word of an RDMA write",
         receive_that_sends,
         {"receive: Control 0x1", "the peer says"}},
        {"receive.lost",
         "a message without a receive on an Unreliable VI",
         unreliable_loss,
         {"VIP_ERROR_RECVQ_EMPTY", "the connection stays"}},
        {"cq.null", "VipCQDone without a place for the result", full_queue, {"VipCQDone", "RecvQueue is NULL"}},
    };
}

}  // namespace mistakes
