#ifndef SPILLWAY_PLAN_H
#define SPILLWAY_PLAN_H

/* Plans a recorded step of any framework within a budget of near memory: libspillway_plan.so.
 *
 * Everything is JSON. The formats spillway-trace and spillway-plan are in prefetch/README.md.
 * Nothing throws and nothing ends the process: the answer says what is wrong.
 *
 * Thread safety: every function may be called from any thread at any time.
 *
 * The header is C99 and C++. Names without spillway_plan_ in front are not part of it. */

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
 *   {"budget_bytes": N,          near memory; without it the answer has only needs
 *    "planner": "joint",         a name that spillway plan --planner lists
 *    "recompute": true,          tasks may run again instead of their outputs being moved
 *    "parts": false,             moves may take parts of blocks
 *    "offload_weights": false,   weights that do not say may be far
 *    "link": {...},              as in a spillway-machine; the built-in machine host's if left out
 *    "timeline": false}          the answer has the predicted step as a Chrome trace
 *
 * The answer is one of
 *
 *   {"needs": {"resident_bytes": N, "smallest_bytes": N}, "plan": {a spillway-plan},
 *    "figures": {"peak_bytes", "compute_seconds", "makespan_seconds", "bounds", ...},
 *    "timeline": {...}}
 *   {"needs": {...}, "refused": {"sentence": "...", "task": "...", "smallest_bytes": N}}
 *   {"error": "one sentence"}
 *
 * It is the caller's: spillway_plan_free(). NULL where the system has no memory left. */
SPILLWAY_PLAN_API char* spillway_plan_trace(const char* trace, const char* request);

/* Of what spillway_plan_trace() returned, once; NULL is fine. */
SPILLWAY_PLAN_API void spillway_plan_free(char* answer);

/* "0.1.0": of the library, not of the header. Never NULL. */
SPILLWAY_PLAN_API const char* spillway_plan_version(void);

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-*,readability-identifier-naming) */

#endif
