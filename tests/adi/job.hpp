// SPDX-License-Identifier: BSD-2-Clause
// A job of forked processes for the tests of the device: shared memory stands in for the launcher (exchange,
// barrier), and the parent sees to it that all end, in time, with 0.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace viaduct::adi_test {

struct Shared;

class Job {
public:
    Job(Shared* shared, int rank, int size) : shared_(shared), rank_(rank), size_(size) {}
    int rank() const { return rank_; }
    int size() const { return size_; }
    // One put and one fence: the text of each process, in rank order.
    std::vector<std::string> exchange(const std::string& mine);
    void barrier();
    // A word all processes share, for tests that need to tell each other something outside the device.
    int* word();
    void say(int what);
    // Until a process has said that, without progress.
    void await(int what);
    // Until a process has said its number, without progress. Returns it.
    pid_t await_process();
    // Until a process that has said its number has ended.
    void await_end(pid_t process);
    int said();

private:
    Shared* shared_;
    int rank_, size_;
};

// Ends the process with a sentence.
[[noreturn]] void fail(const char* file, int line, const char* what);
#define CHECK(condition) ((condition) ? void() : viaduct::adi_test::fail(__FILE__, __LINE__, #condition))

// Runs body in `size` processes. Those in `killed` are expected to die by SIGKILL; `word` gets what is in
// Job::word at the end. 0: all went well.
int run_job(const char* name, int size, int seconds, const std::function<void(Job&)>& body,
            const std::vector<int>& killed = {}, int* word = nullptr);

}  // namespace viaduct::adi_test
