#pragma once

#include <cstddef>

#include "src/io/data/batch_loader.h"
#include "src/train/session.h"

namespace spillway {

/// How to load batches for `session`; `threads` as TrainOptions::loader_threads has them.
[[nodiscard]] inline LoaderOptions loader_options(const Session& session, std::size_t threads) {
  return {.threads = threads > 0 ? threads : usual_loader_threads(),
          .memory = &session.batch_memory(),
          .has_bytes = session.loads_bytes()};
}

/// A session that reads batches ahead, which a loader owns: to be destroyed before it.
class SettledSession {
 public:
  explicit SettledSession(Session& session) : session_{session} {}
  SettledSession(const SettledSession&) = delete;
  SettledSession& operator=(const SettledSession&) = delete;
  ~SettledSession() { session_.settle(); }

 private:
  Session& session_;
};

}  // namespace spillway
