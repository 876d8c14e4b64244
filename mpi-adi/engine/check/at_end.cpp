// SPDX-License-Identifier: BSD-2-Clause
// Reports the objects that a program has not freed when it ends MPI, and the messages that no receive has matched. The
// program may free info objects, error handlers and sessions after MPI_Finalize, and while a session is open, all that
// the session has made: those are reported when the process ends.
#include <algorithm>
#include <array>

#include "mpi-adi/engine/any_time.hpp"
#include "mpi-adi/engine/check/made.hpp"
#include "mpi-adi/engine/check/signature.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/io/file.hpp"
#include "mpi-adi/transport/adi/params.hpp"

namespace viaduct::mpi::checking {

bool on = false;
std::atomic<Noting> noting{Noting::unknown};

namespace {

constexpr char kFinalize[] = "MPI_Finalize";
constexpr char kExit[] = "the end of the process";

std::atomic<bool> was_on{false};
bool world_was_told = false;

// So many objects of each kind are named; of the rest only the number is told.
constexpr int kMostNamed = 10;

struct Words {
    const char* what;
    const char* cure;
};

// By Kind.
constexpr std::array<Words, 11> kWords = {{
    {"a communicator", "MPI_Comm_free it"},
    {"a datatype", "MPI_Type_free it"},
    {"a group", "MPI_Group_free it"},
    {"an operation", "MPI_Op_free it"},
    {"a window", "MPI_Win_free it"},
    {"a request", "end each request with MPI_Wait or MPI_Test, also of sends, or MPI_Request_free it"},
    {"a message of a matched probe", "receive it with MPI_Mrecv or MPI_Imrecv"},
    {"an info object", "MPI_Info_free it"},
    {"an error handler", "MPI_Errhandler_free it"},
    {"a key of attributes", "give it to MPI_Comm_free_keyval, MPI_Type_free_keyval or MPI_Win_free_keyval"},
    {"a session", "MPI_Session_finalize it"},
}};

std::string state_of(const Request& request) {
    if (request.persistent != nullptr) return request.persistent->active ? ", started and not waited for" : "";
    if (request.is_done()) return ", complete and not waited for";
    if (request.kind == Request::Kind::receive) return ", still without a message";
    return request.kind == Request::Kind::send ? ", still under way: no receive has matched it" : ", still under way";
}

std::string text_of(const Key& key, const Record& record) {
    std::string text = std::string(kWords[static_cast<size_t>(key.kind)].what) + " of " + record.call;
    if (key.kind == Kind::request) text += state_of(*request_of(key.handle));
    if (key.kind == Kind::comm) text += ", " + text_of_comm(*comm_of(key.handle));
    if (record.given > 1) text += ", given " + std::to_string(record.given) + " times";
    return text;
}

void say_left(const char* when, const std::string& what) {
    say(std::string("CMPI_CHECK: left at ") + when + ": " + what);
}

// Tells each object once.
void tell_what_is_left(Kind kind, const char* when) {
    int found = 0;
    const char* const cure = kWords[static_cast<size_t>(kind)].cure;
    for (const auto& [key, record] : records()) {
        if (key.kind != kind || !is_alive(key)) continue;
        if (found++ < kMostNamed) say_left(when, text_of(key, record) + ". The program has to " + cure);
    }
    if (found > kMostNamed) say_left(when, std::to_string(found - kMostNamed) + " more of this kind");
    std::erase_if(records(), [&](const auto& one) { return one.first.kind == kind; });
}

// Files have no integer handles; their paths say more.
void tell_open_files(const char* when) {
    const std::vector<std::string> paths = io::open_paths();
    const size_t named = std::min(paths.size(), size_t{kMostNamed});
    for (size_t i = 0; i < named; i++)
        say_left(when, "a file of MPI_File_open, " + paths[i] +
                           ". The program has to MPI_File_close it, before MPI_Finalize");
    if (paths.size() > named) say_left(when, std::to_string(paths.size() - named) + " more of this kind");
}

// What ends with the world, or with the session that has made it.
void tell_what_ends_with_mpi(const char* when) {
    const AnyTime tables;
    for (const Kind kind : {Kind::request, Kind::message, Kind::comm, Kind::win, Kind::datatype, Kind::group, Kind::op,
                            Kind::keyval})
        tell_what_is_left(kind, when);
    tell_open_files(when);
    world_was_told = true;
}

// Of the program, as contexts of the other channels are not.
bool is_of_messages(uint64_t context) {
    return std::all_of(std::begin(kContextOf) + 1, std::end(kContextOf),
                       [&](uint64_t channel) { return (context & channel) == 0; });
}

void tell_unmatched(const Matcher& matcher, const char* when) {
    int found = 0;
    const auto* const owner = static_cast<const Communicator*>(matcher.owner());
    for (const Unexpected* one = matcher.first_message(); one != nullptr; one = Matcher::next_message(one)) {
        if (found++ >= kMostNamed) continue;
        std::string where = owner == nullptr ? "" : owner->name;
        if (where.empty()) where = name_of_context(matcher.context());
        if (where.empty()) where = "a communicator that this process has freed";
        say("CMPI_CHECK: never received, found " + std::string(when) + ": a message of " +
            std::to_string(one->um_env.ev_len) + " bytes from rank " + std::to_string(one->um_env.ev_rank) +
            " with tag " + std::to_string(one->um_env.ev_tag) + " on " + where +
            ". No receive has this source, tag and communicator; look whether one is missing, or names others");
    }
    if (found > kMostNamed)
        say("CMPI_CHECK: never received: " + std::to_string(found - kMostNamed) + " more messages there");
}

int send_later(process_t*, const void*, size_t, const mpip_type_t*, int, mpip_comm_t*, int) { return MPIP_AGAIN; }

}  // namespace

// All sends of the engine first try whether the module takes the message at once (MPIP_MODE_TRY).
void begin() {
    noting = Noting::yes;
    was_on = on = true;
    publish_answer = kCallToNote;
    for (protocol& module : mpip_protocols)
        if (module.pt_loaded) module.pt_fsend = send_later;
}

void stay_off() {
    noting = Noting::no;
    records().clear();
}

bool is_noting() {
    if (noting.load(std::memory_order_relaxed) == Noting::unknown) {
        Noting expected = Noting::unknown;
        noting.compare_exchange_strong(expected, adi::is_check_asked_for() ? Noting::yes : Noting::no);
    }
    return noting.load(std::memory_order_relaxed) == Noting::yes;
}

void at_end_of(const Comm& comm) {
    const Matcher* const messages = comm.matchers[static_cast<unsigned>(Channel::p2p)];
    if (engine.stage == Stage::running && messages != nullptr && is_of_messages(messages->context()))
        tell_unmatched(*messages, "when the communicator was freed");
}

void at_end(bool session_is_open) {
    // Messages of a process stay in order: when its call has come here, so have its messages.
    meet_by_name(*world_comm(), "MPI_Finalize");
    if (!session_is_open) tell_what_ends_with_mpi(kFinalize);
    for (const auto& [context, matcher] : engine.matchers) {
        const bool ends = !session_is_open || matcher->owner() == world_comm() || matcher->owner() == self_comm();
        if (is_of_messages(context) && ends) tell_unmatched(*matcher, "in MPI_Finalize");
    }
    on = false;  // what the library frees itself is no mistake of the program
}

bool tells_at_exit() { return was_on && noting == Noting::yes; }

void at_exit() {
    if (is_changing()) return;  // exit() is called by a signal handler that has come in between
    on = false;
    noting = Noting::no;
    if (!world_was_told) tell_what_ends_with_mpi(kExit);
    for (const Kind kind : {Kind::info, Kind::errhandler, Kind::session}) tell_what_is_left(kind, kExit);
}

}  // namespace viaduct::mpi::checking
