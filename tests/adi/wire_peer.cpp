// SPDX-License-Identifier: BSD-2-Clause
#include "wire_peer.hpp"

#include <algorithm>
#include <cstring>

#include "mpi-adi/transport/via/device.hpp"

namespace viaduct::adi_test {
namespace {

using via::PacketType;
using Kind = WirePacket::Kind;

constexpr std::pair<Kind, PacketType> kTypes[] = {
    {Kind::eager, PacketType::eager_start},       {Kind::first, PacketType::eager_first},
    {Kind::next, PacketType::eager_next},         {Kind::request, PacketType::long_request},
    {Kind::reply, PacketType::long_reply},        {Kind::data, PacketType::r3_next},
    {Kind::written, PacketType::rput_finish},     {Kind::read, PacketType::rget_finish},
    {Kind::taken_back, PacketType::cancel_reply}, {Kind::noop, PacketType::noop},
    {Kind::closing, PacketType::closing},
};

PacketType type_of(Kind kind) {
    for (const auto& [known, type] : kTypes) {
        if (known == kind) return type;
    }
    return PacketType{200};
}

Kind kind_of(PacketType type) {
    for (const auto& [kind, known] : kTypes) {
        if (known == type) return kind;
    }
    return Kind::unknown;
}

void fill_envelope(via::Envelope& envelope, Engine& e, const WirePacket& p) {
    envelope.context = e.comm()->c_sndctxt;
    envelope.tag = static_cast<uint32_t>(p.tag);
    envelope.src_lrank = static_cast<uint32_t>(e.rank());
    envelope.data_length = p.length;
    envelope.sreq = p.request;
}

template <class Packet>
Packet& at(Bytes& bytes) {
    return *reinterpret_cast<Packet*>(bytes.data());
}

Bytes written_out(Engine& e, const WirePacket& p) {
    const PacketType type = type_of(p.kind);
    Bytes bytes(std::max(via::least_length(type), sizeof(via::Header)) + 64, 0);
    size_t length = via::least_length(type);
    switch (p.kind) {
        case Kind::eager: {
            auto& start = at<via::EagerStart>(bytes);
            start.context = e.comm()->c_sndctxt;
            start.tag = static_cast<uint32_t>(p.tag);
            start.src_lrank = static_cast<uint32_t>(e.rank());
            length += p.here;
            break;
        }
        case Kind::first:
            fill_envelope(at<via::EagerFirst>(bytes).envelope, e, p);
            at<via::EagerFirst>(bytes).bytes_in_this_packet = p.claimed;
            length += p.here;
            break;
        case Kind::next:
            at<via::EagerNext>(bytes).packet_no = p.number;
            length += p.here;
            break;
        case Kind::request: {
            auto& request = at<via::LongRequest>(bytes);
            fill_envelope(request.envelope, e, p);
            request.envelope.mode = MPIP_MODE_RTS;
            request.protocol = p.protocol;
            request.buffer_address = p.address;
            request.memhandle = p.handle;
            break;
        }
        case Kind::reply: {
            auto& reply = at<via::LongReply>(bytes);
            reply.sreq = reply.rreq = p.request;
            reply.length = p.length;
            reply.first = p.first;
            reply.pieces = p.pieces;
            reply.protocol = p.protocol;
            reply.buffer_address = p.address;
            reply.memhandle = p.handle;
            break;
        }
        case Kind::data:
            at<via::R3Next>(bytes).rreq = p.request;
            at<via::R3Next>(bytes).packet_no = p.number;
            length += p.here;
            break;
        case Kind::written:
        case Kind::read:
            at<via::Finish>(bytes).request = p.request;
            break;
        case Kind::taken_back:
            at<via::Cancel>(bytes).sreq = p.request;
            at<via::Cancel>(bytes).taken_back = 1;
            break;
        default:
            length = sizeof(via::Header);
            break;
    }
    auto& header = at<via::Header>(bytes);
    header.type = type;
    header.sequence = static_cast<uint16_t>(p.sequence);
    header.credit = p.credit;
    header.noops = p.noops;
    header.view = 255;
    header.source = p.source;
    bytes.resize(length - p.cut);
    return bytes;
}

struct Sending {
    alignas(64) VIP_DESCRIPTOR desc;
    unsigned char bytes[via::VBUF_BUFFER_SIZE];
};

}  // namespace

void put_on_wire(Engine& e, int other, const WirePacket& packet) {
    const Bytes bytes = written_out(e, packet);
    auto* s = new Sending();  // until the process ends
    std::memcpy(s->bytes, bytes.data(), bytes.size());
    VIP_MEM_ATTRIBUTES attributes = {via::viadev.ptag, VIP_FALSE, VIP_FALSE};
    VIP_MEM_HANDLE handle;
    CHECK(VipRegisterMem(via::viadev.nic, s, sizeof *s, &attributes, &handle) == VIP_SUCCESS);
    s->desc.CS.SegCount = 1;
    s->desc.CS.Length = static_cast<VIP_UINT32>(bytes.size());
    s->desc.DS[0].Local.Data.Address = s->bytes;
    s->desc.DS[0].Local.Handle = handle;
    s->desc.DS[0].Local.Length = s->desc.CS.Length;
    CHECK(VipPostSend(via::connection_of(e.process(other))->vi, &s->desc, handle) == VIP_SUCCESS);
}

bool take_off_wire(Engine& e, int other, WireNews* news) {
    VIP_DESCRIPTOR* desc = nullptr;
    if (VipRecvDone(via::connection_of(e.process(other))->vi, &desc) != VIP_SUCCESS) return false;
    const auto* header = static_cast<const via::Header*>(desc->DS[0].Local.Data.Address);
    *news = {};
    news->kind = kind_of(header->type);
    news->sequence = header->sequence;
    news->credit = header->credit;
    news->bytes = desc->CS.Length;
    if (news->kind == Kind::eager) {
        const auto* start = reinterpret_cast<const via::EagerStart*>(header);
        news->tag = static_cast<int>(start->tag);
        news->length = desc->CS.Length - sizeof *start;
    } else if (news->kind == Kind::request) {
        const auto* request = reinterpret_cast<const via::LongRequest*>(header);
        news->tag = static_cast<int>(request->envelope.tag);
        news->length = request->envelope.data_length;
        news->announced = request->descriptor_required;
        news->request = request->envelope.sreq;
        news->protocol = request->protocol;
        news->address = request->buffer_address;
        news->handle = request->memhandle;
    } else if (news->kind == Kind::reply) {
        const auto* reply = reinterpret_cast<const via::LongReply*>(header);
        news->length = reply->length;
        news->request = reply->sreq;
        news->receive = reply->rreq;
        news->protocol = reply->protocol;
        news->address = reply->buffer_address;
        news->handle = reply->memhandle;
    }
    return true;
}

size_t data_per_packet() { return via::kR3Data; }

}  // namespace viaduct::adi_test
