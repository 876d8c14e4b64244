/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmpi_adi.h - the C-MPI abstract device: what an MPI engine and the protocol modules below it (via, shm, tcp, self)
 * see of each other. For authors of an engine on libcmpi-adi (as libcmpi), and of a module. C99 and C++. docs/adi.md
 * has the order of calls and what an engine must do.
 *
 * Rules that hold everywhere
 * - The engine owns communicators, datatypes, matching, queues of posted receives and of unexpected messages. A module
 *   owns connections, buffers, credits and the way of a message. A module never looks at an MPI handle.
 * - One thread at a time is inside the library; an engine for many threads holds a lock around every call. Upcalls come
 *   on the thread that called, from inside the call; they must not block and must not call pt_progress_* or
 *   pt_closeconns; everything else may be called from them.
 * - A pair of processes uses exactly one protocol, in order: messages arrive in the order in which they were started.
 * - Functions of type int give MPIP_SUCCESS or an MPIP_ERR_... class (numbers are those of MPICH's error classes),
 *   unless stated otherwise.
 */
#ifndef CMPI_ADI_H
#define CMPI_ADI_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#define CMPI_ADI_VERSION 6 /* of this contract; mpip_map_functions checks it */

/* --------------------------------------------------------------------------------------- codes and numbers -- */

#define MPIP_SUCCESS 0
#define MPIP_AGAIN (-1) /* not now: nothing was done, the caller keeps everything */
#define MPIP_ERR_ARG 12
#define MPIP_ERR_TRUNCATE 14
#define MPIP_ERR_OTHER 15
#define MPIP_ERR_INTERN 16
#define MPIP_ERR_NO_MEM 34
#define MPIP_ERR_UNREACHABLE 100  /* no protocol reaches that process */
#define MPIP_ERR_PROC_FAILED 101  /* the peer process has ended or cannot be reached any more */

/*
 * Protocols by number: index into mpip_protocols and the per-protocol arrays of the task, which have room for NPROTO.
 * Those of the library come first, in this order; behind them those loaded from a folder. The numbers of these may
 * differ between processes: what goes to another process names a protocol, mpip_protocol_name.
 */
enum { MPIP_PROTO_SELF = 0, MPIP_PROTO_SHM = 1, MPIP_PROTO_VIA = 2, MPIP_PROTO_TCP = 3, NPROTO = 8 };

typedef uint64_t reqaddr_t; /* a request as it travels: index and generation, never an address; 0: none */

typedef struct process process_t;
typedef struct taskinfo taskinfo_t;
typedef struct unexmsg unexmsg_t;
typedef struct mpip_req mpip_req_t;
typedef struct mpip_comm mpip_comm_t;
typedef struct mpip_type mpip_type_t;

/* Mode of a message: one of the first three, and bits. */
#define MPIP_MODE_STANDARD 0x0
#define MPIP_MODE_SYNC 0x1  /* completes when matched: always by handshake */
#define MPIP_MODE_READY 0x2 /* the receive is posted: as standard */
#define MPIP_MODE_RTS 0x4   /* envelope of a long message: data follows after the handshake */
#define MPIP_MODE_TRY 0x100 /* pt_fsend only: give MPIP_AGAIN instead of waiting */

/* ----------------------------------------------------------------------------------------------- records -- */

/* A piece of memory without gaps. */
struct mpip_piece {
    void* pc_at;
    size_t pc_bytes;
};

/* The layout of non-contiguous data. An engine puts it in front of its own datatype record. NULL means bytes. */
struct mpip_type {
    size_t d_size;    /* bytes of data in one element */
    unsigned d_flags; /* MPIP_TYPE_CONTIG: elements lie one behind the other without gaps, at the buffer address */
#define MPIP_TYPE_CONTIG 0x1
    /* Copies `bytes` bytes of packed data from position `offset` of the packed stream, out of or into the buffer. */
    void (*d_pack)(const mpip_type_t*, const void* buf, size_t count, size_t offset, void* to, size_t bytes);
    void (*d_unpack)(const mpip_type_t*, void* buf, size_t count, size_t offset, const void* from, size_t bytes);
    /*
     * Where the first `bytes` bytes of packed data lie, in their order; neighbours may be told as one. Gives how many
     * pieces, 0 when they are more than `room`. May be NULL: then such data is always packed and unpacked.
     */
    size_t (*d_pieces)(const mpip_type_t*, void* buf, size_t count, size_t bytes, struct mpip_piece*,
                       size_t room);
};

/* The fields of a communicator that modules read; an engine's own record begins with them. */
struct mpip_comm {
    uint64_t c_sndctxt; /* goes into envelopes sent */
    uint64_t c_rcvctxt;
    int c_rank; /* own rank in the local group: goes into envelopes sent */
    int c_size;
    int c_flags;
#define MPIP_COMM_INTERCOMM 0x100
#define MPIP_COMM_TRANSPORTERR 0x1000
#define MPIP_COMM_ROBUST 0x2000
    int c_latency;         /* ns, worst of the protocols in use: hints for collectives */
    int c_bandwidth;       /* MB/s, worst of the protocols in use */
    int c_proto[NPROTO];   /* protocols in use, c_nprotos of them */
    int c_nprotos;
    /* by rank, the remote group of an inter-communicator; used by pt_ping and any-source calls */
    struct process** c_procs;
};

struct envelope {
    uint64_t ev_ctxt;
    int ev_mode;
    int ev_rank; /* rank of the sender in its group */
    int ev_tag;
    int64_t ev_len; /* of the whole message */
    reqaddr_t ev_sendreq;
    reqaddr_t ev_rcvreq;
};

/*
 * A send or a receive. The engine fills it, and may keep it anywhere; a module holds on to it from pt_queuedsend, or
 * from the match, until it is MPIP_REQ_DONE. Memory is contiguous at r_buf unless r_type says otherwise (not NULL and
 * not MPIP_TYPE_CONTIG): then modules pack and unpack in place, packet by packet, or have the NIC gather and scatter
 * the pieces that d_pieces tells.
 */
struct mpip_req {
    int r_state;
#define MPIP_REQ_SENDREADY 0x1 /* on the send queue of its process */
#define MPIP_REQ_RECVHEAD 0x2  /* posted, no message yet */
#define MPIP_REQ_STARTED 0x4   /* envelope is away (send), or message is arriving (receive) */
#define MPIP_REQ_CANCELLED 0x8 /* together with DONE: taken back, nothing was delivered */
#define MPIP_REQ_DONE 0x10
    int r_flags;
#define MPIP_REQ_SEND 0x1
#define MPIP_REQ_NOTIFY 0x2 /* call up->completed when DONE; without it the state is all that is told */
#define MPIP_REQ_ENGINE 0xffff0000 /* bits that modules never touch */
    int r_error;
    int r_tag;           /* send: the tag; receive: as posted, after the match as received */
    struct process* r_proc; /* peer; receive from anywhere: NULL until matched */
    void* r_buf;
    size_t r_bytes;   /* send: length of the message; receive: room in the buffer (packed) */
    int64_t r_length; /* bytes moved so far; when done: of the message delivered */
    uint64_t r_ctxt;  /* context of the envelope */
    int r_rank;       /* send: own rank in the communicator; receive: as posted, after the match the sender's */
    struct mpip_req* r_next; /* send queue of the process; of the engine at other times */
    int r_mode;              /* MPIP_MODE_... of a send */
    int r_pertag;            /* the engine's: persistent tag */
    const mpip_type_t* r_type;
    size_t r_count;       /* elements, with r_type */
    reqaddr_t r_id;       /* own name on the wire while a module needs one */
    reqaddr_t r_peereq;   /* the other side's request */
#define r_cancelreq r_peereq
    void* r_data;         /* the module's while active */
    size_t r_expected;    /* the module's: length of the message being received; also of one that was truncated */
    mpip_comm_t* r_comm;  /* the rest is the engine's */
    struct mpip_req* r_bsend;
    void (*r_cancelfn)(struct mpip_req*);
    void* r_engine;
    unsigned r_cookie;
    int r_fhandle;
    int r_lock;
};

/* A message without a posted receive; kept by the engine. */
struct unexmsg {
    struct envelope um_env;
    char* um_buf; /* the data, when the engine has it; NULL when the module holds it (um_data) */
    struct unexmsg* um_next;
    void* um_data; /* the module's, given in arrived(): data held, or the sender's side of a long message */
    struct process* um_proc;
};

/* One other process as modules and engine see it. Entries of mpip processes live as long as the task. */
struct process {
    int p_flags;
#define MPIP_PROC_TRANSPORTERR 0x1 /* the way to it is broken: nothing more can be sent or received */
#define MPIP_PROC_ROBUST 0x2       /* of a ROBUST task: its loss does not end the job */
#define MPIP_PROC_ATTACHED 0x4     /* connected (its protocol has a table entry for it) */
#define MPIP_PROC_REMOVED 0x8      /* logically disconnected by pt_remconns */
#define MPIP_PROC_LEFT 0x10        /* has closed by its pt_closeconns */
    int p_nrecvs;              /* posted receives that name it */
    struct protocol* p_proto;
    struct mpip_req* p_sendhead; /* sends not started yet, in order */
    struct mpip_req* p_sendtail;
    void* p_pm;                /* the module's connection */
    void* p_engine;            /* the engine's */
    struct {
        int pg_node;  /* processes with the same number share a host */
        int pg_wrank; /* rank in the world */
    } p_gid;
    int p_conns; /* communicator worlds that use it: pt_remconns acts when it falls to zero */
};

struct procinfo {
    struct process* pi_proc;
    char pi_host[64]; /* host name as the launcher tells it; "" unknown */
    struct procinfo* pi_next; /* next in protocol */
    int pi_proto;             /* -1 until mpip_getconns */
    int pi_ptrank;            /* rank in protocol */
    int pi_nodeid;
    /*
     * Of a process of another job: its rank there, and the secret that its job and this one have agreed on, from which
     * its protocol makes what the two prove their names by. NULL: of this job.
     */
#define MPIP_SECRET_BYTES 16
    const unsigned char* pi_secret;
    int pi_jobrank;
};

/* The job, filled by the engine before pt_initconns (first part) and pt_makeconns (second part). */
struct taskinfo {
    int ti_flags;
#define TASK_WORLD 0x1
#define TASK_MERGE 0x2
#define TASK_CLIENT 0x4
#define TASK_SERVER 0x8
#define TASK_PARENT 0x10
#define TASK_CHILD 0x20
#define TASK_ROBUST 0x40
#define TASK_CROWDED 0x80 /* more processes than processors here: a wait for another one may be long */
    int ti_index;  /* own rank */
    int ti_nprocs; /* processes in the job */
    int ti_nlocal; /* of them on this host, this one included */
    int ti_nremote;
    int ti_nhosts;
    char ti_job[64]; /* a name no other job on these hosts has (name space or key-value space of the launcher) */
    struct procinfo* ti_procs; /* ti_nprocs of them */
    int ti_myenvsize[NPROTO];  /* set by pt_initconns */
    void* ti_myenv[NPROTO];
    /* After the exchange: environment r of protocol p lies at ti_renvs[p] + the sum of the sizes before it. */
    int* ti_renvsizes[NPROTO];
    char* ti_renvs[NPROTO];
    /* Set by mpip_getconns: the chain of each protocol. */
    int ti_nprotos;
    struct procinfo* ti_proto[NPROTO];
    int ti_nproto[NPROTO];
    void* ti_info; /* the engine's */
    /*
     * Set by pt_initconns of a protocol that reaches processes of other jobs: the address environment that they get,
     * without any secret of this job. Size 0: the protocol stays inside the job.
     */
    int ti_outerenvsize[NPROTO];
    void* ti_outerenv[NPROTO];
};

/*
 * Memory of a process that others write and read without its help, as its NIC knows it. It travels to them as it is:
 * a module looks it up with the process whose memory it is.
 */
#define MPIP_HANDLES 8
struct mpip_region {
    uint64_t rg_address;
    uint64_t rg_bytes;
    uint32_t rg_handle[MPIP_HANDLES]; /* the module's */
};

/* An atomic operation on a word of 4 or 8 bytes at its alignment, in the byte order of the machine. */
struct mpip_change {
    uint64_t ch_address;
    unsigned ch_bytes;
    int ch_swaps; /* 0: the operand is added; 1: it takes the place of the word if that is what is expected */
    uint64_t ch_operand;
    uint64_t ch_expected;
};

/* What a module is good for: numbers to choose by, never names. */
struct mpip_properties {
    int mp_exclusivity;    /* of the protocols that reach a process the highest wins: self 100, shm 50, via 20, tcp 0 */
    int mp_latency_ns;   /* nominal, one way */
    int mp_bandwidth_mb; /* nominal, MB/s */
    size_t mp_eager_limit; /* longest message sent without a handshake */
    size_t mp_first_frag;  /* most that the first packet carries */
    size_t mp_min_frag;    /* a long message is not cut below this */
    size_t mp_max_frag;    /* one transfer never moves more */
    size_t mp_cache_size;  /* requests the module keeps names for without growing */
    unsigned mp_flags;
#define MPIP_PROP_PUT 0x1 /* long messages may go by remote write */
#define MPIP_PROP_GET 0x2 /* ... or remote read */
#define MPIP_PROP_COUNT_RECVS 0x4 /* needs the posted-receive calls (below); no transport here does */
#define MPIP_PROP_PLACED 0x8 /* a put that is DONE lies in the target's memory; else only behind a get that is */
#define MPIP_PROP_WORDS 0x10 /* pt_change is there, and atomic to instructions of the target's processors */
};

/* ------------------------------------------------------------------------------------------- the module table -- */

/* How long a process may sleep in pt_block is the engine's to say; a module may return earlier. */
struct protocol {
    unsigned pt_nactv;  /* active requests: sends started and receives matched, not DONE */
    unsigned pt_nprocs; /* processes attached */
    unsigned pt_mtu;    /* largest packet */
    int pt_loaded;      /* 1 after mpip_map_functions */
    unsigned pt_flags;
    int pt_flags_revs[32];
    const char* pt_name;
    int pt_number;
    struct mpip_properties pt_prop; /* set by pt_initialize */

    /* ---- the 26 entries of the design ---- */
    int (*pt_initialize)(void); /* once; fails when the module cannot work here, without harm to others */
    /* own address environment; size into ti_myenvsize; freed by pt_finalize */
    int (*pt_initconns)(taskinfo_t*, void** env);
    int (*pt_makeconns)(taskinfo_t*, void* env);  /* env: ti_renvs[this]. Opens the device, connects or prepares to */
    int (*pt_addconns)(taskinfo_t*, void* env);   /* attaches processes of the chain that are not ATTACHED yet */
    int (*pt_completeconns)(taskinfo_t*);         /* after makeconns of all modules: finishes what was left open */
    int (*pt_remconns)(process_t**, int, void**); /* p_conns--; at zero logically disconnected */
    /* closes connections, waits for the peers' close (bounded), disconnects the removed ones; (0,0,0): all */
    int (*pt_closeconns)(process_t**, int, void*);
    int (*pt_undoconns)(taskinfo_t*, void*);       /* takes back a set-up that failed */
    /* Sends now and returns when buf may be reused; with MPIP_MODE_TRY gives MPIP_AGAIN instead of waiting. For short
       messages. */
    int (*pt_fsend)(process_t*, const void* buf, size_t count, const mpip_type_t*, int tag, mpip_comm_t*, int mode);
    int (*pt_frecv)(process_t*, void* buf, size_t count, const mpip_type_t*, int tag, mpip_comm_t*, mpip_req_t* status);
    int (*pt_urecv)(process_t*, unexmsg_t*, void* buf, size_t count, const mpip_type_t*, mpip_comm_t*,
                    mpip_req_t* status);
    /* delivers a message the module holds (um_buf NULL) into a request */
    int (*pt_uirecv)(process_t*, unexmsg_t*, mpip_req_t*);
    int (*pt_progress_blk)(mpip_req_t*, int pollall); /* until the request is DONE */
    /* one pass: > 0 something happened, 0 nothing, < 0 minus an error class */
    int (*pt_progress_nblk)(int pollall);
    void (*pt_postedreceive)(process_t*); /* these seven: only with MPIP_PROP_COUNT_RECVS, except queuedsend */
    void (*pt_unpostedreceive)(process_t*);
    /* a request was put on p_sendhead: starts what can be started; never blocks. With an empty queue it only begins to
       connect the process, where no connection stands */
    void (*pt_queuedsend)(process_t*);
    void (*pt_dequeuedsend)(process_t*); /* the engine took a send that was not started off the queue */
    void (*pt_postedrcvany)(mpip_comm_t*);
    void (*pt_unpostedrcvany)(mpip_comm_t*);
    void (*pt_matchedrcvany)(mpip_comm_t*, process_t*);
    /* futex to sleep on; n = 0: none */
    int (*pt_getevents)(void** word, unsigned* value, unsigned* sleepers, unsigned* n);
    int (*pt_getpolls)(struct pollfd**, int* n, int* timeout_ms);     /* descriptors to sleep on; n = 0: none */
    void (*pt_error_request)(mpip_req_t*); /* ends an active request with MPIP_ERR_PROC_FAILED and drops it */
    int (*pt_finalize)(void);
    int (*pt_ping)(mpip_comm_t*, int rank); /* MPIP_SUCCESS: the way to it is whole */

    /* ---- beyond the design ---- */
    int (*pt_reach)(taskinfo_t*, int rank);  /* 1: can reach that process; answers alike on both sides */
    /* sleeps until something may have come, at most so long; 1: it has moved something itself */
    int (*pt_block)(unsigned timeout_us);
    /* asks to take a send back; the request becomes DONE, with CANCELLED or not */
    int (*pt_cancelsend)(mpip_req_t*);
    void (*pt_ufree)(unexmsg_t*);            /* um_data is not wanted any more (message withdrawn or process lost) */
    /* 1: peers shall send envelopes only, unexpected data fills the memory; 0: over */
    void (*pt_pressure)(int on);

    /* ---- memory of other processes; NULL: no process's memory is reached ---- */
    /* opens memory of this process to the others' pt_access until pt_conceal of what it gives; NULL: it cannot be */
    void* (*pt_expose)(void* memory, size_t bytes, struct mpip_region*);
    void (*pt_conceal)(void* exposed);
    /*
     * Begins a put (MPIP_REQ_SEND) of r_bytes from, or a get into, the buffer of the request, which is DONE when the
     * buffer is free or filled. r_proc, the buffer and its type are set. At the other side the data lies in `far`, in
     * this order, inside the region. Those to one process are done in the order in which they were begun, and none of
     * them begins once the process is lost: then the request is DONE with MPIP_ERR_PROC_FAILED.
     * MPIP_ERR_NO_MEM: it cannot be done so, nothing has begun.
     */
    int (*pt_access)(mpip_req_t*, const struct mpip_region*, const struct mpip_piece* far, size_t pieces);
    /* The same for an atomic operation, in one order with the others; the buffer gets what the word was. */
    int (*pt_change)(mpip_req_t*, const struct mpip_region*, const struct mpip_change*);
};

extern struct protocol mpip_protocols[NPROTO];

/* ------------------------------------------------------------------------------------------------- upcalls -- */

/* Answers of arrived(). */
enum {
    MPIP_IN_TAKEN = 0,   /* the engine has copied all there is; only when here == ev_len and no RTS */
    MPIP_IN_MATCHED = 1, /* *match is the receive: the module moves all data, also what is here, and completes it */
    MPIP_IN_HELD = 2     /* unexpected, an unexmsg with um_data = held is queued: the module keeps the data until
                            pt_uirecv, pt_urecv or pt_ufree of it. Not allowed when held is NULL */
};

struct mpip_upcalls {
    unsigned version; /* CMPI_ADI_VERSION */
    /*
     * A message begins. `here` bytes of it lie at `data` (valid during the call only), held is what the module offers
     * to keep. With a matching receive: fill r_tag and r_rank, r_proc, take it off the posted queue; then copy and
     * complete it (mpip_req_deliver_all does) and answer TAKEN, or answer MATCHED. Without one: copy (TAKEN) or hold
     * (HELD).
     */
    int (*arrived)(process_t* from, const struct envelope*, const void* data, size_t here, void* held,
                   mpip_req_t** match);
    /* A request with MPIP_REQ_NOTIFY is DONE. The module keeps no reference to it. */
    void (*completed)(mpip_req_t*);
    /* The process is lost. The module has ended its own requests; the engine ends receives posted for it. Once. */
    void (*peer_failed)(process_t*, int error);
    /* The peer takes the send of that name back: unqueue the unexpected message and give it, or NULL. */
    unexmsg_t* (*withdraw)(process_t* from, reqaddr_t sendreq);
    void (*release)(unexmsg_t*); /* the module is done with a message got from withdraw */
    int (*post)(mpip_req_t*);    /* posts a receive, matching unexpected messages first (pt_frecv) */
    /* One pass over all protocols, with a yield or a sleep as the engine decides. Blocking calls loop on it. */
    int (*progress)(void);
    /*
     * Around a sleep inside pt_block, after all that needs the engine's lock: other threads call the module
     * meanwhile. An engine without threads leaves both NULL. A module that does not call them keeps the lock while it
     * sleeps.
     */
    void (*sleeping)(void);
    void (*awake)(void);
};

/* The engine's upcalls; before any pt_initialize. */
int mpip_set_upcalls(const struct mpip_upcalls*);
extern struct mpip_upcalls mpip_up;

/* ---------------------------------------------------------------------------------------- set-up and lookup -- */

/* How many there are: self, shm, via, tcp, and what the folder of CMPI_TRANSPORTS has. The first call looks. */
int mpip_protocol_count(void);
/* Fills a table by name: pt_x = mpip_<pmname>_x, for each that is counted there. MPIP_ERR_ARG for any other name. */
int mpip_map_functions(const char* pmname, struct protocol*);
/* Name of a protocol by number, "" beyond. */
const char* mpip_protocol_name(int number);
/*
 * Chooses one protocol for every process: of those initialised (pt_loaded and an environment exchanged) that reach it
 * the one of highest exclusivity; forced (a name, or NULL) names the only one allowed for others than
 * oneself. Fills pi_proto, pi_ptrank, chains, ti_nprotos and p_proto. MPIP_ERR_UNREACHABLE, *rank is the process.
 */
int mpip_getconns(taskinfo_t*, const char* forced, int* rank);
/*
 * The same for processes that have been added to the task behind the others (pi_proto -1), before pt_addconns of each
 * protocol. The choice of the others stays; all chains are made anew, for ti_procs may have moved. A process that no
 * protocol reaches is in no chain; its number goes to *rank.
 */
int mpip_addconns(taskinfo_t*, int* rank);
/* Environment of rank r for protocol p; NULL when it has none. */
const void* mpip_environment(const taskinfo_t*, int proto, int rank, int* size);
/*
 * Memory that stays registered until it is freed, for MPI_Alloc_mem: long messages in it need no registration of
 * their own. NULL when there is none to be had (use malloc then); free gives MPIP_ERR_ARG for memory that is not from
 * here.
 */
void* mpip_alloc_mem(size_t bytes);
int mpip_free_mem(void*);
/* Why the last call of the library on this thread failed, for people. */
const char* mpip_last_error(void);

/*
 * Parameters: the section [mpi] of viaduct.toml, and environment variables CMPI_..., which come before it. Read once.
 * For cmpiinfo and for people.
 */
struct mpip_param {
    const char* pa_name;
    const char* pa_help;
    const char* pa_default;
    const char* pa_value;  /* in force; a number in decimal digits */
    const char* pa_origin; /* "default", "file:line", "environment " and the variable, or "program" */
    long pa_low, pa_high;  /* range of a number; both 0: text */
};
const struct mpip_param* mpip_params(size_t* count);
/*
 * What was found wrong with parameters and is no error, one sentence each; NULL past the last: a value in a file
 * that is not allowed (the default is used), a name that is not known. A variable whose value is not allowed makes
 * mpip_set_upcalls fail.
 */
const char* mpip_param_problem(size_t number);
/*
 * Gives a number another value, as the environment would. Only before pt_initialize of the first module, which reads
 * them, and by one thread at a time. MPIP_ERR_ARG for a name that is not there, for text, and for a value out of range.
 */
int mpip_set_param(const char* name, long value);

/* Monotonic counts since the start, per protocol number; for cmpiinfo, tests and people. */
struct mpip_counters {
    uint64_t mc_eager, mc_long, mc_packets, mc_noops, mc_backlogged, mc_rput, mc_rget, mc_r3, mc_unexpected,
        mc_vbufs_grown;
    uint64_t mc_scattered; /* of mc_rput and mc_rget: those that the NIC has gathered or scattered piece by piece */
    uint64_t mc_lists;     /* lists of pieces fetched from the other side's memory */
    uint64_t mc_puts, mc_gets; /* by pt_access */
    uint64_t mc_changes;       /* by pt_change */
};
const struct mpip_counters* mpip_counters_of(int proto);

/*
 * A module in a file of its own (docs/adi-writing-a-transport.md): NAME.so in a folder, which exports one mpip_module
 * under the name "mpip_module". What it needs of the library it is loaded by comes as an mpip_device: a module looks up
 * no symbols.
 */
struct mpip_device {
    unsigned version;               /* CMPI_ADI_VERSION */
    struct protocol* protocols;     /* mpip_protocols */
    struct mpip_counters* counters; /* NPROTO of them */
    const struct mpip_upcalls* upcalls;
    void (*keep_error)(const char*); /* the sentence for mpip_last_error */
    const struct mpip_param* (*params)(size_t*);
};
struct mpip_module {
    unsigned version; /* CMPI_ADI_VERSION */
    const char* name; /* as the file's */
    /* Fills the entries of the table whose pt_number is set; the module is protocols[pt_number] from then on. */
    void (*bind)(const struct mpip_device*, struct protocol*);
};

/* One NIC of several that serve a process together (CMPI_VIA_NICS), as this side finds it. */
struct mpip_rail {
    const char* ra_name;      /* as it was given to VipOpenNic; valid until pt_finalize */
    int ra_up;                /* it is in use */
    uint64_t ra_messages;     /* frames sent by it: short messages, envelopes, pieces */
    uint64_t ra_bytes;        /* of long messages, written by it into the other side's memory */
    uint64_t ra_losses;       /* times it was taken out */
    double ra_bandwidth_mb;   /* as measured last, 10^6 bytes a second; 0: not yet */
    double ra_latency_ns;     /* half a round trip, as measured; 0: not yet */
};
/* Fills up to `room` of them for the process of that world rank; how many. 0: via has one NIC, or does not serve it. */
size_t mpip_rails_of(int rank, struct mpip_rail* rails, size_t room);

/* ------------------------------------------------------------------------------ small things on the hot path -- */

/* Appends to the send queue of a process; pt_queuedsend follows. */
static inline void mpip_enqsend(process_t* proc, mpip_req_t* req) {
    req->r_next = NULL;
    req->r_state = MPIP_REQ_SENDREADY;
    if (proc->p_sendhead == NULL) {
        proc->p_sendhead = req;
    } else {
        proc->p_sendtail->r_next = req;
    }
    proc->p_sendtail = req;
}

/* Takes the first one off. */
static inline mpip_req_t* mpip_deqsend(process_t* proc) {
    mpip_req_t* req = proc->p_sendhead;
    proc->p_sendhead = req->r_next;
    req->r_next = NULL;
    return req;
}

/* The last thing a module does with a request. */
static inline void mpip_req_done(mpip_req_t* req) {
    req->r_state |= MPIP_REQ_DONE;
    if (req->r_flags & MPIP_REQ_NOTIFY) mpip_up.completed(req);
}

static inline int mpip_req_is_contig(const mpip_req_t* req) {
    return req->r_type == NULL || (req->r_type->d_flags & MPIP_TYPE_CONTIG) != 0;
}

/* For payload: what is a few moves long is not worth a call. */
static inline void mpip_copy(void* to, const void* from, size_t bytes) {
    if (bytes == 8) {
        memcpy(to, from, 8);
    } else if (bytes == 4) {
        memcpy(to, from, 4);
    } else {
        memcpy(to, from, bytes);
    }
}

/* Puts bytes of the message from `offset` on into a receive; what does not fit is dropped. */
static inline void mpip_req_deliver(mpip_req_t* req, size_t offset, const void* data, size_t bytes) {
    if (offset >= req->r_bytes) return;
    if (bytes > req->r_bytes - offset) bytes = req->r_bytes - offset;
    if (bytes == 0) return; /* an empty message may have no buffer */
    if (mpip_req_is_contig(req)) {
        mpip_copy((char*)req->r_buf + offset, data, bytes);
    } else {
        req->r_type->d_unpack(req->r_type, req->r_buf, req->r_count, offset, data, bytes);
    }
}

/* Takes `bytes` of a send from `offset` on. */
static inline void mpip_req_collect(const mpip_req_t* req, size_t offset, void* to, size_t bytes) {
    if (bytes == 0) return;
    if (mpip_req_is_contig(req)) {
        memcpy(to, (const char*)req->r_buf + offset, bytes);
    } else {
        req->r_type->d_pack(req->r_type, req->r_buf, req->r_count, offset, to, bytes);
    }
}

/* Length and truncation of a receive whose whole message of `length` bytes has been delivered. */
static inline void mpip_req_received(mpip_req_t* req, size_t length) {
    if (length > req->r_bytes) {
        req->r_error = MPIP_ERR_TRUNCATE;
        req->r_expected = length;
        length = req->r_bytes;
    }
    req->r_length = (int64_t)length;
}

/* A whole message into a receive, which is then done. */
static inline void mpip_req_deliver_all(mpip_req_t* req, const void* data, size_t bytes) {
    mpip_req_deliver(req, 0, data, bytes);
    mpip_req_received(req, bytes);
    mpip_req_done(req);
}

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
