#ifndef SPILLWAY_UM_H
#define SPILLWAY_UM_H

/* Spillway's unified memory for any program: an allocator over more memory than is near.
 *
 * A space is a range of addresses (its capacity) with less near memory behind it than addresses.
 * On the host, near memory is a budget of RAM and far memory is other RAM or a file; on a GPU, near
 * memory is the GPU's and far memory is the host's RAM. Touching memory that is not near brings it
 * near and sends other memory far; hints do that ahead of need. Hints change times, never content.
 *
 * Units: bytes everywhere, unless a name says otherwise.
 *
 * Errors: functions that can fail return a status. No function throws or ends the process on
 * misuse. spillway_um_last_error() returns a sentence about the calling thread's last failure.
 *
 * Thread safety: any thread may call every function at any time. If one thread destroys a space
 * during another thread's call, the space ends when that call has returned.
 *
 * Hints (prefetch, offload, discard, advise, touch) take a range within one allocation. Memory
 * moves in pages: discard rounds its range inward to whole pages, the others outward.
 *
 * fork: a child inherits no spaces. It may not use its parent's handles, which are refused, nor
 * their memory: touching it raises SIGSEGV. It may make its own spaces. fork with exec, and
 * posix_spawn, are fine.
 *
 * The host device handles SIGSEGV and SIGBUS and forwards foreign signals to earlier handlers. A
 * handler that the program installs later must do the same. System calls (read, write) on memory
 * that is not near fail there with EFAULT: copy through ordinary memory.
 *
 * System calls on the memory of a host space, each tested:
 *
 * mlock: locks near pages, which are unlocked when they move, so it keeps nothing near. Fails with
 * ENOMEM if a page is far.
 *
 * mprotect: holds while a page stays near. A forbidden access raises SIGSEGV in the program. A page
 * that has moved can be read and written again. A far page keeps its content under any protection.
 *
 * mremap, munmap: remove a part from the space until it is mapped back at its place. Pages that
 * were far raise SIGBUS or SIGSEGV at a new place. The process ends with a message when a displaced
 * page must move.
 *
 * madvise: advice on times (MADV_HUGEPAGE, MADV_COLD, MADV_PAGEOUT ...) changes no content.
 * MADV_DONTNEED may zero near pages: use spillway_um_discard(). MADV_DOFORK gives a child a copy of
 * near pages.
 *
 * A signal stack (sigaltstack) must have room for page faults. It needs sysconf(_SC_MINSIGSTKSZ) +
 * SPILLWAY_UM_SIGNAL_STACK_BYTES. Each handler on it that touches a space's memory needs another
 * sysconf(_SC_MINSIGSTKSZ) besides its own use. A fault with less than half of
 * SPILLWAY_UM_SIGNAL_STACK_BYTES left ends the process with a message.
 * spillway_um_prepare_thread() gives a thread a stack that is large enough.
 *
 * A failing far file loses no content: memory stays where it is, and touch and synchronize fail
 * from then on. A page fault cannot report a failure: if it needs content that the file fails to
 * read, or room that it fails to write, the process ends with a message.
 *
 * The header is C99 and C++. Names without the prefix spillway_um_ are not part of the interface.
 */

/* NOLINTBEGIN(modernize-*,readability-identifier-naming): C. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SPILLWAY_UM_API __attribute__((visibility("default")))
#else
#define SPILLWAY_UM_API
#endif

#define SPILLWAY_UM_SIGNAL_STACK_BYTES 8192

/* ---- status ---- */

typedef enum spillway_um_status {
  SPILLWAY_UM_OK = 0,
  SPILLWAY_UM_INVALID_ARGUMENT = 1, /* an argument makes no sense; the sentence says which */
  SPILLWAY_UM_INVALID_SPACE = 2,    /* no live space has this handle: never made, or destroyed */
  SPILLWAY_UM_NOT_ALLOCATED = 3,    /* foreign pointer, double free, range outside an allocation */
  SPILLWAY_UM_OUT_OF_MEMORY = 4,    /* the capacity, or the machine, has no room */
  SPILLWAY_UM_FAILED = 5,  /* the environment refused: no GPU, no far file, a failed move */
  SPILLWAY_UM_INTERNAL = 6 /* a bug in Spillway */
} spillway_um_status;

/* Returns a sentence about this thread's last failed call; "" before the first. Valid until the
 * thread's next failed call. Never NULL. */
SPILLWAY_UM_API const char* spillway_um_last_error(void);

/* Returns the version of the library, not of the header, such as "1.2.3". Never NULL. */
SPILLWAY_UM_API const char* spillway_um_version(void);

/* ---- spaces ---- */

/* How the host device maps pages and catches faults. */
typedef enum spillway_um_paging {
  SPILLWAY_UM_PAGING_AUTO = 0, /* uffd where the kernel allows it, else memfd */
  SPILLWAY_UM_PAGING_UFFD = 1, /* userfaultfd, Linux 6.8 or newer */
  SPILLWAY_UM_PAGING_MEMFD = 2 /* a memfd and SIGSEGV, any Linux */
} spillway_um_paging;

#define SPILLWAY_UM_OPTIONS_VERSION 1

/* Options of a space. Initialise them by spillway_um_options_init() first. */
typedef struct spillway_um_options {
  uint32_t version;             /* SPILLWAY_UM_OPTIONS_VERSION */
  int32_t oversubscribe;        /* GPU only: 1 lets the capacity exceed its free memory. Some
                                   drivers hang the GPU when they must evict. */
  const char* device;           /* "host" (also NULL), "cuda" or "cuda:N" */
  uint64_t near_bytes;          /* near memory; rounded down to whole pages. Required. */
  uint64_t capacity_bytes;      /* all allocations together; rounded up to pages. Required. */
  uint64_t page_bytes;          /* unit of moves: a power of two, 4 KiB to 2 MiB, or at least 2 MiB
                                   on a GPU; 0: chosen by the library */
  const char* far_path;         /* NULL or "": far memory in RAM; otherwise a folder or a path that
                                   does not exist yet. The file has no name while it is used and
                                   disappears with the space. */
  double link_bytes_per_second; /* host only: slows the link to simulate another; 0: full speed */
  int32_t paging;               /* host only: one of spillway_um_paging */
} spillway_um_options;

/* Sets every field to its default: host device, no sizes. NULL is a no-op. */
SPILLWAY_UM_API void spillway_um_options_init(spillway_um_options* options);

/* A handle: a number that is never reused in a process. 0 is not a space. */
typedef struct spillway_um_space {
  uint64_t id;
} spillway_um_space;

/* Makes a space. Allocates near memory and a far file at once. On failure *space is 0. */
SPILLWAY_UM_API spillway_um_status spillway_um_create(const spillway_um_options* options,
                                                      spillway_um_space* space);

/* Destroys a space and all its allocations, which must be unused. Waits for its moves. */
SPILLWAY_UM_API spillway_um_status spillway_um_destroy(spillway_um_space space);

/* Gets the number of the space's GPU, as in cudaGetDevice(); -1 for the host. */
SPILLWAY_UM_API spillway_um_status spillway_um_device(spillway_um_space space, int32_t* ordinal);

/* ---- allocations ---- */

/* Allocates memory with indeterminate content. `alignment` is a power of two up to 2 MiB; 0 means
 * 64. Allocations of at least a page are also aligned to pages. Refuses zero bytes. On failure
 * *address is NULL. */
SPILLWAY_UM_API spillway_um_status spillway_um_allocate(spillway_um_space space, size_t bytes,
                                                        size_t alignment, void** address);

/* Frees an allocation, which must be unused. Pages without other allocations leave near memory
 * without write-back. NULL is a no-op. The allocation is freed even if the result is FAILED. */
SPILLWAY_UM_API spillway_um_status spillway_um_free(spillway_um_space space, void* address);

/* Allocates for work of a stream: `stream` is a cudaStream_t on a GPU and NULL on the host. Any
 * stream may use the memory immediately. On a GPU the memory is near before later work of `stream`,
 * unless that is being captured or near memory has no room, which is counted. */
SPILLWAY_UM_API spillway_um_status spillway_um_allocate_async(spillway_um_space space, size_t bytes,
                                                              size_t alignment, void* stream,
                                                              void** address);

/* Frees an allocation when the work so far of `stream` has ended; until then the memory is not
 * reused. For the caller it is freed now: a second call is a double free. Refused, with nothing
 * freed, while the stream is captured into a graph, which may use the memory at every launch. A
 * space with `oversubscribe` also tells the GPU's driver that the content is dead. */
SPILLWAY_UM_API spillway_um_status spillway_um_free_async(spillway_um_space space, void* address,
                                                          void* stream);

/* ---- hints ---- */

/* Starts moving a range near and returns; blocks first while 64 prefetches are in flight. Parts
 * that near memory has no room for stay where they are; this is counted and is not a failure. If
 * the range exceeds near memory, only its beginning is moved. */
SPILLWAY_UM_API spillway_um_status spillway_um_prefetch(spillway_um_space space,
                                                        const void* address, size_t bytes);
/* Starts moving a range far and returns, as above. */
SPILLWAY_UM_API spillway_um_status spillway_um_offload(spillway_um_space space, const void* address,
                                                       size_t bytes);
/* Drops the content of the whole pages in a range: indeterminate until written. */
SPILLWAY_UM_API spillway_um_status spillway_um_discard(spillway_um_space space, void* address,
                                                       size_t bytes);

typedef enum spillway_um_advice {
  SPILLWAY_UM_ADVICE_NONE = 0,
  SPILLWAY_UM_ADVICE_PREFER_NEAR = 1, /* evict last */
  SPILLWAY_UM_ADVICE_PREFER_FAR = 2,  /* evict first */
  SPILLWAY_UM_ADVICE_READ_MOSTLY = 3  /* a GPU's driver may keep copies; a no-op on the host */
} spillway_um_advice;

/* Gives standing advice, one of spillway_um_advice, on the pages of a range. The latest advice
 * holds until the memory is freed. */
SPILLWAY_UM_API spillway_um_status spillway_um_advise(spillway_um_space space, const void* address,
                                                      size_t bytes, int advice);

typedef enum spillway_um_access {
  SPILLWAY_UM_READ = 1,
  SPILLWAY_UM_WRITE = 2, /* writes all or some bytes, reads none */
  SPILLWAY_UM_READ_WRITE = 3
} spillway_um_access;

/* Announces one use of a range, of a kind in spillway_um_access: the range becomes the last to be
 * evicted. Moves nothing unless iterations are marked and learned. Optional: page faults alone are
 * correct. Fails when an earlier move has failed. */
SPILLWAY_UM_API spillway_um_status spillway_um_touch(spillway_um_space space, const void* address,
                                                     size_t bytes, int access);

/* Waits for all prefetches and offloads so far, including learned ones, and for a replay plan that
 * is being made. Does not wait for moves that other threads request meanwhile. Fails when far
 * memory has failed since the space was made. */
SPILLWAY_UM_API spillway_um_status spillway_um_synchronize(spillway_um_space space);

/* Gives the calling thread a signal stack until the thread ends. Needed by threads that touch a
 * host space's memory in code without a usable stack, since the page-fault handler runs on it:
 * oneDNN's AVX-512 kernels use the stack pointer for other data. A second call is a no-op, and so
 * is every call for a GPU's space. */
SPILLWAY_UM_API spillway_um_status spillway_um_prepare_thread(spillway_um_space space);

/* ---- learned prefetch ---- */

/* Marks the end of one iteration and the beginning of the next, in a program that repeats itself.
 *
 * From the first mark on, the library records allocations, frees and spillway_um_touch() in order.
 * A cycle is one to four iterations: two, for instance, if arrays are swapped or new state is
 * allocated before the old state is freed. After two equal cycles the library plans the moves in a
 * thread of its own. From the next cycle on it prefetches and offloads ahead of the touches. No
 * behaviour of the program is an error or changes content. An unexpected touch is a miss; after a
 * few misses, page faults serve the rest of the cycle. If this continues, the library learns again.
 *
 * Touch memory before you use it, also on the host, in pieces several of which fit in near memory.
 * Page faults alone are not learned, because successful prefetching removes them. Blocks are
 * allocations, cut into pieces of a 64th of near memory, a page to 16 MiB. Allocations smaller than
 * a page are ignored.
 *
 * The first mark measures the link unless link_bytes_per_second is given. The measurement allocates
 * a few pages, which the counters include. */
SPILLWAY_UM_API spillway_um_status spillway_um_mark_iteration(spillway_um_space space);

#define SPILLWAY_UM_LEARNED_COUNTERS_VERSION 1

/* Counts from the first mark until learning is switched off, which the status reports.
 * iterations == recorded + followed + abandoned + idle; touches == hits + misses + unguided. */
typedef struct spillway_um_learned_counters {
  uint32_t version;    /* set it to SPILLWAY_UM_LEARNED_COUNTERS_VERSION before the call */
  uint32_t reserved;   /* 0 */
  uint64_t iterations; /* ended iterations */
  uint64_t recorded;
  uint64_t followed;   /* ran as learned */
  uint64_t abandoned;  /* too many misses */
  uint64_t idle;       /* waited for a replay plan or a cycle to begin, or not learnable */
  uint64_t lessons;    /* replay plans made */
  uint64_t touches;    /* of pieces of blocks */
  uint64_t hits;       /* expected touches */
  uint64_t misses;     /* unexpected touches */
  uint64_t unguided;   /* touches while no replay plan was followed */
  uint64_t late;       /* touches of pieces that were not entirely near, as far as known */
  uint64_t prefetches; /* requested, of pieces or parts of them */
  uint64_t offloads;
} spillway_um_learned_counters;

SPILLWAY_UM_API spillway_um_status
spillway_um_get_learned_counters(spillway_um_space space, spillway_um_learned_counters* counters);

/* Describes what learned prefetch is doing, or why it does nothing, in one clause for people.
 * Writes as much as fits in `bytes` to `text`, with a terminating 0. */
SPILLWAY_UM_API spillway_um_status spillway_um_learned_status(spillway_um_space space, char* text,
                                                              size_t bytes);

/* ---- what has happened ---- */

/* Gets how many bytes of a range within one allocation are near now. On a GPU this considers hints
 * only, because its page faults are not observed. */
SPILLWAY_UM_API spillway_um_status spillway_um_near_bytes(spillway_um_space space,
                                                          const void* address, size_t bytes,
                                                          uint64_t* near_bytes);

#define SPILLWAY_UM_COUNTERS_VERSION 1

/* Totals since the space was made, and its present use. */
typedef struct spillway_um_counters {
  uint32_t version;           /* set it to SPILLWAY_UM_COUNTERS_VERSION before the call */
  uint32_t reserved;          /* 0 */
  uint64_t allocations;       /* calls that succeeded */
  uint64_t frees;             /* freed allocations; allocations - frees are live */
  uint64_t allocated_bytes;   /* now, each rounded up to 64 bytes; includes allocations freed on a
                                 stream that has not reached the free */
  uint64_t near_bytes;        /* now */
  uint64_t near_peak_bytes;   /* never more than the budget */
  uint64_t faults;            /* page faults; 0 on a GPU, which does not report them */
  uint64_t fault_nanoseconds; /* time that threads spent in page faults */
  uint64_t evictions;         /* pages moved far for lack of room, not by a hint */
  uint64_t bytes_prefetched;  /* far to near, by prefetch or fault */
  uint64_t bytes_offloaded;   /* near to far, by offload or eviction */
  uint64_t discarded_pages;   /* near pages dropped by discard or free */
  uint64_t refused_hints;     /* pages that a prefetch or an offload did not move */
  uint64_t touches;           /* calls of spillway_um_touch() that succeeded */
} spillway_um_counters;

SPILLWAY_UM_API spillway_um_status spillway_um_get_counters(spillway_um_space space,
                                                            spillway_um_counters* counters);

/* ---- far memory alone, for programs that copy explicitly ---- */

/* The unit of addresses, offsets and sizes of copies. */
#define SPILLWAY_UM_FAR_ALIGNMENT 4096

/* Far memory of the host, without addresses and without near memory: other RAM, or a file. */
typedef struct spillway_um_far {
  uint64_t id; /* 0: none */
} spillway_um_far;

/* Makes far memory of `bytes`: in RAM if `folder` is NULL, otherwise in a file in that folder. The
 * file reserves its space now, has no name, and always disappears with the process. */
SPILLWAY_UM_API spillway_um_status spillway_um_far_create(const char* folder, uint64_t bytes,
                                                          spillway_um_far* far);
/* Destroys far memory when running calls on it have returned. */
SPILLWAY_UM_API spillway_um_status spillway_um_far_destroy(spillway_um_far far);

/* Copy and return when the bytes have moved; use a thread for asynchronous copies. Copies of ranges
 * that do not overlap may run concurrently. Bytes that were never written are indeterminate. The
 * result is FAILED when the file cannot be read or written, or its content is corrupt. */
SPILLWAY_UM_API spillway_um_status spillway_um_far_write(spillway_um_far far, uint64_t offset,
                                                         const void* from, size_t bytes);
SPILLWAY_UM_API spillway_um_status spillway_um_far_read(spillway_um_far far, uint64_t offset,
                                                        void* to, size_t bytes);

/* ---- the default space: one for the process, for PyTorch and CuPy ---- */

/* Sets the options of the default space, which is made when first needed; afterwards this call is
 * refused. Without this call the environment gives the options: SPILLWAY_UM_NEAR and
 * SPILLWAY_UM_CAPACITY ("2GiB"; both required), SPILLWAY_UM_DEVICE (as above; default "cuda"),
 * SPILLWAY_UM_FAR (as far_path; host only), SPILLWAY_UM_PAGE ("2MiB"; chosen by default) and
 * SPILLWAY_UM_OVERSUBSCRIBE (0 or 1; default 0). */
SPILLWAY_UM_API spillway_um_status spillway_um_set_default(const spillway_um_options* options);

/* Gets the default space and makes it if necessary. The library never destroys it. */
SPILLWAY_UM_API spillway_um_status spillway_um_default(spillway_um_space* space);

/* For torch.cuda.memory.CUDAPluggableAllocator("libspillway_um.so", "spillway_torch_malloc",
 * "spillway_torch_free"), best in a torch.cuda.MemPool. `device` must be the default space's GPU.
 * Returns NULL on failure and for zero bytes, and writes failures to standard error. `bytes` is
 * ssize_t. Allocate and free like spillway_um_allocate_async() and spillway_um_free_async(). */
SPILLWAY_UM_API void* spillway_torch_malloc(ptrdiff_t bytes, int device, void* stream);
SPILLWAY_UM_API void spillway_torch_free(void* address, ptrdiff_t bytes, int device, void* stream);

/* For cupy.cuda.memory.CFunctionAllocator(0, malloc, free, owner). Like the functions above, in the
 * order of the default stream. `param` is unused. */
SPILLWAY_UM_API void* spillway_cupy_malloc(void* param, size_t bytes, int device);
SPILLWAY_UM_API void spillway_cupy_free(void* param, void* address, int device);

#ifdef __cplusplus
} /* extern "C" */
#endif

/* NOLINTEND(modernize-*,readability-identifier-naming) */

#endif /* SPILLWAY_UM_H */
