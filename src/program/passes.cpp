#include "src/program/passes.h"

#include <algorithm>

namespace spillway {

// The order of passes, in one place.
void apply(const Features& features, const SizeModel& size_model, um::Bytes least_page,
           Step& program) {
  divide_updates(program, size_model, features.division);
  if (features.state != StatePlace::kNear) let_state_move(program);
  if (features.buckets) exchange_gradients(program, *features.buckets);
  if (features.state != StatePlace::kUpdatedFar) return;
  update_far(program, std::max(step_page(program.graph, size_model), least_page));
}

}  // namespace spillway
