// SPDX-License-Identifier: Apache-2.0
// Names of commands to /dev/infiniband/uverbsN (enum ib_uverbs_write_cmds of <rdma/ib_user_verbs.h>) and of what system calls fail
// with (errno(3)).

const kCommands = [
  'GET_CONTEXT',
  'QUERY_DEVICE',
  'QUERY_PORT',
  'ALLOC_PD',
  'DEALLOC_PD',
  'CREATE_AH',
  'MODIFY_AH',
  'QUERY_AH',
  'DESTROY_AH',
  'REG_MR',
  'REG_SMR',
  'REREG_MR',
  'QUERY_MR',
  'DEREG_MR',
  'ALLOC_MW',
  'BIND_MW',
  'DEALLOC_MW',
  'CREATE_COMP_CHANNEL',
  'CREATE_CQ',
  'RESIZE_CQ',
  'DESTROY_CQ',
  'POLL_CQ',
  'PEEK_CQ',
  'REQ_NOTIFY_CQ',
  'CREATE_QP',
  'QUERY_QP',
  'MODIFY_QP',
  'DESTROY_QP',
  'POST_SEND',
  'POST_RECV',
  'ATTACH_MCAST',
  'DETACH_MCAST',
  'CREATE_SRQ',
  'MODIFY_SRQ',
  'QUERY_SRQ',
  'DESTROY_SRQ',
  'POST_SRQ_RECV',
  'OPEN_XRCD',
  'CLOSE_XRCD',
  'CREATE_XSRQ',
  'OPEN_QP',
];

const kErrors: Record<number, string> = {
  1: 'EPERM',
  2: 'ENOENT',
  4: 'EINTR',
  5: 'EIO',
  6: 'ENXIO',
  9: 'EBADF',
  11: 'EAGAIN',
  12: 'ENOMEM',
  13: 'EACCES',
  14: 'EFAULT',
  16: 'EBUSY',
  17: 'EEXIST',
  19: 'ENODEV',
  22: 'EINVAL',
  23: 'ENFILE',
  24: 'EMFILE',
  28: 'ENOSPC',
  38: 'ENOSYS',
  95: 'EOPNOTSUPP',
  110: 'ETIMEDOUT',
};

export function uverbsCommandName(command: number): string | undefined {
  return kCommands[command];
}
/** Of an error number of either sign. */
export function errnoName(result: number): string | undefined {
  return kErrors[Math.abs(result)];
}
