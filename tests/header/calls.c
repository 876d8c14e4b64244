/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every call with the parameter list of spec/header 6, checked by assignment to a pointer of exactly
 * that type. Compiled in every language mode, also as C++; linked against stand-ins too, to see that the
 * names are plain C names.
 */
#include <vipl.h>

typedef VIP_RETURN R;
typedef VIP_PVOID P;
typedef VIP_NIC_HANDLE Nic;
typedef VIP_VI_HANDLE Vi;
typedef VIP_CQ_HANDLE Cq;
typedef VIP_CONN_HANDLE Conn;
typedef VIP_PROTECTION_HANDLE Ptag;
typedef VIP_MEM_HANDLE Mem;
typedef VIP_ULONG Ul;
typedef VIP_BOOLEAN Bool;
typedef VIP_NET_ADDRESS Addr;
typedef VIP_VI_ATTRIBUTES ViAttr;
typedef VIP_MEM_ATTRIBUTES MemAttr;
typedef VIP_DESCRIPTOR Desc;
typedef void (*ErrFn)(void*, VIP_ERROR_DESCRIPTOR*);
typedef void (*ViFn)(void*, void*, void*, struct _VIP_DESCRIPTOR*);
typedef void (*CqFn)(void*, void*, void*, int);

struct calls {
    R (*OpenNic)(const char*, Nic*);
    R (*CloseNic)(Nic);
    R (*QueryNic)(Nic, VIP_NIC_ATTRIBUTES*);
    R (*CreateVi)(Nic, ViAttr*, Cq, Cq, Vi*);
    R (*DestroyVi)(Vi);
    R (*QueryVi)(Vi, VIP_VI_STATE*, ViAttr*, Bool*, Bool*);
    R (*SetViAttributes)(Vi, ViAttr*);
    R (*ConnectWait)(Nic, Addr*, Ul, Addr*, ViAttr*, Conn*);
    R (*ConnectAccept)(Conn, Vi);
    R (*ConnectReject)(Conn);
    R (*ConnectRequest)(Vi, Addr*, Addr*, Ul, ViAttr*);
    R (*Disconnect)(Vi);
    R (*ConnectPeerRequest)(Vi, Addr*, Addr*, Ul);
    R (*ConnectPeerDone)(Vi, ViAttr*);
    R (*ConnectPeerWait)(Vi, ViAttr*);
    R (*CreatePtag)(Nic, Ptag*);
    R (*DestroyPtag)(Nic, Ptag);
    R (*RegisterMem)(Nic, P, Ul, MemAttr*, Mem*);
    R (*DeregisterMem)(Nic, P, Mem);
    R (*SetMemAttributes)(Nic, P, Mem, MemAttr*);
    R (*QueryMem)(Nic, P, Mem, MemAttr*);
    R (*PostSend)(Vi, Desc*, Mem);
    R (*SendDone)(Vi, Desc**);
    R (*SendWait)(Vi, Ul, Desc**);
    R (*SendNotify)(Vi, P, ViFn);
    R (*PostRecv)(Vi, Desc*, Mem);
    R (*RecvDone)(Vi, Desc**);
    R (*RecvWait)(Vi, Ul, Desc**);
    R (*RecvNotify)(Vi, P, ViFn);
    R (*CreateCQ)(Nic, Ul, Cq*);
    R (*DestroyCQ)(Cq);
    R (*ResizeCQ)(Cq, Ul);
    R (*CQDone)(Cq, Vi*, Bool*);
    R (*CQWait)(Cq, Ul, Vi*, Bool*);
    R (*CQNotify)(Cq, P, CqFn);
    R (*QuerySystemManagementInfo)(Nic, Ul, P);
    R (*ErrorCallback)(Nic, P, ErrFn);
    R (*NSInit)(Nic, P);
    R (*NSGetHostByName)(Nic, char*, Addr*, Ul);
    R (*NSGetHostByAddr)(Nic, Addr*, char*, Ul*);
    R (*NSShutdown)(Nic);
    P (*GetUserData)(Vi);
    void (*SetUserData)(Vi, P);
    R (*AddTagCQ)(Cq, VIP_EVENT_HANDLE*, Ul, Ul);
    R (*RemoveTagCQ)(Cq, VIP_EVENT_HANDLE, Ul);
    R (*PostDeferredSends)(Vi, Bool, Bool*);
};

extern const struct calls all_calls;
const struct calls all_calls = {VipOpenNic,
                                VipCloseNic,
                                VipQueryNic,
                                VipCreateVi,
                                VipDestroyVi,
                                VipQueryVi,
                                VipSetViAttributes,
                                VipConnectWait,
                                VipConnectAccept,
                                VipConnectReject,
                                VipConnectRequest,
                                VipDisconnect,
                                VipConnectPeerRequest,
                                VipConnectPeerDone,
                                VipConnectPeerWait,
                                VipCreatePtag,
                                VipDestroyPtag,
                                VipRegisterMem,
                                VipDeregisterMem,
                                VipSetMemAttributes,
                                VipQueryMem,
                                VipPostSend,
                                VipSendDone,
                                VipSendWait,
                                VipSendNotify,
                                VipPostRecv,
                                VipRecvDone,
                                VipRecvWait,
                                VipRecvNotify,
                                VipCreateCQ,
                                VipDestroyCQ,
                                VipResizeCQ,
                                VipCQDone,
                                VipCQWait,
                                VipCQNotify,
                                VipQuerySystemManagementInfo,
                                VipErrorCallback,
                                VipNSInit,
                                VipNSGetHostByName,
                                VipNSGetHostByAddr,
                                VipNSShutdown,
                                VipGetUserData,
                                VipSetUserData,
                                VipAddTagCQ,
                                VipRemoveTagCQ,
                                VipPostDeferredSends};
