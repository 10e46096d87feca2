/* SPDX-License-Identifier: Apache-2.0 */
/* The malloc family of a simulated process, for C and C++. A program compiled with -Dmalloc=rdmasim_malloc and so on gets
 * memory of the address space of the thread that calls, which is the memory that devices can reach. free and realloc pass
 * pointers that come from elsewhere (strdup, getline) on to the C library. */
#ifndef RDMASIM_CPU_PROCESS_MEMORY_H
#define RDMASIM_CPU_PROCESS_MEMORY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void* rdmasim_malloc(size_t size);
void* rdmasim_calloc(size_t count, size_t size);
void* rdmasim_realloc(void* p, size_t size);
void rdmasim_free(void* p);
int rdmasim_posix_memalign(void** out, size_t alignment, size_t size);
void* rdmasim_aligned_alloc(size_t alignment, size_t size);
void* rdmasim_memalign(size_t alignment, size_t size);

#ifdef __cplusplus
}
#endif

#endif
