#include "src/ranks/mpi/mpi_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <thread>
#include <utility>

#include "src/ranks/rank_names.h"
#include "um/error.h"

namespace spillway {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

// MPI counts with int. Smaller messages also show progress earlier.
constexpr std::size_t kLargestMessage = 64UL << 20U;  // bytes
constexpr int kCalls = 16384;  // tags (MPI has at least 32,767) distinguish this many calls

// Pauses between polls: none at first, then sleeps of growing length.
class Pauses {
 public:
  void restart() { looks_ = 0; }
  void pause() {
    ++looks_;
    if (looks_ <= kWithout) return;
    std::this_thread::sleep_for(std::min((looks_ - kWithout) * kFirst, kLongest));
  }

 private:
  static constexpr int kWithout = 100;  // about ten microseconds in total
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

// Returns the next MPI message of the rest of a piece.
template <typename Span>
Span next_message(Span rest) {
  return rest.first(std::min(rest.size(), kLargestMessage));
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

MPI_Request& MpiMessages::add_request(std::size_t rank, Pending& pending) {
  pending.ranks.push_back(rank);
  return pending.requests.emplace_back(MPI_REQUEST_NULL);
}

// Sends a piece as messages, at least one.
void MpiMessages::send(std::span<const std::byte> bytes, std::size_t to, Pending& pending) {
  bool is_last = false;
  while (!is_last) {
    const std::span<const std::byte> message = next_message(bytes);
    bytes = bytes.subspan(message.size());
    is_last = bytes.empty();
    MPI_Request& request = add_request(to, pending);
    const auto guard = lock();
    check_mpi(MPI_Isend(message.data(), static_cast<int>(message.size()), MPI_BYTE,
                        static_cast<int>(to), tag(is_last), messages_, &request),
              "MPI cannot send");
  }
}

// Starts to receive the next message of a piece if it has arrived. Messages of one rank arrive in
// order. Probes first: Open MPI 4.1 overruns the buffer when a message is too large for it.
bool MpiMessages::receive_next(Awaited& piece, Pending& pending) {
  const std::span<std::byte> expected = next_message(piece.rest);
  const bool is_last = expected.size() == piece.rest.size();
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status{};
  int has_come = 0;
  const auto guard = lock();
  check_mpi(MPI_Improbe(static_cast<int>(piece.from), MPI_ANY_TAG, messages_, &has_come, &message,
                        &status),
            "MPI cannot receive");
  if (has_come == 0) return false;
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  if (static_cast<std::size_t>(size) != expected.size() || status.MPI_TAG != tag(is_last)) {
    failure_ = "two ranks disagree about the size of a piece";
    um::expects(false, "a message of the size that its receiver expects");
  }
  check_mpi(
      MPI_Imrecv(expected.data(), size, MPI_BYTE, &message, &add_request(piece.from, pending)),
      "MPI cannot receive");
  piece.rest = piece.rest.subspan(expected.size());
  piece.is_complete = is_last;
  return true;
}

// Polls all messages. Returns whether any has progressed since the last poll.
bool MpiMessages::look(Pending& pending) {
  bool has_moved = false;
  for (Awaited& piece : pending.awaited) {
    while (!piece.is_complete && receive_next(piece, pending)) has_moved = true;
  }
  pending.moved.resize(pending.requests.size());
  int count = 0;
  const auto guard = lock();
  check_mpi(MPI_Testsome(static_cast<int>(pending.requests.size()), pending.requests.data(), &count,
                         pending.moved.data(), MPI_STATUSES_IGNORE),
            "a message of MPI's failed");
  pending.has_requests = count != MPI_UNDEFINED;
  return has_moved || (pending.has_requests && count > 0);
}

std::vector<std::size_t> MpiMessages::wait(Pending& pending, std::chrono::milliseconds time_limit) {
  Pauses pauses;
  auto last = Clock::now();
  while (true) {
    const bool has_moved = look(pending);
    if (!pending.has_requests && std::ranges::all_of(pending.awaited, &Awaited::is_complete)) {
      return {};
    }
    if (has_moved) {
      pauses.restart();
      last = Clock::now();
    } else if (Clock::now() - last > time_limit) {
      return silent_in(pending);
    }
    pauses.pause();
  }
}

// Receives that have started cannot be cancelled. Later MPI calls may still write to their memory,
// so only abort() may follow.
std::vector<std::size_t> MpiMessages::silent_in(const Pending& pending) {
  std::vector<std::size_t> silent;
  for (std::size_t i = 0; i < pending.requests.size(); ++i) {
    if (pending.requests[i] != MPI_REQUEST_NULL) silent.push_back(pending.ranks[i]);
  }
  for (const Awaited& piece : pending.awaited) {
    if (!piece.is_complete) silent.push_back(piece.from);
  }
  std::sort(silent.begin(), silent.end());
  silent.erase(std::unique(silent.begin(), silent.end()), silent.end());
  return silent;
}

std::vector<std::size_t> MpiMessages::move_all(SentPieces sends, ReceivedPieces receives,
                                               std::chrono::milliseconds time_limit) {
  Pending pending;
  for (std::size_t i = 1; i < ranks(); ++i) {  // do not begin with the same rank everywhere
    const std::size_t to = (rank_ + i) % ranks();
    const std::size_t from = (rank_ + ranks() - i) % ranks();
    send(sends[to], to, pending);
    pending.awaited.push_back({.from = from, .rest = receives[from]});
  }
  std::vector<std::size_t> silent = wait(pending, time_limit);
  call_ = (call_ + 1) % kCalls;
  return silent;
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
  exchange(nothing, std::vector<std::span<std::byte>>(ranks()));  // wait for all ranks
  while (!numbers.empty()) {
    const std::span<float> part =
        numbers.first(std::min(numbers.size(), kLargestMessage / sizeof(float)));
    numbers = numbers.subspan(part.size());
    Pending pending;
    MPI_Request& request = add_request(rank_, pending);
    {
      const auto guard = lock();
      check_mpi(MPI_Iallreduce(MPI_IN_PLACE, part.data(), static_cast<int>(part.size()), MPI_FLOAT,
                               MPI_SUM, sums_, &request),
                "MPI cannot sum");
    }
    if (!wait(pending, time_limit_).empty()) fail_in_sum();
  }
}

// Finds the silent ranks: all ranks stopped waiting at about the same time, so the others answer.
void MpiMessages::fail_in_sum() {
  using namespace std::chrono_literals;
  const auto patience = std::max<std::chrono::milliseconds>(1s, time_limit_ / 4);
  const std::vector<std::span<const std::byte>> nothing(ranks());
  std::vector<std::size_t> silent =
      move_all(nothing, std::vector<std::span<std::byte>>(ranks()), patience);
  if (!silent.empty()) fail(silence(silent, nodes_, time_limit_));
  fail("a sum over all ranks, all of which are there, has not come for the time limit");
}

MpiCommunicator::MpiCommunicator(std::unique_ptr<MpiMessages> messages, bool leaves_mpi)
    : Communicator{messages->nodes(), messages->rank()},
      messages_{std::move(messages)},
      leaves_mpi_{leaves_mpi},
      exceptions_{std::uncaught_exceptions()} {}

// MPI_Finalize waits for all ranks without a time limit.
MpiCommunicator::~MpiCommunicator() {
  if (!leaves_mpi_ || std::uncaught_exceptions() > exceptions_) return;
  if (!messages_->failure().empty()) return;
  try {
    wait_for_all(*this);
    MPI_Finalize();
  } catch (const std::exception& error) {
    fmt::print(stderr, "spillway: {}\n", error.what());
  }
}

void MpiCommunicator::exchange(SentPieces sends, ReceivedPieces receives) {
  messages_->exchange(sends, receives);
}

void MpiCommunicator::sum(std::span<float> numbers) { messages_->sum(numbers); }

void MpiCommunicator::abort(std::string_view sentence) {
  const std::array<std::size_t, 1> own{rank()};
  fmt::print(stderr, "spillway: {} ended: {}\n", rank_names(own, nodes()), um::shortened(sentence));
  const auto guard = messages_->lock();
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  std::_Exit(EXIT_FAILURE);
}

}  // namespace spillway
