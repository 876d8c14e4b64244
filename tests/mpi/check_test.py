#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_test.py MPIEXEC FAULTS [--show]: each mistake of the program FAULTS in a job with CMPI_CHECK=1, and
what is said of it: the rank that says it, and words that must stand in one of its lines."""

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import eventually  # noqa: E402

LIMIT = 60  # seconds for a job
AT_ONCE = 3  # jobs
ENDS = "ends"  # the mode ends the job, with a status other than 0
GOES_ON = "goes on"
NO_SHARED_ORDER = "All members of a communicator make the same collective calls in the same order"

# Mistake: (what becomes of the job, {rank: words}, processes).
TABLE = {
    "kind": (ENDS, {0: ["this process calls MPI_Barrier on MPI_COMM_WORLD, rank 1 calls MPI_Bcast", NO_SHARED_ORDER]}, 2),
    "root": (ENDS, {0: ["MPI_Bcast on MPI_COMM_WORLD: root is 0 here and 1 at rank 1", "the same root"]}, 2),
    "count": (ENDS, {1: ["MPI_Bcast", "rank 0 gives 4 MPI_INT (16 bytes) to this process, which takes 3 MPI_INT (12 bytes)"]}, 2),
    "type": (ENDS, {1: ["MPI_Bcast", "gives 4 MPI_INT", "takes 4 MPI_FLOAT", "same basic types"]}, 2),
    "operation": (ENDS, {0: ["MPI_Allreduce", "the operation is MPI_SUM here and MPI_MAX at rank 1"]}, 2),
    "reduce_count": (ENDS, {0: ["MPI_Reduce", "rank 1 gives 3 MPI_INT", "takes 2 MPI_INT"]}, 2),
    "gather_count": (ENDS, {0: ["MPI_Gather", "rank 1 gives 2 MPI_INT", "takes 1 MPI_INT"]}, 2),
    "gatherv_counts": (ENDS, {0: ["MPI_Gatherv", "rank 1 gives 2 MPI_INT", "takes 3 MPI_INT"]}, 2),
    "scatter_count": (ENDS, {1: ["MPI_Scatter", "rank 0 gives 5 MPI_INT", "takes 6 MPI_INT"]}, 2),
    "allgather_count": (ENDS, {1: ["MPI_Allgather", "rank 0 gives 1 MPI_INT", "takes 2 MPI_INT"]}, 2),
    "alltoallv_counts": (ENDS, {1: ["MPI_Alltoallv", "rank 0 gives 1 MPI_INT", "takes 2 MPI_INT"]}, 2),
    "reduce_scatter_counts": (ENDS, {0: ["MPI_Reduce_scatter", "rank 1 gives 2 MPI_INT", "takes 1 MPI_INT"]}, 2),
    "waiting_or_not": (ENDS, {0: ["this process calls MPI_Barrier on MPI_COMM_WORLD, rank 1 calls MPI_Ibarrier"]}, 2),
    "later_root": (ENDS, {1: ["MPI_Ibcast", "root is 1 here and 0 at rank 0"]}, 2),
    "persistent_root": (ENDS, {1: ["MPI_Bcast_init", "root is 1 here and 0 at rank 0"]}, 2),
    "second_call": (ENDS, {0: ["this process calls MPI_Barrier", "rank 1 calls MPI_Bcast"]}, 2),
    "communicator": (ENDS, {0: ["this process calls MPI_Barrier on MPI_COMM_WORLD, and rank 1 calls MPI_Barrier on halo", "each waits for the other"]}, 2),
    "making": (ENDS, {1: ["this process calls MPI_Barrier", "rank 0 calls MPI_Comm_dup"]}, 2),
    "early_end": (ENDS, {1: ["this process calls MPI_Finalize on MPI_COMM_WORLD, rank 0 calls MPI_Barrier"]}, 2),
    "part": (ENDS, {2: ["MPI_Bcast on communicator", "root is 0 here and 1 at rank 1 (3 in MPI_COMM_WORLD)"]}, 4),
    "left_send": (GOES_ON, {0: ["left at MPI_Finalize: a request of MPI_Isend(buf=0x", "count=10, MPI_INT, dest=1, tag=7, MPI_COMM_WORLD", "complete and not waited for", "MPI_Wait"]}, 2),
    "left_receive": (GOES_ON, {1: ["a request of MPI_Irecv(buf=0x", "count=25, MPI_INT, source=0, tag=99", "still without a message"]}, 2),
    "left_persistent": (GOES_ON, {0: ["a request of MPI_Recv_init(", "source=MPI_ANY_SOURCE, tag=99", "MPI_Request_free"]}, 2),
    "left_collective": (GOES_ON, {0: ["a request of MPI_Ibarrier(MPI_COMM_WORLD"]}, 2),
    "left_comm": (GOES_ON, {1: ["a communicator of MPI_Comm_split(MPI_COMM_WORLD, color=0, key=1", "MPI_Comm_free"]}, 2),
    "left_type": (GOES_ON, {0: ["a datatype of MPI_Type_vector(count=3, blocklength=1, stride=5, MPI_DOUBLE", "MPI_Type_free"]}, 2),
    "left_group": (GOES_ON, {0: ["a group of MPI_Comm_group(MPI_COMM_WORLD", "MPI_Group_free"]}, 2),
    "left_operation": (GOES_ON, {0: ["an operation of MPI_Op_create(", "MPI_Op_free"]}, 2),
    "left_window": (GOES_ON, {1: ["a window of MPI_Win_create(", "MPI_Win_free"]}, 2),
    "left_file": (GOES_ON, {1: ["a file of MPI_File_open, /dev/zero", "MPI_File_close"]}, 2),
    "left_info": (GOES_ON, {
        0: ["left at the end of the process: an info object of MPI_Info_create(info=0x", "MPI_Info_free"],
        1: ["an info object of MPI_Comm_get_info(MPI_COMM_SELF, info=0x"]}, 2),
    "left_errhandler": (GOES_ON, {
        0: ["left at the end of the process: an error handler of MPI_Comm_get_errhandler(MPI_COMM_SELF",
            "MPI_Errhandler_free"],
        1: ["an error handler of MPI_Win_create_errhandler(function=0x"]}, 2),
    "left_keyval": (GOES_ON, {
        0: ["left at MPI_Finalize: a key of attributes of MPI_Comm_create_keyval(copy=", "MPI_Comm_free_keyval"],
        1: ["a key of attributes of MPI_Type_create_keyval(copy="]}, 2),
    "left_refused": (GOES_ON, {
        0: ["left at MPI_Finalize: a communicator of MPI_Comm_dup(MPI_COMM_SELF"],
        1: ["left at MPI_Finalize: a key of attributes of MPI_Win_create_keyval(copy="]}, 2),
    "left_inner": (GOES_ON, {0: ["a datatype of MPI_Type_contiguous(count=7, MPI_INT"]}, 2),
    "left_contents": (GOES_ON, {0: ["a datatype of MPI_Type_get_contents("]}, 2),
    "left_session": (GOES_ON, {
        0: ["left at the end of the process: a session of MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN",
            "MPI_Session_finalize"],
        1: ["left at the end of the process: a datatype of MPI_Type_vector("]}, 2),
    "sessions_left": (GOES_ON, {
        0: ["left at the end of the process: a communicator of MPI_Comm_create_from_group(", "MPI_Comm_free"],
        1: ["left at the end of the process: an info object of MPI_Info_create("]}, 2),
    "left_message": (GOES_ON, {1: ["a message of a matched probe of MPI_Mprobe(source=0, tag=5", "MPI_Mrecv"]}, 2),
    "two_receives": (GOES_ON, {0: ["the same memory", "MPI_Irecv(buf=0x", "tag=2", "MPI_Irecv(buf=0x", "tag=1", "8 bytes at 0x", "MPI_Wait"]}, 2),
    "send_of_receive": (GOES_ON, {1: ["the same memory", "MPI_Isend(", "MPI_Irecv(", "40 bytes"]}, 2),
    "columns": (GOES_ON, {0: ["the same memory", "MPI_Irecv(", "count=5", "MPI_Irecv(", "count=1", "4 bytes"]}, 2),
    "unreceived": (GOES_ON, {1: ["never received, found in MPI_Finalize: a message of 40 bytes from rank 0 with tag 41 on MPI_COMM_WORLD"]}, 2),
    "other_tag": (GOES_ON, {1: ["never received", "from rank 0 with tag 6"]}, 2),
    "unreceived_of_freed": (GOES_ON, {1: ["never received, found when the communicator was freed: a message of 8 bytes from rank 0 with tag 3 on halo"]}, 2),
    "nothing": (GOES_ON, {}, 2),
    "open_late_session": (GOES_ON, {}, 2),
    "sessions_nothing": (GOES_ON, {}, 2),
    "sessions_exit_beside": (GOES_ON, {}, 2),
    "sessions_exit_inside": (GOES_ON, {}, 2),
}
# Of those that go on, the ones that change what is told of others.
ENDS_BY_EXIT = ["sessions_exit_beside", "sessions_exit_inside"]
ALONE = {"nothing", "open_late_session", "left_session", "sessions_left", "sessions_nothing", *ENDS_BY_EXIT}


def has_all(line, words):
    """Whether the words stand in the line in their order."""
    at = 0
    for word in words:
        found = line.find(word, at)
        if found < 0:
            return False
        at = found + len(word)
    return True


def job_with(names, processes, mode, arguments):
    """Status and lines of a job that makes these mistakes, with CMPI_CHECK=mode."""
    command = [arguments.mpiexec, "-n", str(processes), arguments.program, *names]
    try:
        done = eventually.run(command, LIMIT, env=dict(os.environ, CMPI_CHECK=mode))
    except eventually.Late as late:
        return "no end", late.errors.splitlines()
    return done.returncode, done.stderr.splitlines()


def faults_of(names, mode, arguments):
    """What is wrong with the job of these rows of the table, or nothing."""
    end, processes = TABLE[names[0]][0], TABLE[names[0]][2]
    status, lines = job_with(names, processes, mode, arguments)
    if arguments.show:
        print(*names, status, *lines, sep="\n    ")
    said = "\n".join(lines)
    if status == "no end" or (status != 0) != (end == ENDS):
        yield f"{names}: the job ended with {status}:\n{said}"
    if not any(TABLE[name][1] for name in names) and lines:
        yield f"nothing is wrong, and it was said:\n{said}"
    for name in names:
        for rank, words in TABLE[name][1].items():
            own = [line for line in lines if line.startswith(f"libcmpi: rank {rank} of ") and "CMPI_CHECK: " in line]
            if not any(has_all(line, words) for line in own):
                yield f"{name}: rank {rank} does not say {words}:\n{said}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mpiexec")
    parser.add_argument("program")
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    # A mistake that ends the job has one of its own.
    jobs = [([name], "1") for name, row in TABLE.items() if row[0] == ENDS or name in ALONE]
    jobs.append(([name for name, row in TABLE.items() if row[0] == GOES_ON and name not in ALONE], "1"))
    jobs += [([name], "0") for name in ENDS_BY_EXIT]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        faults = [fault for job in pool.map(lambda job: list(faults_of(*job, arguments)), jobs) for fault in job]
    print(*(f"FAIL {fault}" for fault in faults), f"{len(TABLE)} mistakes, {len(faults)} not told as they must be", sep="\n")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
