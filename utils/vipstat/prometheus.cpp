// SPDX-License-Identifier: BSD-2-Clause
// The views in the text format of Prometheus (0.0.4): one metric after the other, each with the values of all
// processes.
#include <fmt/format.h>

#include <functional>

#include "core/stats/process_stats.hpp"
#include "utils/vipstat/render.hpp"

namespace viaduct::vipstat {

namespace {

std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
        if (c == '\\' || c == '"') out += '\\';
        if (c == '\n')
            out += "\\n";
        else
            out += c;
    }
    return out;
}

std::string label(const char* name, const std::string& value) {
    return fmt::format("{}=\"{}\"", name, escaped(value));
}

std::string labels_of(const ProcessView& p) {
    return label("pid", std::to_string(p.pid)) + "," + label("program", p.program);
}

std::string labels_of(const ProcessView& p, const ViView& v) {
    return labels_of(p) + "," + label("vi", fmt::format("{:x}", v.handle)) + "," + label("nic", v.nic);
}

// One metric: its head, then what `each` adds. Without values it is left out.
class Metric {
public:
    Metric(std::string& out, const std::string& name, const char* kind, const std::string& help)
        : out_(out),
          name_("viaduct_" + name),
          head_(fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name_, kind, help)) {}
    void add(const std::string& labels, const std::string& value) {
        out_ += head_ + fmt::format("{}{{{}}} {}\n", name_, labels, value);
        head_.clear();
    }
    void add(const std::string& labels, uint64_t value) { add(labels, std::to_string(value)); }
    // A value below 0 is not known.
    void add_seconds(const std::string& labels, double value) {
        if (value >= 0) add(labels, fmt::format("{:.6f}", value));
    }

private:
    std::string& out_;
    const std::string name_;
    std::string head_;
};

const uint64_t* value_of(const std::vector<std::pair<std::string, uint64_t>>& counters, const std::string& name) {
    for (const auto& [known, value] : counters)
        if (known == name) return &value;
    return nullptr;
}

using Processes = std::vector<ProcessView>;

void add_processes(std::string& out, const Processes& processes) {
    Metric info(out, "process_info", "gauge", "a process with a NIC open, and the version of its library");
    for (const ProcessView& p : processes) info.add(labels_of(p) + "," + label("library", p.library), 1);
    Metric age(out, "process_running_seconds", "gauge", "time since the first VipOpenNic");
    for (const ProcessView& p : processes) age.add_seconds(labels_of(p), p.running_s);
    Metric vis(out, "process_vis", "gauge", "VIs");
    for (const ProcessView& p : processes) vis.add(labels_of(p), p.vis.size());
    for (const CounterInfo& counter : stats::kProcessCounters) {
        Metric metric(out, fmt::format("process_{}_total", counter.name), "counter", counter.help);
        for (const ProcessView& p : processes)
            if (const uint64_t* const value = value_of(p.counters, counter.name)) metric.add(labels_of(p), *value);
    }
}

struct QueueMetric {
    const char* name;
    const char* kind;
    const char* help;
    uint64_t (*value)(const QueueView&);
};

constexpr QueueMetric kQueueMetrics[] = {
    {"vi_posted_total", "counter", "descriptors posted, in 32 bits: from the largest number it goes on at 0",
     [](const QueueView& q) { return q.posted; }},
    {"vi_completed_total", "counter", "descriptors completed, likewise",
     [](const QueueView& q) { return q.completed; }},
    {"vi_outstanding", "gauge", "descriptors posted and not completed",
     [](const QueueView& q) { return uint64_t{q.outstanding}; }},
    {"vi_unfetched", "gauge", "descriptors completed and not fetched by the program",
     [](const QueueView& q) { return uint64_t{q.unfetched}; }},
    {"vi_asleep", "gauge", "1: a thread sleeps on the queue", [](const QueueView& q) { return uint64_t{q.asleep}; }},
};

using Each = std::function<void(const ProcessView&, const ViView&)>;
void for_each_vi(const Processes& processes, const Each& each) {
    for (const ProcessView& p : processes)
        for (const ViView& v : p.vis) each(p, v);
}

void for_each_queue(const Processes& processes,
                    const std::function<void(const std::string& labels, const QueueView&)>& each) {
    for_each_vi(processes, [&](const ProcessView& p, const ViView& v) {
        each(labels_of(p, v) + "," + label("queue", "send"), v.send);
        each(labels_of(p, v) + "," + label("queue", "receive"), v.recv);
    });
}

void add_vis(std::string& out, const Processes& processes) {
    Metric info(out, "vi_info", "gauge", "a VI: its state, reliability level, addresses and last asynchronous error");
    for_each_vi(processes, [&](const ProcessView& p, const ViView& v) {
        info.add(labels_of(p, v) + "," + label("state", v.state) + "," + label("reliability", v.level) + "," +
                     label("local", v.local) + "," + label("peer", v.peer) + "," + label("last_error", v.last_error),
                 1);
    });
    Metric state(out, "vi_state_seconds", "gauge", "for how long the VI is in its state");
    for_each_vi(processes,
                [&](const ProcessView& p, const ViView& v) { state.add_seconds(labels_of(p, v), v.state_s); });
    Metric credits(out, "vi_credits", "gauge", "receives of the other end that were left when this end last looked");
    for_each_vi(processes, [&](const ProcessView& p, const ViView& v) { credits.add(labels_of(p, v), v.credits); });
    for (const QueueMetric& one : kQueueMetrics) {
        Metric metric(out, one.name, one.kind, one.help);
        for_each_queue(processes,
                       [&](const std::string& labels, const QueueView& q) { metric.add(labels, one.value(q)); });
    }
    Metric waiting(out, "vi_waiting_seconds", "gauge", "how long the oldest descriptor is waited for without a result");
    for_each_queue(processes,
                   [&](const std::string& labels, const QueueView& q) { waiting.add_seconds(labels, q.waiting_s); });
    for (const CounterInfo& counter : kViCounters) {
        Metric metric(out, fmt::format("vi_{}_total", counter.name), "counter", counter.help);
        for_each_vi(processes, [&](const ProcessView& p, const ViView& v) {
            if (const uint64_t* const value = value_of(v.counters, counter.name)) metric.add(labels_of(p, v), *value);
        });
    }
}

}  // namespace

std::string prometheus(std::vector<ProcessView> processes) {
    std::erase_if(processes, [](const ProcessView& p) { return p.ended_s >= 0; });
    std::string out = "# HELP viaduct_processes processes that are seen\n# TYPE viaduct_processes gauge\n";
    out += fmt::format("viaduct_processes {}\n", processes.size());
    add_processes(out, processes);
    add_vis(out, processes);
    return out;
}

}  // namespace viaduct::vipstat
