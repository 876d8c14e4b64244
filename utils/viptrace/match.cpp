// SPDX-License-Identifier: BSD-2-Clause
#include "utils/viptrace/match.hpp"

#include <vipl.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace viaduct::viptrace {

namespace {

// A connection as one of its ends has made it.
struct Making {
    Link link;
    uint64_t marks = 0;  // of the local and of the remote address
    bool requester = false, peers = false;
    int64_t ns = 0;
};

uint64_t turned(uint64_t marks) { return marks >> 32 | marks << 32; }

bool is_call_end(const Seen& e, const Seen& begin) { return e.phase == Phase::end && e.what == begin.what; }

void find_calls(size_t process, const Process& p, std::vector<Call>* out) {
    std::map<uint32_t, std::vector<size_t>> open;  // by thread: indices in *out
    const int64_t last = p.events.empty() ? 0 : p.events.back().ns;
    for (size_t i = 0; i < p.events.size(); ++i) {
        const Seen& e = p.events[i];
        std::vector<size_t>& mine = open[e.thread];
        if (e.phase == Phase::begin) {
            mine.push_back(out->size());
            out->push_back({process, i, i, false, last - e.ns});
            continue;
        }
        if (mine.empty() || !is_call_end(e, p.events[(*out)[mine.back()].begin])) continue;
        Call& c = (*out)[mine.back()];
        c.end = i;
        c.ended = true;
        c.ns = e.ns - p.events[c.begin].ns;
        mine.pop_back();
    }
}

void find_makings(size_t process, const Process& p, std::vector<Making>* out) {
    std::map<uint64_t, uint64_t> requests;  // marks, by handle of the request
    std::map<uint64_t, uint64_t> asked;     // marks, by VI, of peers
    std::map<uint64_t, size_t> connected;   // index in *out, by VI
    const auto close = [&](uint64_t vi, size_t at) {
        if (const auto it = connected.find(vi); it != connected.end()) {
            (*out)[it->second].link.end = at;
            connected.erase(it);
        }
    };
    const auto make = [&](uint64_t vi, size_t at, uint64_t marks, bool requester, bool peers) {
        close(vi, at);
        connected[vi] = out->size();
        out->push_back({{process, vi, at, p.events.size(), false, -1}, marks, requester, peers, p.events[at].ns});
    };
    for (size_t i = 0; i < p.events.size(); ++i) {
        const Seen& e = p.events[i];
        const bool well = e.phase != Phase::begin && e.result == VIP_SUCCESS;
        switch (e.what) {
            case What::connect_wait:
                if (well) requests[e.object] = e.value;
                break;
            case What::connect_accept:
                if (const auto it = requests.find(e.value); well && it != requests.end())
                    make(e.object, i, it->second, false, false);
                break;
            case What::connect_request:
                if (well) make(e.object, i, e.value, true, false);
                break;
            case What::peer_request:
                if (well) asked[e.object] = e.value;
                break;
            case What::peer_wait:
            case What::peer_done:
                if (const auto it = asked.find(e.object); well && it != asked.end()) {
                    make(e.object, i, it->second, false, true);
                    asked.erase(it);
                }
                break;
            case What::connection:
                asked[e.object] = e.value;
                break;
            case What::made:
                if (const auto it = asked.find(e.object); it != asked.end()) {
                    make(e.object, i, it->second, false, false);
                    out->back().link.before = true;
                    out->back().ns = std::min<int64_t>(static_cast<int64_t>(e.value & INT64_MAX), kLatest) - p.zero_ns;
                    asked.erase(it);
                }
                break;
            case What::disconnect:
            case What::destroy_vi:
                if (e.phase == Phase::begin) close(e.object, i);
                break;
            default:
                break;
        }
    }
}

// The two ends of a connection have each other's addresses. Several between the same addresses are told apart by the
// order in which they were made.
void pair_up(std::vector<Making>& all) {
    std::vector<size_t> order(all.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return all[a].ns < all[b].ns; });
    for (const size_t a : order) {
        if (all[a].link.peer >= 0) continue;
        const auto fits = [&](size_t b) {
            const Making &x = all[a], &y = all[b];
            const bool roles_fit =
                x.link.before || y.link.before || (x.peers == y.peers && (x.peers || x.requester != y.requester));
            return a != b && y.link.peer < 0 && roles_fit && x.marks == turned(y.marks);
        };
        const auto found = std::find_if(order.begin(), order.end(), fits);
        if (found == order.end()) continue;
        all[a].link.peer = static_cast<int>(*found);
        all[*found].link.peer = static_cast<int>(a);
    }
}

bool is_post_that_arrives(const Seen& e) {
    if (e.what != What::post_send) return false;
    const uint32_t operation = e.high() & VIP_CONTROL_OP_MASK;
    return operation == VIP_CONTROL_OP_SENDRECV ||
           (operation == VIP_CONTROL_OP_RDMAWRITE && (e.high() & VIP_CONTROL_IMMEDIATE) != 0);
}

bool is_fetched_receive(const Seen& e) {
    return (e.what == What::recv_done || e.what == What::recv_notify ||
            (e.what == What::recv_wait && e.phase == Phase::end)) &&
           e.result == VIP_SUCCESS;
}

// The events of a VI for which that holds, in order.
template <class F>
std::vector<size_t> events_of(const Process& p, uint64_t vi, size_t begin, size_t end, F wanted) {
    std::vector<size_t> out;
    for (size_t i = begin; i < end; ++i)
        if (p.events[i].object == vi && wanted(p.events[i])) out.push_back(i);
    return out;
}

// Where receives of a link may be fetched: from the end of the VI's connection before to the beginning of its next one.
std::pair<size_t, size_t> range_of_receives(const std::vector<Link>& links, const Link& l, size_t events) {
    std::pair<size_t, size_t> range(0, events);
    for (const Link& other : links) {
        if (other.process != l.process || other.vi != l.vi) continue;
        if (other.begin < l.begin) range.first = std::max(range.first, other.end);
        if (other.begin > l.begin) range.second = std::min(range.second, other.begin);
    }
    return range;
}

void find_messages(const std::vector<Process>& all, Matched* m) {
    for (const Link& l : m->links) {
        if (l.peer < 0) continue;
        const Link& other = m->links[static_cast<size_t>(l.peer)];
        const Process &from = all[l.process], &to = all[other.process];
        if (from.lost != 0 || to.lost != 0 || l.before || other.before) continue;  // which message is the first?
        const auto [first, last] = range_of_receives(m->links, other, to.events.size());
        const std::vector<size_t> sent = events_of(from, l.vi, l.begin, l.end, is_post_that_arrives);
        const std::vector<size_t> got = events_of(to, other.vi, first, last, is_fetched_receive);
        for (size_t i = 0; i < std::min(sent.size(), got.size()); ++i) {
            const Seen &s = from.events[sent[i]], &r = to.events[got[i]];
            m->messages.push_back({{l.process, sent[i]}, {other.process, got[i]}, r.low(), r.ns - s.ns});
        }
    }
}

}  // namespace

int Matched::link_of(size_t process, uint64_t vi, size_t event) const {
    int found = -1;
    for (size_t i = 0; i < links.size(); ++i)
        if (links[i].process == process && links[i].vi == vi && links[i].begin <= event) found = static_cast<int>(i);
    return found;
}

Matched match(const std::vector<Process>& all) {
    Matched m;
    std::vector<Making> makings;
    for (size_t i = 0; i < all.size(); ++i) {
        find_calls(i, all[i], &m.calls);
        find_makings(i, all[i], &makings);
    }
    pair_up(makings);
    for (const Making& made : makings) m.links.push_back(made.link);
    find_messages(all, &m);
    return m;
}

}  // namespace viaduct::viptrace
