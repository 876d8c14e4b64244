// SPDX-License-Identifier: BSD-2-Clause
// A collective operation as a list of steps in rounds: what lies between two rounds goes on at once, a round begins
// when everything before it is complete. The same list serves the blocking call, which runs it, and the non-blocking
// one, which lets progress advance it.
#pragma once

#include <functional>
#include <memory>
#include <memory_resource>
#include <vector>

#include "mpi-adi/engine/communicator.hpp"
#include "mpi-adi/engine/datatype.hpp"
#include "mpi-adi/engine/op.hpp"

namespace viaduct::mpi {

class Schedule final : public Activity {
  public:
    explicit Schedule(Communicator& comm) : Schedule(comm, comm.next_tag()) {}
    // With a tag taken before.
    Schedule(Communicator& comm, int tag);
    ~Schedule() override;
    Schedule(const Schedule&) = delete;
    Schedule& operator=(const Schedule&) = delete;

    Communicator& comm() { return *comm_; }
    int tag() const { return tag_; }
    int rank() const { return messages_->rank; }
    int size() const { return messages_->size; }

    // Of a blocking call: what fills it may do all at once, and note the error.
    void will_block() { blocks_ = true; }
    bool blocks() const { return blocks_; }
    void note(int error) { error_ = error_ ? error_ : error; }

    // Steps. Peers are ranks of the communicator messages go through, or MPI_PROC_NULL.
    void send(const void* buffer, MPI_Count count, const Datatype& type, int peer);
    void recv(void* buffer, MPI_Count count, const Datatype& type, int peer);
    // All of it or an error, and then nothing but empty messages from here on, so that the error reaches those behind.
    // Alone in its round.
    void recv_whole(void* buffer, MPI_Count count, const Datatype& type, int peer);
    void copy(const void* in, MPI_Count in_count, const Datatype& in_type, void* out, MPI_Count out_count,
              const Datatype& out_type);
    void reduce(const void* in, void* inout, MPI_Count count, const Datatype& type, Operator& op);
    void call(std::function<int()> function);
    void round();

    // Memory that lives as long as the schedule.
    char* bytes(size_t n);
    // Room for items of a type, as an address that serves as their buffer.
    char* items(MPI_Count count, const Datatype& type);

    // Messages of the steps that follow go through another communicator (the local half of an inter-communicator).
    void through(Communicator& comm) { messages_ = &comm; }
    // Keeps a datatype or an operator that the program may free before a non-blocking operation is complete.
    const Datatype& keep(const Datatype& type);
    Operator& keep(Operator& op);

    // Runs to the end.
    [[nodiscard]] int run();
    [[nodiscard]] bool advance(int* error) override;
    void add_awaited(Awaited& what) const override;
    // From the first step again, once it has run to the end.
    void rewind();

  private:
    enum class Kind : unsigned char { send, recv, copy, reduce, call, round };
    struct Step {
        Kind kind;
        int peer;
        Communicator* comm;
        const void* in;
        void* out;
        MPI_Count count;
        const Datatype* type;
        MPI_Count out_count;
        const Datatype* out_type;
        Operator* op;
        bool whole = false;
    };

    [[nodiscard]] int local(const Step& step);
    Payload payload(const Step& step) const;
    Request* begin(const Step& step);
    [[nodiscard]] int check_whole(const Step& step, const MPI_Status& status, int error);
    void begin_all(size_t first, size_t last);
    [[nodiscard]] int run_round(size_t first, size_t last);
    Communicator* comm_;
    Communicator* messages_;
    int tag_;
    int error_ = MPI_SUCCESS;
    bool broken_ = false;  // what was to be passed on has not come
    bool blocks_ = false;
    size_t at_ = 0;
    // The steps of most operations lie in the schedule itself.
    static constexpr size_t kOwnSteps = 16;
    alignas(Step) std::byte room_[kOwnSteps * sizeof(Step)];
    std::pmr::monotonic_buffer_resource step_memory_{room_, sizeof room_};
    std::pmr::vector<Step> steps_{&step_memory_};
    std::vector<Request*> pending_;
    const Step* whole_ = nullptr;  // whose request is under way, when it must bring all
    std::vector<std::function<int()>> calls_;
    std::vector<std::unique_ptr<char[]>> memory_;
    std::vector<const Datatype*> types_;
    std::vector<Operator*> operators_;
    alignas(16) char small_[256];
    size_t small_used_ = 0;
};

// One run of a schedule that outlives it, of a persistent operation.
class OneRun final : public Activity {
  public:
    explicit OneRun(std::shared_ptr<Schedule> schedule) : schedule_(std::move(schedule)) { schedule_->rewind(); }
    [[nodiscard]] bool advance(int* error) override { return schedule_->advance(error); }

  private:
    const std::shared_ptr<Schedule> schedule_;
};

}  // namespace viaduct::mpi
