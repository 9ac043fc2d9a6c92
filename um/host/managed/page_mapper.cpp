#include "um/host/managed/page_mapper.h"

#include <optional>
#include <string>

#include "um/error.h"
#include "um/host/managed/memfd_segv.h"
#include "um/host/managed/uffd_move.h"
#include "um/host/managed/uffd_probe.h"

namespace spillway::um {

std::unique_ptr<PageMapper> make_page_mapper(Paging paging, const PageGeometry& geometry) {
  if (paging == Paging::kMemfdSegv) return std::make_unique<MemfdSegv>(geometry);
  const std::optional<std::string> reason = probe_uffd_move();
  if (!reason) return std::make_unique<UffdMove>(geometry);
  if (paging == Paging::kAuto) return std::make_unique<MemfdSegv>(geometry);
  throw Error{"paging by uffd_move is not available: " + *reason + "; use --paging memfd"};
}

}  // namespace spillway::um
