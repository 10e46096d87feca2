// SPDX-License-Identifier: Apache-2.0
// Why a run cannot go on: which program waits for what, and which work is outstanding where.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "system/programs.h"

namespace sys {

class Watchdog {
 public:
  /// `programs` may be null. Looks only; nothing is changed and no simulated time passes.
  Watchdog(const std::vector<std::unique_ptr<Host>>& hosts, const Programs* programs)
      : hosts_(hosts), programs_(programs) {}

  /// For people: first the programs that have not ended, then queue pairs with work, then completion queues with something
  /// to say, then devices that did not come up.
  std::vector<std::string> report() const;
  /// At time `now` every program has been blocked for `limit` at least, without a time limit of its own, and no ACK timeout
  /// runs that would end a wait: only RNR retries without end are left (S-RC-52).
  bool stalled(sim::Picos now, sim::Picos limit) const;

 private:
  std::string name_of(const Process& process, const void* handle, const std::string& fallback) const;
  void threads(std::vector<std::string>& out) const;
  void queues(const Host& host, const Process& process, std::vector<std::string>& out) const;

  const std::vector<std::unique_ptr<Host>>& hosts_;
  const Programs* programs_;
};

}  // namespace sys
