// SPDX-License-Identifier: BSD-2-Clause
// A small end point of HTTP for readers on this host: GET only, one request at a time, with two seconds to
// send it and two to take the answer. It
// listens on loopback or on a Unix socket of this user, never elsewhere.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace viaduct::tools {

struct Answer {
    std::string type;
    std::string body;
};

class HttpEndpoint {
public:
    // "127.0.0.1:9105", "localhost:9105", "[::1]:9105" (port 0: any) or "unix:/path". Throws ToolError.
    explicit HttpEndpoint(const std::string& address);
    ~HttpEndpoint();
    HttpEndpoint(const HttpEndpoint&) = delete;
    HttpEndpoint& operator=(const HttpEndpoint&) = delete;

    // "http://127.0.0.1:9105" or "unix:/path".
    const std::string& where() const { return where_; }
    // Until stopped() (stop.hpp). `answer` is asked with the path; nothing: there is no such page.
    using Answers = std::function<std::optional<Answer>(std::string_view path)>;
    void serve(const Answers& answer);

private:
    void listen_on_unix(const std::string& path);
    void listen_on_loopback(const std::string& address);
    void serve_connection(int fd, const Answers& answer) const;

    int fd_ = -1;
    std::string where_;
    std::string path_;  // of the Unix socket
};

}  // namespace viaduct::tools
