// SPDX-License-Identifier: Apache-2.0
// Why a run cannot go on: which program waits for what, and which work is outstanding where.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/json.h"
#include "system/programs.h"

namespace sys {

/// One finding: a line for people, and its facts as docs/result.md describes `stuck`.
struct Stuck {
  std::string text;
  sim::Json facts;
};

class Watchdog {
 public:
  /// `programs` may be null. Looks only; nothing is changed and no simulated time passes.
  Watchdog(const std::vector<std::unique_ptr<Host>>& hosts, const Programs* programs)
      : hosts_(hosts), programs_(programs) {}

  /// First the programs that have not ended, then queue pairs with work, then completion queues with something
  /// to say, then devices that did not come up.
  std::vector<Stuck> report() const;
  /// At time `now` every program has been blocked for `limit` at least, without a time limit of its own, and no ACK timeout
  /// runs that would end a wait: only RNR retries without end are left (S-RC-52).
  bool stalled(sim::Picos now, sim::Picos limit) const;

 private:
  std::string name_of(const Process& process, const void* handle) const;
  void threads(std::vector<Stuck>& out) const;
  void queue_pairs(const Host& host, const Process& process, std::vector<Stuck>& out) const;
  void completion_queues(const Host& host, const Process& process, std::vector<Stuck>& out) const;

  const std::vector<std::unique_ptr<Host>>& hosts_;
  const Programs* programs_;
};

}  // namespace sys
