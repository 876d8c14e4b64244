// SPDX-License-Identifier: BSD-2-Clause
#include "providers/paramnet/link_model.hpp"

#include <algorithm>

namespace viaduct::paramnet {

namespace {

// No more than this is ever waited for on a receiver's link: its word lies where peers can write, and a
// hostile one must not stop others for longer.
constexpr int64_t kMostWait = 1'000'000'000;

// A turn of `wire` ns, from `earliest` on. Returns when it begins.
int64_t take_turn(LinkFree& link, int64_t earliest, int64_t wire, int64_t most_wait) {
    int64_t free_from = link.load(std::memory_order_relaxed);
    int64_t begin;
    do {
        begin = std::max(earliest, free_from);
        if (begin - earliest > most_wait) begin = earliest + most_wait;
    } while (!link.compare_exchange_weak(free_from, begin + wire, std::memory_order_relaxed));
    return begin;
}

}  // namespace

int64_t LinkModel::wire_ns(uint64_t bytes) const {
    const uint64_t packets = packet == 0 || bytes == 0 ? 1 : (bytes + packet - 1) / packet;
    const double on_link = static_cast<double>(bytes + packets * header);
    return static_cast<int64_t>(on_link * 1e9 / static_cast<double>(rate));
}

int64_t LinkModel::across(int64_t start, int64_t wire, LinkFree& in) const {
    const int64_t at_port = start + hop_ns * switches;
    // Cut through: the receiver's link passes a message while the sender's still does.
    const int64_t begin = receiver_has_link ? take_turn(in, at_port, wire, kMostWait) : at_port;
    return begin + wire + in_ns;
}

int64_t LinkModel::arrival(int64_t posted, uint64_t bytes, LinkFree& out, LinkFree& in) const {
    const int64_t wire = wire_ns(bytes);
    return across(take_turn(out, posted + out_ns, wire, INT64_MAX), wire, in);
}

int64_t LinkModel::answer_arrival(int64_t posted, uint64_t asked, uint64_t answered, LinkFree& out,
                                  LinkFree& in, LinkFree& back) const {
    const int64_t there = arrival(posted, asked, out, in);
    return across(there, wire_ns(answered), back);
}

LinkModel paramnet2(uint32_t switches) {
    LinkModel m;
    m.rate = 312'500'000;  // 2.5 Gb/s
    m.packet = 2048;       // size and header of packets are not published
    m.header = 32;
    m.out_ns = 4400;  // both chosen so that a short message takes 9 us through one switch
    m.hop_ns = 500;
    m.switches = switches;
    m.in_ns = 4000;
    m.receiver_has_link = true;
    return m;
}

}  // namespace viaduct::paramnet
