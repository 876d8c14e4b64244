/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmpi_adi_ring.c - an MPI engine of one page on libcmpi-adi, and a job that uses it: processes pass messages of
 * several lengths around a ring and check what arrives. C99; nothing but <cmpi_adi.h> and -lcmpi-adi:
 *
 *     cc -std=gnu99 -o cmpi_adi_ring cmpi_adi_ring.c -lcmpi-adi
 *     ./cmpi_adi_ring [PROCESSES [via|shm|tcp]]
 *
 * A real engine gets rank, size and the others' environments from a launcher; here processes are forked and exchange
 * them through a page they share. What an engine must do, in the order of calls, is in docs/adi.md.
 */
#include <cmpi_adi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 64, ROOM = 128 };

static struct shared {
    int arrived[NPROTO];
    int size[NPROTO][MOST];
    char environment[NPROTO][MOST][ROOM];
} *shared;

static process_t processes[MOST];
static process_t* by_rank[MOST];
static struct procinfo infos[MOST];
static taskinfo_t task;
static mpip_comm_t world;

static void need(int rc, const char* what) {
    if (rc == MPIP_SUCCESS) return;
    fprintf(stderr, "process %d: %s: %s\n", task.ti_index, what, mpip_last_error());
    _exit(1);
}

/* ---- the engine: two lists and a rule. A message fits a receive of the same context, source and tag. ---- */

static mpip_req_t* posted;     /* receives that wait */
static unexmsg_t* unexpected;  /* messages that wait */

static int fits(const mpip_req_t* req, const process_t* from, const struct envelope* env) {
    return req->r_proc == from && req->r_tag == env->ev_tag && req->r_ctxt == env->ev_ctxt;
}

static int arrived(process_t* from, const struct envelope* env, const void* data, size_t here, void* held, mpip_req_t** match) {
    const int whole = (env->ev_mode & MPIP_MODE_RTS) == 0 && here == (size_t)env->ev_len;
    for (mpip_req_t** at = &posted; *at != NULL; at = &(*at)->r_next) {
        mpip_req_t* req = *at;
        if (!fits(req, from, env)) continue;
        *at = req->r_next;
        req->r_rank = env->ev_rank;
        if (!whole) return *match = req, MPIP_IN_MATCHED; /* the module moves the data */
        mpip_req_deliver_all(req, data, here);
        return MPIP_IN_TAKEN;
    }
    unexmsg_t** last = &unexpected; /* in the order of arrival */
    while (*last != NULL) last = &(*last)->um_next;
    unexmsg_t* message = *last = calloc(1, sizeof *message);
    message->um_env = *env;
    message->um_proc = from;
    if (!whole) return message->um_data = held, MPIP_IN_HELD;
    message->um_buf = memcpy(malloc(here + 1), data, here);
    return MPIP_IN_TAKEN;
}

static int post(mpip_req_t* req) {
    for (unexmsg_t** at = &unexpected; *at != NULL; at = &(*at)->um_next) {
        unexmsg_t* message = *at;
        if (!fits(req, message->um_proc, &message->um_env)) continue;
        *at = message->um_next;
        req->r_rank = message->um_env.ev_rank;
        if (message->um_buf == NULL) {
            message->um_proc->p_proto->pt_uirecv(message->um_proc, message, req);
        } else {
            mpip_req_deliver_all(req, message->um_buf, (size_t)message->um_env.ev_len);
        }
        free(message->um_buf);
        free(message);
        return MPIP_SUCCESS;
    }
    mpip_req_t** last = &posted; /* in the order of posting */
    while (*last != NULL) last = &(*last)->r_next;
    *last = req;
    return MPIP_SUCCESS;
}

static int progress(void) {
    int moved = 0;
    for (int p = 0; p < NPROTO; ++p) {
        if (task.ti_nproto[p] > 0) moved += mpip_protocols[p].pt_progress_nblk(1);
    }
    if (moved == 0) sched_yield();
    return moved;
}

/* ---- what this engine does without: notification, cancelling, going on without a process ---- */

static void completed(mpip_req_t* req) { (void)req; }
static unexmsg_t* withdraw(process_t* from, reqaddr_t name) { return (void)from, (void)name, (unexmsg_t*)NULL; }
static void release(unexmsg_t* message) { free(message); }
static void peer_failed(process_t* proc, int error) {
    (void)proc;
    need(error, "lost");
}

/* ---- the start ---- */

static void exchange(int p, const void* mine, int bytes) {
    if (bytes > 0) memcpy(shared->environment[p][task.ti_index], mine, (size_t)bytes);
    shared->size[p][task.ti_index] = bytes;
    __atomic_add_fetch(&shared->arrived[p], 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&shared->arrived[p], __ATOMIC_ACQUIRE) != task.ti_nprocs) sched_yield();
    char* all = malloc((size_t)task.ti_nprocs * ROOM);
    int at = 0;
    for (int rank = 0; rank < task.ti_nprocs; at += shared->size[p][rank++])
        memcpy(all + at, shared->environment[p][rank], (size_t)shared->size[p][rank]);
    task.ti_renvs[p] = all;
    task.ti_renvsizes[p] = shared->size[p];
}

static void start(int rank, int size, const char* forced) {
    task.ti_flags = TASK_WORLD;
    task.ti_index = rank;
    task.ti_nprocs = task.ti_nlocal = size;
    task.ti_nhosts = 1;
    task.ti_procs = infos;
    snprintf(task.ti_job, sizeof task.ti_job, "ring-%d", (int)getppid());
    for (int i = 0; i < size; ++i) {
        infos[i].pi_proc = by_rank[i] = &processes[i];
        processes[i].p_gid.pg_wrank = i;
        processes[i].p_conns = 1;
    }
    world.c_sndctxt = world.c_rcvctxt = 1;
    world.c_rank = rank;
    world.c_size = size;
    world.c_procs = by_rank;

    const struct mpip_upcalls upcalls = {CMPI_ADI_VERSION, arrived, completed, peer_failed, withdraw, release, post, progress, NULL, NULL};
    need(mpip_set_upcalls(&upcalls), "upcalls");
    for (int p = 0; p < NPROTO; ++p) {
        struct protocol* module = &mpip_protocols[p];
        void* mine = NULL;
        int bytes = 0;
        if (mpip_map_functions(mpip_protocol_name(p), module) == MPIP_SUCCESS) {
            module->pt_loaded = module->pt_initialize() == MPIP_SUCCESS && module->pt_initconns(&task, &mine) == MPIP_SUCCESS;
            if (module->pt_loaded) bytes = task.ti_myenvsize[p];
        }
        exchange(p, mine, bytes);
    }
    int unreached = 0;
    need(mpip_getconns(&task, forced, &unreached), "getconns");
    for (int p = 0; p < NPROTO; ++p)
        if (task.ti_nproto[p] > 0) need(mpip_protocols[p].pt_makeconns(&task, task.ti_renvs[p]), "makeconns");
    for (int p = 0; p < NPROTO; ++p)
        if (task.ti_nproto[p] > 0) need(mpip_protocols[p].pt_completeconns(&task), "completeconns");
}

static void finish(void) {
    for (int p = 0; p < NPROTO; ++p)
        if (task.ti_nproto[p] > 0) need(mpip_protocols[p].pt_closeconns(NULL, 0, NULL), "closeconns");
    for (int p = 0; p < NPROTO; ++p) {
        if (mpip_protocols[p].pt_loaded) need(mpip_protocols[p].pt_finalize(), "finalize");
        free(task.ti_renvs[p]);
    }
}

/* ---- the program: a message goes around, each process adds its rank to every byte ---- */

static void ring(size_t bytes) {
    process_t* next = by_rank[(task.ti_index + 1) % task.ti_nprocs];
    process_t* before = by_rank[(task.ti_index + task.ti_nprocs - 1) % task.ti_nprocs];
    unsigned char* data = calloc(bytes + 1, 1);
    const int tag = (int)(bytes % 1000);
    mpip_req_t status;
    if (task.ti_index != 0) need(before->p_proto->pt_frecv(before, data, bytes, NULL, tag, &world, &status), "receive");
    for (size_t i = 0; i < bytes; ++i) data[i] = (unsigned char)(data[i] + task.ti_index);
    need(next->p_proto->pt_fsend(next, data, bytes, NULL, tag, &world, MPIP_MODE_STANDARD), "send");
    if (task.ti_index == 0) {
        need(before->p_proto->pt_frecv(before, data, bytes, NULL, tag, &world, &status), "receive");
        const unsigned char sum = (unsigned char)(task.ti_nprocs * (task.ti_nprocs - 1) / 2);
        for (size_t i = 0; i < bytes; ++i) {
            if (data[i] == sum) continue;
            fprintf(stderr, "byte %zu of %zu is %d, not %d\n", i, bytes, data[i], sum);
            _exit(1);
        }
        printf("%8zu bytes around %d processes over %s\n", bytes, task.ti_nprocs, next->p_proto->pt_name);
    }
    free(data);
}

int main(int argc, char** argv) {
    const int size = argc > 1 ? atoi(argv[1]) : 4;
    if (size < 2 || size > MOST) return fprintf(stderr, "usage: %s [2..%d [via|shm|tcp]]\n", argv[0], MOST), 2;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return perror("mmap"), 1;
    for (int rank = 0; rank < size; ++rank) {
        if (fork() != 0) continue;
        start(rank, size, argc > 2 ? argv[2] : NULL);
        const size_t lengths[] = {0, 1, 8, 1000, 20000, 300000, 4000000};
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) ring(lengths[i]);
        finish();
        fflush(NULL);
        _exit(0);
    }
    int bad = 0;
    for (int i = 0, status; i < size; ++i) bad |= wait(&status) < 0 || status != 0;
    return bad;
}
