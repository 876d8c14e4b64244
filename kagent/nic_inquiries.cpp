// SPDX-License-Identifier: BSD-2-Clause
// Threads that ask providers; see nic_inquiries.hpp.
#include "kagent/nic_inquiries.hpp"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "core/clock/clock.hpp"
#include "core/shm/fd.hpp"

namespace viaduct::kagent {

struct NicInquiries::State {
    struct Inquiry {
        bool runs = false;
        bool again = false;
        std::optional<NicAnswer> answer;
    };
    struct Start {
        std::shared_ptr<State> state;
        size_t number;
        const Provider* provider;
        const Settings* settings;
    };

    Fd event;
    mutable std::mutex lock;
    std::map<size_t, Inquiry> inquiries;  // by provider; entries stay

    void signal() const {
        const uint64_t one = 1;
        (void)!::write(event.get(), &one, sizeof one);
    }
    void clear() const {
        uint64_t count = 0;
        (void)!::read(event.get(), &count, sizeof count);
    }

    // Keeps the answer. Allocates nothing. True: the provider is to be asked once more.
    bool keep(size_t number, NicAnswer&& answer) {
        const std::lock_guard held(lock);
        Inquiry& inquiry = inquiries.at(number);
        inquiry.answer = std::move(answer);
        inquiry.runs = std::exchange(inquiry.again, false);
        signal();
        return inquiry.runs;
    }

    static void* run(void* argument) {
        const std::unique_ptr<Start> start(static_cast<Start*>(argument));
        while (start->state->keep(start->number, ask_for_nics(*start->provider, *start->settings))) {
        }
        return nullptr;
    }

    static bool start_thread(std::unique_ptr<Start> start) {
        // Signals are for the agent's loop: the new thread inherits a mask that blocks all of them.
        sigset_t all, before;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_BLOCK, &all, &before);
        pthread_t thread{};
        const bool started = ::pthread_create(&thread, nullptr, run, start.get()) == 0;
        if (started) {
            (void)start.release();  // the thread has it
            ::pthread_detach(thread);
        }
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
        return started;
    }
};

NicInquiries::NicInquiries() : state_(std::make_shared<State>()) {}

int NicInquiries::fd() const { return state_->event.get(); }

bool NicInquiries::ask(size_t number, const Provider& provider, const Settings& settings) {
    // No thread uses it yet.
    if (!state_->event.valid()) state_->event = Fd(above_stdio(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
    if (!state_->event.valid()) return false;
    auto start = std::make_unique<State::Start>(State::Start{state_, number, &provider, &settings});
    const std::lock_guard held(state_->lock);
    State::Inquiry& inquiry = state_->inquiries[number];
    if (inquiry.runs) {
        inquiry.again = true;
        return true;
    }
    inquiry.runs = State::start_thread(std::move(start));
    return inquiry.runs;
}

bool NicInquiries::busy() const {
    const std::lock_guard held(state_->lock);
    return std::any_of(state_->inquiries.begin(), state_->inquiries.end(),
                       [](const auto& entry) { return entry.second.runs; });
}

std::vector<NicInquiries::Answer> NicInquiries::take() {
    state_->clear();
    std::vector<Answer> answers;
    const std::lock_guard held(state_->lock);
    answers.reserve(state_->inquiries.size());  // memory runs short before an answer has been moved
    for (auto& [number, inquiry] : state_->inquiries) {
        if (!inquiry.answer) continue;
        answers.push_back({number, std::move(*inquiry.answer)});
        inquiry.answer.reset();
    }
    return answers;
}

void NicInquiries::await(Deadline deadline) const {
    while (busy()) {
        const int64_t left = remaining_ns(deadline);
        if (left == 0) return;
        const timespec time = timespec_of(left);
        pollfd event{state_->event.get(), POLLIN, 0};
        if (::ppoll(&event, 1, left < 0 ? nullptr : &time, nullptr) > 0) state_->clear();
    }
}

}  // namespace viaduct::kagent
