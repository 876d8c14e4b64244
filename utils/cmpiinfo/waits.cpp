// SPDX-License-Identifier: BSD-2-Clause
// Looking at wait pages. They belong to other processes: everything read is checked.
#include "utils/cmpiinfo/waits.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <memory>

#include "core/clock/clock.hpp"
#include "core/process/shown_memory.hpp"
#include "core/text/printable.hpp"
#include "mpi-adi/engine/wait_page.hpp"

namespace viaduct::cmpiinfo {
namespace {

using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;
using mpi::WaitPage;

constexpr std::array kKinds = {"other", "send", "receive", "probe", "collective", "window", "finalize", "buffer"};

Folder open_folder(const std::string& path) { return {::opendir(path.c_str()), ::closedir}; }

// A forked child still has its parent's page: the number in it tells.
bool read_page(pid_t pid, WaitPage* page, bool* forbidden) {
    const auto is_it = [&](const Fd& fd) {
        return ::pread(fd.get(), static_cast<void*>(page), sizeof *page, 0) == ssize_t{sizeof *page} &&
               page->magic == mpi::kWaitPageMagic && page->pid == own_number_of(pid);
    };
    Fd fd;
    const Shown shown = find_shown_memory(pid, mpi::kWaitPageName, is_it, &fd);
    *forbidden = shown == Shown::no_permission;
    return shown == Shown::found;
}

std::string first_line_of(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

// Without those of the libraries, which have names of their own.
size_t threads_of_program(pid_t pid) {
    const std::string folder = "/proc/" + std::to_string(pid) + "/task";
    const Folder entries = open_folder(folder);
    size_t count = 0;
    while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) {
        if (entry->d_name[0] == '.') continue;
        const std::string name = first_line_of(folder + "/" + entry->d_name + "/comm");
        count += !name.starts_with("vipl-") && !name.starts_with("cmpi-") ? 1 : 0;
    }
    return count;
}

template <size_t size>
std::string text_in(const char (&bytes)[size]) {
    return printable({bytes, ::strnlen(bytes, size)});
}

RankView view_of(pid_t pid, const WaitPage& page) {
    RankView view;
    view.rank = page.rank;
    view.pid = pid;
    view.idle_passes = page.idle_passes.load(std::memory_order_relaxed);
    view.moving_passes = page.moving_passes.load(std::memory_order_relaxed);
    view.program = printable(first_line_of("/proc/" + std::to_string(pid) + "/comm"));
    bool others_may_come = false;
    for (int i = 0; i < mpi::kWaitRecords; i++) {
        const mpi::WaitRecord& record = page.records[i];
        const uint32_t turn = record.turn.load(std::memory_order_relaxed);
        if ((turn & 1) == 0 || record.since == 0) continue;
        WaitView wait;
        wait.what = record.kind < kKinds.size() ? kKinds[record.kind] : "other";
        wait.seconds = std::max(0.0, double(now_ns() - record.since) / 1e9);
        wait.any = record.any != 0;
        others_may_come |= record.threads != 0;
        wait.tag = record.tag;
        wait.bytes = record.bytes;
        wait.asks = record.asks.load(std::memory_order_relaxed);
        wait.more_peers = record.count > mpi::kMostPeers;
        for (int one = 0; one < std::clamp(record.count, 0, mpi::kMostPeers); one++)
            wait.peers.push_back(record.peers[one]);
        wait.transport = text_in(record.transport);
        wait.communicator = text_in(record.communicator);
        wait.place = uint64_t(i) << 32 | turn;
        view.waits.push_back(wait);
    }
    if (others_may_come) view.threads = threads_of_program(pid);
    return view;
}

void add(std::vector<JobWaits>* jobs, pid_t pid, const WaitPage& page) {
    auto job = std::find_if(jobs->begin(), jobs->end(), [&](const JobWaits& one) {
        return one.number == page.number && one.size == page.size;
    });
    if (job == jobs->end()) job = jobs->insert(job, JobWaits{page.number, page.size, {}, {}, {}});
    if (page.rank < 0 || page.rank >= page.size) return;
    job->ranks.push_back(view_of(pid, page));
}

}  // namespace

Found look_at_jobs(pid_t pid, std::vector<JobWaits>* jobs) {
    jobs->clear();
    bool forbidden = false;
    WaitPage wanted{};
    if (pid != 0 && !read_page(pid, &wanted, &forbidden)) return forbidden ? Found::no_permission : Found::nothing;
    for (const pid_t one : all_processes()) {
        WaitPage page{};
        bool ignored = false;
        if (!read_page(one, &page, &ignored)) continue;
        if (pid == 0 || page.number == wanted.number) add(jobs, one, page);
    }
    for (JobWaits& job : *jobs)
        std::sort(job.ranks.begin(), job.ranks.end(),
                  [](const RankView& a, const RankView& b) { return a.rank < b.rank; });
    return jobs->empty() ? Found::nothing : Found::jobs;
}

void keep_lasting(const std::vector<JobWaits>& before, std::vector<JobWaits>* now) {
    const auto lasts = [&](const JobWaits& job, const RankView& rank, const WaitView& wait) {
        for (const JobWaits& old_job : before)
            for (const RankView& old_rank : old_job.ranks)
                if (old_job.number == job.number && old_rank.pid == rank.pid)
                    for (const WaitView& old : old_rank.waits)
                        if (old.place == wait.place && (wait.asks == 0 || wait.asks != old.asks)) return true;
        return false;
    };
    for (JobWaits& job : *now)
        for (RankView& rank : job.ranks)
            std::erase_if(rank.waits, [&](const WaitView& wait) { return !lasts(job, rank, wait); });
}

}  // namespace viaduct::cmpiinfo
