#include "um/host/managed/remap_events.h"

#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "um/error.h"

namespace spillway::um {

RemapEvents::EventFd::EventFd() : number_{eventfd(0, EFD_CLOEXEC)} {
  if (number_ < 0) throw system_error("cannot watch managed memory", errno);
}

RemapEvents::EventFd::~EventFd() { close(number_); }

RemapEvents::RemapEvents(int descriptor) : reading_{"um remaps"} {
  reading_.enqueue([this, descriptor] { read_all(descriptor); });
}

RemapEvents::~RemapEvents() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(end_.number(), &one, sizeof(one));
  reading_.drain();
}

// Nothing follows from an event: a page that is not at its place is noticed when it is to be moved.
void RemapEvents::read_all(int descriptor) const {
  std::array<pollfd, 2> awaited{{{.fd = descriptor, .events = POLLIN, .revents = 0},
                                 {.fd = end_.number(), .events = POLLIN, .revents = 0}}};
  while ((awaited[1].revents & POLLIN) == 0) {
    if (poll(awaited.data(), awaited.size(), /*timeout=*/-1) < 0) continue;  // EINTR
    uffd_msg event{};
    [[maybe_unused]] const auto got = read(descriptor, &event, sizeof(event));  // EAGAIN: none
  }
}

}  // namespace spillway::um
