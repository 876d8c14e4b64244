// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/user_agent.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <memory>
#include <new>

#include "core/log/log.hpp"
#include "core/process/helper_threads.hpp"
#include "core/sync/biased_lock.hpp"
#include "core/wait/crowd_score.hpp"
#include "vipl/last_thread.hpp"
#include "vipl/thread.hpp"
#include "vipl/why.hpp"

namespace viaduct::vipl {
namespace {

// What an epoll event is about: a watch's number, or one of these two.
constexpr uint64_t kWake = uint64_t{1} << 32;
constexpr uint64_t kAgent = uint64_t{2} << 32;

// Without events, whether the program has ended is looked at so often (ms).
constexpr int kLookForTheProgram = 1000;

// The thread is the library's: it does not end the program when memory is short.
template <class Work>
void without_end(const Work& work) {
    try {
        work();
    } catch (const std::exception&) {
        VIADUCT_LOG(error, "events", "no memory: an event is not dealt with");
    }
}

// The context of a request to connect, or to wait for one; 0: the request is about something else.
uint64_t asks_to_connect(const Mail& request) {
    kagent::ConnWait wait;
    kagent::ConnRequest connect;
    switch (request.type()) {
        case kagent::Type::kConnWait:
            return request.get(&wait) ? wait.context_id : 0;
        case kagent::Type::kConnRequest:
        case kagent::Type::kConnPeer:
            return request.get(&connect) ? connect.context_id : 0;
        default:
            return 0;
    }
}

bool add_to(int epoll, int fd, uint32_t events, uint64_t subject) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = subject;
    return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

// A set has no inode of its own. It is ours if the wake-up descriptor, which has one, is in it.
bool EventThread::is_whole() const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kWake;
    return wake_.is_ours() && epoll_.is_ours() &&
           ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, wake_.fd(), &event) == 0;
}

Status EventThread::mend() {
    if (is_whole()) return Status::ok;
    if (turn_ != 0)
        VIADUCT_LOG(warn, "events", "the program has closed descriptors of the library: new ones are made");
    epoll_.release();  // closed, or perhaps not ours
    epoll_ = KeptFd(Fd(above_stdio(::epoll_create1(EPOLL_CLOEXEC))));
    if (!epoll_.valid() || !wake_.open() || !add_to(epoll_.get(), wake_.fd(), EPOLLIN, kWake))
        return Status::out_of_resources;
    // What the program has closed is watched no longer; the others are.
    for (auto& [id, watch] : watches_) {
        if (watch.fd.is_ours()) add_to(epoll_.get(), watch.fd.get(), EPOLLIN, id);
    }
    followed_epoch_ = 0;
    std::unique_ptr<Turn> turn(new (std::nothrow) Turn{this, ++turn_});
    if (!turn) return Status::out_of_resources;
    const Status started = start_thread(
        "vipl-events", kSmallStack,
        [](void* raw) {
            const std::unique_ptr<Turn> own(static_cast<Turn*>(raw));
            own->self->run(own->number);
        },
        turn.get());
    if (started == Status::ok) (void)turn.release();  // the thread has it
    wake_.signal();  // the agent's socket has to be watched, too
    return started;
}

void EventThread::reset_after_fork() {
    is_whole() ? epoll_.reset() : epoll_.release();
    wake_.reset();
    for (auto& [id, watch] : watches_) watch.fd.reset();
    mutex_.unlock();
}

void EventThread::wake() {
    const std::lock_guard lock(mutex_);
    if (mend() == Status::ok) wake_.signal();
}

// The socket of a dead agent has left the epoll set by being closed; the new one is added here.
// Edge-triggered: a thread that waits for an answer may have read it first, and then there is nothing to do.
void EventThread::follow_agent() {
    const uint64_t epoch = link_.epoch();
    const int socket = link_.socket();
    {
        const std::lock_guard lock(mutex_);
        const std::pair now{epoch, socket >= 0};
        if (now != told_of_ && other_agent_()) told_of_ = now;
        if (epoch == followed_epoch_ || socket < 0 || !is_whole()) return;
        if (!add_to(epoll_.get(), socket, EPOLLIN | EPOLLRDHUP | EPOLLET, kAgent) && errno != EEXIST)
            VIADUCT_LOG(error, "events", "the agent's socket cannot be watched: errno %d", errno);
        followed_epoch_ = epoch;
    }
    link_.pump();
}

// mutex_ held. Closing alone would not take it out of the epoll set: the agent and other processes hold the
// same description, and as long as one of them does, a dead peer's would make us spin. What is not in
// the set is not ours.
void EventThread::end_watch(Watches::iterator watch) {
    KeptFd& fd = watch->second.fd;
    if (!is_whole() || !fd.is_ours() || ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd.get(), nullptr) != 0)
        fd.release();
    watches_.erase(watch);
}

void EventThread::fire(uint32_t watch_id) {
    void (*fired)(void*) = nullptr;
    void* argument = nullptr;
    {
        const std::lock_guard lock(mutex_);
        const auto found = watches_.find(watch_id);
        if (found == watches_.end()) return;
        fired = found->second.fired;
        argument = found->second.argument;
        end_watch(found);
        firing_ = watch_id;
    }
    without_end([&] { fired(argument); });
    {
        const std::lock_guard lock(mutex_);
        firing_ = 0;
    }
    fired_.notify_all();
}

void EventThread::defer(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    deferred_.push_back(std::move(task));
    if (mend() == Status::ok) wake_.signal();
}

void EventThread::do_deferred() {
    std::vector<std::function<void()>> tasks;
    {
        const std::lock_guard lock(mutex_);
        tasks.swap(deferred_);
    }
    for (const auto& task : tasks) without_end(task);
}

// A program that waits for calls of ours lives on without a thread of its own; its signals are taken here.
void EventThread::look_for_the_program() {
    if (ending_ || !only_helpers_are_left()) return;
    if (expects_calls_()) return take_signals();
    ending_ = end_process();
}

// The set to wait on; -1: another thread has taken our place.
int EventThread::set_of(uint64_t turn) {
    const std::lock_guard lock(mutex_);
    if (turn != turn_ || mend() != Status::ok || turn != turn_) return -1;
    return epoll_.get();
}

void EventThread::run(uint64_t turn) {
    {
        const std::lock_guard lock(mutex_);
        thread_id_ = thread_identity();
    }
    for (;;) {
        const int set = set_of(turn);
        if (set < 0) return;
        epoll_event events[16];
        const int count = ::epoll_wait(set, events, 16, kLookForTheProgram);
        if (count == 0) without_end([this] { look_for_the_program(); });
        for (int i = 0; i < count; ++i) {
            const uint64_t subject = events[i].data.u64;
            if (subject == kWake) {
                const std::lock_guard lock(mutex_);
                if (turn == turn_) wake_.clear();
            } else if (subject == kAgent) {
                without_end([this] { link_.pump(); });
            } else {
                fire(static_cast<uint32_t>(subject));
            }
        }
        do_deferred();
        without_end([this] { follow_agent(); });
        without_end(turn_over_);
    }
}

Status EventThread::agent_start(const Mail& request, uint32_t* ticket, Deadline deadline) {
    if (const uint64_t context_id = asks_to_connect(request); context_id != 0 && deadline != kOnlyConnected) {
        if (const Status known = connect_request_(context_id, deadline); known != Status::ok) return known;
    }
    Mail copy;
    copy.header = request.header;
    copy.payload = request.payload;
    for (const Fd& fd : request.descriptors) copy.descriptors.push_back(Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3)));
    return link_.start(std::move(copy), ticket, deadline);
}

Status EventThread::agent_await(uint32_t ticket, Deadline deadline, Mail* answer) {
    return link_.await(ticket, deadline, answer);
}

void EventThread::agent_abandon(uint32_t ticket, LateAnswer late, uint64_t argument) {
    if (late == nullptr) return link_.abandon(ticket);
    link_.abandon(ticket, [this, late, argument](Mail& answer) { late(*this, answer, argument); });
}

Status EventThread::watch(int fd, void (*fired)(void*), void* argument, uint32_t* watch_id) {
    KeptFd owned{Fd(fd)};
    const std::lock_guard lock(mutex_);
    if (mend() != Status::ok) return Status::out_of_resources;
    const uint32_t id = next_watch_++;
    // Its place first: a descriptor in the set that no watch has could not be taken out any more.
    const auto place = watches_.emplace(id, Watch{std::move(owned), fired, argument}).first;
    if (!add_to(epoll_.get(), fd, EPOLLIN, id)) {
        watches_.erase(place);
        return Status::out_of_resources;
    }
    *watch_id = id;
    return Status::ok;
}

void EventThread::unwatch(uint32_t watch_id) {
    std::unique_lock lock(mutex_);
    if (const auto found = watches_.find(watch_id); found != watches_.end()) end_watch(found);
    if (thread_id_ == thread_identity()) return;  // from inside a fired function: it cannot wait for itself
    fired_.wait(lock, [&] { return firing_ != watch_id; });
}

Status EventThread::spawn(const char* name, void (*body)(void*), void* argument) {
    return start_thread(name, kSmallStack, body, argument);
}

bool EventThread::crowded() { return viaduct::crowded(); }

void EventThread::nic_failed(uint64_t context_id) {
    defer([this, context_id] { nic_failed_(context_id); });
}

void EventThread::explain(const char* reason, const char* cure) { refuse_as_said(reason, cure); }

}  // namespace viaduct::vipl
