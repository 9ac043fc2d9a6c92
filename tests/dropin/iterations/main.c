/* A stencil over twice as much as is near, with learned prefetch, from C: one mark a sweep. */
#include <stdio.h>
#include <um/dropin/spillway_um.h>

enum { kNear = 4 << 20, kArray = kNear, kBlock = 256 << 10, kSweeps = 12 };

static int check(spillway_um_status status, const char* what) {
  if (status == SPILLWAY_UM_OK) return 0;
  fprintf(stderr, "%s: %s\n", what, spillway_um_last_error());
  return 1;
}

/* to[i] = from[i] + 1, block by block: each says first what it will use. */
static int sweep(spillway_um_space space, uint32_t* from, uint32_t* to) {
  const size_t block = kBlock / sizeof(uint32_t);
  size_t at;
  size_t i;
  for (at = 0; at < kArray / sizeof(uint32_t); at += block) {
    if (check(spillway_um_touch(space, from + at, kBlock, SPILLWAY_UM_READ), "touch")) return 1;
    if (check(spillway_um_touch(space, to + at, kBlock, SPILLWAY_UM_WRITE), "touch")) return 1;
    for (i = at; i < at + block; ++i) to[i] = from[i] + 1;
  }
  return check(spillway_um_mark_iteration(space), "mark_iteration");
}

int main(void) {
  spillway_um_options options;
  spillway_um_space space;
  spillway_um_learned_counters learned;
  char status[200];
  void* address[2] = {NULL, NULL};
  uint32_t* result = NULL;
  int wrong = 0;
  size_t i;
  int s;

  spillway_um_options_init(&options);
  options.near_bytes = kNear;
  options.capacity_bytes = 2 * kArray;
  options.link_bytes_per_second = 2e9;
  if (check(spillway_um_create(&options, &space), "create")) return 1;
  for (s = 0; s < 2; ++s) {
    if (check(spillway_um_allocate(space, kArray, 0, &address[s]), "allocate")) return 1;
  }
  result = address[0];
  for (i = 0; i < kArray / sizeof(uint32_t); ++i) result[i] = (uint32_t)i;
  if (check(spillway_um_mark_iteration(space), "mark_iteration")) return 1;
  for (s = 0; s < kSweeps; ++s) {
    if (sweep(space, address[s % 2], address[(s + 1) % 2])) return 1;
    if (check(spillway_um_synchronize(space), "synchronize")) return 1; /* so that it is learned */
  }
  result = address[kSweeps % 2];
  for (i = 0; i < kArray / sizeof(uint32_t); ++i) wrong += result[i] != (uint32_t)i + kSweeps;

  learned.version = SPILLWAY_UM_LEARNED_COUNTERS_VERSION;
  if (check(spillway_um_get_learned_counters(space, &learned), "learned_counters")) return 1;
  if (check(spillway_um_learned_status(space, status, sizeof(status)), "status")) return 1;
  printf("%s; %llu hits, %llu misses, %llu prefetches, %llu offloads; %d wrong\n", status,
         (unsigned long long)learned.hits, (unsigned long long)learned.misses,
         (unsigned long long)learned.prefetches, (unsigned long long)learned.offloads, wrong);
  if (check(spillway_um_destroy(space), "destroy")) return 1;
  return wrong == 0 && learned.followed > 0 && learned.misses == 0 && learned.prefetches > 0 ? 0
                                                                                             : 1;
}
