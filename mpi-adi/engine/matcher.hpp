// SPDX-License-Identifier: BSD-2-Clause
// Matching for one channel of one communicator: receives posted and messages unexpected, each in a list by
// source, with one more list for receives from anywhere and one of all messages in order of arrival; a
// sequence number decides between a receive of the one kind and of the other (spec/mpi 5.2). So nothing that
// waits for another source is ever looked at.
#pragma once

#include <cstddef>
#include <vector>

#include "mpi-adi/engine/request.hpp"

namespace viaduct::mpi {

// A message without a posted receive. Its data is copied behind it, or kept by the module.
struct Unexpected : unexmsg_t {
    Link<Unexpected> of_source;
    Link<Unexpected> of_all;
    class Matcher* home;
    size_t capacity;  // bytes behind the record
    char* behind() { return reinterpret_cast<char*>(this + 1); }
};

// Serves messages of a matcher in the moment they come, inside a call into a module: it may send and receive,
// but neither waits nor progresses. What it does not take is kept, as unexpected.
class Matcher;
class Server {
public:
    [[nodiscard]] virtual bool take(Matcher& in, int source, int tag, const void* data, size_t bytes) = 0;

protected:
    ~Server() = default;
};

class Matcher {
public:
    explicit Matcher(uint64_t context) : context_(context) {}
    Matcher(const Matcher&) = delete;
    Matcher& operator=(const Matcher&) = delete;

    uint64_t context() const { return context_; }
    // Called with whole messages that no receive waits for; null: none.
    void serve_by(Server* server) { server_ = server; }
    Server* server() const { return server_; }
    // Once the communicator is there, a source must be what it says it is.
    void bind(process_t** peers, int size, Comm* owner = nullptr) {
        peers_ = peers;
        size_ = size;
        owner_ = owner;
        grow(size);
    }
    bool bound() const { return peers_ != nullptr; }
    Comm* owner() const { return owner_; }
    bool plausible(const process_t* from, int source) const {
        return peers_ == nullptr || (source < size_ && peers_[source] == from);
    }

    // The first posted receive that takes this message, off the queue; or null.
    Request* take_receive(int source, int tag) {
        grow(source + 1);
        Source& of = sources_[static_cast<size_t>(source)];
        Request* named = first_with_tag(of.receives.first(), tag);
        Request* anywhere = first_with_tag(from_anywhere_.first(), tag);
        if (anywhere != nullptr && (named == nullptr || anywhere->order < named->order)) {
            from_anywhere_.erase(anywhere);
            return anywhere;
        }
        if (named != nullptr) of.receives.erase(named);
        return named;
    }

    // The earliest message that a receive takes; null: there is none yet, and the receive is posted.
    Unexpected* find_or_post(Request* receive) {
        const int source = receive->r_rank;
        if (source == MPI_ANY_SOURCE) [[unlikely]] {
            Unexpected* const one = first_with_tag_of_all(receive->r_tag);
            if (one == nullptr) post(receive);
            return one;
        }
        grow(source + 1);
        Source& of = sources_[static_cast<size_t>(source)];
        Unexpected* const one = first_of_source(of.messages.first(), receive->r_tag);
        if (one != nullptr) return one;
        receive->order = ++posted_;
        of.receives.push_back(receive);
        return nullptr;
    }
    // A receive for which there is no message yet.
    void post(Request* receive) {
        receive->order = ++posted_;
        list_of(receive->r_rank).push_back(receive);
    }
    // Takes back a receive that has not matched.
    void withdraw(Request* receive) { list_of(receive->r_rank).erase(receive); }

    // The earliest message that such a receive would take, left in the queue; or null.
    Unexpected* find(int source, int tag) {
        if (source == MPI_ANY_SOURCE) return first_with_tag_of_all(tag);
        grow(source + 1);
        return first_of_source(sources_[static_cast<size_t>(source)].messages.first(), tag);
    }
    void add(Unexpected* message);
    void remove(Unexpected* message);
    // All of them: for the end of a communicator, and for a peer that takes one back.
    Unexpected* first_message() const { return messages_.first(); }
    static Unexpected* next_message(const Unexpected* one) { return one->of_all.next; }
    // Posted receives that only this source can satisfy.
    Request* first_receive_of(int source) {
        grow(source + 1);
        return sources_[static_cast<size_t>(source)].receives.first();
    }
    // One that any source can satisfy, off the queue; or null.
    Request* take_receive_from_anywhere() {
        Request* const one = from_anywhere_.first();
        if (one != nullptr) from_anywhere_.erase(one);
        return one;
    }
    // One of all posted receives, off the queue; or null.
    Request* take_any_receive();
    // Posts a receive from anywhere again, in the place among the others that it had.
    void post_again(Request* receive);

private:
    struct Source {
        List<Request, &Request::posted> receives;
        List<Unexpected, &Unexpected::of_source> messages;
    };

    static Request* first_with_tag(Request* one, int tag) {
        while (one != nullptr && one->r_tag != tag && one->r_tag != MPI_ANY_TAG) one = one->posted.next;
        return one;
    }
    static Unexpected* first_of_source(Unexpected* one, int tag) {
        while (one != nullptr && tag != MPI_ANY_TAG && one->um_env.ev_tag != tag) one = one->of_source.next;
        return one;
    }
    Unexpected* first_with_tag_of_all(int tag) const {
        Unexpected* one = messages_.first();
        while (one != nullptr && tag != MPI_ANY_TAG && one->um_env.ev_tag != tag) one = one->of_all.next;
        return one;
    }
    List<Request, &Request::posted>& list_of(int source) {
        if (source == MPI_ANY_SOURCE) return from_anywhere_;
        grow(source + 1);
        return sources_[static_cast<size_t>(source)].receives;
    }
    // Before its communicator is known here, their number is unknown.
    void grow(int sources) {
        if (static_cast<size_t>(sources) > sources_.size()) [[unlikely]]
            sources_.resize(static_cast<size_t>(sources));
    }

    const uint64_t context_;
    process_t** peers_ = nullptr;
    int size_ = 0;
    Comm* owner_ = nullptr;
    uint64_t posted_ = 0;
    Server* server_ = nullptr;
    std::vector<Source> sources_;
    List<Request, &Request::posted> from_anywhere_;
    List<Unexpected, &Unexpected::of_all> messages_;
};

// Records for unexpected messages with room for `bytes` behind them, and their end.
Unexpected* new_unexpected(size_t bytes);
void free_unexpected(Unexpected* message);
// Bytes of data that unexpected messages hold now.
uint64_t unexpected_bytes();

}  // namespace viaduct::mpi
