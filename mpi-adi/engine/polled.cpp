// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/engine/polled.hpp"

#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/request.hpp"

namespace viaduct::mpi {
namespace {

int ask(Polled& polled) {
    MPI_Status status;
    fill_empty_status(&status);
    if (polled.poll_function != nullptr) return polled.poll_function(polled.extra_state, &status);
    constexpr double kAtOnce = 1e-9;  // seconds; 0 is taken for no limit
    return polled.wait_function(1, &polled.extra_state, kAtOnce, &status);
}

}  // namespace

void poll_from_now_on(std::shared_ptr<Polled> polled) { engine.polled.push_back(std::move(polled)); }

bool poll_generalized() {
    bool completed = false;
    // The functions may call MPI, which comes here again and may shorten the list. What they add waits for the
    // next pass.
    const size_t count = engine.polled.size();
    for (size_t i = 0; i < count && i < engine.polled.size(); i++) {
        const std::shared_ptr<Polled> polled = engine.polled[i];
        if (polled->inside || polled->over) continue;
        polled->inside = true;
        const int error = ask(*polled);
        polled->inside = false;
        // What its free function answers, when no call waits for the request, has no call to go to.
        if (error != MPI_SUCCESS && !polled->over) (void)complete_generalized(polled->request, error);
        completed |= polled->over;
    }
    std::erase_if(engine.polled, [](const auto& polled) { return polled->over && !polled->inside; });
    return completed;
}

int complete_generalized(Request* request, int error) {
    if (const auto& polled = request->generalized->polled) polled->over = true;
    if (!request->detached) {
        complete(request, error);
        return MPI_SUCCESS;
    }
    const Generalized g = *request->generalized;
    free_request(request);
    return g.free();
}

}  // namespace viaduct::mpi
