// SPDX-License-Identifier: BSD-2-Clause
// How files of others are closed; see foreign_files.hpp.
#include "core/shm/foreign_files.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"

namespace viaduct {

namespace {

constexpr int64_t kMuchMemory = int64_t{16} << 20;  // giving it back takes milliseconds
constexpr int kWake = SIGURG;                       // ignored unless caught, and sent by no other code
constexpr int kDeepest = 8;                         // sockets in sockets: the kernel allows four
constexpr int kMostMessages = 1024;                 // emptied from one socket

bool is_memory(const Fd& file) {
    return ::fcntl(file.get(), F_GET_SEALS) >= 0;
}  // memfd_create(2), tmpfs, huge pages

// On a closer's thread: takes from a file what makes its closing wait. What its owner does at the same time
// may undo it; then this thread hangs.
void drain(const Fd& file, int depth) {
    int domain = 0;
    socklen_t length = sizeof domain;
    if (::getsockopt(file.get(), SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0) return;
    const linger off{0, 0};
    ::setsockopt(file.get(), SOL_SOCKET, SO_LINGER, &off, sizeof off);
    if (domain != AF_UNIX || depth == kDeepest) return;
    for (int i = 0; i < kMostMessages; ++i) {
        constexpr size_t kMostFiles = 253;  // SCM_MAX_FD
        char byte = 0;
        iovec piece{&byte, 1};
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostFiles)];
        msghdr message{};
        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        // A message may be empty, and an error of the connection comes before what is in the socket.
        if (::recvmsg(file.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0 && errno != ECONNRESET)
            return;
        for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
            if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
            const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (size_t k = 0; k < count; ++k) {
                int fd = -1;
                std::memcpy(&fd, CMSG_DATA(c) + k * sizeof fd, sizeof fd);
                const Fd inner(fd);
                drain(inner, depth + 1);
            }
        }
    }
}

}  // namespace

bool is_memory_or_event(const Fd& file) {
    if (is_memory(file)) return true;
    char target[64];
    const std::string link = "/proc/self/fd/" + std::to_string(file.get());
    const ssize_t n = ::readlink(link.c_str(), target, sizeof target);
    return n > 0 && std::string_view(target, static_cast<size_t>(n)) == "anon_inode:[eventfd]";
}

bool closes_at_once(const Fd& file) {
    if (!is_memory(file)) return is_memory_or_event(file);
    struct stat s {};
    return ::fstat(file.get(), &s) == 0 && s.st_blocks < kMuchMemory / 512;
}

bool brings_files(int socket) {
    char byte = 0;
    iovec piece{&byte, 1};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    // Without room for them none is made here; that there are some is still told. An error of the connection
    // comes before what is in the socket, once.
    ssize_t n = ::recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && errno == ECONNRESET) n = ::recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT);
    return n >= 0 && (message.msg_flags & MSG_CTRUNC) != 0;
}

struct Closers::State {
    struct User {
        std::deque<Fd> files;
        size_t threads = 0;  // each with one more of them
    };
    struct Thread {
        pthread_t id{};
        int64_t since = 0;  // 0: between two files
    };

    std::mutex lock;
    std::map<uid_t, User> users;
    std::list<Thread> threads;
    uid_t last = 0;  // whose file was taken last: the next one's turn

    // Under the lock. A user with something to close and not too many threads at it.
    std::map<uid_t, User>::iterator next() {
        const auto may = [](const auto& u) {
            return !u.second.files.empty() && u.second.threads < kThreadsOfOneUser;
        };
        const auto after = users.upper_bound(last);
        const auto found = std::find_if(after, users.end(), may);
        if (found != users.end()) return found;
        const auto again = std::find_if(users.begin(), after, may);
        return again == after ? users.end() : again;
    }

    void work(std::list<Thread>::iterator self) {
        std::unique_lock held(lock);
        for (auto u = next(); u != users.end(); u = next()) {
            last = u->first;
            Fd file = std::move(u->second.files.front());
            u->second.files.pop_front();
            ++u->second.threads;
            self->since = now_ns();
            held.unlock();
            drain(file, 0);
            file.reset();
            held.lock();
            self->since = 0;
            --u->second.threads;
            if (u->second.files.empty() && u->second.threads == 0) users.erase(u);
        }
        threads.erase(self);
    }

    struct Start {
        std::shared_ptr<State> state;
        std::list<Thread>::iterator self;
    };

    static void* run(void* argument) {
        const std::unique_ptr<Start> start(static_cast<Start*>(argument));
        start->state->work(start->self);
        return nullptr;
    }

    // Under the lock: a thread more, where there is work for it and room.
    static void start_thread(const std::shared_ptr<State>& state) {
        if (state->threads.size() >= kThreads || state->next() == state->users.end()) return;
        // Signals are for the threads that expect them: the new one takes over that all but one are blocked.
        sigset_t most, before;
        ::sigfillset(&most);
        ::sigdelset(&most, kWake);
        ::pthread_sigmask(SIG_BLOCK, &most, &before);
        const auto self = state->threads.emplace(state->threads.end());
        auto start = std::make_unique<Start>(Start{state, self});
        if (::pthread_create(&self->id, nullptr, run, start.get()) == 0) {
            (void)start.release();  // the thread has it
            ::pthread_detach(self->id);
        } else {
            state->threads.erase(self);  // look() tries again
        }
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
};

Closers::Closers() : state_(std::make_shared<State>()) {
    struct sigaction wake {};
    wake.sa_handler = [](int) {};
    ::sigaction(kWake, &wake, nullptr);
}

void Closers::close(uid_t user, std::vector<Fd> files) {
    std::erase_if(files, [](const Fd& f) { return !f.valid() || closes_at_once(f); });
    if (files.empty()) return;
    const std::lock_guard held(state_->lock);
    auto& his = state_->users[user].files;
    for (Fd& f : files) his.push_back(std::move(f));
    State::start_thread(state_);
}

void Closers::close_socket(uid_t user, Fd socket) {
    if (!socket.valid()) return;
    ::shutdown(socket.get(), SHUT_RDWR);
    // With these each message, an empty one too, has something to tell beside its bytes.
    const int on = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    if (!brings_files(socket.get())) return;
    std::vector<Fd> alone;
    alone.push_back(std::move(socket));
    close(user, std::move(alone));
}

size_t Closers::waiting(uid_t user) const {
    const std::lock_guard held(state_->lock);
    const auto u = state_->users.find(user);
    return u == state_->users.end() ? 0 : u->second.files.size() + u->second.threads;
}

bool Closers::busy() const {
    const std::lock_guard held(state_->lock);
    return !state_->users.empty();
}

size_t Closers::threads() const {
    const std::lock_guard held(state_->lock);
    return state_->threads.size();
}

void Closers::look(int64_t now) {
    const std::lock_guard held(state_->lock);
    for (const State::Thread& t : state_->threads)
        if (t.since != 0 && now - t.since > limit_ns(TimeLimit::file_closing)) ::pthread_kill(t.id, kWake);
    State::start_thread(state_);
}

}  // namespace viaduct
