// SPDX-License-Identifier: BSD-2-Clause
// The target's side: requests of each origin are served one after the other, in the order in which they came,
// while this process is inside any MPI call: in the moment they come, or, behind one that waits for its data,
// in a later pass of progress. Such a one holds back only those of the same origin.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "mpi-adi/engine/matcher.hpp"
#include "mpi-adi/engine/rma/layout.hpp"
#include "mpi-adi/engine/rma/window.hpp"

namespace viaduct::mpi::rma {

class Target final : public Server {
public:
    explicit Target(Window& window);
    ~Target();
    Target(const Target&) = delete;
    Target& operator=(const Target&) = delete;

    // A message that comes now.
    [[nodiscard]] bool take(Matcher&, int source, int tag, const void* data, size_t bytes) override;
    // Serves what has been kept; true when there was something.
    bool serve();
    // A request that is no operation, also from this process itself.
    void control(int source, const InlineOp& inline_op);

private:
    // What came in, in memory of its own or the message's.
    struct Bytes {
        const char* data = nullptr;
        size_t size = 0;
    };
    // One origin's requests.
    struct Stream {
        std::deque<Unexpected*> waiting;
        Request* receive = nullptr;  // of a long request, or of the data of one
        std::unique_ptr<char[]> buffer;
        size_t buffer_bytes = 0;
        bool has_head = false;  // what is received is data for the operation below
        Head head;
        TypeRef layout;
        int error = MPI_SUCCESS;  // since the last flush
        bool busy = false;        // in the list of those to look at
    };

    Matcher& matcher() const { return *window_.comm->matchers[static_cast<unsigned>(Channel::p2p)]; }
    void keep_busy(int source);
    [[nodiscard]] bool advance(int source);
    void begin(int source, Unexpected* message);
    [[nodiscard]] bool end_receive(int source);
    TypeRef layout_of(const Head& head, const char* runs);
    void request(int source, Bytes bytes);
    void take_inline(int source, const char* bytes, size_t size);
    void change(int source, const InlineOp& inline_op, const char* data, char* old);
    void answer_inline(int source, int error, const char* data, size_t bytes);
    void receive_data(int source);
    void operate(int source, const Head& head, const Datatype& layout, const char* data);
    void answer(int source, const Head& head, const void* data, uint64_t bytes);
    void answer_flush(int source, const Head& head);
    void tell_flushed(int source, uint64_t number);
    bool reaches(const Head& head, const Datatype& layout) const;
    bool reaches(int64_t low, int64_t high) const;
    [[noreturn]] void refuse(int source) const;

    void lock(int source, LockKind kind);
    void unlock(int source);
    void grant_waiting();
    [[nodiscard]] bool grant(int source, LockKind kind);

    Window& window_;
    std::vector<Stream> streams_;
    std::vector<int> busy_;
    bool serving_ = false;  // what comes meanwhile has to wait

    // Of the last request, and the datatype made of it.
    std::vector<WireRun> runs_;
    int64_t extent_ = 0;
    TypeRef layout_;

    // Null: there is none.
    LockWord* lock_word() const;

    // The lock of this process's window, as far as it is requested by message: what those hold, and which wait. Where
    // there is a word in shared memory, it is held for them.
    int readers_ = 0;
    int writer_ = -1;
    std::deque<std::pair<int, LockKind>> lockers_;
};

}  // namespace viaduct::mpi::rma
