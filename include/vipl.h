/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vipl.h - the Virtual Interface Provider Library, interface level 1.0.
 *
 * One header for every VIPL program on Linux: it holds the union of what the two historic families of this
 * header offered, so that sources written for either compile unchanged. Programs include it as <vipl.h> and
 * link with -lvipl.
 *
 * - Both descriptor dialects are there at once (CS/DS and Control/Data); VIPL095 may be defined and has no
 *   effect.
 * - Parses as C89 and everything newer, and as C++98 and everything newer. It includes nothing with GCC or
 *   Clang and <stdint.h> with other compilers, and defines no name outside VIP_, Vip, VI_, IN and OUT.
 * - A program that carries a private copy of either historic header may keep it: whichever is seen first
 *   wins.
 * - Numbers, member order and member types are binary interface. None of them forbids a 32-bit build.
 *
 * Rules that hold for all calls unless the comment of a call says otherwise:
 * - Every call is safe on every object from any thread at any time; the two queues of a VI never block each
 *   other. A handle that is not live, or a null pointer where a result is stored, answers
 *   VIP_INVALID_PARAMETER.
 * - Timeouts are milliseconds. 0 polls once; any value of 0xFFFFFFFF or more waits for ever.
 * - Lengths and sizes are bytes. Calls return no other VIP_RETURN than the ones listed beside them.
 * - Signals never cut a wait short; the wait keeps its original deadline.
 *
 * Sources in docs/spec: header (names, numbers, signatures), descriptors to limits (meaning), compat
 * (what existing programs need). Each call has a manual page in section 3.
 */
#if !defined(_VIPL_) && !defined(_VIPL_H)
#define _VIPL_
#define _VIPL_H

/* GCC and Clang define all four exact-width types themselves. */
#ifndef __UINT64_TYPE__
#include <stdint.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Markers of historic sources; empty here, and never used below, so a program may give them any meaning
 * first.
 */
#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef VI_CALL
#define VI_CALL
#endif

/* ----------------------------------------------------------------------------------------- basic types -- */

typedef void* VIP_PVOID;
typedef int VIP_BOOLEAN;
typedef char VIP_CHAR;
typedef unsigned char VIP_UCHAR;
typedef short VIP_SHORT;
typedef unsigned short VIP_USHORT;
typedef long VIP_LONG;
typedef unsigned long VIP_ULONG; /* 8 bytes on 64-bit Linux: programs print it with %lu */

#ifdef __UINT64_TYPE__
typedef __UINT8_TYPE__ VIP_UINT8;
typedef __UINT16_TYPE__ VIP_UINT16;
typedef __UINT32_TYPE__ VIP_UINT32;
#ifdef __LP64__
typedef __UINT64_TYPE__ VIP_UINT64;
#else /* without the words long long, which C89 and C++98 do not have */
typedef unsigned int VIP_UINT64 __attribute__((__mode__(__DI__)));
#endif
#else
typedef uint8_t VIP_UINT8;
typedef uint16_t VIP_UINT16;
typedef uint32_t VIP_UINT32;
typedef uint64_t VIP_UINT64;
#endif

#define VIP_TRUE 1
#define VIP_FALSE 0

/* The longest timeout: wait for ever. Kernel-side sources of old hid it by defining VIP_KERNEL. */
#ifndef VIP_KERNEL
#define VIP_INFINITE 0xFFFFFFFFUL
#endif

/* Handles are opaque: compare them with each other and with NULL, nothing else. */
typedef VIP_PVOID VIP_NIC_HANDLE;
typedef VIP_PVOID VIP_VI_HANDLE;
typedef VIP_PVOID VIP_CQ_HANDLE;
typedef VIP_PVOID VIP_PROTECTION_HANDLE;
typedef VIP_PVOID VIP_CONN_HANDLE;
typedef VIP_PVOID VIP_EVENT_HANDLE;

/* Always 32 bit, because programs send it in messages. Never 0 and never 0xFFFFFFFF (spec/compat M1). */
typedef VIP_UINT32 VIP_MEM_HANDLE;

/* Quality of service: no provider defines any, pass NULL. */
typedef VIP_PVOID VIP_QOS;

/* Exactly one level for a VI; a mask of levels where a NIC reports what it can do. */
typedef VIP_USHORT VIP_RELIABILITY_LEVEL;
#define VIP_SERVICE_UNRELIABLE 1
#define VIP_SERVICE_RELIABLE_DELIVERY 2
#define VIP_SERVICE_RELIABLE_RECEPTION 4
#define VIP_BASE_SERVICES 7
#define VIP_SERVICE_ACK (1 << 14) /* vendor levels of old, never reported */
#define VIP_SERVICE_DFC (1 << 15)

/* ------------------------------------------------------------------------------ codes and enumerations -- */

/* What a call answers. Programs index tables of 17 texts with it: no code beyond 16 is ever returned. */
typedef enum {
    VIP_SUCCESS = 0,                   /* done */
    VIP_NOT_DONE = 1,                  /* nothing completed yet, or still pending */
    VIP_INVALID_PARAMETER = 2,         /* dead handle, null pointer or impossible value */
    VIP_ERROR_RESOURCE = 3,            /* a limit was reached, or the object is still in use */
    VIP_TIMEOUT = 4,                   /* the wait ended without a result */
    VIP_REJECT = 5,                    /* the other side called VipConnectReject */
    VIP_INVALID_RELIABILITY_LEVEL = 6, /* level not offered, or not equal on both sides */
    VIP_INVALID_MTU = 7,               /* MaxTransferSize not offered, or not equal on both sides */
    VIP_INVALID_QOS = 8,               /* QoS not offered, or not equal on both sides */
    VIP_INVALID_PTAG = 9,              /* not a protection tag of this NIC handle */
    VIP_INVALID_RDMAREAD = 10,         /* RDMA read asked for where there is none */
    VIP_DESCRIPTOR_ERROR = 11,         /* descriptor completed in error; with NULL: queue empty */
    VIP_INVALID_STATE = 12,            /* the VI is in the wrong state */
    VIP_ERROR_NAMESERVICE = 13,        /* name unknown, or name service not started */
    VIP_NO_MATCH = 14,                 /* no program waits there: try again */
    VIP_NOT_REACHABLE = 15,            /* for sources that name it; an absent peer is VIP_NO_MATCH */
#ifndef VIP_ERROR_NOT_SUPPORTED
    VIP_ERROR_NOT_SUPPORTED = 16, /* vendor call that does nothing here */
#endif
    VIP_ERROR = VIP_DESCRIPTOR_ERROR /* second name of 11 */
} VIP_RETURN;

/* Some programs supply this one themselves unless it is a macro (spec/compat H9). */
#ifndef VIP_ERROR_NOT_SUPPORTED
#define VIP_ERROR_NOT_SUPPORTED VIP_ERROR_NOT_SUPPORTED
#endif

/* States of a VI (spec/states 3). Connected comes before Connect-Pending. */
typedef enum {
    VIP_STATE_IDLE = 0,
    VIP_STATE_CONNECTED = 1,
    VIP_STATE_CONNECT_PENDING = 2,
    VIP_STATE_ERROR = 3
} VIP_VI_STATE;

/* What an asynchronous error concerns. */
typedef enum _VIP_RESOURCE_CODE {
    VIP_RESOURCE_NIC = 0,
    VIP_RESOURCE_VI = 1,
    VIP_RESOURCE_CQ = 2,
    VIP_RESOURCE_DESCRIPTOR = 3
} VIP_RESOURCE_CODE;

/* Asynchronous errors: those that no descriptor can report (spec/errors 8). */
typedef enum _VIP_ERROR_CODE {
    VIP_ERROR_POST_DESC = 0,      /* descriptor misaligned or not in registered memory */
    VIP_ERROR_CONN_LOST = 1,      /* the other side or the network ended the connection */
    VIP_ERROR_RECVQ_EMPTY = 2,    /* a message came and no receive was posted */
    VIP_ERROR_VI_OVERRUN = 3,     /* more descriptors posted than the queue holds */
    VIP_ERROR_RDMAW_PROT = 4,     /* incoming RDMA write not permitted */
    VIP_ERROR_RDMAW_DATA = 5,     /* incoming RDMA write with damaged data */
    VIP_ERROR_RDMAW_ABORT = 6,    /* incoming RDMA write broken off */
    VIP_ERROR_RDMAR_PROT = 7,     /* incoming RDMA read not permitted */
    VIP_ERROR_COMP_PROT = 8,      /* a completion could not be written */
    VIP_ERROR_RDMA_TRANSPORT = 9, /* network failure during RDMA */
    VIP_ERROR_CATASTROPHIC = 10   /* the NIC failed, or a completion queue overflowed (resource code CQ) */
} VIP_ERROR_CODE;

/* ----------------------------------------------------------------------------------------- descriptors -- */

/*
 * A descriptor is one control segment and 0..MaxSegmentsPerDesc further segments of 16 bytes, all
 * contiguous, the whole in memory registered with the same NIC handle, starting at a multiple of
 * VIP_DESCRIPTOR_ALIGNMENT. For more than two segments take a larger block and index DS[] or Data[] beyond
 * 2. The types carry no alignment attribute: programs cast plain bytes to them. From posting until a Done,
 * Wait or Notify hands it back, a descriptor belongs to the library; only Next, NextHandle, ImmediateData,
 * Length and Status ever change under it (spec/compat T1).
 */
#define VIP_DESCRIPTOR_ALIGNMENT 64

struct _VIP_DESCRIPTOR;

/*
 * 64 bits for a pointer on every machine. Where pointers are shorter, clear AddressBits before setting
 * Address.
 */
typedef union {
    VIP_UINT64 AddressBits;
    VIP_PVOID Address;
    struct _VIP_DESCRIPTOR* Descriptor;
} VIP_PVOID64;

typedef struct {
    VIP_PVOID64 Next;          /*  0: the library's while posted, the program's otherwise */
    VIP_MEM_HANDLE NextHandle; /*  8: the library's while posted */
    VIP_UINT16 SegCount;       /* 12: segments behind this one, the address segment of an RDMA included */
    VIP_UINT16 Control;        /* 14: VIP_CONTROL_... */
    VIP_UINT32 Reserved;       /* 16: 0 */
    VIP_UINT32 ImmediateData;  /* 20: with VIP_CONTROL_IMMEDIATE or VIP_STATUS_IMMEDIATE, else kept */
    VIP_UINT32 Length;         /* 24: send: sum of the data segments; on completion: bytes moved */
    VIP_UINT32 Status;         /* 28: VIP_STATUS_..., written last */
} VIP_CONTROL_SEGMENT;

/* Remote end of an RDMA: first segment, exactly one. */
typedef struct {
    VIP_PVOID64 Data;
    VIP_MEM_HANDLE Handle;
    VIP_UINT32 Reserved;
} VIP_ADDRESS_SEGMENT;

/* One piece of local memory. */
typedef struct {
    VIP_PVOID64 Data;
    VIP_MEM_HANDLE Handle;
    VIP_UINT32 Length;
} VIP_DATA_SEGMENT;

typedef union {
    VIP_ADDRESS_SEGMENT Remote;
    VIP_DATA_SEGMENT Local;
} VIP_DESCRIPTOR_SEGMENT;

/*
 * The smallest descriptor, 64 bytes. CS is Control and DS[i].Local is Data[i], byte for byte. Where system
 * headers make CS or DS a macro (<sys/reg.h>), the members are _CS and _DS, as they were on Solaris.
 */
__extension__ typedef struct _VIP_DESCRIPTOR {
    union {
#if defined(CS) || defined(DS)
        VIP_CONTROL_SEGMENT _CS;
#else
        VIP_CONTROL_SEGMENT CS;
#endif
        VIP_CONTROL_SEGMENT Control;
    };
    union {
#if defined(CS) || defined(DS)
        VIP_DESCRIPTOR_SEGMENT _DS[2];
#else
        VIP_DESCRIPTOR_SEGMENT DS[2];
#endif
        VIP_DATA_SEGMENT Data[2];
    };
} VIP_DESCRIPTOR;

/* Control field. */
#define VIP_CONTROL_OP_SENDRECV 0x0000
#define VIP_CONTROL_OP_RDMAWRITE 0x0001
#define VIP_CONTROL_OP_RDMAREAD 0x0002
#define VIP_CONTROL_OP_RESERVED 0x0003
#define VIP_CONTROL_OP_MASK 0x0003
#define VIP_CONTROL_IMMEDIATE 0x0004 /* ImmediateData travels with the message */
#define VIP_CONTROL_QFENCE 0x0008    /* start only after all earlier RDMA reads of this queue */
#define VIP_CONTROL_RESERVED 0xFFF0

/* Status field. DONE is set with every completion, good or bad; several errors may be set together. */
#define VIP_STATUS_DONE 0x00000001
#define VIP_STATUS_FORMAT_ERROR 0x00000002
#define VIP_STATUS_PROTECTION_ERROR 0x00000004
#define VIP_STATUS_LENGTH_ERROR 0x00000008
#define VIP_STATUS_PARTIAL_ERROR 0x00000010
#define VIP_STATUS_DESC_FLUSHED_ERROR 0x00000020
#define VIP_STATUS_TRANSPORT_ERROR 0x00000040
#define VIP_STATUS_RDMA_PROT_ERROR 0x00000080
#define VIP_STATUS_REMOTE_DESC_ERROR 0x00000100
#define VIP_STATUS_ERROR_MASK 0x000001FE
#define VIP_STATUS_OP_SEND 0x00000000
#define VIP_STATUS_OP_RECEIVE 0x00010000
#define VIP_STATUS_OP_RDMA_WRITE 0x00020000
#define VIP_STATUS_OP_REMOTE_RDMA_WRITE 0x00030000
#define VIP_STATUS_OP_RDMA_READ 0x00040000
#define VIP_STATUS_OP_MASK 0x00070000
#define VIP_STATUS_IMMEDIATE 0x00080000
#define VIP_STATUS_RESERVED 0xFFF0FE00

/* --------------------------------------------------------------------------------------------- records -- */

/*
 * An address: HostAddressLen bytes of host address, and DiscriminatorLen bytes of discriminator directly
 * behind them. Allocate 4 + both lengths; sizeof is only the fixed part. The library writes no byte beyond
 * what the lengths say.
 */
typedef struct _VIP_NET_ADDRESS {
    VIP_UINT16 HostAddressLen;
    VIP_UINT16 DiscriminatorLen;
    VIP_UINT8 HostAddress[1];
} VIP_NET_ADDRESS;

/* What a NIC is and can do; constant while it is open. */
typedef struct _VIP_NIC_ATTRIBUTES {
    VIP_CHAR Name[64];
    VIP_ULONG HardwareVersion;
    VIP_ULONG ProviderVersion;
    VIP_UINT16 NicAddressLen;                      /* bytes, 6 with all providers */
    const VIP_UINT8* LocalNicAddress;              /* valid until VipCloseNic */
    VIP_BOOLEAN ThreadSafe;                        /* always VIP_TRUE */
    VIP_UINT16 MaxDiscriminatorLen;                /* bytes */
    VIP_ULONG MaxRegisterBytes;                    /* bytes, all regions together */
    VIP_ULONG MaxRegisterRegions;                  /* regions */
    VIP_ULONG MaxRegisterBlockBytes;               /* bytes, one region */
    VIP_ULONG MaxVI;                               /* VIs of one NIC handle */
    VIP_ULONG MaxDescriptorsPerQueue;              /* descriptors */
    VIP_ULONG MaxSegmentsPerDesc;                  /* segments behind the control segment */
    VIP_ULONG MaxCQ;                               /* completion queues */
    VIP_ULONG MaxCQEntries;                        /* entries of one completion queue */
    VIP_ULONG MaxTransferSize;                     /* bytes of one descriptor, below 2^31 */
    VIP_ULONG NativeMTU;                           /* bytes */
    VIP_ULONG MaxPtags;                            /* protection tags */
    VIP_RELIABILITY_LEVEL ReliabilityLevelSupport; /* mask */
    VIP_RELIABILITY_LEVEL RDMAReadSupport;         /* mask of levels with RDMA read */
} VIP_NIC_ATTRIBUTES;

/* Member order is used by positional initialisers. */
typedef struct _VIP_VI_ATTRIBUTES {
    VIP_RELIABILITY_LEVEL ReliabilityLevel; /* exactly one */
    VIP_ULONG MaxTransferSize;              /* bytes, 1 to that of the NIC */
    VIP_QOS QoS;                            /* NULL */
    VIP_PROTECTION_HANDLE Ptag;             /* NULL: works with all memory of the NIC handle */
    VIP_BOOLEAN EnableRdmaWrite;            /* the other side may write */
    VIP_BOOLEAN EnableRdmaRead;             /* the other side may read */
} VIP_VI_ATTRIBUTES;

typedef struct _VIP_MEM_ATTRIBUTES {
    VIP_PROTECTION_HANDLE Ptag; /* NULL: the default tag */
    VIP_BOOLEAN EnableRdmaWrite;
    VIP_BOOLEAN EnableRdmaRead;
} VIP_MEM_ATTRIBUTES;

/* Handed to an error handler; valid during the call only. Members that do not apply are NULL or 0. */
typedef struct _VIP_ERROR_DESCRIPTOR {
    VIP_NIC_HANDLE NicHandle;
    VIP_VI_HANDLE ViHandle;
    VIP_CQ_HANDLE CQHandle;
    VIP_DESCRIPTOR* DescriptorPtr;
    VIP_ULONG OpCode; /* VIP_STATUS_OP_... */
    VIP_RESOURCE_CODE ResourceCode;
    VIP_ERROR_CODE ErrorCode;
} VIP_ERROR_DESCRIPTOR;

/* Result of VipQuerySystemManagementInfo with VIP_SMI_AUTODISCOVERY. */
#define VIP_SMI_AUTODISCOVERY 1UL

typedef struct {
    VIP_ULONG NumberOfHops;
    VIP_NET_ADDRESS** ADAddrArray; /* the program's addresses, each large enough for one NIC address */
    VIP_ULONG NumAdAddrs;          /* in: how many there are; out: how many were filled */
} VIP_AUTODISCOVERY_LIST;

/* ------------------------------------------------------------------------------------------- callbacks -- */

/*
 * Handlers run on a thread of the library, which sleeps while nothing happens. They may call anything in
 * here, and may end the process. Handlers of one NIC handle run one at a time (spec/calls 4.6-4.8).
 */
typedef void (*VIP_ERROR_HANDLER)(VIP_PVOID Context, VIP_ERROR_DESCRIPTOR* ErrorDesc);
typedef void (*VIP_VI_CALLBACK)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
                                VIP_DESCRIPTOR* Descriptor);
typedef void (*VIP_CQ_CALLBACK)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
                                VIP_BOOLEAN RecvQueue);

/* ----------------------------------------------------------------------------------------------- calls -- */

/* Exported also where the including program or library hides its own names. */
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/*
 * Opens the NIC of that name. Any number of opens of one device, each a world of its own: handles of one
 * are unknown to the other. Numbered names fail beyond the NICs that exist (spec/compat D9).
 * SUCCESS, ERROR_RESOURCE, INVALID_PARAMETER (unknown name). spec/calls 4.1.
 */
VIP_RETURN VipOpenNic(const VIP_CHAR* DeviceName, VIP_NIC_HANDLE* NicHandle);

/*
 * Closes the NIC and everything still open on it, as process end would. Waits that are going on in other
 * threads return INVALID_PARAMETER.
 * SUCCESS, INVALID_PARAMETER. spec/calls 4.1.
 */
VIP_RETURN VipCloseNic(VIP_NIC_HANDLE NicHandle);

/*
 * Fills in what the NIC is and can do.
 * SUCCESS, INVALID_PARAMETER. spec/calls 4.1.
 */
VIP_RETURN VipQueryNic(VIP_NIC_HANDLE NicHandle, VIP_NIC_ATTRIBUTES* Attributes);

/*
 * Makes a VI, Idle and with empty queues. A completion queue may be NULL, both may be the same; a work
 * queue with one is watched there, and no longer with Wait or Notify.
 * SUCCESS, ERROR_RESOURCE (limit), INVALID_PARAMETER, INVALID_RELIABILITY_LEVEL, INVALID_MTU, INVALID_QOS,
 * INVALID_PTAG, INVALID_RDMAREAD. spec/calls 4.2.
 */
VIP_RETURN VipCreateVi(VIP_NIC_HANDLE NicHandle, VIP_VI_ATTRIBUTES* ViAttributes, VIP_CQ_HANDLE SendCQHandle,
                       VIP_CQ_HANDLE RecvCQHandle, VIP_VI_HANDLE* ViHandle);

/*
 * Destroys an Idle VI. Completions that were not fetched are dropped, also from its completion queues.
 * SUCCESS, INVALID_PARAMETER, INVALID_STATE (not Idle), ERROR_RESOURCE (descriptors not completed).
 * spec/states 3, spec/calls 4.2.
 */
VIP_RETURN VipDestroyVi(VIP_VI_HANDLE ViHandle);

/*
 * Snapshot of state, attributes and queues; a queue is empty when no descriptor is on it, completed or not.
 * SUCCESS, INVALID_PARAMETER. spec/calls 4.2.
 */
VIP_RETURN VipQueryVi(VIP_VI_HANDLE ViHandle, VIP_VI_STATE* State, VIP_VI_ATTRIBUTES* ViAttributes,
                      VIP_BOOLEAN* SendQueueEmpty, VIP_BOOLEAN* RecvQueueEmpty);

/* Replaces all attributes of an Idle VI, or none. As VipCreateVi, and INVALID_STATE. spec/calls 4.2. */
VIP_RETURN VipSetViAttributes(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* ViAttributes);

/*
 * Waits up to Timeout ms for one connection request to the discriminator of LocalAddr; its host bytes are
 * not looked at. RemoteAddr is output only: it gets the requester's local address, 4 + HostAddressLen +
 * DiscriminatorLen bytes. Waits on one discriminator are served in order of arrival. The connection handle
 * lives until Accept succeeds, Reject, or the NIC closes.
 * SUCCESS, TIMEOUT, ERROR_RESOURCE, INVALID_PARAMETER. spec/calls 4.3, spec/compat A5-A8.
 */
VIP_RETURN VipConnectWait(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* LocalAddr, VIP_ULONG Timeout,
                          VIP_NET_ADDRESS* RemoteAddr, VIP_VI_ATTRIBUTES* RemoteViAttributes,
                          VIP_CONN_HANDLE* ConnHandle);

/*
 * Connects the Idle VI to the requester. Level, MaxTransferSize and QoS must equal the requester's; after
 * an INVALID_... answer the requester still waits and the handle may be tried again. The VI may send at
 * once.
 * SUCCESS, INVALID_PARAMETER, INVALID_RELIABILITY_LEVEL, INVALID_MTU, INVALID_QOS, INVALID_STATE, TIMEOUT
 * (requester has left, handle used up), ERROR_RESOURCE. spec/calls 4.3.
 */
VIP_RETURN VipConnectAccept(VIP_CONN_HANDLE ConnHandle, VIP_VI_HANDLE ViHandle);

/*
 * Turns the requester away and ends the handle.
 * SUCCESS, INVALID_PARAMETER. spec/calls 4.3.
 */
VIP_RETURN VipConnectReject(VIP_CONN_HANDLE ConnHandle);

/*
 * Asks for a connection and blocks until the answer, at most Timeout ms (0 is INVALID_PARAMETER). Without a
 * waiter at RemoteAddr the answer is NO_MATCH after a short grace, also with VIP_INFINITE: call again. A
 * failed request leaves the VI Idle and its posted receives in place. LocalAddr is told to the acceptor;
 * the two discriminators may be equal.
 * SUCCESS, REJECT, TIMEOUT, NO_MATCH, INVALID_PARAMETER, INVALID_STATE, ERROR_RESOURCE. spec/calls 4.3,
 * spec/compat C1-C8.
 */
VIP_RETURN VipConnectRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS* LocalAddr, VIP_NET_ADDRESS* RemoteAddr,
                             VIP_ULONG Timeout, VIP_VI_ATTRIBUTES* RemoteViAttributes);

/*
 * Ends the connection, or the attempt at one, and flushes both queues; the VI is Idle afterwards whatever
 * it was. When the call has returned no byte of this process's memory changes any more on behalf of the VI.
 * The other VI goes to Error.
 * SUCCESS, INVALID_PARAMETER. spec/states 3.
 */
VIP_RETURN VipDisconnect(VIP_VI_HANDLE ViHandle);

/*
 * Starts a peer connection without blocking. Two requests match when each one's local address is the
 * other's remote address. Timeout (ms, not 0) bounds the attempt.
 * SUCCESS, INVALID_PARAMETER, INVALID_STATE, ERROR_RESOURCE. spec/calls 4.4.
 */
VIP_RETURN VipConnectPeerRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS* LocalAddr,
                                 VIP_NET_ADDRESS* RemoteAddr, VIP_ULONG Timeout);

/*
 * Asks, without blocking, how the peer connection stands.
 * SUCCESS (Connected), NOT_DONE, TIMEOUT, REJECT, NO_MATCH, INVALID_RELIABILITY_LEVEL, INVALID_MTU,
 * INVALID_QOS, INVALID_STATE (none pending), INVALID_PARAMETER. spec/calls 4.4.
 */
VIP_RETURN VipConnectPeerDone(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* RemoteViAttributes);

/* The same, blocking until the request's own timeout; never NOT_DONE. spec/calls 4.4. */
VIP_RETURN VipConnectPeerWait(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* RemoteViAttributes);

/*
 * Makes a protection tag for this NIC handle.
 * SUCCESS, ERROR_RESOURCE, INVALID_PARAMETER. spec/calls 4.5.
 */
VIP_RETURN VipCreatePtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE* ProtectionHandle);

/*
 * Ends a tag no VI and no region uses.
 * SUCCESS, INVALID_PARAMETER, ERROR_RESOURCE (in use). spec/calls 4.5.
 */
VIP_RETURN VipDestroyPtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE ProtectionHandle);

/*
 * Makes Length bytes (not 0) at any address usable for transfers. Regions may overlap and repeat. NULL
 * attributes mean the default tag and no RDMA. The handle covers the whole region, locally and for the
 * other side.
 * SUCCESS, ERROR_RESOURCE, INVALID_PARAMETER, INVALID_PTAG, INVALID_RDMAREAD. spec/calls 4.5,
 * spec/compat V3, M1-M7.
 */
VIP_RETURN VipRegisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_ULONG Length,
                          VIP_MEM_ATTRIBUTES* MemAttributes, VIP_MEM_HANDLE* MemHandle);

/*
 * Ends a region; the address is the one it was registered with. Does not wait: descriptors that still name
 * the handle complete with a protection error.
 * SUCCESS, INVALID_PARAMETER. spec/calls 4.5.
 */
VIP_RETURN VipDeregisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_MEM_HANDLE MemHandle);

/*
 * Replaces tag and RDMA permissions; any address inside the region.
 * SUCCESS, INVALID_PARAMETER, INVALID_PTAG, INVALID_RDMAREAD. spec/calls 4.5.
 */
VIP_RETURN VipSetMemAttributes(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_MEM_HANDLE MemHandle,
                               VIP_MEM_ATTRIBUTES* MemAttributes);

/*
 * Reads them; any address inside the region.
 * SUCCESS, INVALID_PARAMETER. spec/calls 4.5.
 */
VIP_RETURN VipQueryMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_MEM_HANDLE MemHandle,
                       VIP_MEM_ATTRIBUTES* MemAttributes);

/*
 * Posts a send, RDMA write or RDMA read; never blocks. Faults in the descriptor are reported by its
 * completion, a descriptor that cannot be trusted at all by VIP_ERROR_POST_DESC. On a VI that is not
 * Connected it completes flushed.
 * SUCCESS, INVALID_PARAMETER. spec/descriptors, spec/states 3, spec/calls 4.6.
 */
VIP_RETURN VipPostSend(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* DescriptorPtr, VIP_MEM_HANDLE MemoryHandle);

/*
 * Fetches the send at the head of the queue if it is complete; never blocks. *Descriptor is NULL unless one
 * is handed back.
 * SUCCESS, NOT_DONE, DESCRIPTOR_ERROR (completed in error, or with NULL: queue empty), INVALID_PARAMETER.
 * spec/calls 4.6.
 */
VIP_RETURN VipSendDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR** Descriptor);

/*
 * The same, waiting up to Timeout ms for the head to complete. One waiter per queue; a second one, and a
 * queue with a completion queue, get ERROR_RESOURCE.
 * SUCCESS, TIMEOUT, DESCRIPTOR_ERROR, ERROR_RESOURCE, INVALID_PARAMETER. spec/calls 4.6.
 */
VIP_RETURN VipSendWait(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR** Descriptor);

/*
 * Has the next completed send handed to Handler, once; several calls queue up in order. ERROR_RESOURCE on a
 * queue with a completion queue.
 * SUCCESS, INVALID_PARAMETER, ERROR_RESOURCE. spec/calls 4.6.
 */
VIP_RETURN VipSendNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context, VIP_VI_CALLBACK Handler);

/* Posts a receive, in any state; otherwise as VipPostSend. spec/descriptors, spec/states 3, spec/calls 4.6. */
VIP_RETURN VipPostRecv(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* DescriptorPtr, VIP_MEM_HANDLE MemoryHandle);

/* As VipSendDone, VipSendWait and VipSendNotify, on the receive queue. spec/calls 4.6. */
VIP_RETURN VipRecvDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR** Descriptor);
VIP_RETURN VipRecvWait(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR** Descriptor);
VIP_RETURN VipRecvNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context, VIP_VI_CALLBACK Handler);

/*
 * Makes a completion queue for at least that many entries (1 to MaxCQEntries). Size it for the descriptors
 * that can be complete and unfetched at one time.
 * SUCCESS, ERROR_RESOURCE, INVALID_PARAMETER. spec/calls 4.7.
 */
VIP_RETURN VipCreateCQ(VIP_NIC_HANDLE NicHandle, VIP_ULONG EntryCount, VIP_CQ_HANDLE* CQHandle);

/*
 * Ends a queue no VI uses; entries left in it do not matter.
 * SUCCESS, INVALID_PARAMETER, ERROR_RESOURCE. spec/calls 4.7.
 */
VIP_RETURN VipDestroyCQ(VIP_CQ_HANDLE CQHandle);

/*
 * Changes the size, keeping all entries; waiters stay. ERROR_RESOURCE below the number of entries present
 * or above the limit.
 * SUCCESS, INVALID_PARAMETER, ERROR_RESOURCE. spec/calls 4.7.
 */
VIP_RETURN VipResizeCQ(VIP_CQ_HANDLE CQHandle, VIP_ULONG EntryCount);

/*
 * Takes one entry: which VI has a completion, and on which queue (RecvQueue VIP_TRUE: receive). The
 * descriptor itself is then fetched with VipSendDone or VipRecvDone.
 * SUCCESS, NOT_DONE, INVALID_PARAMETER. spec/calls 4.7.
 */
VIP_RETURN VipCQDone(VIP_CQ_HANDLE CQHandle, VIP_VI_HANDLE* ViHandle, VIP_BOOLEAN* RecvQueue);

/*
 * The same, waiting up to Timeout ms; any number of threads may wait, each entry wakes one.
 * SUCCESS, TIMEOUT, ERROR_RESOURCE, INVALID_PARAMETER. spec/calls 4.7.
 */
VIP_RETURN VipCQWait(VIP_CQ_HANDLE CQHandle, VIP_ULONG Timeout, VIP_VI_HANDLE* ViHandle,
                     VIP_BOOLEAN* RecvQueue);

/*
 * Has the next entry handed to Handler, once.
 * SUCCESS, INVALID_PARAMETER, ERROR_RESOURCE. spec/calls 4.7.
 */
VIP_RETURN VipCQNotify(VIP_CQ_HANDLE CQHandle, VIP_PVOID Context, VIP_CQ_CALLBACK Handler);

/*
 * VIP_SMI_AUTODISCOVERY fills a VIP_AUTODISCOVERY_LIST with the NICs that can be reached.
 * SUCCESS, INVALID_PARAMETER (unknown type), ERROR_RESOURCE (not offered). spec/calls 4.8.
 */
VIP_RETURN VipQuerySystemManagementInfo(VIP_NIC_HANDLE NicHandle, VIP_ULONG InfoType, VIP_PVOID SysManInfo);

/*
 * Sets the error handler of this NIC handle; NULL silences.
 * SUCCESS, INVALID_PARAMETER. spec/calls 4.8.
 */
VIP_RETURN VipErrorCallback(VIP_NIC_HANDLE NicHandle, VIP_PVOID Context, VIP_ERROR_HANDLER Handler);

/*
 * Starts the name service; NSInitInfo may be NULL; repeating it succeeds.
 * SUCCESS, INVALID_PARAMETER, ERROR_RESOURCE, ERROR_NAMESERVICE. spec/calls 4.9.
 */
VIP_RETURN VipNSInit(VIP_NIC_HANDLE NicHandle, VIP_PVOID NSInitInfo);

/*
 * Writes the host part of Address and its HostAddressLen and leaves everything else in it alone. NameIndex
 * counts the addresses of one host from 0. The name is only read.
 * SUCCESS, INVALID_PARAMETER, ERROR_RESOURCE, ERROR_NAMESERVICE (unknown name, index past the end, not
 * started). spec/calls 4.9, spec/compat A9-A14.
 */
VIP_RETURN VipNSGetHostByName(VIP_NIC_HANDLE NicHandle, VIP_CHAR* Name, VIP_NET_ADDRESS* Address,
                              VIP_ULONG NameIndex);

/*
 * Writes the name of a host, zero-terminated. *NameLen: in, bytes there are; out, bytes used or needed, the
 * zero included (too small is INVALID_PARAMETER).
 * SUCCESS, INVALID_PARAMETER, ERROR_RESOURCE, ERROR_NAMESERVICE. spec/calls 4.9.
 */
VIP_RETURN VipNSGetHostByAddr(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* Address, VIP_CHAR* Name,
                              VIP_ULONG* NameLen);

/*
 * Ends the name service; connections do not need it.
 * SUCCESS, INVALID_PARAMETER, ERROR_NAMESERVICE. spec/calls 4.9.
 */
VIP_RETURN VipNSShutdown(VIP_NIC_HANDLE NicHandle);

/* ------------------------------------------------------------------ vendor calls, not part of VIPL 1.0 -- */

/*
 * One pointer of the program's own per VI, NULL at first. Get answers NULL, and Set does nothing, on a dead
 * handle.
 */
VIP_PVOID VipGetUserData(VIP_VI_HANDLE ViHandle);
void VipSetUserData(VIP_VI_HANDLE ViHandle, VIP_PVOID UserData);

/* Exported so that old sources link; these three do nothing and answer VIP_ERROR_NOT_SUPPORTED. */
VIP_RETURN VipAddTagCQ(VIP_CQ_HANDLE CQHandle, VIP_EVENT_HANDLE* Event, VIP_ULONG Tag, VIP_ULONG Priority);
VIP_RETURN VipRemoveTagCQ(VIP_CQ_HANDLE CQHandle, VIP_EVENT_HANDLE Event, VIP_ULONG Tag);
VIP_RETURN VipPostDeferredSends(VIP_VI_HANDLE ViHandle, VIP_BOOLEAN EnableInterrupt,
                                VIP_BOOLEAN* SendsDeferred);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
