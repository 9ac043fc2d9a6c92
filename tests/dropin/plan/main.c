/* Asks for the plan of a step of two tasks within what it needs, from C. */
#include <src/dropin/planning/spillway_plan.h>
#include <stdio.h>
#include <string.h>

static const char trace[] =
    "{\"format\": \"spillway-trace\", \"version\": 1, \"name\": \"two tasks\", \"tasks\": ["
    "{\"name\": \"make\", \"reads\": [], \"writes\": [0], \"duration_ns\": 1000,"
    " \"workspace_bytes\": 0},"
    "{\"name\": \"use\", \"reads\": [0], \"writes\": [], \"duration_ns\": 1000,"
    " \"workspace_bytes\": 0}],"
    "\"data\": [{\"id\": 0, \"bytes\": 4096, \"kind\": \"tensor\"}]}";

int main(void) {
  int found;
  char* const answer = spillway_plan_trace(trace, "{\"budget_bytes\": 1048576}");
  if (answer == NULL) return 1;
  found = strstr(answer, "\"peak_bytes\"") != NULL;
  if (!found) fprintf(stderr, "no plan: %s\n", answer);
  spillway_plan_free(answer);
  return found ? 0 : 1;
}
