// SPDX-License-Identifier: BSD-2-Clause
// How modules end with processes that are killed, and with processes that send invalid packets.
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <random>

#include "cases.hpp"
#include "mpi-adi/transport/multirail/multi_lane.hpp"
#include "mpi-adi/transport/shm/shm.hpp"
#include "mpi-adi/transport/tcp/tcp.hpp"
#include "mpi-adi/transport/via/receive.hpp"
#include "mpi-adi/transport/via/transport.hpp"
#include "tests/eventually.hpp"

namespace viaduct::adi_test {
namespace {

using Clock = std::chrono::steady_clock;

// kill -9 in the middle of traffic: all others are told within two seconds, and all requests end.
constexpr int kVictim = 1;
void killed(Job& job) {
    Engine e(job, module);
    e.expect_loss = true;
    std::vector<unsigned char> big(2 * 1024 * 1024);
    e.barrier();
    job.barrier();  // where connections are made on demand, its last message would go with it
    if (e.rank() == kVictim) {
        mpip_req_t req;
        e.irecv(req, 0, 1, big.data(), big.size());  // matched, data under way
        for (int i = 0; i < 30; ++i) e.progress();
        job.say(1);
        ::kill(::getpid(), SIGKILL);
    }
    mpip_req_t small, large, receive;
    unsigned char in[64];
    e.irecv(receive, kVictim, 77, in, sizeof in);
    e.isend(small, kVictim, 2, in, 8);
    e.isend(large, kVictim, e.rank() == 0 ? 1 : 3, big.data(), big.size());
    while (job.said() != 1) e.progress();
    const auto is_told = [&] {
        e.progress();
        return !e.failed().empty();
    };
    CHECK(tests::eventually("the loss of the victim", is_told, {.limit = std::chrono::seconds(2)}));
    CHECK(e.failed().size() == 1 && e.failed()[0] == kVictim);
    CHECK((e.process(kVictim)->p_flags & MPIP_PROC_TRANSPORTERR) != 0);
    CHECK(e.wait(receive) == MPIP_ERR_PROC_FAILED);
    e.wait(large);
    mpip_req_t late;
    e.isend(late, kVictim, 4, big.data(), big.size());
    CHECK(e.wait(late) == MPIP_ERR_PROC_FAILED);
    // The others still talk.
    std::vector<int> alive;
    for (int i = 0; i < e.size(); ++i) {
        if (i != kVictim) alive.push_back(i);
    }
    for (const int to : alive) {
        mpip_req_t req;
        e.isend(req, to, 9, in, 8);
        CHECK(e.wait(req) == MPIP_SUCCESS);
    }
    for (const int from : alive) CHECK(e.receive(from, 9, in, sizeof in) == 8);
    CHECK(e.process(alive.back())->p_proto->pt_ping(e.comm(), alive.back()) == MPIP_SUCCESS);
    if (e.rank() != kVictim) CHECK(e.process(kVictim)->p_proto->pt_ping(e.comm(), kVictim) != MPIP_SUCCESS);
}

// Messages of all kinds between two processes, begun and never waited for.
struct UnderWay {
    explicit UnderWay(Engine& e) {
        const int other = 1 - e.rank();
        e.isend(send, other, 1, big.data(), big.size());
        e.irecv(receive, other, 2, big.data(), big.size());
        e.irecv(never, other, 3, big.data(), 10);
    }
    std::vector<unsigned char> big = std::vector<unsigned char>(300000);
    mpip_req_t send, receive, never;
};

// Invalid packets, with headers that are almost right, into a process that has messages of all
// kinds under way: it may take the peer for lost, and nothing worse.
void hostile_packets(Job& job) {
    Engine e(job, module);
    e.expect_loss = true;
    UnderWay all(e);
    const auto until = Clock::now() + std::chrono::milliseconds(40);
    if (e.rank() == 1) {
        std::mt19937 dice(seed);
        via::Lane* c = via::connection_of(e.process(0));
        for (int i = 0; i < 40 && !c->peer.lost(); ++i) {
            e.progress();
            via::vbuf* v = via::via_module->nic.buffers.get();
            for (size_t byte = 0; byte < 128; ++byte) v->buffer[byte] = static_cast<char>(dice());
            auto* h = via::packet_of<via::Header>(v);
            h->type = static_cast<via::PacketType>(dice() % 17);
            h->sequence = via::costs_no_credit(h->type) ? 0 : c->next_packet_tosend++;
            h->credit = static_cast<uint16_t>(dice() % 8 == 0 ? dice() : dice() % 2);
            h->noops = static_cast<uint8_t>(dice() % 8 == 0 ? dice() : 0);
            h->source = 1;
            auto* control = via::packet_of<via::Control>(v);
            auto* memory = reinterpret_cast<protocol::WireMemory*>(control + 1);
            if (h->type == via::PacketType::request && dice() % 2 == 0) {
                control->length = dice() % 100000;
                h->flags = static_cast<uint8_t>(dice() % 3 << 4);
                control->context = e.comm()->c_sndctxt;
                control->tag = 2;
                if (dice() % 2 == 0) memory->pieces = dice() % 8;
            } else if (h->type == via::PacketType::reply && dice() % 2 == 0) {
                control->length = dice() % 400000;
                h->flags = static_cast<uint8_t>(dice() % 3);
                if (dice() % 2 == 0) memory->pieces = dice() % 8;
            } else if (dice() % 2 == 0) {
                control->length = dice() % 400000;
            }
            memory->rows = dice() % 3;
            memory->handles = dice() % 3;
            if (dice() % 2 == 0) control->sreq = uint64_t{1} << 32 | (1 + dice() % 2);
            if (dice() % 2 == 0) control->rreq = uint64_t{1} << 32 | (1 + dice() % 2);
            const size_t least = via::least_length(h->type);
            via::vbuf_init_sendrecv(
                v, dice() % 4 == 0 ? dice() % 200 : std::max<size_t>(least, 12) + dice() % 200);
            v->connection = c;
            ++c->sends_outstanding;
            ++via::via_module->nic.sends_outstanding;
            // Whether it goes is all the same: the connection is to break.
            (void)VipPostSend(c->vi, &v->desc, v->handle);
        }
    }
    while (Clock::now() < until) e.progress();
    ::_exit(0);  // nothing orderly is left to be done
}

// Invalid frames, with numbers and lengths that are almost right.
protocol::Frame evil_frame(std::mt19937& dice, uint64_t context) {
    protocol::Frame frame;
    auto* bytes = reinterpret_cast<unsigned char*>(&frame);
    for (size_t i = 0; i < sizeof frame; ++i) bytes[i] = static_cast<unsigned char>(dice());
    frame.type = static_cast<protocol::FrameType>(dice() % 13);
    frame.bytes = dice() % 8 == 0 ? dice() : dice() % 2 == 0 ? 0 : dice() % 200;
    if (dice() % 2 == 0) {
        frame.context = context;
        frame.tag = 2;
    }
    if (dice() % 2 == 0) frame.length = dice() % 2 == 0 ? frame.bytes : dice() % 400000;
    if (dice() % 2 == 0) frame.sreq = uint64_t{1} << 32 | (1 + dice() % 2);
    if (dice() % 2 == 0) frame.rreq = uint64_t{1} << 32 | (1 + dice() % 2);
    return frame;
}

void push_evil(tcp::Lane& peer, protocol::Frame frame, std::mt19937& dice) {
    if (!peer.fd.valid()) return;
    if (dice() % 8 != 0) frame.number = peer.frames_sent++;
    char payload[200] = {};
    ::send(peer.fd.get(), &frame, dice() % 16 == 0 ? dice() % sizeof frame : sizeof frame,
           MSG_NOSIGNAL | MSG_DONTWAIT);
    ::send(peer.fd.get(), payload, std::min<size_t>(frame.bytes, sizeof payload),
           MSG_NOSIGNAL | MSG_DONTWAIT);
}

void push_evil(shm::Lane& peer, const protocol::Frame& frame, std::mt19937&) {
    shm::Line& line = peer.out.lines[peer.lines_sent % shm::kLines];
    std::memcpy(line.body, &frame, sizeof frame);
    ++peer.lines_sent;
    line.word.store(shm::make_word(peer.lines_sent, static_cast<uint8_t>(frame.type), frame.bytes),
                    std::memory_order_release);
}

void hostile_frames(Job& job) {
    Engine e(job, module);
    e.expect_loss = true;
    UnderWay all(e);
    const auto until = Clock::now() + std::chrono::milliseconds(40);
    if (e.rank() == 1) {
        std::mt19937 dice(seed);
        const protocol::Peer* c = protocol::peer_of(e.process(0));
        for (int i = 0; i < 40 && !c->lost(); ++i) {
            e.progress();
            const protocol::Frame frame = evil_frame(dice, e.comm()->c_sndctxt);
            if (auto* peer = dynamic_cast<tcp::Lane*>(c->lane.get())) push_evil(*peer, frame, dice);
            if (auto* peer = dynamic_cast<shm::Lane*>(c->lane.get())) push_evil(*peer, frame, dice);
        }
    }
    while (Clock::now() < until) e.progress();
    ::_exit(0);  // nothing orderly is left to be done
}

// --- several NICs: what this side's module would never send, on its own lanes ---

using multirail::Kind;
using multirail::MultiLane;

// What lies in a frame `carried`: prefix, frame, payload.
struct Crafted {
    multirail::Prefix prefix = {};
    protocol::Frame frame = {};
    std::vector<char> payload;
    size_t cut = 0;  // bytes left out at the end

    void send(const multirail::Link& link) const {
        std::vector<char> packet(multirail::kCarriedHead + payload.size());
        std::memcpy(packet.data(), static_cast<const void*>(&prefix), sizeof prefix);
        std::memcpy(packet.data() + sizeof prefix, &frame, sizeof frame);
        std::copy(payload.begin(), payload.end(), packet.begin() + multirail::kCarriedHead);
        protocol::Frame carried = {};
        carried.type = protocol::FrameType::carried;
        carried.bytes = static_cast<uint32_t>(packet.size() - cut);
        (void)link.peer->lane->put(carried, {packet.data()});
    }
};

// With the next number, as something of the module's own.
Crafted crafted(const MultiLane& lane, Kind kind) {
    Crafted made;
    made.prefix.number = lane.next_number();
    made.prefix.had = lane.had();
    made.frame.type = static_cast<protocol::FrameType>(kind);
    return made;
}

void put_report(Crafted& to, const multirail::Report& report) {
    to.payload.resize(sizeof report);
    std::memcpy(to.payload.data(), static_cast<const void*>(&report), sizeof report);
    to.frame.bytes = sizeof report;
}

const multirail::Link& some_link(const MultiLane& lane, std::mt19937& dice) {
    for (size_t i = dice();; ++i) {
        const multirail::Link& link = lane.links[i % multirail::kMostRails];
        if (link.state == multirail::LinkState::up) return link;
    }
}

void hostile_rails(Job& job) {
    Engine e(job, module);
    e.expect_loss = true;
    UnderWay all(e);
    const auto until = Clock::now() + std::chrono::milliseconds(40);
    if (e.rank() == 1) {
        std::mt19937 dice(seed);
        const auto& lane = dynamic_cast<MultiLane&>(*protocol::peer_of(e.process(0))->lane);
        uint32_t number = lane.next_number();
        for (int i = 0; i < 40; ++i) {
            e.progress();
            if (lane.peer.lost() || lane.links_up == 0) break;
            const multirail::Link& link = some_link(lane, dice);
            Crafted packet = crafted(lane, static_cast<Kind>(30 + dice() % 8));
            if (dice() % 8 == 0) packet.prefix.had = static_cast<uint32_t>(dice());
            if (dice() % 2 == 0) {
                packet.frame = evil_frame(dice, e.comm()->c_sndctxt);
                if (dice() % 8 != 0)
                    packet.frame.bytes = dice() % 2 == 0 ? 0
                                                         : sizeof(protocol::WireMemory) +
                                                               multirail::kMostRails * sizeof(protocol::Le32);
                packet.payload.resize(std::min<size_t>(packet.frame.bytes, 200));
                packet.prefix.number = dice() % 4 == 0 ? number + dice() % 2000 : number++;
            } else {
                multirail::Report report = {};
                for (protocol::Le32& up_to : report.up_to) up_to = dice() % 4 == 0 ? dice() : dice() % 3;
                if (dice() % 4 == 0) report.received[dice() % sizeof report.received] = static_cast<uint8_t>(dice());
                if (dice() % 2 == 0) put_report(packet, report);
                packet.frame.sreq = dice() % 4 == 0 ? dice() : link.number;
            }
            packet.send(link);
        }
    }
    while (Clock::now() < until) e.progress();
    ::_exit(0);  // nothing orderly is left to be done
}

// One packet with one fault each round: the receiver takes the sender for lost.
constexpr int kDamages = 13;
void damaged_rails(Job& job) {
    Engine e(job, module);
    e.expect_loss = true;
    *job.word() = 0;
    job.barrier();
    if (e.rank() == 1) {
        std::mt19937 dice(seed);
        const auto& lane = dynamic_cast<MultiLane&>(*protocol::peer_of(e.process(0))->lane);
        const multirail::Link& link = some_link(lane, dice);
        Crafted packet = crafted(lane, Kind::ack);
        multirail::Report report = {};
        switch (seed) {
            case 1:
                packet.frame.type = {};
                break;
            case 2:
                packet.frame.type = static_cast<protocol::FrameType>(99);
                break;
            case 3:
                packet.cut = 1;
                break;
            case 4:  // says it is longer than it is
                packet.frame.type = protocol::FrameType::eager;
                packet.frame.bytes = 8;
                break;
            case 5:  // far ahead of its turn
                packet.frame.type = protocol::FrameType::eager;
                packet.prefix.number = lane.next_number() + multirail::kWindow + 1;
                break;
            case 6:  // has had what was not sent
                packet.prefix.had = lane.had() + 5000;
                break;
            case 7:  // a second hello
                packet = crafted(lane, Kind::hello);
                packet.frame.sreq = link.number;
                put_report(packet, report);
                break;
            case 8:  // of another connection
                packet = crafted(lane, Kind::report);
                packet.frame.sreq = link.number + 1;
                put_report(packet, report);
                break;
            case 9:  // frames have come that were not sent
                packet = crafted(lane, Kind::report);
                packet.frame.sreq = link.number;
                report.received[100] = 1;
                put_report(packet, report);
                break;
            case 10:  // that was not requested
                packet = crafted(lane, Kind::echo);
                packet.frame.sreq = 1;
                break;
            case 11:
                packet = crafted(lane, Kind::report);
                packet.frame.sreq = link.number;
                packet.payload.resize(8);
                packet.frame.bytes = 8;
                break;
            case 12:
                packet.payload.resize(8);
                packet.frame.bytes = 8;
                break;
            case kDamages: {  // a message too short for its number
                protocol::Frame eager = {};
                eager.type = protocol::FrameType::eager;
                eager.bytes = 4;
                eager.length = 4;
                (void)link.peer->lane->put(eager, {"abcd"});
                break;
            }
        }
        if (seed != kDamages) packet.send(link);
        while (__atomic_load_n(job.word(), __ATOMIC_SEQ_CST) == 0) e.progress();
    } else {
        while (e.failed().empty()) e.progress();  // the time limit of the case ends it
        CHECK(e.failed()[0] == 1);
        CHECK((e.process(1)->p_flags & MPIP_PROC_TRANSPORTERR) != 0);
        __atomic_store_n(job.word(), 1, __ATOMIC_SEQ_CST);
    }
    ::_exit(0);
}

// Callers that are none of the job: silent ones in a crowd, ones that know nearly everything, and ones that say what
// they have recorded. A process of the job gets through all the same.
void pending_callers(Job& job) {
    Engine e(job, module);
    *job.word() = 0;
    job.barrier();
    if (e.rank() == 2) {
        const auto& target = static_cast<tcp::Lane&>(*protocol::peer_of(e.process(0))->lane);
        sockaddr_storage name;
        const socklen_t length = tcp::to_sockaddr(target.addresses.at(0), &name);
        tcp::Call call;
        call.caller = 2;
        call.called = 0;
        call.caller_nonce.fill(7);
        const tcp::Proof good = tcp::prove(target.key, tcp::Step::call, call);
        const tcp::Proof other_step = tcp::prove(target.key, tcp::Step::answer, call);
        tcp::Proof spoilt = good;
        spoilt[31] ^= 1;
        const tcp::Nonce& nonce = call.caller_nonce;
        const tcp::Hello almost[] = {
            {tcp::kMagic + 1, tcp::kVersion, 2, 0, nonce, good}, {tcp::kMagic, tcp::kVersion + 1, 2, 0, nonce, good},
            {tcp::kMagic, 0, 2, 0, nonce, good},                 {0, tcp::kVersion, 2, 0, nonce, good},
            {tcp::kMagic, tcp::kVersion, 2, 1, nonce, good},     {tcp::kMagic, tcp::kVersion, 1, 0, nonce, good},
            {tcp::kMagic, tcp::kVersion, 2, 0, nonce, spoilt},   {tcp::kMagic, tcp::kVersion, 2, 0, nonce, other_step},
        };
        std::vector<Fd> crowd;
        for (size_t i = 0; i < 400; ++i) {
            Fd fd(::socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
            CHECK(fd.valid());
            CHECK(::connect(fd.get(), reinterpret_cast<sockaddr*>(&name), length) == 0);
            const size_t bytes = i < std::size(almost) ? sizeof almost[0] : i % 3 == 0 ? 10 : 0;
            if (bytes != 0) ::send(fd.get(), &almost[i % std::size(almost)], bytes, MSG_NOSIGNAL);
            if (i % 5 != 0) crowd.push_back(std::move(fd));  // the others hang up at once
        }
        __atomic_store_n(job.word(), 1, __ATOMIC_SEQ_CST);
        for (size_t i = 0; i < std::size(almost); ++i) {  // those that said something are shown out
            char byte;
            if (i % 5 != 0) CHECK(::recv(crowd[i - i / 5 - 1].get(), &byte, 1, 0) <= 0);
        }
        // What is right once is recorded, said again and not heard; and what the answer asks for has to follow.
        const tcp::Hello right = {tcp::kMagic, tcp::kVersion, 2, 0, nonce, good};
        Fd calls[2];
        for (Fd& fd : calls) {
            fd = Fd(::socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
            CHECK(::connect(fd.get(), reinterpret_cast<sockaddr*>(&name), length) == 0);
            CHECK(::send(fd.get(), &right, sizeof right, MSG_NOSIGNAL) == sizeof right);
            tcp::Hello answer;
            const int had = static_cast<int>(::recv(fd.get(), &answer, sizeof answer, MSG_WAITALL));
            if (&fd == &calls[1]) {
                CHECK(had <= 0);
                continue;
            }
            CHECK(had == sizeof answer);
            call.called_nonce = answer.nonce;
            CHECK(tcp::is_proof(answer.proof, target.key, tcp::Step::answer, call));
        }
        char byte;
        const tcp::Proof reflected = tcp::prove(target.key, tcp::Step::answer, call);
        CHECK(::send(calls[0].get(), &reflected, sizeof reflected, MSG_NOSIGNAL) == sizeof reflected);
        CHECK(::recv(calls[0].get(), &byte, 1, 0) <= 0);
        e.barrier();
        return;
    }
    while (__atomic_load_n(job.word(), __ATOMIC_SEQ_CST) == 0) e.progress();
    int value = 0;
    if (e.rank() == 1) {
        e.send(0, 1, "abc", 3);
    } else {
        CHECK(e.receive(1, 1, &value, sizeof value) == 3);
    }
    e.barrier();
    CHECK(e.failed().empty());
}

// A process with that number and the files of this one; it stays until it is killed. -1: the system does not let us
// choose.
pid_t process_numbered(pid_t number) {
    clone_args arguments = {};
    arguments.exit_signal = SIGCHLD;
    arguments.set_tid = reinterpret_cast<uintptr_t>(&number);
    arguments.set_tid_size = 1;
    const auto made = static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
    if (made != 0) return made;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
}

// One that has sent something and ended before the other has met it: both are known, what it has sent comes first.
// `reused`: its number is that of another process by then.
void met_after_its_end(Job& job, bool reused) {
    *job.word() = 0;
    Engine e(job, module, kVictim);
    e.expect_loss = true;
    if (e.rank() == kVictim) {
        e.add_late();
        e.send(0, 3, "abc", 3);
        __atomic_store_n(job.word(), ::getpid(), __ATOMIC_SEQ_CST);
        ::kill(::getpid(), SIGKILL);
    }
    const pid_t dead = job.await_process();
    job.await_end(dead);
    const pid_t other = reused ? process_numbered(dead) : -1;
    if (reused && other < 0)
        std::printf("SKIPPED the use of the number: it cannot be chosen here (%s)\n", std::strerror(errno));
    e.add_late();
    mpip_req_t receive;
    char in[8] = {};
    e.irecv(receive, kVictim, 3, in, sizeof in);
    CHECK(e.wait(receive) == MPIP_SUCCESS);
    CHECK(std::memcmp(in, "abc", 3) == 0);
    mpip_req_t never;
    e.irecv(never, kVictim, 4, in, sizeof in);
    CHECK(e.wait(never) == MPIP_ERR_PROC_FAILED);
    CHECK(e.failed().size() == 1 && e.failed()[0] == kVictim);
    if (other < 0) return;
    ::kill(other, SIGKILL);
    ::waitpid(other, nullptr, 0);
}
void ended_before(Job& job) { met_after_its_end(job, false); }
void ended_and_reused(Job& job) { met_after_its_end(job, true); }

}  // namespace

std::vector<Case> end_cases() {
    return {
        {"killed", killed, 4, 20, nullptr, {}, {kVictim}},
        {"killed-r3", killed, 3, 20, "via", {{"CMPI_RENDEZVOUS", "r3"}}, {kVictim}},
        {"killed-rget", killed, 3, 20, "via", {{"CMPI_RENDEZVOUS", "rget"}}, {kVictim}},
        {"killed-rput", killed, 3, 20, "via", {{"CMPI_RENDEZVOUS", "rput"}}, {kVictim}},
        {"killed-on-demand", killed, 4, 20, "tcp", {{"CMPI_ON_DEMAND", "0"}}, {kVictim}},
        {"killed-on-demand", killed, 4, 20, "via", {{"CMPI_ON_DEMAND", "0"}}, {kVictim}},
        {"ended-before", ended_before, 2, 20, "shm", {}, {kVictim}},
        {"ended-and-reused", ended_and_reused, 2, 20, "shm", {}, {kVictim}},
        {"hostile", hostile_packets, 2, 20, "via", {}, {}, 25},
        {"hostile", hostile_frames, 2, 20, "shm", {}, {}, 25},
        {"hostile", hostile_frames, 2, 20, "tcp", {}, {}, 25},
        {"hostile", hostile_rails, 2, 20, "rails", {}, {}, 25},
        {"damaged", damaged_rails, 2, 20, "rails", {}, {}, kDamages},
        {"pending_callers", pending_callers, 3, 30, "tcp", {{"CMPI_ON_DEMAND", "0"}}},
    };
}

}  // namespace viaduct::adi_test
