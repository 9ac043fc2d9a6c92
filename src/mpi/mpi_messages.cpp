#include "src/mpi/mpi_messages.h"

#include <algorithm>
#include <array>
#include <limits>
#include <thread>

#include "src/ranks/rank_names.h"

namespace spillway {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

// MPI counts with int. A smaller message than that shows earlier that something comes.
constexpr std::size_t kLargestMessage = 64UL << 20U;  // bytes
constexpr int kCalls = 16384;  // tags, of which MPI has at least 32,767, tell this many calls apart

// Between two looks: none at first, then sleeps, each longer than the one before.
class Pauses {
 public:
  void restart() { looks_ = 0; }
  void pause() {
    ++looks_;
    if (looks_ <= kWithout) return;
    std::this_thread::sleep_for(std::min((looks_ - kWithout) * kFirst, kLongest));
  }

 private:
  static constexpr int kWithout = 100;  // some ten microseconds
  static constexpr microseconds kFirst{10};
  static constexpr microseconds kLongest{100};
  int looks_ = 0;
};

std::string own_node() {
  std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
  int length = 0;
  check_mpi(MPI_Get_processor_name(name.data(), &length), "MPI does not say which node this is");
  return {name.data(), static_cast<std::size_t>(length)};
}

MPI_Comm copy_of_world() {
  MPI_Comm copy = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &copy), "MPI cannot make a communicator");
  check_mpi(MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN), "MPI refuses an error handler");
  return copy;
}

// Calls `action` with the pieces of `bytes` that are a message each, at least one, and whether it
// is the last.
template <typename Span, typename Action>
void for_each_message(Span bytes, Action action) {
  do {
    const Span message = bytes.first(std::min(bytes.size(), kLargestMessage));
    bytes = bytes.subspan(message.size());
    action(message, bytes.empty());
  } while (!bytes.empty());
}

}  // namespace

void check_mpi(int code, std::string_view what) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw um::Error{std::string{what} + ": " +
                  std::string{text.data(), static_cast<std::size_t>(length)}};
}

MpiMessages::MpiMessages(std::chrono::milliseconds time_limit)
    : time_limit_{time_limit}, messages_{copy_of_world()}, sums_{copy_of_world()} {
  int rank = 0;
  int ranks = 0;
  check_mpi(MPI_Comm_rank(messages_, &rank), "MPI does not say which rank this is");
  check_mpi(MPI_Comm_size(messages_, &ranks), "MPI does not say how many ranks there are");
  rank_ = static_cast<std::size_t>(rank);
  nodes_.resize(static_cast<std::size_t>(ranks));
  learn_nodes();
}

void MpiMessages::learn_nodes() {
  using Name = std::array<char, MPI_MAX_PROCESSOR_NAME>;
  const std::string node = own_node();
  Name own{};
  std::copy(node.begin(), node.end(), own.begin());
  std::vector<Name> names(ranks());
  std::vector<std::span<std::byte>> receives;
  receives.reserve(names.size());
  for (Name& name : names) receives.emplace_back(std::as_writable_bytes(std::span{name}));
  exchange(std::vector(ranks(), std::as_bytes(std::span<const char>{own})), receives);
  for (std::size_t r = 0; r < ranks(); ++r) {
    nodes_[r] = {names[r].begin(), std::find(names[r].begin(), names[r].end(), '\0')};
  }
}

void MpiMessages::refuse_after_failure() const {
  if (!failure_.empty()) throw um::Error{failure_};
}

void MpiMessages::fail(const std::string& sentence) {
  failure_ = sentence;
  throw um::Error{failure_};
}

void MpiMessages::send(std::span<const std::byte> bytes, std::size_t to, Pending& pending) {
  for_each_message(bytes, [&](std::span<const std::byte> message, bool is_last) {
    MPI_Request& request = pending.requests.emplace_back(MPI_REQUEST_NULL);
    pending.ranks.push_back(to);
    pending.sizes.emplace_back(std::nullopt);
    const auto guard = lock();
    check_mpi(MPI_Isend(message.data(), static_cast<int>(message.size()), MPI_BYTE,
                        static_cast<int>(to), 2 * call_ + (is_last ? 1 : 0), messages_, &request),
              "MPI cannot send");
  });
}

void MpiMessages::receive(std::span<std::byte> bytes, std::size_t from, Pending& pending) {
  for_each_message(bytes, [&](std::span<std::byte> message, bool is_last) {
    MPI_Request& request = pending.requests.emplace_back(MPI_REQUEST_NULL);
    pending.ranks.push_back(from);
    pending.sizes.emplace_back(static_cast<int>(message.size()));
    const auto guard = lock();
    check_mpi(MPI_Irecv(message.data(), static_cast<int>(message.size()), MPI_BYTE,
                        static_cast<int>(from), 2 * call_ + (is_last ? 1 : 0), messages_, &request),
              "MPI cannot receive");
  });
}

// False when there are none any more.
bool MpiMessages::look(Pending& pending) {
  pending.moved.resize(pending.requests.size());
  pending.statuses.resize(pending.requests.size());
  int count = 0;
  {
    const auto guard = lock();
    check_mpi(MPI_Testsome(static_cast<int>(pending.requests.size()), pending.requests.data(),
                           &count, pending.moved.data(), pending.statuses.data()),
              "a message of MPI's failed");
  }
  if (count == MPI_UNDEFINED) return false;
  pending.moved.resize(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < pending.moved.size(); ++i) {
    const std::optional<int>& size = pending.sizes[static_cast<std::size_t>(pending.moved[i])];
    int received = 0;
    MPI_Get_count(&pending.statuses[i], MPI_BYTE, &received);
    um::expects(!size || *size == received, "a message of the size that its receiver expects");
  }
  return true;
}

std::vector<std::size_t> MpiMessages::wait(Pending& pending, std::chrono::milliseconds time_limit) {
  Pauses pauses;
  auto last = Clock::now();
  while (look(pending)) {
    if (!pending.moved.empty()) {
      pauses.restart();
      last = Clock::now();
    } else if (Clock::now() - last > time_limit) {
      return give_up(pending);
    }
    pauses.pause();
  }
  return {};
}

// Takes back what has not begun to come. What has cannot be taken back, so that the memory may
// still be written to in a later call of MPI: there is none but abort().
std::vector<std::size_t> MpiMessages::give_up(Pending& pending) {
  std::vector<std::size_t> silent;
  for (std::size_t i = 0; i < pending.requests.size(); ++i) {
    if (pending.requests[i] == MPI_REQUEST_NULL) continue;
    silent.push_back(pending.ranks[i]);
    const auto guard = lock();
    if (pending.sizes[i]) MPI_Cancel(&pending.requests[i]);
  }
  std::sort(silent.begin(), silent.end());
  silent.erase(std::unique(silent.begin(), silent.end()), silent.end());
  return silent;
}

std::vector<std::size_t> MpiMessages::move_all(SentPieces sends, ReceivedPieces receives,
                                               std::chrono::milliseconds time_limit) {
  Pending pending;
  for (std::size_t i = 1; i < ranks(); ++i) {
    const std::size_t from = (rank_ + ranks() - i) % ranks();
    receive(receives[from], from, pending);
  }
  for (std::size_t i = 1; i < ranks(); ++i) {  // not all to the same rank first
    const std::size_t to = (rank_ + i) % ranks();
    send(sends[to], to, pending);
  }
  call_ = (call_ + 1) % kCalls;
  return wait(pending, time_limit);
}

void MpiMessages::exchange(SentPieces sends, ReceivedPieces receives) {
  um::expects(sends.size() == ranks() && receives.size() == ranks(), "a piece for each rank");
  um::expects(sends[rank_].size() == receives[rank_].size(), "what it sends to itself fits");
  refuse_after_failure();
  const std::vector<std::size_t> silent = move_all(sends, receives, time_limit_);
  if (!silent.empty()) fail(silence(silent, nodes_, time_limit_));
  std::copy(sends[rank_].begin(), sends[rank_].end(), receives[rank_].begin());
}

void MpiMessages::sum(std::span<float> numbers) {
  const std::vector<std::span<const std::byte>> nothing(ranks());
  exchange(nothing, std::vector<std::span<std::byte>>(ranks()));  // all are here
  while (!numbers.empty()) {
    const std::span<float> part =
        numbers.first(std::min(numbers.size(), kLargestMessage / sizeof(float)));
    numbers = numbers.subspan(part.size());
    Pending pending{.requests = {MPI_REQUEST_NULL}, .ranks = {rank_}, .sizes = {std::nullopt}};
    {
      const auto guard = lock();
      check_mpi(MPI_Iallreduce(MPI_IN_PLACE, part.data(), static_cast<int>(part.size()), MPI_FLOAT,
                               MPI_SUM, sums_, pending.requests.data()),
                "MPI cannot sum");
    }
    if (!wait(pending, time_limit_).empty()) fail_in_sum();
  }
}

// Who is there answers: all ranks began to wait at about the same time.
void MpiMessages::fail_in_sum() {
  using namespace std::chrono_literals;
  const auto patience = std::max<std::chrono::milliseconds>(1s, time_limit_ / 4);
  const std::vector<std::span<const std::byte>> nothing(ranks());
  std::vector<std::size_t> silent =
      move_all(nothing, std::vector<std::span<std::byte>>(ranks()), patience);
  if (!silent.empty()) fail(silence(silent, nodes_, time_limit_));
  fail("a sum over all ranks, all of which are there, has not come for the time limit");
}

}  // namespace spillway
