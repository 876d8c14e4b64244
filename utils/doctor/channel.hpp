// SPDX-License-Identifier: BSD-2-Clause
// The conversation of the doctor's two ends: a TCP connection, one JSON object a line, question and answer in turns.
// What comes is another program's: it is read up to a limit, and whatever is wrong with it is one error.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "core/shm/fd.hpp"

namespace viaduct::doctor {

using Json = nlohmann::json;

// The TCP port of the end that answers; that of the requests of udp, which is another protocol's.
inline constexpr uint16_t kDoctorPort = 4792;

class ChannelError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

class Channel {
public:
    explicit Channel(Fd socket);
    // 0: connected. ETIMEDOUT: silence. ECONNREFUSED, EHOSTUNREACH, ...: what the network says.
    static int open(const sockaddr_in& to, int64_t timeout_ns, Fd* out);

    // False: nothing has come within that time, or nothing more comes (then is_open() is false).
    bool receive(Json* out, int64_t timeout_ns);
    bool is_open() const { return open_; }
    void send(const Json&);
    // The answer; throws ChannelError where there is none.
    Json ask(const Json& question, int64_t timeout_ns);

    sockaddr_in here() const;
    sockaddr_in there() const;

private:
    Fd socket_;
    std::string had_;
    bool open_ = true;
};

// Of what has come: a number of the other end within limits, and text that is fit to be printed.
int64_t number_in(const Json&, const char* key, int64_t low, int64_t high);
std::string text_in(const Json&, const char* key);

std::string text_of(const in_addr&);

}  // namespace viaduct::doctor
