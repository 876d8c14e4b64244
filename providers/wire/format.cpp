// SPDX-License-Identifier: BSD-2-Clause
#include "providers/wire/format.hpp"

#include "providers/wire/bytes.hpp"
#include "providers/wire/crc32c.hpp"
#include "providers/wire/header_words.hpp"

namespace viaduct::wire {

namespace {

constexpr uint32_t kAddressBytes = 8 + kMaxDiscriminator;

uint32_t check_of(const HeaderWords& header, const std::byte* fields, uint32_t length,
                  std::span<const Piece> tail = {}) {
    for (const Piece& piece : tail) length -= piece.bytes;
    uint32_t crc = crc32c(header, fields, length);
    for (const Piece& piece : tail) crc = crc32c(piece.at, piece.bytes, crc);
    return crc;
}

bool read_address(const std::byte* from, EndAddress* to) {
    std::memcpy(to->host.bytes, from, kNicAddressBytes);
    to->discriminator_len = load16(from + 6);
    if (to->discriminator_len > kMaxDiscriminator) return false;
    std::memcpy(to->discriminator, from + 8, to->discriminator_len);
    return true;
}

void write_address(std::byte* to, const EndAddress& from) {
    std::memset(to, 0, kAddressBytes);
    std::memcpy(to, from.host.bytes, kNicAddressBytes);
    store16(to + 6, from.discriminator_len);
    std::memcpy(to + 8, from.discriminator, from.discriminator_len);
}

}  // namespace

const char* name_of(Kind kind) {
    switch (kind) {
        case Kind::request:
            return "request";
        case Kind::peer_request:
            return "peer-request";
        case Kind::accept:
            return "accept";
        case Kind::confirm:
            return "confirm";
        case Kind::reject:
            return "reject";
        case Kind::no_match:
            return "no-match";
        case Kind::pending:
            return "pending";
        case Kind::withdraw:
            return "withdraw";
        case Kind::prove:
            return "prove";
        case Kind::disconnect:
            return "disconnect";
        case Kind::disconnected:
            return "disconnected";
        case Kind::reset:
            return "reset";
        case Kind::keep_alive:
            return "keep-alive";
        case Kind::acknowledge:
            return "acknowledge";
        case Kind::send:
            return "send";
        case Kind::write:
            return "write";
        case Kind::read_request:
            return "read-request";
        case Kind::read_data:
            return "read-data";
        case Kind::atomic_request:
            return "atomic-request";
        case Kind::atomic_data:
            return "atomic-data";
    }
    return "unknown";
}

Flaw read_frame(std::span<const std::byte> bytes, Frame* out) {
    if (bytes.size() < kHeaderBytes) return Flaw::too_short;
    const std::byte* p = bytes.data();
    if (load8(p) != kVersion) return Flaw::version;
    Header& h = out->header;
    h.kind = static_cast<Kind>(load8(p + 1));
    const uint32_t fields = field_bytes(h.kind);
    if (fields == kNoSuchKind) return Flaw::kind;
    h.length = load16(p + kLengthAt);
    if (h.length < fields || h.length > bytes.size() - kHeaderBytes || h.length > kMaxFrame - kHeaderBytes)
        return Flaw::length;
    h.flags = load16(p + 2) & kFlagsKnown;
    h.destination = load32(p + 4);
    h.source = load32(p + 8);
    h.sequence = load32(p + 12);
    h.acknowledge = load32(p + 16);
    h.credit = load32(p + 20);
    h.pass = load64(p + 24);
    out->fields = p + kHeaderBytes;
    out->bytes = kHeaderBytes + h.length;
    HeaderWords words;
    read_words(p, words);
    return load32(p + kCheckAt) == check_of(words, out->fields, h.length) ? Flaw::none : Flaw::check;
}

void seal(std::byte* frame, const Header& h, std::span<const Piece> tail) {
    HeaderWords words;
    make_words(h, words);
    write_words(frame, words);
    store32(frame + kCheckAt, check_of(words, frame + kHeaderBytes, h.length, tail));
}

Flaw read_connect(const Frame& f, Connect* out) {
    const std::byte* p = f.fields;
    out->nonce = load64(p);
    out->sequence = load32(p + 8);
    out->max_frame = load16(p + 12);
    out->arrived = load16(p + 14);
    out->traits = ViTraits{};
    out->traits.reliability = load16(p + 16);
    const uint8_t rdma = load8(p + 18);
    out->traits.rdma_write = rdma & 1;
    out->traits.rdma_read = rdma >> 1 & 1;
    out->attended = (load8(p + 19) & 1) != 0;
    out->window = load32(p + 20);
    out->traits.max_transfer = load64(p + 24);
    out->traits.qos = load64(p + 32);
    out->pass = load64(p + kConnectPassAt);
    out->cookie = f.header.length >= kConnectBytes + kCookieBytes ? load64(p + kConnectBytes) : 0;
    const bool good = read_address(p + 40, &out->local) && read_address(p + 40 + kAddressBytes, &out->remote);
    return good ? Flaw::none : Flaw::length;
}

void write_connect(std::byte* p, const Connect& c) {
    store64(p, c.nonce);
    store32(p + 8, c.sequence);
    store16(p + 12, c.max_frame);
    store16(p + 14, c.arrived);
    store16(p + 16, c.traits.reliability);
    store8(p + 18,
           static_cast<uint8_t>((c.traits.rdma_write != 0 ? 1 : 0) | (c.traits.rdma_read != 0 ? 2 : 0)));
    store8(p + 19, c.attended ? 1 : 0);
    store32(p + 20, c.window);
    store64(p + 24, c.traits.max_transfer);
    store64(p + 32, c.traits.qos);
    write_address(p + 40, c.local);
    write_address(p + 40 + kAddressBytes, c.remote);
    store64(p + kConnectPassAt, c.pass);
}
static_assert(kConnectPassAt == 40 + 2 * kAddressBytes && kConnectBytes == kConnectPassAt + 8);

void write_cookie(std::byte* connect, uint64_t cookie) { store64(connect + kConnectBytes, cookie); }

Answer read_answer(const Frame& f) { return {load64(f.fields), load16(f.fields + 8), load16(f.fields + 10)}; }

void write_answer(std::byte* p, const Answer& a) {
    store64(p, a.nonce);
    store16(p + 8, a.reason);
    store16(p + 10, a.arrived);
    store32(p + 12, 0);
}

Prove read_prove(const Frame& f) { return {load64(f.fields), load16(f.fields + 10), load64(f.fields + 16)}; }

void write_prove(std::byte* p, const Prove& prove) {
    write_answer(p, {prove.nonce, 0, prove.arrived});
    store64(p + kAnswerBytes, prove.cookie);
}

Selective read_selective(const Frame& f) {
    Selective s;
    for (uint32_t i = 0; i < kWindow / 64; ++i) s.bits[i] = load64(f.fields + size_t{i} * 8);
    return s;
}

void write_selective(std::byte* p, const Selective& s) {
    for (uint32_t i = 0; i < kWindow / 64; ++i) store64(p + size_t{i} * 8, s.bits[i]);
}

Ending read_ending(const Frame& f) { return {static_cast<Reason>(load16(f.fields)), load32(f.fields + 4)}; }

void write_ending(std::byte* p, const Ending& e) {
    store16(p, static_cast<uint16_t>(e.reason));
    store16(p + 2, 0);
    store32(p + 4, e.message);
}

Message read_message(const Frame& f) {
    return {load32(f.fields), load32(f.fields + 4), load32(f.fields + 8), load32(f.fields + 12)};
}

void write_message(std::byte* p, const Message& m) {
    // In the pieces in which the check reads them back.
    store64(p, uint64_t{m.number} << 32 | m.offset);
    store64(p + 8, uint64_t{m.total} << 32 | m.immediate);
}

Target read_target(const Frame& f) {
    return {load64(f.fields + kMessageBytes), load32(f.fields + kMessageBytes + 8)};
}

void write_target(std::byte* p, const Target& t) {
    store64(p, t.address);
    store32(p + 8, t.handle);
    store32(p + 12, 0);
}

ReadRequest read_read_request(const Frame& f) {
    return {load64(f.fields), load32(f.fields + 8), load32(f.fields + 12), load32(f.fields + 16)};
}

void write_read_request(std::byte* p, const ReadRequest& r) {
    store64(p, r.address);
    store32(p + 8, r.handle);
    store32(p + 12, r.total);
    store32(p + 16, r.number);
    store32(p + 20, 0);
}

ReadData read_read_data(const Frame& f) {
    return {load32(f.fields), load32(f.fields + 4), load32(f.fields + 8)};
}

void write_read_data(std::byte* p, const ReadData& r) {
    store32(p, r.number);
    store32(p + 4, r.offset);
    store32(p + 8, r.total);
}

AtomicRequest read_atomic_request(const Frame& f) {
    const std::byte* p = f.fields;
    return {load64(p),      load32(p + 8), load32(p + 12), load64(p + 16),
            load64(p + 24), load8(p + 32), load8(p + 33)};
}

void write_atomic_request(std::byte* p, const AtomicRequest& a) {
    store64(p, a.address);
    store32(p + 8, a.handle);
    store32(p + 12, a.number);
    store64(p + 16, a.operand);
    store64(p + 24, a.compare);
    store8(p + 32, a.operation);
    store8(p + 33, a.width);
    std::memset(p + 34, 0, kAtomicRequestBytes - 34);
}

AtomicData read_atomic_data(const Frame& f) { return {load32(f.fields), 0, load64(f.fields + 8)}; }

void write_atomic_data(std::byte* p, const AtomicData& a) {
    store32(p, a.number);
    store32(p + 4, 0);
    store64(p + 8, a.value);
}

}  // namespace viaduct::wire
