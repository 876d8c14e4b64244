// SPDX-License-Identifier: BSD-2-Clause
// A collective access. The processes first tell each other which part of the file they access. Where their pieces
// interleave, some of them, the aggregators, each take a part of the file and go through it window by window: the
// others send them the data for that window, or request the data that they need from it, so that the file gets few
// large accesses. Otherwise each process accesses the file itself.
#pragma once

#include <memory>
#include <vector>

#include "mpi-adi/engine/coll/schedule.hpp"
#include "mpi-adi/engine/io/access.hpp"
#include "mpi-adi/engine/io/file.hpp"
#include "mpi-adi/engine/io/window_pieces.hpp"
#include "mpi-adi/engine/io/worker.hpp"

namespace viaduct::mpi::io {

class Collective {
public:
    // With an error, this process takes part without data, and the error is its result at the end. `access` outlives
    // this.
    Collective(File& file, Access& access, int error, Job::Where where);
    ~Collective();
    Collective(const Collective&) = delete;
    Collective& operator=(const Collective&) = delete;

    // As an Activity: without waiting, true when finished.
    [[nodiscard]] bool advance(int* error);

private:
    enum class Stage { plan, alone, sizes, exchange, access, reply, agree, finished };
    struct Plan {
        int64_t first,
            last;  // bytes [first, last) of the file hold all that this process accesses; equal: nothing
        int64_t piece_bytes;  // in one piece, on average
        int64_t can_exchange;
    };
    struct Sizes {
        int64_t pieces, bytes;
    };

    // Each begins a stage; the stage is over when what it started is done.
    void begin_plan();
    void begin_alone();
    void begin_round();
    void begin_exchange();
    void begin_access();
    void begin_reply();
    void take_replies();
    void begin_agreement();
    void step();
    bool stage_done();

    bool worth_exchanging() const;
    void divide();
    Extent window_of(size_t aggregator, int64_t round) const;
    bool aggregates() const { return own_part_ >= 0; }
    // Bytes of the stream that this process has in a window.
    Extent stream_part(const Extent& window) const;
    void note(int error) { error_ = error_ != MPI_SUCCESS ? error_ : error; }
    void post_send(const void* data, int64_t bytes, int rank);
    void post_receive(void* data, int64_t bytes, int rank);
    // Waits for nothing: true when all are done; then their lengths are in lengths_.
    bool requests_done();

    Communicator& comm_;
    Access& access_;
    const Job::Where where_;
    const Tuning tuning_;
    const std::vector<int> aggregators_;
    const bool several_hosts_;
    const int tag_;
    Stage stage_ = Stage::plan;
    int error_;
    int own_error_ = MPI_SUCCESS;     // as it was told the others
    int agreed_error_ = MPI_SUCCESS;  // the largest of all

    Plan own_plan_{};
    std::vector<Plan> plans_;
    std::unique_ptr<Schedule> schedule_;
    Job job_;

    int64_t begin_ = 0, part_bytes_ = 0, end_ = 0;  // of the file; each aggregator's part of it
    int64_t round_ = 0, rounds_ = 0;
    int own_part_ = -1;

    // Of a round: what this process sends to each, and what it receives from each.
    std::vector<Sizes> sizes_out_, sizes_in_;
    std::vector<std::vector<Piece>> lists_out_;
    std::vector<std::unique_ptr<char[]>> staged_;  // by aggregator, where the stream is not in one piece
    std::unique_ptr<WindowPieces> window_;         // of an aggregator
    std::vector<Request*> requests_;
    std::vector<int64_t> lengths_;  // of the data that came, by request
};

}  // namespace viaduct::mpi::io
