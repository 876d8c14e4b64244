// SPDX-License-Identifier: BSD-2-Clause
// Wire-up: how the processes of a job find each other. One interface over the launchers' protocols: PMI-1
// lines (Hydra, srun), PMIx (mpirun, srun), and a process started alone. The engine uses it from one thread,
// at the start and at the end of a job; nothing that is fast goes through it (spec/mpi 1).
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace viaduct::rte {

// Processes that a job starts: so many of one program, with hints for the launcher ("host", "wdir", "path", ...).
struct Command {
    std::string program;
    std::vector<std::string> arguments;
    int processes = 0;
    std::vector<std::pair<std::string, std::string>> hints;
};

class Runtime {
public:
    // What a launcher answers about a service name; none: it keeps no names.
    enum class Answer { done, refused, none };

    Runtime() = default;
    Runtime(const Runtime&) = delete;
    Runtime& operator=(const Runtime&) = delete;
    virtual ~Runtime() = default;

    int rank() const { return rank_; }
    int size() const { return size_; }
    // By rank: a number that two ranks share exactly when they run on one node. A launcher that does not tell
    // leaves every rank on a node of its own.
    const std::vector<int>& nodes() const { return nodes_; }
    // A name no other job on these nodes has, alike in all processes of this one.
    const std::string& job() const { return job_; }
    // What MPI's attributes of these names say; none when the launcher does not say.
    std::optional<int> universe_size() const { return universe_size_; }
    std::optional<int> appnum() const { return appnum_; }
    // "pmi1", "pmix" or "alone".
    virtual const char* name() const = 0;

    // Publishes bytes (any, any number) under a word without blanks; the others see them after the next
    // fence.
    [[nodiscard]] virtual bool put(std::string_view key, std::string_view value) = 0;
    // Waits until all processes of the job have come here.
    [[nodiscard]] virtual bool fence() = 0;
    // What `rank` published before the last fence; none when there is no such thing or it is damaged.
    virtual std::optional<std::string> get(int rank, std::string_view key) = 0;
    // Service names, for jobs of one launcher.
    virtual Answer publish(const std::string&, const std::string&) { return Answer::none; }
    virtual Answer unpublish(const std::string&) { return Answer::none; }
    virtual Answer lookup(const std::string&, std::string*) { return Answer::none; }
    // Starts a further job of all these processes; parent_port() tells them `port`.
    virtual bool spawn(const std::vector<Command>&, const std::string&) {
        return fail("no launcher that could start processes started this one");
    }
    // Of a process that was started so.
    virtual std::optional<std::string> parent_port() { return std::nullopt; }
    // Leaves the job in order. Only the destructor may follow.
    [[nodiscard]] virtual bool finalize() = 0;
    // For a process that ends without having left: waits until all processes of the job are here, at most so long, and
    // leaves in order. False when some do not come, or the launcher has no such wait.
    [[nodiscard]] virtual bool leave_with_all(std::chrono::milliseconds /*at_most*/) { return false; }
    // Ends the whole job with this code, and this process at once.
    [[noreturn]] virtual void abort(int code, const std::string& why) = 0;

    // Why the last call that answered false or nothing failed.
    const std::string& error() const { return error_; }

protected:
    bool fail(std::string why) {
        error_ = std::move(why);
        return false;
    }

    int rank_ = 0;
    int size_ = 1;
    std::vector<int> nodes_{0};
    std::string job_;
    std::optional<int> universe_size_;
    std::optional<int> appnum_;
    std::string error_;
};

// Joins the job this process was started in, as the environment tells: PMIX_NAMESPACE, else PMI_FD, else
// alone. Null, with the reason in *error, when there is a launcher but no agreement with it.
std::unique_ptr<Runtime> join(std::string* error);

}  // namespace viaduct::rte
