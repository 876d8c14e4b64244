/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extensions of this library beyond VIPL 1.0. C89; include after or instead of <vipl.h>. All names begin with Vipx.
 */
#ifndef VIADUCT_EXT_H
#define VIADUCT_EXT_H

#include <vipl.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* Version of the library, major.minor.patch; a constant string. */
const char* VipxVersion(void);

/*
 * Names of what the library answers, constant strings: "VIP_INVALID_MTU" of a VIP_RETURN, a sentence that says what it
 * means, "VIP_ERROR_CONN_LOST" of an asynchronous error. Any thread, any number.
 */
const char* VipxErrorString(VIP_RETURN Code);
const char* VipxErrorMeaning(VIP_RETURN Code);
const char* VipxAsyncErrorString(VIP_ERROR_CODE Code);

/*
 * The bits of the Status of a descriptor by name, "VIP_STATUS_DONE | VIP_STATUS_LENGTH_ERROR | VIP_STATUS_OP_RECEIVE";
 * cut to Bytes, the zero behind it counted. Any thread.
 * SUCCESS, INVALID_PARAMETER (Text NULL, Bytes 0).
 */
VIP_RETURN VipxStatusString(VIP_UINT32 Status, VIP_CHAR* Text, VIP_ULONG Bytes);

/*
 * Why the last call with that handle failed, its last descriptor completed in error, or its connection broke: one line
 * with call, code, field, value and limit, what the other end has found, and a cure. Handle: of a NIC, a VI, a CQ
 * or a connection request, also one that is dead by now; NULL: whatever failed last in this process. Only the last
 * 32 failures are kept. The line is cut to Bytes; 1024 hold it. Any thread.
 * SUCCESS, NOT_DONE (nothing failed), INVALID_PARAMETER (Text NULL, Bytes 0).
 */
VIP_RETURN VipxLastError(VIP_PVOID Handle, VIP_CHAR* Text, VIP_ULONG Bytes);

/*
 * Allocates memory and registers it, in one step. Where the NIC can, it is memory that connected processes reach by
 * plain loads and stores: RDMA write and read into it are one copy without a system call (the default NIC; with
 * others it is ordinary memory, registered). Bytes, rounded up to whole pages, zeroed; Alignment in bytes, a power
 * of two up to 1 GiB, 0 for a page. MemAttribs as for VipRegisterMem. The memory is not inherited by fork, and goes
 * with the NIC when that is closed. Any process that is connected to this NIC could, if it is hostile, write to the
 * memory whatever its attributes say: keep nothing in it that is not to be shared. Any thread.
 * SUCCESS, INVALID_PARAMETER (dead handle, no bytes, alignment), INVALID_PTAG, INVALID_RDMAREAD, ERROR_RESOURCE (no
 * memory, or a limit of VipRegisterMem).
 */
VIP_RETURN VipxAllocMemory(VIP_NIC_HANDLE NicHandle, VIP_ULONG Bytes, VIP_ULONG Alignment,
                           VIP_MEM_ATTRIBUTES* MemAttribs, VIP_PVOID* Address, VIP_MEM_HANDLE* MemoryHandle);

/*
 * Deregisters and gives back what VipxAllocMemory has given: address and handle as they were. When it returns no peer
 * writes to the memory any more, and it is unmapped. Any thread.
 * SUCCESS, INVALID_PARAMETER (dead handle, or not such memory).
 */
VIP_RETURN VipxFreeMemory(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_MEM_HANDLE MemoryHandle);

/*
 * Atomic operations on a word of the other end's memory, posted by VipPostSend like an RDMA: an address segment that
 * names the word, and one data segment, CS.Length bytes long, with the operands. When the descriptor is done the
 * first operand has become the word's old value. The word has 4 or 8 bytes, lies at its alignment, is in the byte
 * order of its machine, and may be written and read by RDMA (VI and memory of the other end enable both). No atomic
 * operation of any handle of the NIC comes between the reading and the writing of the word; VipxQueryAtomicScope says
 * whether one of a processor may.
 *   VIPX_CONTROL_OP_FETCH_ADD     operands: what is added                            (Length 4 or 8)
 *   VIPX_CONTROL_OP_COMPARE_SWAP  operands: the new value, then the expected one     (Length 8 or 16)
 * VIP_CONTROL_QFENCE may be added, immediate data not. The status of a good completion has VIPX_STATUS_OP_ATOMIC.
 * FORMAT_ERROR: the NIC has no atomics, the level is Unreliable, not one data segment, a word off its alignment.
 * LENGTH_ERROR: another Length, or a width that the NIC has not. RDMA_PROT_ERROR: as for an RDMA read.
 */
#define VIPX_CONTROL_OP_FETCH_ADD 0x0013
#define VIPX_CONTROL_OP_COMPARE_SWAP 0x0023
#define VIPX_STATUS_OP_ATOMIC 0x00050000

/*
 * Which widths of words the atomic operations of a NIC take: the sum of 4 and 8, or 0 when it has none. Any thread.
 * SUCCESS, INVALID_PARAMETER (dead handle, Widths NULL).
 */
VIP_RETURN VipxQueryAtomics(VIP_NIC_HANDLE NicHandle, VIP_ULONG* Widths);

/*
 * Whether processors' atomic instructions and a NIC's atomic operations may be used on one word. VIP_FALSE: only what
 * the NIC does to the word is counted right, so that its owner, too, changes it through a connection. Any thread.
 * SUCCESS, INVALID_PARAMETER (dead handle, Processors NULL).
 */
VIP_RETURN VipxQueryAtomicScope(VIP_NIC_HANDLE NicHandle, VIP_BOOLEAN* Processors);

/*
 * Whether a NIC pins registered memory. VIP_TRUE: a registration speaks of the pages that were there when it was
 * made, and outlives them uselessly when the program unmaps them. VIP_FALSE: memory is found by its virtual address
 * in the moment of each transfer, so that a registration stays right whatever is unmapped and mapped anew at its
 * place, and may be kept as long as one likes. Any thread.
 * SUCCESS, INVALID_PARAMETER (dead handle, Pinned NULL).
 */
VIP_RETURN VipxQueryPinned(VIP_NIC_HANDLE NicHandle, VIP_BOOLEAN* Pinned);

/*
 * Whether polls of a NIC's queues (VipCQDone, VipSendDone, VipRecvDone) that find nothing give the processor away
 * where other threads need it, as they do from VipOpenNic on. VIP_FALSE: they never do; for programs that give way
 * themselves between polls, above all those that poll with a lock held. Calls that wait are as before. Any thread.
 * SUCCESS, INVALID_PARAMETER (dead handle).
 */
VIP_RETURN VipxSetGiveWay(VIP_NIC_HANDLE NicHandle, VIP_BOOLEAN On);

/*
 * Post Count descriptors at once: what as many calls of VipPostSend (VipPostRecv) in the order of the array do, but the
 * VI is looked up and locked, and the NIC told, once. All descriptors lie in the memory of MemoryHandle. The first one
 * that the single call would refuse, by its address or because the queue is full, has the same effect as there, and
 * those behind it are not posted. Count 0 posts nothing. Any thread; never blocks.
 * SUCCESS, INVALID_PARAMETER (dead handle, Descriptors or one of its entries NULL: nothing is posted then).
 */
VIP_RETURN VipxPostSendBatch(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* const* Descriptors, VIP_ULONG Count,
                             VIP_MEM_HANDLE MemoryHandle);
VIP_RETURN VipxPostRecvBatch(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* const* Descriptors, VIP_ULONG Count,
                             VIP_MEM_HANDLE MemoryHandle);

/*
 * An RDMA write that is done when the call returns, or has not begun: no descriptor, no completion, no registered
 * memory on this side. FirstBytes of First (0 is allowed), then LastBytes of Last (whole words of 8, at most 128
 * bytes), go to RemoteAddress (where Last begins at a word) and behind it, as one write behind all that was posted
 * before. Those of Last become visible after all of First, word by word in rising order. Only where a write is a
 * plain store by this processor: into memory of VipxAllocMemory on the default NIC, once a posted write was made into
 * the same region, and while the send queue has no work left. Any thread; never blocks.
 * SUCCESS, INVALID_PARAMETER (dead handle, Write NULL), NOT_DONE (not now, or never by this VI: post a descriptor,
 * which also tells what is wrong).
 */
typedef struct _VIPX_WRITE {
    VIP_UINT64 RemoteAddress;
    VIP_MEM_HANDLE RemoteHandle;
    const void* First;
    VIP_ULONG FirstBytes;
    const void* Last;
    VIP_ULONG LastBytes;
} VIPX_WRITE;
VIP_RETURN VipxWriteNow(VIP_VI_HANDLE ViHandle, const VIPX_WRITE* Write);

/*
 * Where the bytes of such a write to RemoteAddress would come to lie in this process: for prefetching what will be
 * written soon, and for nothing else. What is stored there is no transfer: the library does not check that the
 * memory is still what it was.
 * SUCCESS, INVALID_PARAMETER (dead handle, Here NULL), NOT_DONE (nowhere, or not permitted, or not Connected).
 */
VIP_RETURN VipxQueryMapped(VIP_VI_HANDLE ViHandle, VIP_UINT64 RemoteAddress, VIP_MEM_HANDLE RemoteHandle,
                           VIP_ULONG Bytes, void** Here);

/*
 * Makes the wire of one connection misbehave, for tests: the text is the provider's (see viaduct(7)); an empty text or
 * NULL ends it. The VI must be Connected.
 * SUCCESS, INVALID_PARAMETER (dead handle, or a plan that cannot be understood), INVALID_STATE, ERROR_NOT_SUPPORTED
 * (this NIC has no such thing), ERROR_RESOURCE.
 */
VIP_RETURN VipxSetFaultPlan(VIP_VI_HANDLE ViHandle, const char* Plan);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
