#ifndef SPILLWAY_UM_H
#define SPILLWAY_UM_H

/* Spillway's unified memory for any program: an allocator over more memory than is near.
 *
 * A space is a range of addresses (its capacity) with less near memory behind it than addresses.
 * On the host, near memory is a budget of RAM and far memory is other RAM or a file; on a GPU, near
 * memory is the GPU's and far memory is the host's RAM. A touch of what is not near brings it there
 * and sends something else away; hints do that ahead of need. Hints change times, never content.
 *
 * Units: bytes everywhere, unless a name says otherwise.
 *
 * Errors: what can fail returns a status, nothing throws, nothing ends the process on misuse.
 * spillway_um_last_error() has the sentence on the calling thread's last failure.
 *
 * Thread safety: every function may be called from any thread at any time. A space that one thread
 * destroys while another is inside a call ends when that call has returned.
 *
 * Hints (prefetch, offload, discard, advise, touch) take a range within one allocation. Memory
 * moves in pages: discard rounds its range inward to whole pages, the others outward.
 *
 * fork: a child has no spaces. Every handle of its parent is refused there. It has none of their
 * memory, too: a touch is its SIGSEGV (fork and exec, and posix_spawn, are fine). It may make
 * spaces of its own.
 *
 * The host device handles SIGSEGV and SIGBUS, and passes on those that are not its own: a handler
 * that the program installs later must do the same. System calls (read, write) on memory that is
 * not near fail with EFAULT there: copy through ordinary memory.
 *
 * The system's calls on the memory of a host's space, each tested:
 *
 * mlock: near pages are locked, and unlocked when they move: it keeps nothing near. ENOMEM where a
 * page is far.
 *
 * mprotect: holds while a page stays near. A touch that it forbids is the program's SIGSEGV. A page
 * that moves can be read and written again. A far page keeps its content whatever it is given.
 *
 * mremap, munmap: take a part out of the space, until it is mapped back at its place. What was far
 * raises SIGBUS or SIGSEGV at a new place. A page that is to move and is not at its place ends the
 * process with a sentence.
 *
 * madvise: advice on times (MADV_HUGEPAGE, MADV_COLD, MADV_PAGEOUT ...) changes no content.
 * MADV_DONTNEED may make near pages zeros: use spillway_um_discard(). MADV_DOFORK gives a child a
 * copy of near pages.
 *
 * A signal stack (sigaltstack) holds page faults, too. It needs sysconf(_SC_MINSIGSTKSZ) +
 * SPILLWAY_UM_SIGNAL_STACK_BYTES, and sysconf(_SC_MINSIGSTKSZ) more, with what it uses itself, for
 * each handler on it that touches a space's memory. A fault that finds less than half of
 * SPILLWAY_UM_SIGNAL_STACK_BYTES left ends the process with a sentence.
 * spillway_um_prepare_thread() gives a thread a stack that is large enough.
 *
 * A far file that cannot be read or written loses no content: memory stays where it is, and touch
 * and synchronize fail from then on. A page fault has nobody to tell: one that needs what such a
 * file does not give, or room that it does not take, ends the process with a sentence.
 *
 * The header is C99 and C++. Names without spillway_um_ in front are not part of it. */

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
  SPILLWAY_UM_INTERNAL = 6 /* a bug of Spillway's */
} spillway_um_status;

/* The sentence on the last call of this thread that failed; "" before the first. Valid until the
 * thread's next call that fails. Never NULL. */
SPILLWAY_UM_API const char* spillway_um_last_error(void);

/* "0.1.0": of the library, not of the header. Never NULL. */
SPILLWAY_UM_API const char* spillway_um_version(void);

/* ---- spaces ---- */

/* How the host device maps pages and catches faults. */
typedef enum spillway_um_paging {
  SPILLWAY_UM_PAGING_AUTO = 0, /* uffd where the kernel allows it, else memfd */
  SPILLWAY_UM_PAGING_UFFD = 1, /* userfaultfd, Linux 6.8 or newer */
  SPILLWAY_UM_PAGING_MEMFD = 2 /* a memfd and SIGSEGV, any Linux */
} spillway_um_paging;

#define SPILLWAY_UM_OPTIONS_VERSION 1

/* What a space is made of. Fill it with spillway_um_options_init() first. */
typedef struct spillway_um_options {
  uint32_t version;             /* SPILLWAY_UM_OPTIONS_VERSION */
  int32_t oversubscribe;        /* a GPU's: 1 lets the capacity exceed its free memory. Drivers have
                                   been seen to hang the GPU when they must evict. */
  const char* device;           /* "host" (also NULL), "cuda" or "cuda:N" */
  uint64_t near_bytes;          /* near memory; rounded down to whole pages. Required. */
  uint64_t capacity_bytes;      /* all allocations together; rounded up to pages. Required. */
  uint64_t page_bytes;          /* unit of moves: a power of two, 4 KiB to 2 MiB; 0: chosen. On a
                                   GPU one of at least 2 MiB. */
  const char* far_path;         /* NULL or "": far memory in RAM; else a folder, or the path of a
                                   file that does not exist yet, which has no name while it is used
                                   and is gone with the space */
  double link_bytes_per_second; /* slows the host's link, to try out another one; 0: full speed */
  int32_t paging;               /* the host's: one of spillway_um_paging */
} spillway_um_options;

/* Sets every field: the version, host device, no sizes. NULL does nothing. */
SPILLWAY_UM_API void spillway_um_options_init(spillway_um_options* options);

/* A handle: a number that is never used twice in a process. 0 is no space. */
typedef struct spillway_um_space {
  uint64_t id;
} spillway_um_space;

/* Makes a space. Near memory is taken at once, far memory in a file too. On failure *space is 0. */
SPILLWAY_UM_API spillway_um_status spillway_um_create(const spillway_um_options* options,
                                                      spillway_um_space* space);

/* Ends a space, with all its allocations; nothing may use them any more. Waits for its moves. */
SPILLWAY_UM_API spillway_um_status spillway_um_destroy(spillway_um_space space);

/* The space's GPU by its number, as cudaGetDevice() has it; -1 for the host. */
SPILLWAY_UM_API spillway_um_status spillway_um_device(spillway_um_space space, int32_t* ordinal);

/* ---- allocations ---- */

/* `alignment` is a power of two of at most 2 MiB, or 0: 64. What is as large as a page is aligned
 * to pages as well. The content is indeterminate. Zero bytes are refused. On failure *address is
 * NULL. */
SPILLWAY_UM_API spillway_um_status spillway_um_allocate(spillway_um_space space, size_t bytes,
                                                        size_t alignment, void** address);

/* Nothing may use the allocation any more. Pages that nothing else is on leave near memory, without
 * being saved. NULL is fine. FAILED here: it is freed all the same. */
SPILLWAY_UM_API spillway_um_status spillway_um_free(spillway_um_space space, void* address);

/* For work in the order of a stream: `stream` is a cudaStream_t on a GPU, and NULL on the host.
 * The memory may be used by any stream at once. */
SPILLWAY_UM_API spillway_um_status spillway_um_allocate_async(spillway_um_space space, size_t bytes,
                                                              size_t alignment, void* stream,
                                                              void** address);

/* Frees when the work that `stream` has so far is done; until then nothing else gets the memory.
 * For the caller it is freed now: a second free is a double free. Refused, and nothing freed, while
 * the stream is being captured into a graph, which may use the memory each time that it runs. */
SPILLWAY_UM_API spillway_um_status spillway_um_free_async(spillway_um_space space, void* address,
                                                          void* stream);

/* ---- hints ---- */

/* Starts bringing a range near, and returns, but waits first while 64 that were asked for are under
 * way. Parts for which near memory has no room are left where they are: counted, and no failure.
 * Of a range larger than near memory the beginning comes. */
SPILLWAY_UM_API spillway_um_status spillway_um_prefetch(spillway_um_space space,
                                                        const void* address, size_t bytes);
/* Starts sending a range far, and returns, as above. */
SPILLWAY_UM_API spillway_um_status spillway_um_offload(spillway_um_space space, const void* address,
                                                       size_t bytes);
/* Drops the content of the whole pages in a range, unsaved: indeterminate until it is written. */
SPILLWAY_UM_API spillway_um_status spillway_um_discard(spillway_um_space space, void* address,
                                                       size_t bytes);

typedef enum spillway_um_advice {
  SPILLWAY_UM_ADVICE_NONE = 0,
  SPILLWAY_UM_ADVICE_PREFER_NEAR = 1, /* evict last */
  SPILLWAY_UM_ADVICE_PREFER_FAR = 2,  /* evict first */
  SPILLWAY_UM_ADVICE_READ_MOSTLY = 3  /* a GPU's driver may keep copies; nothing on the host */
} spillway_um_advice;

/* Standing advice, one of spillway_um_advice, on the pages of a range; the last one given holds
 * until the memory is freed. */
SPILLWAY_UM_API spillway_um_status spillway_um_advise(spillway_um_space space, const void* address,
                                                      size_t bytes, int advice);

typedef enum spillway_um_access {
  SPILLWAY_UM_READ = 1,
  SPILLWAY_UM_WRITE = 2, /* writes all or some of it, and reads none */
  SPILLWAY_UM_READ_WRITE = 3
} spillway_um_access;

/* Says that the program is about to use a range (one of spillway_um_access), once for each use: it
 * becomes what is evicted last. Moves nothing, unless iterations are marked and learned. Needed for
 * nothing: faults alone are right. Fails when an earlier move has failed. */
SPILLWAY_UM_API spillway_um_status spillway_um_touch(spillway_um_space space, const void* address,
                                                     size_t bytes, int access);

/* Waits until the prefetches and offloads so far have ended, learned ones too, and for a replay
 * plan that is being made; what other threads ask for meanwhile is not waited for. Fails when far
 * memory has failed since the space was made. */
SPILLWAY_UM_API spillway_um_status spillway_um_synchronize(spillway_um_space space);

/* For threads that touch a space's memory in code that has no stack to spare: oneDNN's AVX-512
 * kernels use the stack pointer for other things, and a page fault's handler on the host runs on
 * the stack of whoever touched. Gives the calling thread a signal stack until it ends; a second
 * call does nothing, and on a GPU's space none does. */
SPILLWAY_UM_API spillway_um_status spillway_um_prepare_thread(spillway_um_space space);

/* ---- learned prefetch ---- */

/* For a program that does the same again and again: one iteration ends here, and the next begins.
 *
 * From the first mark on the library notes allocations, frees and spillway_um_touch(), in order.
 * When the iterations have gone through a cycle twice (a cycle is one iteration, or up to four: two
 * where arrays are swapped, or new state is allocated before the old one is freed), it plans in a
 * thread of its own when to move what, and from the next cycle on prefetches and offloads ahead of
 * the touches. Nothing that a program does is wrong or changes content: an unexpected touch is a
 * miss, after a few the rest of the cycle is left to page faults; when that goes on it learns anew.
 *
 * So touch what you are about to use, in pieces of which several fit in near memory, also on the
 * host: page faults alone are not learned there, since they end where prefetching succeeds. Blocks
 * are allocations, cut into pieces of a page to 16 MiB, a 64th of near memory; allocations smaller
 * than a page are left alone.
 *
 * The first mark measures the link, unless link_bytes_per_second says what it is: with an
 * allocation of a few pages, which the counters see. */
SPILLWAY_UM_API spillway_um_status spillway_um_mark_iteration(spillway_um_space space);

#define SPILLWAY_UM_LEARNED_COUNTERS_VERSION 1

/* Since the first mark, until learning is switched off, which the status says.
 * iterations == recorded + followed + abandoned + idle; touches == hits + misses + unguided. */
typedef struct spillway_um_learned_counters {
  uint32_t version;    /* set it to SPILLWAY_UM_LEARNED_COUNTERS_VERSION before the call */
  uint32_t reserved;   /* 0 */
  uint64_t iterations; /* that have ended */
  uint64_t recorded;
  uint64_t followed;   /* as learned */
  uint64_t abandoned;  /* too many misses */
  uint64_t idle;       /* waited for a replay plan or a cycle's begin, or could not be learned */
  uint64_t lessons;    /* replay plans made */
  uint64_t touches;    /* of pieces of blocks */
  uint64_t hits;       /* that were the expected ones */
  uint64_t misses;     /* that were others */
  uint64_t unguided;   /* while nothing was followed */
  uint64_t late;       /* of pieces that were not all near, as far as it knows */
  uint64_t prefetches; /* commanded, of pieces or parts of them */
  uint64_t offloads;
} spillway_um_learned_counters;

SPILLWAY_UM_API spillway_um_status
spillway_um_get_learned_counters(spillway_um_space space, spillway_um_learned_counters* counters);

/* What learned prefetch is doing, or why it does nothing: one clause for people, of which what fits
 * in `bytes` is put at `text`, with a 0 behind. */
SPILLWAY_UM_API spillway_um_status spillway_um_learned_status(spillway_um_space space, char* text,
                                                              size_t bytes);

/* ---- what has happened ---- */

/* How many bytes of a range within one allocation are near now; on a GPU, as hints left it: nobody
 * sees its page faults. */
SPILLWAY_UM_API spillway_um_status spillway_um_near_bytes(spillway_um_space space,
                                                          const void* address, size_t bytes,
                                                          uint64_t* near_bytes);

#define SPILLWAY_UM_COUNTERS_VERSION 1

/* Since the space was made. */
typedef struct spillway_um_counters {
  uint32_t version;           /* set it to SPILLWAY_UM_COUNTERS_VERSION before the call */
  uint32_t reserved;          /* 0 */
  uint64_t allocations;       /* calls that succeeded */
  uint64_t frees;             /* allocations given back; allocations - frees are live */
  uint64_t allocated_bytes;   /* now, rounded to 64 bytes each, with those freed on a stream that
                                 has not got there */
  uint64_t near_bytes;        /* now */
  uint64_t near_peak_bytes;   /* never more than the budget */
  uint64_t faults;            /* page faults; on a GPU 0: nobody sees them */
  uint64_t fault_nanoseconds; /* that threads spent in them */
  uint64_t evictions;         /* pages sent away for room, not by a hint */
  uint64_t bytes_prefetched;  /* far to near, by prefetch or fault */
  uint64_t bytes_offloaded;   /* near to far, by offload or eviction */
  uint64_t discarded_pages;   /* near pages dropped by discard or free */
  uint64_t refused_hints;     /* pages that a prefetch or an offload left where they were */
  uint64_t touches;           /* calls of spillway_um_touch() that succeeded */
} spillway_um_counters;

SPILLWAY_UM_API spillway_um_status spillway_um_get_counters(spillway_um_space space,
                                                            spillway_um_counters* counters);

/* ---- far memory alone: for programs that copy to and from it by themselves ---- */

/* Addresses, offsets and sizes of copies are multiples of it. */
#define SPILLWAY_UM_FAR_ALIGNMENT 4096

/* Far memory of the host without addresses: other RAM, or a file. No near memory belongs to it. */
typedef struct spillway_um_far {
  uint64_t id; /* 0: none */
} spillway_um_far;

/* Makes far memory of so many bytes: in RAM where `folder` is NULL, else in a file there, which
 * gets all its room now, has no name, and is gone when the process ends, however it ends. */
SPILLWAY_UM_API spillway_um_status spillway_um_far_create(const char* folder, uint64_t bytes,
                                                          spillway_um_far* far);
/* Ends it when calls that are inside it have returned. */
SPILLWAY_UM_API spillway_um_status spillway_um_far_destroy(spillway_um_far far);

/* Return when the bytes have moved; a thread of the program's makes them asynchronous. Copies of
 * ranges that do not overlap may be made at the same time. What was never written reads as
 * anything. FAILED where the file cannot be read or written, or no longer holds what was written.
 */
SPILLWAY_UM_API spillway_um_status spillway_um_far_write(spillway_um_far far, uint64_t offset,
                                                         const void* from, size_t bytes);
SPILLWAY_UM_API spillway_um_status spillway_um_far_read(spillway_um_far far, uint64_t offset,
                                                        void* to, size_t bytes);

/* ---- the default space: one for the process, for PyTorch and CuPy ---- */

/* Says what the default space is made of. It is made when it is first needed; from then on this is
 * refused. Without this call it is made of the environment: SPILLWAY_UM_NEAR and
 * SPILLWAY_UM_CAPACITY ("2GiB"; both required), SPILLWAY_UM_DEVICE (as above; "cuda" unless given),
 * SPILLWAY_UM_FAR (as far_path; the host's), SPILLWAY_UM_PAGE ("2MiB"; chosen unless given) and
 * SPILLWAY_UM_OVERSUBSCRIBE (0 or 1; 0 unless given). */
SPILLWAY_UM_API spillway_um_status spillway_um_set_default(const spillway_um_options* options);

/* The default space, made now if it was not. It is never destroyed by the library. */
SPILLWAY_UM_API spillway_um_status spillway_um_default(spillway_um_space* space);

/* For torch.cuda.memory.CUDAPluggableAllocator("libspillway_um.so", "spillway_torch_malloc",
 * "spillway_torch_free"), best in a torch.cuda.MemPool. `device` must be the default space's GPU.
 * NULL on failure and for no bytes; failures go to standard error too. `bytes` is ssize_t. */
SPILLWAY_UM_API void* spillway_torch_malloc(ptrdiff_t bytes, int device, void* stream);
SPILLWAY_UM_API void spillway_torch_free(void* address, ptrdiff_t bytes, int device, void* stream);

/* For cupy.cuda.memory.CFunctionAllocator(0, malloc, free, owner). Frees in the order of the
 * default stream. Otherwise as above. `param` is not used. */
SPILLWAY_UM_API void* spillway_cupy_malloc(void* param, size_t bytes, int device);
SPILLWAY_UM_API void spillway_cupy_free(void* param, void* address, int device);

#ifdef __cplusplus
} /* extern "C" */
#endif

/* NOLINTEND(modernize-*,readability-identifier-naming) */

#endif /* SPILLWAY_UM_H */
