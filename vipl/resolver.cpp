// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/resolver.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <system_error>

#include "core/log/log.hpp"
#include "vipl/thread.hpp"

namespace viaduct::vipl {
namespace {

struct Question {
    explicit Question(const char* host) : name(host) {}

    const std::string name;
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    bool short_of_memory = false;
    std::vector<IpAddress> found;
};

std::vector<IpAddress> addresses_in(const addrinfo* list) {
    std::vector<IpAddress> all;
    for (const addrinfo* a = list; a != nullptr; a = a->ai_next) {
        IpAddress ip;
        if (a->ai_family == AF_INET) {
            ip.length = 4;
            std::memcpy(ip.bytes.data(), &reinterpret_cast<const sockaddr_in*>(a->ai_addr)->sin_addr, 4);
        } else if (a->ai_family == AF_INET6) {
            ip.length = 16;
            std::memcpy(ip.bytes.data(), &reinterpret_cast<const sockaddr_in6*>(a->ai_addr)->sin6_addr, 16);
        }
        if (ip.length != 0) all.push_back(ip);
    }
    return all;
}

void ask(void* argument) {
    const std::unique_ptr<std::shared_ptr<Question>> mine(static_cast<std::shared_ptr<Question>*>(argument));
    Question& question = **mine;
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* raw = nullptr;
    const int answer = ::getaddrinfo(question.name.c_str(), nullptr, &hints, &raw);
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(answer == 0 ? raw : nullptr, ::freeaddrinfo);
    std::vector<IpAddress> found;
    bool short_of_memory = answer == EAI_MEMORY;
    try {
        found = addresses_in(list.get());
    } catch (const std::exception&) {  // the call that waits for this thread reports it
        short_of_memory = true;
    }
    const std::lock_guard lock(question.mutex);
    question.found = std::move(found);
    question.short_of_memory = short_of_memory;
    question.done = true;
    question.changed.notify_all();
}

}  // namespace

std::vector<IpAddress> resolve(const char* name, Deadline deadline) {
    const auto question = std::make_shared<Question>(name);
    auto handed = std::make_unique<std::shared_ptr<Question>>(question);
    if (start_thread("vipl-resolver", kDefaultStack, ask, handed.get()) != Status::ok)
        throw std::system_error(errno, std::generic_category());
    (void)handed.release();  // the thread has it
    std::unique_lock lock(question->mutex);
    const auto end = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline));
    if (!question->changed.wait_until(lock, end, [&] { return question->done; })) {
        VIADUCT_LOG(warn, "names", "the system's resolver does not answer for '%s'", name);
        return {};
    }
    if (question->short_of_memory) throw std::bad_alloc();
    return question->found;
}

}  // namespace viaduct::vipl
