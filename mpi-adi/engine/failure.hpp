// SPDX-License-Identifier: BSD-2-Clause
// An error on its way from the place that finds it to the program. raise() notes which error handler is to be called;
// the MPI function calls it by settle() when its body has ended, because only there all arguments of the call are known
// for the text. Each thread has its own note and its own texts.
#pragma once

#include <string>

namespace viaduct::mpi {

struct Comm;
struct Request;

// Asks the error handler of an object; gives what the MPI function returns.
using Tell = int (*)(void* object, int code, const char* function);

// `held` is retained until the handler has been asked.
[[nodiscard]] int note_failure(Tell tell, void* object, Comm* held, int code, const char* function);
// Calls the noted handler; returns `code` itself when nothing was noted. What the handler throws passes unchanged.
[[nodiscard]] int settle_failure(int code);

// More than the class says about the error that this thread's call is about to end with.
void note_detail(std::string text) noexcept;
std::string take_detail() noexcept;
// The same of a receive that has failed.
[[gnu::cold]] void note_failed_request(const Request& request) noexcept;

// The text of this thread's last error of a class, until the next one; nothing when there is none.
void keep_failure_text(int code, std::string text);
const std::string* failure_text(int code);

}  // namespace viaduct::mpi
