// SPDX-License-Identifier: BSD-2-Clause
// Partitioned communication (MPI 4.0, chapter 4): a persistent message whose parts the program hands over one by one.
// Each part of the sender travels as a message of its own as soon as it is ready. The sender tells the receiver once,
// when both have made their requests, how it has divided the message and which tags its parts have.
#pragma once

#include <memory>
#include <vector>

#include "mpi-adi/engine/communicator.hpp"
#include "mpi-adi/engine/datatype.hpp"

namespace viaduct::mpi {

class Partitioned : public std::enable_shared_from_this<Partitioned> {
  public:
    // The type is kept. Called in the same order by both sides, which is how they find each other.
    static std::shared_ptr<Partitioned> send(Communicator& comm, int peer, int tag, const void* buffer, int partitions,
                                             MPI_Count count, const Datatype& type);
    static std::shared_ptr<Partitioned> receive(Communicator& comm, int peer, int tag, void* buffer, int partitions,
                                                MPI_Count count, const Datatype& type);
    ~Partitioned();

    bool sends() const { return sends_; }
    int partitions() const { return partitions_; }
    // The request that shows it to the program, known once that is made.
    void belongs_to(Request* owner) { owner_ = owner; }

    // One round, from MPI_Start to the end: what makes it is given to the request.
    Activity* begin();
    // False: the partition was handed over already in this round.
    bool ready(int partition);
    // Whether all of one of the receiver's partitions is there.
    bool arrived(int partition);
    void add_awaited(Awaited& what) const;

  private:
    class Round;
    // What the sender tells; on the wire of machines of one kind only, as all of a job are.
    struct Plan {
        int64_t first_tag;
        int64_t partitions;
        int64_t bytes;  // of each
    };
    struct Part {
        Request* request = nullptr;
        bool given = false;  // to the transport
        bool done = false;
        std::unique_ptr<char[]> packed;
    };
    struct Introduction;

    Partitioned(Communicator& comm, bool sends, int peer, int tag, void* buffer, int partitions, MPI_Count count,
                const Datatype& type);
    [[nodiscard]] bool know_plan();
    void post_parts();
    void end_part(int64_t index, int* error);
    [[nodiscard]] bool advance(int* error);
    int part_tag(int64_t index) const;

    Communicator& comm_;
    const bool sends_;
    const int peer_;
    const int tag_;
    char* const buffer_;
    const int partitions_;
    const MPI_Count count_;
    const Datatype& type_;
    Request* owner_ = nullptr;
    Plan plan_{};
    bool plan_known_ = false;
    bool posted_ = false;  // the receives of this round
    int error_ = MPI_SUCCESS;
    std::unique_ptr<Introduction> introduction_;  // of a receiver, until the plan is known
    std::vector<Part> parts_;
};

}  // namespace viaduct::mpi
