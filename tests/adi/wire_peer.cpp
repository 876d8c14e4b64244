// SPDX-License-Identifier: BSD-2-Clause
#include "wire_peer.hpp"

#include <algorithm>
#include <cstring>

#include "mpi-adi/transport/via/receive.hpp"
#include "mpi-adi/transport/via/transport.hpp"

namespace viaduct::adi_test {
namespace {

using via::PacketType;
using Kind = WirePacket::Kind;

constexpr std::pair<Kind, PacketType> kTypes[] = {
    {Kind::eager, PacketType::eager},       {Kind::first, PacketType::first},
    {Kind::next, PacketType::next},         {Kind::request, PacketType::request},
    {Kind::reply, PacketType::reply},        {Kind::data, PacketType::data},
    {Kind::written, PacketType::placed},     {Kind::read, PacketType::fetched},
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

void fill_envelope(via::Control& envelope, Engine& e, const WirePacket& p) {
    envelope.context = e.comm()->c_sndctxt;
    envelope.tag = static_cast<uint32_t>(p.tag);
    envelope.rank = static_cast<uint32_t>(e.rank());
    envelope.length = p.length;
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
            auto& start = at<via::Eager>(bytes);
            start.context = e.comm()->c_sndctxt;
            start.tag = static_cast<uint32_t>(p.tag);
            start.rank = static_cast<uint32_t>(e.rank());
            length += p.here;
            break;
        }
        case Kind::first:
            fill_envelope(at<via::Control>(bytes), e, p);
            at<via::Control>(bytes).announced = p.claimed;
            length += p.here;
            break;
        case Kind::next:
            at<via::Next>(bytes).number = p.number;
            length += p.here;
            break;
        case Kind::request:
        case Kind::reply: {
            auto& control = at<via::Control>(bytes);
            fill_envelope(control, e, p);
            control.rreq = p.request;
            // The way is a part of the flags; where the memory lies follows.
            if (p.handle != 0 || p.pieces != 0) {
                auto* memory = reinterpret_cast<protocol::WireMemory*>(bytes.data() + length);
                memory->address = p.address;
                memory->first = p.first;
                memory->pieces = p.pieces;
                memory->rows = memory->handles = 1;
                *reinterpret_cast<protocol::Le32*>(memory + 1) = p.handle;
                length += sizeof *memory + sizeof(protocol::Le32);
            }
            control.header.flags = static_cast<uint8_t>(p.kind == Kind::request ? p.protocol << 4 : p.protocol);
            break;
        }
        case Kind::data:
            at<via::Data>(bytes).rreq = p.request;
            at<via::Data>(bytes).at = p.number;
            length += p.here;
            break;
        case Kind::written:
        case Kind::read:
            at<via::Control>(bytes).rreq = at<via::Control>(bytes).sreq = p.request;
            at<via::Control>(bytes).length = p.length;
            break;
        case Kind::taken_back:
            at<via::Control>(bytes).sreq = p.request;
            break;
        default:
            length = sizeof(via::Header);
            break;
    }
    auto& header = at<via::Header>(bytes);
    header.type = type;
    if (p.kind == Kind::taken_back) header.flags = 1;
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
    VIP_MEM_ATTRIBUTES attributes = {via::via_module->nic.ptag, VIP_FALSE, VIP_FALSE};
    VIP_MEM_HANDLE handle;
    CHECK(VipRegisterMem(via::via_module->nic.handle, s, sizeof *s, &attributes, &handle) == VIP_SUCCESS);
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
        const auto* start = reinterpret_cast<const via::Eager*>(header);
        news->tag = static_cast<int>(start->tag);
        news->length = desc->CS.Length - sizeof *start;
    } else if (news->kind == Kind::request || news->kind == Kind::reply) {
        const auto* control = reinterpret_cast<const via::Control*>(header);
        news->tag = static_cast<int>(control->tag);
        news->length = control->length;
        news->announced = control->announced;
        news->request = control->sreq;
        news->receive = control->rreq;
        if (news->bytes > sizeof *control) {
            const auto* memory = reinterpret_cast<const protocol::WireMemory*>(control + 1);
            news->address = memory->address;
            news->handle = *reinterpret_cast<const protocol::Le32*>(memory + 1);
        }
    }
    return true;
}

size_t data_per_packet() { return via::kR3Data; }

}  // namespace viaduct::adi_test
