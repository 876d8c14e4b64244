// SPDX-License-Identifier: BSD-2-Clause
#include "providers/wire/node.hpp"

#include <algorithm>
#include <utility>

#include "providers/wire/bytes.hpp"
#include "providers/wire/encapsulation.hpp"
#include "providers/wire/link.hpp"
#include "providers/wire/no_link_answer.hpp"
#include "providers/wire/version_answer.hpp"

namespace viaduct::wire {

namespace {

constexpr uint32_t kMostPending = 1024;
constexpr uint32_t kLinksPerAdvance = 64;
constexpr Time kAskUnreachable = 20'000'000;  // between two questions to the outlet

Tuning sane(Tuning t) {
    t.max_frame = std::clamp(t.max_frame, kMinFrame, kMaxFrame);
    t.max_links = std::clamp(t.max_links, 1u, 65'535u);
    t.first_link = std::min(t.first_link, 65'536u - t.max_links);
    t.window = std::clamp(t.window, 1u, kMostInFlight);
    t.max_reads = std::clamp(t.max_reads, 1u, kMaxReads);
    t.reorder_frames = std::clamp(t.reorder_frames, 1u, 65'534u);
    t.pending_connects = std::min(t.pending_connects, kMostPending);
    uint32_t depth = 1;
    while (depth < t.queue_depth && depth < (1u << 20)) depth *= 2;
    t.queue_depth = depth;
    return t;
}

}  // namespace

Node::Node(const Tuning& tuning, const NicAddress& own, Outlet& outlet, Host& host)
    : tuning_(sane(tuning)),
      own_(own),
      outlet_(outlet),
      host_(host),
      random_state_(tuning.seed),
      deadlines_(tuning_.max_links),
      reorder_(tuning_.reorder_frames, tuning_.max_frame),
      slots_(tuning_.max_links),
      pending_(tuning_.pending_connects, tuning_.no_match_grace, tuning_.stale_incoming),
      answers_(tuning_.answers_per_second, tuning_.answers_at_once),
      proof_demand_(tuning_.proof_demand),
      cookies_(tuning_.cookie_life) {
    free_.reserve(slots_.size());
    ready_.reserve(slots_.size());
    being_flushed_.reserve(slots_.size());
    for (auto i = static_cast<uint32_t>(slots_.size()); i-- != 0;) {
        slots_[i].generation = static_cast<uint32_t>(draw() >> 48);
        free_.push_back(i);
    }
}

Node::~Node() = default;

uint64_t Node::random() {  // splitmix64
    uint64_t z = (random_state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return z != 0 ? z : 1;
}

// ---- links

Link* Node::take_link(Cookie cookie) {
    if (free_.empty()) return nullptr;
    const uint32_t index = free_.back();
    Slot& slot = slots_[index];
    if (!slot.link) slot.link = std::make_unique<Link>(*this, index);
    free_.pop_back();
    slot.generation = (slot.generation + 1) & 0xFFFF;
    if (slot.generation == 0) slot.generation = 1;
    slot.in_use = true;
    slot.link->claim(slot.generation << 16 | (tuning_.first_link + index), cookie);
    return slot.link.get();
}

void Node::free_link(Link& link) {
    const uint32_t index = slot_of(link.id());
    Slot& slot = slots_[index];
    if (!slot.in_use) return;
    slot.in_use = false;
    deadlines_.set(index, kNoTime);
    deadlines_.drop_soon(index);
    // First in, first out would keep ids apart longer, but the generation does that already.
    free_.push_back(index);
}

void Node::make_ready(Link& link) {
    const uint32_t index = slot_of(link.id());
    Slot& slot = slots_[index];
    if (slot.ready || !slot.in_use) return;
    slot.ready = true;
    ready_.push_back(index);
}

bool Node::report(LinkId id, LinkReport* out) const {
    const Link* link = find(id);
    if (link == nullptr) return false;
    link->report(out);
    return true;
}

// ---- of the host

void Node::start(LinkId id, Time now) {
    if (Link* link = find(id)) link->start(now);
}

void Node::disconnect(LinkId id, Time now) {
    if (Link* link = find(id)) link->disconnect(now);
}

bool Node::post(LinkId id, const Work& work, Time now) {
    Link* link = find(id);
    return link != nullptr && link->post(work, now);
}

// ---- frames without a link

// Answers to frames that belong to no connection.
bool Node::may_answer(Time now) {
    const bool may = answers_.allows(now);
    if (!may) ++counters_.answers_withheld;
    return may;
}

// Of frames that belong to no connection, and of those that make one.
void Node::seal_own(std::byte* frame, Header h) const {
    if (is_keyed()) {
        h.flags |= kFlagTagged;
        h.pass = tag_of(*tuning_.key, h, 0, frame + kHeaderBytes);
    }
    seal(frame, h);
}

// With our own pass, which is what the frames for us have shown.
void Node::bare(Kind kind, const NicAddress& to, const Header& numbers) {
    std::byte* frame = outlet_.begin_frame(kHeaderBytes);
    if (frame == nullptr) return;
    Header h = numbers;
    h.kind = kind;
    h.flags = 0;
    h.credit = 0;
    h.length = 0;
    seal_own(frame, h);
    outlet_.end_frame(frame, kHeaderBytes, to);
    ++counters_.frames_out;
    counters_.bytes_out += kHeaderBytes;
    if (kind == Kind::reset) ++counters_.resets_out;
}

void Node::answer(Kind kind, const NicAddress& to, LinkId destination, uint64_t pass, const Answer& a) {
    std::byte* frame = outlet_.begin_frame(kHeaderBytes + kAnswerBytes);
    if (frame == nullptr) return;
    write_answer(frame + kHeaderBytes, a);
    Header h;
    h.kind = kind;
    h.destination = destination;
    h.pass = pass;
    h.length = kAnswerBytes;
    seal_own(frame, h);
    outlet_.end_frame(frame, kHeaderBytes + kAnswerBytes, to);
    ++counters_.frames_out;
    counters_.bytes_out += kHeaderBytes + kAnswerBytes;
}

// For no link of ours, or without the pass of the link: the two look alike from outside.
void Node::on_unknown(const Frame& f, const NicAddress& from, Time now) {
    ++counters_.unknown_link;
    Header h;
    if (answer_without_link(f.header, &h) && may_answer(now)) bare(h.kind, from, h);
}

// ---- authenticity

// With a key: only what is tagged with it. A frame of a connection that is not here cannot be checked.
bool Node::comes_from_peer(const Frame& f, const NicAddress& from, Time now) {
    const bool tagged = (f.header.flags & kFlagTagged) != 0;
    AuthFailure why = AuthFailure::other_key;
    if (tagged && is_keyed()) {
        if (!is_of_connection(f.header.kind)) {
            if (tag_of(*tuning_.key, f.header, 0, f.fields) == f.header.pass) return true;
        } else if (Link* link = find(f.header.destination); link == nullptr || !link->is_from_peer(f.header, from)) {
            ++counters_.unknown_link;
            return false;
        } else if (link->is_authentic(f)) {
            return true;
        }
    } else if (tagged == is_keyed()) {
        return true;
    } else {
        why = tagged ? AuthFailure::no_key : AuthFailure::no_tag;
    }
    ++counters_.not_authentic;
    if (now >= next_auth_failure_report_) {
        next_auth_failure_report_ = now + tuning_.tell_again;
        host_.on_auth_failure(from, why);
    }
    return false;
}

void Node::on_forged(const Frame& f) {
    Connect c;
    if (f.header.kind == Kind::request && read_connect(f, &c) == Flaw::none) tell_of_refused(c);
}

// ---- other versions of the format

void Node::on_strange_version(std::span<const std::byte> bytes, const NicAddress& from, Time now) {
    if (is_version_answer(bytes)) return on_version_answer(bytes, from, now);
    if (!asks_for_version(bytes) || !may_answer(now)) return;
    ++counters_.other_version;
    if (std::byte* frame = outlet_.begin_frame(kVersionAnswerBytes); frame != nullptr) {
        make_version_answer(bytes, frame);
        outlet_.end_frame(frame, kVersionAnswerBytes, from);
        ++counters_.frames_out;
    }
    if (now < next_version_report_) return;
    next_version_report_ = now + tuning_.tell_again;
    host_.on_other_version(from, load8(bytes.data()));
}

// Our own request comes back with it: a sender that has not seen it cannot end it.
void Node::on_version_answer(std::span<const std::byte> bytes, const NicAddress& from, Time now) {
    VersionAnswer a;
    if (!read_version_answer(bytes, &a)) return;
    Link* link = find(a.source);
    if (link == nullptr || !link->has_asked(from, a.nonce)) return;
    ++counters_.other_version;
    if (now >= next_version_report_) {
        next_version_report_ = now + tuning_.tell_again;
        host_.on_other_version(from, a.version);
    }
    link->fail(Status::version, now);
}

// Other damaged frames are not reported (spec/reliability 6.2, spec/errors 8); reliable levels get them again.
void Node::on_damaged_write(const Header& h, const NicAddress& from) {
    const Link* link = find(h.destination);
    if (link != nullptr && link->is_unreliable_end_of(h, from)) host_.on_damaged_write(link->cookie());
}

// The questions of attempts that hosts have refused.
void Node::take_refusals(Time now) {
    Question q;
    while (outlet_.next_refused(&q))
        if (Link* link = find(q.link)) link->on_refused(q, now);
}

// The addresses that the medium reports as unreachable. Each costs a look at all links, so not at every advance.
[[gnu::noinline]] void Node::take_unreachable(Time now) {
    ask_unreachable_at_ = now + kAskUnreachable;
    NicAddress address;
    while (outlet_.next_unreachable(&address))
        for (const Slot& slot : slots_)
            if (slot.in_use) slot.link->on_unreachable(address, now);
}

// ---- driving

void Node::input(std::span<const std::byte> bytes, const NicAddress& from, Time now) {
    if (take_fast(bytes, from, now)) [[likely]]
        return;
    Frame f;
    const Flaw flaw = read_frame(bytes, &f);
    if (flaw != Flaw::none) [[unlikely]] {
        ++(flaw == Flaw::check ? counters_.bad_check : counters_.not_a_frame);
        if (flaw == Flaw::version) on_strange_version(bytes, from, now);
        if (flaw == Flaw::check && f.header.kind == Kind::write) on_damaged_write(f.header, from);
        return;
    }
    ++counters_.frames_in;
    counters_.bytes_in += f.bytes;
    if (((f.header.flags & kFlagTagged) != 0 || is_keyed()) && !comes_from_peer(f, from, now)) [[unlikely]]
        return on_forged(f);
    if (f.header.kind == Kind::request) return on_request(f, from, now);
    if (f.header.kind == Kind::peer_request) return on_peer_request(f, from, now);
    if (f.header.kind == Kind::withdraw) return on_withdraw(f, from);
    Link* link = find(f.header.destination);
    if (link == nullptr) return on_unknown(f, from, now);
    if (!link->is_from_peer(f.header, from)) [[unlikely]] {
        ++counters_.wrong_peer;
        return on_unknown(f, from, now);
    }
    link->on_frame(f, from, now);
}

void Node::advance(Time now) {
    if (now - last_advance_ > 2 * tuning_.keep_alive || outlet_.stands_still(now)) awake_since_ = now;
    last_advance_ = now;
    if (now >= ask_unreachable_at_) [[unlikely]]
        take_unreachable(now);
    // A few at a time: what they send must fit the wire, and frames that have come are waiting meanwhile.
    for (uint32_t n = kLinksPerAdvance; n != 0 && deadlines_.earliest() <= now; --n)
        slots_[deadlines_.first()].link->on_time(now);
}

[[gnu::noinline]] void Node::flush(Time now) {
    being_flushed_.swap(ready_);
    for (const uint32_t index : being_flushed_) {
        slots_[index].ready = false;
        if (slots_[index].in_use) slots_[index].link->flush(now);
    }
    being_flushed_.clear();
}

void Node::close_links(Time now) {
    for (const Slot& slot : slots_)
        if (slot.in_use) slot.link->announce_close(now);
}

}  // namespace viaduct::wire
