// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/engine/dynamic/port.hpp"

#include <mpi.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>

#include "core/clock/limits.hpp"
#include "core/process/never_destroyed.hpp"
#include "core/shm/kept_fd.hpp"
#include "mpi-adi/engine/dynamic/talk.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/transport/adi/host.hpp"
#include "mpi-adi/transport/adi/params.hpp"
#include "mpi-adi/transport/tcp/card.hpp"
#include "mpi-adi/transport/tcp/handshake.hpp"
#include "mpi-adi/transport/tcp/sockets.hpp"

namespace viaduct::mpi {
namespace {

using tcp::Hello;
using tcp::Proof;
using Clock = std::chrono::steady_clock;

constexpr char kPortPrefix[] = "viaduct-";
constexpr uint32_t kNameVersion = 1;
constexpr uint32_t kCaller = 0, kCalled = 1;  // what the two say in place of ranks
constexpr auto kCallPause = std::chrono::milliseconds(20);
constexpr size_t kMostCallers = 64;
constexpr int kBacklog = 4096;

// What the name of a port says, in hexadecimal digits behind the prefix.
struct PortName {
    uint32_t version;
    uint32_t count;  // of addresses
    uint64_t host;
    tcp::Secret secret;
    tcp::Address addresses[tcp::kAddresses];
};
static_assert(sizeof kPortPrefix + 2 * sizeof(PortName) <= MPI_MAX_PORT_NAME);

std::string text_of(const PortName& port) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text = kPortPrefix;
    for (size_t i = 0; i < sizeof port; i++) {
        const unsigned char byte = reinterpret_cast<const unsigned char*>(&port)[i];
        text += kDigits[byte >> 4];
        text += kDigits[byte & 15];
    }
    return text;
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool read_port_name(std::string_view text, PortName* port) {
    if (!text.starts_with(kPortPrefix)) return false;
    text.remove_prefix(sizeof kPortPrefix - 1);
    if (text.size() != 2 * sizeof *port) return false;
    for (size_t i = 0; i < sizeof *port; i++) {
        const int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        reinterpret_cast<unsigned char*>(port)[i] = static_cast<unsigned char>(high * 16 + low);
    }
    return port->version == kNameVersion && port->count <= tcp::kAddresses;
}

tcp::Key key_of(const PortName& port) { return tcp::key_of("port", kCaller, port.secret, kCalled, port.secret); }

// Alike on both sides, and different for each call.
JobSecret secret_of(const tcp::Key& key, const tcp::Call& call) {
    const Proof proof = tcp::prove(key, static_cast<tcp::Step>(4), call);
    JobSecret secret;
    std::copy_n(proof.begin(), secret.size(), secret.begin());
    return secret;
}

Hello hello_of(uint32_t from, const tcp::Nonce& nonce, const Proof& proof) {
    return {tcp::kMagic, tcp::kVersion, from, 1 - from, nonce, proof};
}

bool send_all(int fd, const void* data, size_t bytes) {
    return ::send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(bytes);
}

// 1: it is whole, 0: more is to come, -1: the connection has ended.
int read_some_more(int fd, void* to, size_t bytes, size_t* had) {
    const ssize_t n = ::recv(fd, static_cast<char*>(to) + *had, bytes - *had, MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
    *had += static_cast<size_t>(n);
    return n == 0 ? -1 : *had == bytes;
}

// A caller that has not proven yet that it has the name.
struct Caller {
    Fd fd;
    Clock::time_point until;
    tcp::Call call = {};
    Hello hello = {};
    Proof proof = {};
    size_t had = 0;
    bool answered = false;
};

struct Port {
    tcp::Key key;
    std::vector<KeptFd> listeners;
    std::vector<Caller> callers;
    bool closed = false;

    void take_callers();
    // 1: the caller has proven that it knows the secret, 0: more is to come, -1: it is refused.
    int read_hello(Caller& caller) const;
    bool next(Contact* made);
};

NeverDestroyed<std::map<std::string, std::shared_ptr<Port>>> ports;

void Port::take_callers() {
    for (const KeptFd& listener : listeners) {
        while (callers.size() < kMostCallers) {
            Fd fd(above_stdio(::accept4(listener.ours(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)));
            if (!fd.valid()) break;
            tcp::prepare(fd.get());
            Caller& caller = callers.emplace_back();
            caller.fd = std::move(fd);
            caller.until = Clock::now() + std::chrono::nanoseconds(limit_ns(TimeLimit::mpi_port_caller));
        }
    }
}

int Port::read_hello(Caller& caller) const {
    if (!caller.answered) {
        const int had = read_some_more(caller.fd.get(), &caller.hello, sizeof caller.hello, &caller.had);
        if (had <= 0) return had;
        const Hello& hello = caller.hello;
        tcp::Call& call = caller.call;
        call = {kCaller, kCalled, hello.nonce, {}};
        if (hello.magic != tcp::kMagic || hello.version != tcp::kVersion || hello.from != kCaller ||
            !tcp::is_proof(hello.proof, key, tcp::Step::call, call) ||
            !tcp::make_random(call.called_nonce.data(), sizeof call.called_nonce))
            return -1;
        const Hello answer = hello_of(kCalled, call.called_nonce, tcp::prove(key, tcp::Step::answer, call));
        if (!send_all(caller.fd.get(), &answer, sizeof answer)) return -1;
        caller.answered = true;
        caller.had = 0;
    }
    const int had = read_some_more(caller.fd.get(), caller.proof.data(), sizeof caller.proof, &caller.had);
    if (had <= 0) return had;
    return tcp::is_proof(caller.proof, key, tcp::Step::confirm, caller.call) ? 1 : -1;
}

bool Port::next(Contact* made) {
    take_callers();
    for (size_t i = 0; i < callers.size();) {
        Caller& one = callers[i];
        const int proven = read_hello(one);
        if (proven == 0 && one.until > Clock::now()) {
            i++;
            continue;
        }
        if (proven > 0) {
            made->socket = std::move(one.fd);
            made->secret = secret_of(key, one.call);
        }
        callers.erase(callers.begin() + static_cast<std::ptrdiff_t>(i));
        if (proven > 0) return true;
    }
    return false;
}

// Calls one address after the other, and again, until one is answered, none takes a call, or it is too late.
class PortCaller {
public:
    PortCaller(const PortName& port, std::chrono::nanoseconds limit)
        : key_(key_of(port)), deadline_(Clock::now() + limit) {
        tcp::Card mine = {}, theirs = {};
        mine.host = adi::host_number("net");
        for (const tcp::Address& address : tcp::own_addresses(adi::param_text(adi::Param::tcp_interfaces), true))
            if (mine.count < tcp::kAddresses) mine.addresses[mine.count++] = address;
        theirs.host = port.host;
        theirs.count = port.count;
        std::copy_n(port.addresses, tcp::kAddresses, theirs.addresses);
        ways_ = tcp::call_addresses(mine, theirs);
    }
    // Whether it is over.
    bool advance() {
        switch (stage_) {
            case Stage::idle:
                return begin();
            case Stage::pausing:
                if (Clock::now() < until_) return false;
                way_ = refused_ = 0;
                return begin();
            case Stage::calling:
                return connected();
            case Stage::greeting:
                return greeted();
            case Stage::over:
                break;
        }
        return true;
    }
    bool good() const { return good_; }
    Contact take() { return {std::move(fd_), secret_of(key_, call_)}; }

private:
    enum class Stage { idle, pausing, calling, greeting, over };

    bool end(bool good) {
        good_ = good;
        stage_ = Stage::over;
        return true;
    }
    bool next_way() {
        way_++;
        return begin();
    }
    bool begin() {
        for (; way_ < ways_.size(); way_++) {
            sockaddr_storage name;
            const socklen_t length = tcp::to_sockaddr(ways_[way_], &name);
            fd_ = Fd(above_stdio(::socket(name.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)));
            if (!fd_.valid()) continue;
            tcp::prepare(fd_.get());
            if (::connect(fd_.get(), reinterpret_cast<sockaddr*>(&name), length) == 0 || errno == EINPROGRESS) {
                stage_ = Stage::calling;
                until_ =
                    std::min(deadline_, Clock::now() + std::chrono::nanoseconds(limit_ns(TimeLimit::mpi_port_way)));
                return false;
            }
            if (errno == ECONNREFUSED) refused_++;
        }
        fd_.reset();
        if (refused_ == ways_.size() || Clock::now() >= deadline_) return end(false);
        stage_ = Stage::pausing;
        until_ = Clock::now() + kCallPause;
        return false;
    }
    bool connected() {
        pollfd watched = {fd_.get(), POLLOUT, 0};
        if (::poll(&watched, 1, 0) == 0) return Clock::now() < until_ ? false : next_way();
        int error = 0;
        socklen_t length = sizeof error;
        ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
        call_ = {kCaller, kCalled, {}, {}};
        if (error == ECONNREFUSED) refused_++;
        if (error != 0 || !tcp::make_random(call_.caller_nonce.data(), sizeof call_.caller_nonce)) return next_way();
        const Hello hello = hello_of(kCaller, call_.caller_nonce, tcp::prove(key_, tcp::Step::call, call_));
        if (!send_all(fd_.get(), &hello, sizeof hello)) return next_way();
        stage_ = Stage::greeting;
        had_ = 0;
        return false;
    }
    // For as long as the other side likes: it accepts when it comes to it.
    bool greeted() {
        const int had = read_some_more(fd_.get(), &hello_, sizeof hello_, &had_);
        if (had == 0) return Clock::now() < deadline_ ? false : end(false);
        if (had < 0) return next_way();
        call_.called_nonce = hello_.nonce;
        if (hello_.magic != tcp::kMagic || hello_.version != tcp::kVersion || hello_.from != kCalled ||
            !tcp::is_proof(hello_.proof, key_, tcp::Step::answer, call_)) {
            refused_++;  // another program listens there now
            return next_way();
        }
        const Proof proof = tcp::prove(key_, tcp::Step::confirm, call_);
        return send_all(fd_.get(), proof.data(), sizeof proof) ? end(true) : next_way();
    }

    tcp::Key key_;
    Clock::time_point deadline_;
    std::vector<tcp::Address> ways_;
    size_t way_ = 0, refused_ = 0;
    Stage stage_ = Stage::idle;
    bool good_ = false;
    Fd fd_;
    tcp::Call call_ = {};
    Hello hello_ = {};
    size_t had_ = 0;
    Clock::time_point until_;
};

// At an address of any free port.
bool listen_at(tcp::Address& address, std::vector<KeptFd>* listeners) {
    sockaddr_storage name;
    address.port = 0;
    socklen_t length = tcp::to_sockaddr(address, &name);
    Fd fd(above_stdio(::socket(name.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)));
    if (!fd.valid()) return false;
    const int on = 1;
    if (name.ss_family == AF_INET6) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&name), length) != 0 || ::listen(fd.get(), kBacklog) != 0 ||
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&name), &length) != 0)
        return false;
    address.port = ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(name).sin6_port
                                                    : reinterpret_cast<sockaddr_in&>(name).sin_port);
    listeners->push_back(KeptFd(std::move(fd)));
    return true;
}

}  // namespace

int open_port(std::string* name) {
    PortName said = {};
    said.version = kNameVersion;
    said.host = adi::host_number("net");
    if (!tcp::ready_to_prove() || !tcp::make_random(said.secret.data(), said.secret.size())) return MPI_ERR_OTHER;
    auto port = std::make_shared<Port>();
    port->key = key_of(said);
    for (tcp::Address& address :
         tcp::own_addresses(adi::param_text(adi::Param::tcp_interfaces), engine.task.ti_nhosts > 1))
        if (listen_at(address, &port->listeners)) said.addresses[said.count++] = address;
    if (said.count == 0) return MPI_ERR_OTHER;
    *name = text_of(said);
    (*ports)[*name] = std::move(port);
    return MPI_SUCCESS;
}

int close_port(const std::string& name) {
    const auto found = ports->find(name);
    if (found == ports->end()) return MPI_ERR_PORT;
    found->second->closed = true;
    found->second->listeners.clear();
    found->second->callers.clear();
    ports->erase(found);
    return MPI_SUCCESS;
}

int accept_call(const std::string& name, Contact* made) {
    const auto found = ports->find(name);
    if (found == ports->end()) return MPI_ERR_PORT;
    const std::shared_ptr<Port> port = found->second;
    bool good = false;
    wait_for_socket([&] { return good || (good = port->next(made)) || port->closed; });
    return good ? MPI_SUCCESS : MPI_ERR_PORT;
}

int call_port(const std::string& name, std::chrono::nanoseconds limit, Contact* made) {
    PortName port;
    if (!read_port_name(name, &port) || !tcp::ready_to_prove()) return MPI_ERR_PORT;
    PortCaller caller(port, limit);
    wait_for_socket([&] { return caller.advance(); });
    if (!caller.good()) return MPI_ERR_PORT;
    *made = caller.take();
    return MPI_SUCCESS;
}

}  // namespace viaduct::mpi
