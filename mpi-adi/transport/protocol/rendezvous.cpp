// SPDX-License-Identifier: BSD-2-Clause
// Long messages until it is agreed how they are moved (spec/adi 6.2, 6.3): request, and reply when the
// receive is there. What a side cannot register, or has in too small pieces, goes in frames. Where processors
// do the copying, both sides copy at once: the receiver reads the beginning, the sender writes the rest. Data
// with gaps is moved by one side, piece by piece: T12, T13 and T14 are frames, a list behind the request or
// the reply, and a list that stays where it is until the other side fetches it.
#include <algorithm>
#include <chrono>

#include "mpi-adi/transport/protocol/move.hpp"

namespace viaduct::protocol {

namespace {

// Where the sender's part begins when both sides copy: the receiver starts first, by the time of a frame, and
// has to wait for the sender's word. On the edge of a page of the receiver's: each page that both copy to
// costs one look-up more.
constexpr size_t kHeadStart = 8 * 1024;
size_t first_part(const void* buffer, size_t length) {
    constexpr size_t kPage = 4096;
    const size_t into_page = reinterpret_cast<uintptr_t>(buffer) % kPage;
    const size_t cut = (into_page + (length + kHeadStart) / 2 + kPage / 2) & ~(kPage - 1);
    return std::min(length, std::max(cut, into_page) - into_page);
}

}  // namespace

uint64_t now_ns() {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::steady_clock::now().time_since_epoch())
                                     .count());
}

Transfer* Protocol::new_transfer(mpip_req_t* req, Peer& p) {
    auto* t = new Transfer;
    t->request = req;
    t->peer = &p;
    req->r_data = t;
    ids_.add(req);
    return t;
}

void Protocol::drop_transfer(mpip_req_t* req) {
    ids_.remove(req);
    delete transfer_of(req);
    req->r_data = nullptr;
}

// One request of the send queue that is too long or synchronous. False: it has to wait.
bool Protocol::start_long(Peer& p, mpip_req_t* req) {
    Transfer* t = new_transfer(req, p);
    t->length = req->r_bytes;
    if (rules_.memory != nullptr && req->r_bytes > rules_.frames_up_to) t->method = rules_.wanted;
    if (t->method != Method::frames) t->own = PieceList::of(req, req->r_bytes, rules_.gap_piece);
    description_.clear();
    if (t->own == nullptr ||
        (reads(t->method) && (!t->own->register_with(*rules_.memory) ||
                              !t->own->describe(*rules_.memory, p.lane->piece, true, 0, &description_)))) {
        t->own = nullptr;
        t->method = Method::frames;
        description_.clear();
    }
    Frame frame = {};
    frame.type = FrameType::request;
    frame.flags =
        static_cast<uint8_t>((req->r_mode & (MPIP_MODE_SYNC | MPIP_MODE_READY)) | static_cast<int>(t->method) << 4);
    frame.bytes = static_cast<uint32_t>(description_.size());
    frame.context = req->r_ctxt;
    frame.tag = req->r_tag;
    frame.rank = req->r_rank;
    frame.length = req->r_bytes;
    frame.sreq = req->r_id;
    if (!p.lane->put(frame, {description_.data()})) {
        drop_transfer(req);
        return false;
    }
    ++counters_->mc_long;
    req->r_state = MPIP_REQ_STARTED;
    mpip_deqsend(p.proc);
    // Registering takes its time, and there is some until the answer is here (spec/adi N38).
    if (t->method == Method::put && !t->own->register_with(*rules_.memory)) t->own = nullptr;
    return true;
}

// True: the tuner has found frames to be faster than the remote access that the sender offers. Nothing is registered
// then.
bool Protocol::goes_in_frames(Transfer& t, const Start& start) {
    Peer& p = *t.peer;
    if (start.wanted != Method::both || start.theirs->count() > 1 || !mpip_req_is_contig(t.request) ||
        !p.lane->frames_may_be_faster())
        return false;
    if (p.tuner == nullptr) p.tuner = std::make_unique<TransferTuner>();
    t.choice = p.tuner->choose(t.length);
    if (t.choice.timed) t.began = now_ns();
    return t.choice.route == TransferTuner::frames;
}

// Data with gaps is moved by the side that has it in more pieces: what is one piece at the other side takes
// one remote write or read. Where processes wait for processors the receiver reads, as with other data.
Method Protocol::choose_method(const Transfer& t, const Start& start) const {
    if (start.wanted != Method::both) return start.wanted;
    const size_t here = t.own->count(), there = start.theirs->count();
    if (here == 1 && there == 1) return t.length < rules_.both_from ? Method::get : Method::both;
    return there > here && !rules_.receiver_moves ? Method::put : Method::get;
}

void Protocol::start_receive(Start& start, mpip_req_t* req) {
    Peer& p = *start.peer;
    req->r_state |= MPIP_REQ_STARTED;
    req->r_proc = p.proc;
    Transfer* t = new_transfer(req, p);
    t->message = start.length;
    t->length = std::min(start.length, req->r_bytes);
    t->peer_request = start.sreq;
    t->end = t->length;
    const bool offered = start.wanted == Method::put || (start.theirs != nullptr && rules_.get);
    if (rules_.memory != nullptr && t->length > rules_.frames_up_to && start.wanted != Method::frames && offered &&
        !goes_in_frames(*t, start)) {
        t->own = PieceList::of(req, t->length, rules_.gap_piece);
        if (t->own != nullptr && t->own->register_with(*rules_.memory) &&
            (start.theirs == nullptr || t->own->shares_nic(*start.theirs)))
            t->method = choose_method(*t, start);
    }
    if (reads(t->method)) {
        if (start_reading(*t, start)) return;
        t->method = Method::frames;
    }
    if (t->method == Method::put && !describe_own(*t)) t->method = Method::frames;
    if (t->method == Method::frames) {
        t->own = nullptr;
        if (t->choice.route == TransferTuner::remote) t->choice = {};  // it is not what was to be timed
        description_.clear();
        p.lane->expect(t->length);
    }
    reply(*t, start);
    if (t->length == 0) finish(*t);
}

// The receiver reads, all of it or the beginning. False: it cannot.
bool Protocol::start_reading(Transfer& t, Start& start) {
    t.theirs = std::move(start.theirs);
    if (t.theirs->needs_fetching() && t.theirs->room_for_list(*rules_.memory) == nullptr) return false;
    if (t.own->count() > 1 || t.theirs->count() > 1) ++counters_->mc_scattered;
    if (t.method == Method::both) {
        t.end = first_part(t.request->r_buf, t.length);
        if (!describe_own(t)) return false;
        reply(t, start);
    }
    ++counters_->mc_rget;
    start_moving(t);
    return true;
}

// Describes the receive buffer for the reply. False: it cannot be described.
bool Protocol::describe_own(Transfer& t) {
    description_.clear();
    return t.own->describe(*rules_.memory, t.peer->lane->piece, rules_.get, t.end, &description_);
}

// Its payload is what describe_own() has made; empty for frames.
void Protocol::reply(const Transfer& t, const Start& start) {
    Frame frame = {};
    frame.type = FrameType::reply;
    frame.flags = static_cast<uint8_t>(t.method);
    frame.bytes = static_cast<uint32_t>(description_.size());
    frame.length = t.length;
    frame.sreq = start.sreq;
    frame.rreq = t.request->r_id;
    control(*t.peer, frame, &description_);
}

bool Protocol::incoming_request(Peer& p, const Frame& frame, const void* payload) {
    const auto wanted = static_cast<Method>(frame.flags >> 4);
    auto start = std::make_unique<Start>();
    uint64_t first = 0;
    if (frame.length > INT64_MAX || wanted > Method::both || (!reads(wanted) && frame.bytes != 0) ||
        (rules_.memory == nullptr && wanted != Method::frames) ||
        !PieceList::parse(payload, frame.bytes, frame.length, &start->theirs, &first))
        return false;
    start->kind = Held::Kind::start;
    start->peer = &p;
    start->length = frame.length;
    start->sreq = frame.sreq;
    start->wanted = reads(wanted) && start->theirs == nullptr ? Method::frames : wanted;
    const envelope env = {frame.context,
                          (frame.flags & (MPIP_MODE_SYNC | MPIP_MODE_READY)) | MPIP_MODE_RTS,
                          frame.rank,
                          frame.tag,
                          static_cast<int64_t>(frame.length),
                          frame.sreq,
                          0};
    mpip_req_t* match = nullptr;
    if (mpip_up.arrived(p.proc, &env, nullptr, 0, start.get(), &match) == MPIP_IN_MATCHED) {
        start_receive(*start, match);
    } else {
        (void)start.release();  // the engine's message holds it
        ++counters_->mc_unexpected;
    }
    return true;
}

Transfer* Protocol::find_transfer(Peer& p, reqaddr_t name, bool send) {
    mpip_req_t* req = ids_.find(name);
    if (req == nullptr || req->r_proc != p.proc || ((req->r_flags & MPIP_REQ_SEND) != 0) != send)
        return nullptr;
    return transfer_of(req);
}

bool Protocol::incoming_reply(Peer& p, const Frame& frame, const void* payload) {
    Transfer* t = find_transfer(p, frame.sreq, true);
    if (t == nullptr || t->replied || frame.length > t->length) return false;
    // What was not offered cannot be chosen; a remote read is begun without a reply.
    const auto method = static_cast<Method>(frame.flags);
    const bool may = method == Method::frames || (method == Method::put && t->method != Method::frames) ||
                     (method == Method::both && t->method == Method::both && frame.length != 0);
    PieceListPtr theirs;
    uint64_t first = 0;
    if (!may || (method == Method::frames && frame.bytes != 0) ||
        !PieceList::parse(payload, frame.bytes, frame.length, &theirs, &first) ||
        (method != Method::frames && theirs == nullptr) ||
        (method == Method::both && (first > frame.length || theirs->count() > 1)))
        return false;
    t->replied = true;
    t->length = t->end = frame.length;
    t->peer_request = frame.rreq;
    if (t->length == 0) {
        finish(*t);
        return true;
    }
    t->theirs = std::move(theirs);
    if (method == Method::both) {
        t->offset = t->first = first;
        t->own->advance(first);
        t->theirs->advance(first);
        // The receiver's part may be all there is.
        if (t->offset == t->end) {
            t->own_part_done = true;
            tell_placed(*t, 0);
        } else {
            start_moving(*t);
        }
        return true;
    }
    const bool put = method == Method::put && t->own != nullptr && t->own->register_with(*rules_.memory) &&
                     t->own->shares_nic(*t->theirs) &&
                     (!t->theirs->needs_fetching() || t->theirs->room_for_list(*rules_.memory) != nullptr);
    t->method = put ? Method::put : Method::frames;
    if (put) {
        if (t->own->count() > 1 || t->theirs->count() > 1) ++counters_->mc_scattered;
        ++counters_->mc_rput;
    } else {
        t->own = nullptr;  // registered, but not used (spec/adi N39)
        if (rules_.memory != nullptr) ++counters_->mc_r3;
    }
    start_moving(*t);
    return true;
}

}  // namespace viaduct::protocol
