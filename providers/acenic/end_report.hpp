// SPDX-License-Identifier: BSD-2-Clause
// Exclusive mode: the program has the port in its own process, and when that is killed, no process is left that answers
// for it. So the program starts one that outlives it: viaduct-acenicd with --report-end, which opens no port. It sleeps
// until the program ends without having closed its port. Then it has the program's Ethernet address for 2 s and answers
// frames of connections as an end without the connection does, so that peers see the end with their next frame. It
// stops as soon as another process has the port (port_lock.hpp). With a key it could not answer, and is not started.
//
// The two meet at an address that the program has drawn. The reporter connects there, sends kReportReady once it can
// do its work, and is sent kReportClosed by a program that closes its port.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/shm/fd.hpp"
#include "providers/acenic/port_spec.hpp"

namespace viaduct::acenic {

inline constexpr char kReportReady = '+', kReportClosed = '-';

// The program's half. Called by the thread that opens and closes the port, which holds the port's lock meanwhile.
class EndReport {
public:
    // Starts the process, and does not wait for it. Null: it cannot be started, as the log says (info).
    static std::unique_ptr<EndReport> start(const PortSpec&);
    ~EndReport();
    EndReport(const EndReport&) = delete;
    EndReport& operator=(const EndReport&) = delete;

    // Waits until the process is ready. False: it is not, within TimeLimit::acenicd_start, or has ended.
    bool await_ready();

private:
    EndReport(Fd listener, std::string place, int64_t deadline);

    Fd listener_, socket_;
    const std::string place_;
    const int64_t deadline_;
    int started_ = 0;  // process id
};

// The reporter's half: the whole life of that process. Its exit status.
int report_end(const PortSpec&, const std::string& address);

}  // namespace viaduct::acenic
