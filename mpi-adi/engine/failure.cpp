// SPDX-License-Identifier: BSD-2-Clause
// See failure.hpp.
#include "mpi-adi/engine/failure.hpp"

#include <map>
#include <utility>

#include "mpi-adi/engine/critical.hpp"
#include "mpi-adi/engine/error.hpp"
#include "mpi-adi/engine/request.hpp"

namespace viaduct::mpi {
namespace {

struct Noted {
    Tell tell = nullptr;
    void* object = nullptr;
    Comm* held = nullptr;
    const char* function = nullptr;
};

struct Own {
    Noted noted;
    std::string detail;
    std::map<int, std::string> texts;
};
thread_local Own own;

Noted take_noted() { return std::exchange(own.noted, {}); }

void let_go(const Noted& noted) {
    if (noted.held != nullptr) comm_release(*noted.held);
}

}  // namespace

int note_failure(Tell tell, void* object, Comm* held, int code, const char* function) {
    if (held != nullptr) comm_retain(*held);
    let_go(take_noted());  // an earlier error that the function has overcome
    own.noted = {tell, object, held, function};
    return code;
}

int settle_failure(int code) {
    const Critical guard;
    struct Leaving {
        Noted noted;
        ~Leaving() { let_go(noted); }
    } const leaving{take_noted()};
    if (leaving.noted.tell == nullptr) return code;
    try {
        return leaving.noted.tell(leaving.noted.object, code, leaving.noted.function);
    } catch (const FromHandler& thrown) {
        std::rethrow_exception(thrown.exception);
    }
}

void note_detail(std::string text) noexcept { own.detail = std::move(text); }
std::string take_detail() noexcept { return std::exchange(own.detail, {}); }

void note_failed_request(const Request& request) noexcept try {
    if (request.r_error != MPI_ERR_TRUNCATE || request.kind != Request::Kind::receive) return;
    std::string text = std::move(own.detail);  // of another request of the same call
    if (!text.empty()) text += '\n';
    text += "Message from rank " + std::to_string(request.r_rank) + " and tag " + std::to_string(request.r_tag) +
            " truncated; " + std::to_string(request.r_expected) + " bytes received but buffer size is " +
            std::to_string(request.r_bytes);
    own.detail = std::move(text);
} catch (const std::bad_alloc&) {
}

void keep_failure_text(int code, std::string text) { own.texts[code] = std::move(text); }

const std::string* failure_text(int code) {
    const auto found = own.texts.find(code);
    return found == own.texts.end() ? nullptr : &found->second;
}

}  // namespace viaduct::mpi
