// SPDX-License-Identifier: BSD-2-Clause
// vipping as server: one thread lets clients in, the other answers them all through one completion queue. A
// client that leaves is noticed by its flushed receives.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "utils/common/error.hpp"
#include "utils/common/stop.hpp"
#include "utils/vipping/line.hpp"
#include "utils/vipping/ping.hpp"

namespace viaduct::vipping {

namespace {

using tools::ToolError;

constexpr VIP_ULONG kSliceMs = 100;  // waits look for Ctrl-C so often
constexpr size_t kMostClients = 64;

struct Client {
    std::unique_ptr<Line> line;
    std::string name;
    uint64_t answered = 0;
    uint32_t flushed = 0;
};

class Server {
public:
    Server(const Options& options, const std::string& device, const std::function<void(const std::string&)>& told)
        : options_(options), told_(told), nic_(device) {
        tools::check(VipCreateCQ(nic_.handle(), kMostClients * kReceives, &cq_), "VipCreateCQ");
    }

    ~Server() {
        clients_.clear();
        VipDestroyCQ(cq_);
    }

    void run() {
        VipErrorCallback(nic_.handle(), nullptr, nullptr);  // lost clients are daily business
        std::thread door([this] { let_in(); });
        told_(fmt::format("answering on {} {}, discriminator {}", nic_.name(),
                          tools::text_of(nic_.local("").head), options_.discriminator));
        std::string failure;
        try {
            while (!over()) answer_next();
        } catch (const ToolError& error) {
            failure = error.what();
            failed_ = true;
        }
        door.join();
        if (!failure_.empty()) failure = failure_;
        if (!failure.empty()) throw ToolError(failure);
    }

private:
    bool over() const { return tools::stopped() || failed_; }

    // The door's thread.
    void let_in() try {
        while (!over()) {
            tools::Address local = nic_.local(options_.discriminator), remote{};
            VIP_VI_ATTRIBUTES theirs{};
            VIP_CONN_HANDLE request = nullptr;
            const VIP_RETURN result =
                VipConnectWait(nic_.handle(), &local.head, kSliceMs, &remote.head, &theirs, &request);
            if (result == VIP_TIMEOUT) continue;
            tools::check(result, "VipConnectWait");
            accept(request, theirs, tools::text_of(remote.head));
        }
    } catch (const ToolError& error) {
        failure_ = error.what();
        failed_ = true;
    }

    void accept(VIP_CONN_HANDLE request, const VIP_VI_ATTRIBUTES& theirs, const std::string& name) {
        const std::lock_guard lock(mutex_);
        if (clients_.size() >= kMostClients || theirs.MaxTransferSize > kMostBytes) {
            VipConnectReject(request);
            return;
        }
        Client client;
        const auto bytes = static_cast<uint32_t>(theirs.MaxTransferSize);  // both sides' must be equal
        client.line = std::make_unique<Line>(nic_, theirs.ReliabilityLevel, bytes, cq_);
        client.name = name;
        if (const VIP_RETURN result = VipConnectAccept(request, client.line->vi()); result != VIP_SUCCESS) {
            told_(fmt::format("{} was not let in: {}", name, tools::text_of(result)));
            VipConnectReject(request);
            return;
        }
        told_(fmt::format("{} has come", name));
        const VIP_VI_HANDLE vi = client.line->vi();
        clients_.emplace(vi, std::move(client));
    }

    void answer_next() {
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN is_receive = VIP_FALSE;
        const VIP_RETURN result = VipCQWait(cq_, kSliceMs, &vi, &is_receive);
        if (result == VIP_TIMEOUT || result == VIP_NOT_DONE) return;
        tools::check(result, "VipCQWait");
        const std::lock_guard lock(mutex_);
        const auto found = clients_.find(vi);
        if (found == clients_.end()) return;
        Client& client = found->second;
        VIP_DESCRIPTOR* d = nullptr;
        const VIP_RETURN got = VipRecvDone(vi, &d);
        if (got == VIP_SUCCESS) {
            answer(client, d);
        } else if (got == VIP_DESCRIPTOR_ERROR && ++client.flushed == kReceives) {
            say_goodbye(found);
        }
    }

    void answer(Client& client, VIP_DESCRIPTOR* d) try {
        const auto bytes = std::min(d->CS.Length, kMostBytes);
        client.line->reap_send(kSliceMs);
        std::memcpy(client.line->outgoing(), Line::data_of(d), bytes);
        client.line->repost(d);
        client.line->send(bytes);
        ++client.answered;
    } catch (const ToolError&) {
        // It has left: its receives come back flushed and end it.
        ++client.flushed;
    }

    void say_goodbye(std::map<VIP_VI_HANDLE, Client>::iterator client) {
        told_(fmt::format("{} has left after {} messages", client->second.name, client->second.answered));
        clients_.erase(client);
        if (options_.once) tools::stop();
    }

    const Options& options_;
    const std::function<void(const std::string&)>& told_;
    tools::Nic nic_;
    VIP_CQ_HANDLE cq_ = nullptr;
    std::mutex mutex_;  // guards the clients: one thread adds them, the other takes them away
    std::map<VIP_VI_HANDLE, Client> clients_;
    std::atomic<bool> failed_{false};
    std::string failure_;  // of the door's thread; read when it has ended
};

void serve_one(const Options& options, const std::string& device, const std::function<void(const std::string&)>& told) {
    try {
        Server(options, device, told).run();
    } catch (const ToolError& error) {
        told(fmt::format("not answering on {}: {}", device, error.what()));
    }
}

}  // namespace

void serve(const Options& options, const std::function<void(const std::string&)>& told) {
    if (!options.device.empty()) return Server(options, options.device, told).run();
    std::mutex mutex;
    const auto tell = [&](const std::string& line) {
        const std::lock_guard lock(mutex);
        told(line);
    };
    const std::vector<std::string> devices = tools::served_devices();
    std::vector<std::thread> others;
    for (size_t i = 1; i < devices.size(); ++i)
        others.emplace_back([&options, &tell, &device = devices[i]] { serve_one(options, device, tell); });
    std::string failure;
    try {
        Server(options, devices.front(), tell).run();
    } catch (const ToolError& error) {
        failure = error.what();
        tools::stop();
    }
    for (std::thread& other : others) other.join();
    if (!failure.empty()) throw ToolError(failure);
}

}  // namespace viaduct::vipping
