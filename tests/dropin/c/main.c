/* Fills and sums four times as much as is near, with hints, from C. */
#include <stdio.h>
#include <um/dropin/spillway_um.h>

enum { kNear = 4 << 20, kCount = 4 * kNear / 4 };

static int check(spillway_um_status status, const char* what) {
  if (status == SPILLWAY_UM_OK) return 0;
  fprintf(stderr, "%s: %s\n", what, spillway_um_last_error());
  return 1;
}

int main(void) {
  spillway_um_options options;
  spillway_um_space space;
  spillway_um_counters counters;
  uint32_t* numbers = NULL;
  void* address = NULL;
  uint64_t sum = 0;
  uint64_t near_bytes = 0;
  size_t i;

  spillway_um_options_init(&options);
  options.near_bytes = kNear;
  options.capacity_bytes = 4 * kNear;
  if (check(spillway_um_create(&options, &space), "create")) return 1;
  if (check(spillway_um_allocate(space, 4 * kNear, 0, &address), "allocate")) return 1;
  numbers = address;
  for (i = 0; i < kCount; ++i) numbers[i] = (uint32_t)i;
  if (check(spillway_um_prefetch(space, numbers, kNear / 2), "prefetch")) return 1;
  if (check(spillway_um_synchronize(space), "synchronize")) return 1;
  if (check(spillway_um_near_bytes(space, numbers, kNear / 2, &near_bytes), "near_bytes")) return 1;
  for (i = 0; i < kCount; ++i) sum += numbers[i];
  counters.version = SPILLWAY_UM_COUNTERS_VERSION;
  if (check(spillway_um_get_counters(space, &counters), "counters")) return 1;
  printf("sum %llu, %llu faults, %llu bytes offloaded, version %s\n", (unsigned long long)sum,
         (unsigned long long)counters.faults, (unsigned long long)counters.bytes_offloaded,
         spillway_um_version());
  if (spillway_um_free(space, numbers + 1) != SPILLWAY_UM_NOT_ALLOCATED) return 1;
  if (check(spillway_um_free(space, numbers), "free")) return 1;
  if (check(spillway_um_destroy(space), "destroy")) return 1;
  return sum == (uint64_t)kCount * (kCount - 1) / 2 && near_bytes == kNear / 2 &&
                 counters.bytes_offloaded >= 3 * (uint64_t)kNear &&
                 counters.near_peak_bytes <= kNear
             ? 0
             : 1;
}
