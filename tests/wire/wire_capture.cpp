// SPDX-License-Identifier: BSD-2-Clause
// wire_capture FILE LIST: plays conversations that use every kind of frame on a simulated wire, writes them
// as a pcap file (over Ethernet and over UDP, alternately) and what each frame is, one line each, for a test that
// compares a dissector with it.
#include <cstdio>
#include <vector>

#include "providers/wire/bytes.hpp"
#include "providers/wire/encapsulation.hpp"
#include "tests/wire/model.hpp"

namespace {

using namespace viaduct;
using namespace viaduct::wire;

class Capture {
public:
    Capture(const char* file, const char* list)
        : file_(std::fopen(file, "wb")), list_(std::fopen(list, "w")) {
        const uint32_t head[] = {0xA1B2C3D4, 0x00040002, 0,
                                 0,          65'535,     1};  // microseconds, version 2.4, Ethernet
        if (good()) std::fwrite(head, sizeof head, 1, file_);
    }
    ~Capture() {
        if (file_ != nullptr) std::fclose(file_);
        if (list_ != nullptr) std::fclose(list_);
    }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    bool good() const { return file_ != nullptr && list_ != nullptr; }

    void add(const std::byte* frame, uint32_t bytes, const NicAddress& from, Time now) {
        Frame f;
        if (read_frame({frame, bytes}, &f) != Flaw::none) return;
        const bool udp = count_++ % 2 == 1;
        std::vector<std::byte> packet((udp ? Udp::kBytes : Ethernet::kBytes) + bytes);
        std::memcpy(packet.data() + packet.size() - bytes, frame, bytes);
        const NicAddress to = test::address(from.bytes[5] == 1 ? 2 : 1);
        if (udp) {
            const Udp link{udp_address(0x0A000000u + from.bytes[5], kUdpPort), from, to};
            link.write(packet.data(), udp_address(0x0A000000u + to.bytes[5], kUdpPort), bytes);
        } else {
            Ethernet{from}.write(packet.data(), to, bytes);
        }
        if (packet.size() < 60) packet.resize(60);
        const auto size = static_cast<uint32_t>(packet.size());
        const uint32_t head[] = {static_cast<uint32_t>(now / 1'000'000'000),
                                 static_cast<uint32_t>(now / 1000 % 1'000'000), size, size};
        std::fwrite(head, sizeof head, 1, file_);
        std::fwrite(packet.data(), size, 1, file_);
        const bool numbered = f.header.kind == Kind::send || f.header.kind == Kind::write;
        std::fprintf(list_, "%u %u %u %u %u %s\n", static_cast<unsigned>(f.header.kind), f.header.source,
                     f.header.sequence, f.header.acknowledge, f.header.length,
                     numbered ? std::to_string(read_message(f).total).c_str() : "-");
    }

private:
    std::FILE* file_;
    std::FILE* list_;
    uint64_t count_ = 0;
};

void tap(test::SimulatedWire& wire, Capture& capture) {
    wire.tap = [&](std::byte* frame, uint32_t& bytes, const NicAddress& from) {
        capture.add(frame, bytes, from, wire.now);
        return true;
    };
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: wire_capture FILE LIST\n");
        return 2;
    }
    Capture capture(argv[1], argv[2]);
    if (!capture.good()) {
        std::fprintf(stderr, "wire_capture: cannot write %s and %s\n", argv[1], argv[2]);
        return 1;
    }
    {
        test::Plan one, two;
        one.seed = 1;
        two.seed = 2;
        test::Pair pair(1, Tuning{}, one, two, VIP_SERVICE_RELIABLE_RECEPTION);
        tap(pair.wire, capture);
        if (!pair.connect()) return 1;
        pair.wire.weather.lose = 0.05;
        pair.a.work(60, pair.wire.now);
        pair.b.work(60, pair.wire.now);
        pair.wire.run_for(1'000'000'000);
        pair.a.node.disconnect(pair.a.link, pair.wire.now);
        pair.wire.run_for(1'000'000'000);
    }
    {
        test::SimulatedWire wire(2);
        tap(wire, capture);
        test::Plan plan;
        test::Station a(wire, 1, Tuning{}, plan, plan), b(wire, 2, Tuning{}, plan, plan);
        ViTraits traits;
        traits.reliability = VIP_SERVICE_UNRELIABLE;
        a.link = a.node.peer_request(&a, test::end_address(1, "x"), test::end_address(2, "x"), traits,
                                     kNoTime, wire.now);
        b.link = b.node.peer_request(&b, test::end_address(2, "x"), test::end_address(1, "x"), traits,
                                     kNoTime, wire.now);
        wire.run_for(300'000'000);
        // No listener; then one that rejects; then a frame for a link that is closed.
        a.node.request(&a, test::end_address(1, "y"), test::end_address(2, "y"), traits,
                       wire.now + 50'000'000, wire.now);
        wire.run_for(100'000'000);
        b.node.listen(test::end_address(2, "z"), &b, wire.now);
        a.node.request(&a, test::end_address(1, "z"), test::end_address(2, "z"), traits, kNoTime, wire.now);
        wire.run_for(50'000'000);
        b.node.reject(b.incoming_id, wire.now);
        wire.run_for(50'000'000);
        // Accepts of requesters that are gone come to nothing; then a requester has to prove its address.
        for (const uint64_t nonce : {uint64_t{7}, uint64_t{8}}) {
            b.node.listen(test::end_address(2, "p"), &b, wire.now);
            std::byte forged[kHeaderBytes + kConnectBytes] = {};
            Connect c;
            c.nonce = nonce;
            c.local = test::end_address(1, "p");
            c.remote = test::end_address(2, "p");
            c.traits = traits;
            write_connect(forged + kHeaderBytes, c);
            Header h;
            h.kind = Kind::request;
            h.source = 0x00030005;
            h.length = kConnectBytes;
            seal(forged, h);
            b.node.input(forged, test::address(1), wire.now);
            Status why = Status::ok;
            b.node.accept(b.incoming_id, &b, traits, wire.now, &why);
            wire.run_for(2'000'000'000);
        }
        a.node.request(&a, test::end_address(1, "p"), test::end_address(2, "p"), traits, wire.now + 50'000'000,
                       wire.now);
        wire.run_for(100'000'000);
        std::byte stray[kHeaderBytes + kSelectiveBytes] = {};
        Header h;
        h.kind = Kind::keep_alive;
        h.destination = 0x00010002;
        h.source = 0x00030004;
        h.length = kSelectiveBytes;
        seal(stray, h);
        b.node.input(stray, test::address(1), wire.now);
        wire.run_for(50'000'000);
    }
    return 0;
}
