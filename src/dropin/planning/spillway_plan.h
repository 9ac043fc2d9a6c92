#ifndef SPILLWAY_PLAN_H
#define SPILLWAY_PLAN_H

/* Plans a recorded step of any framework within a budget of near memory: libspillway_plan.so.
 *
 * Everything is JSON. The formats spillway-trace and spillway-plan are in prefetch/README.md.
 * No function throws or ends the process: the answer describes errors.
 *
 * Thread safety: any thread may call every function at any time.
 *
 * The header is C99 and C++. Names without the prefix spillway_plan_ are not part of the interface.
 */

/* NOLINTBEGIN(modernize-*,readability-identifier-naming): C. */

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SPILLWAY_PLAN_API __attribute__((visibility("default")))
#else
#define SPILLWAY_PLAN_API
#endif

/* Plans `trace`, a spillway-trace, as `request` asks:
 *
 *   {"budget_bytes": N,          near memory; without it the answer has only the needs
 *    "planner": "joint",         a name that spillway plan --planner lists
 *    "recompute": true,          allows recomputing outputs instead of moving them
 *    "parts": false,             allows moving parts of blocks
 *    "offload_weights": false,   allows offloading weights that do not say otherwise
 *    "link": {...},              as in a spillway-machine; default: the built-in machine host
 *    "timeline": false}          adds the predicted step as a Chrome trace
 *
 * The answer is one of
 *
 *   {"needs": {"resident_bytes": N, "smallest_bytes": N}, "plan": {a spillway-plan},
 *    "figures": {"peak_bytes", "compute_seconds", "makespan_seconds", "bounds", ...},
 *    "timeline": {...}}
 *   {"needs": {...}, "refused": {"sentence": "...", "task": "...", "smallest_bytes": N}}
 *   {"error": "one sentence"}
 *
 * The caller frees the answer by spillway_plan_free(). Returns NULL when out of memory. */
SPILLWAY_PLAN_API char* spillway_plan_trace(const char* trace, const char* request);

/* Frees a result of spillway_plan_trace(). NULL is a no-op. */
SPILLWAY_PLAN_API void spillway_plan_free(char* answer);

/* Returns the version of the library, not of the header, such as "1.2.3". Never NULL. */
SPILLWAY_PLAN_API const char* spillway_plan_version(void);

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-*,readability-identifier-naming) */

#endif
